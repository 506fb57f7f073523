// Package openai speaks the Chat Completions API of OpenAI, as streamed by OpenAI
// and by the many servers that are compatible with it. It makes one request for
// one response and never retries. How a server differs is data: see Quirks.
//
// Source: https://platform.openai.com/docs/api-reference/chat and, for
// reasoning_content and the usage fields of other servers, their documentation.
package openai

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// API is what messages of this dialect carry as their API.
const API = "openai-completions"

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options are what a Client is made of. All may be left out. The compat object of
// Endpoint.Model is read as Quirks.
type Options struct {
	llm.Endpoint
	HTTPClient *http.Client // default: one of its own, with the proxy of the environment
	Path       string       // after the base URL; default /chat/completions
}

// A Client is an llm.Provider.
type Client struct {
	wire   *wire.Client
	model  llm.Model
	path   string
	quirks Quirks
	wrong  error // of the quirks
}

// New makes a client. It does not look at the address or the key; what is wrong
// with them comes as the error of the first stream.
func New(o Options) *Client {
	w := wire.NewClient(o.Endpoint, o.HTTPClient, wire.Dialect{
		API: API, Provider: "openai", BaseURL: DefaultBaseURL, KeyHeader: "Authorization",
	})
	if o.Path == "" {
		o.Path = "/chat/completions"
	}
	c := &Client{wire: w, model: o.Model, path: o.Path}
	c.quirks, c.wrong = parseQuirks(o.Model.Compat)
	if u, err := url.Parse(w.Endpoint().BaseURL); err == nil && u.Hostname() == "api.openai.com" && len(o.Model.Compat) == 0 {
		c.quirks = ownQuirks()
	}
	return c
}

// CloseIdleConnections closes connections that no stream uses.
func (c *Client) CloseIdleConnections() { c.wire.CloseIdleConnections() }

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	ask := wire.Ask{
		Model: req.Model,
		Path:  c.path,
		Encode: func() ([]byte, error) {
			if c.wrong != nil {
				return nil, c.wrong
			}
			return c.encode(req)
		},
		Decode: func(a *wire.Answer) wire.Decoder { return newDecoder(a, c.quirks).event },
	}
	if c.quirks.SessionHeaders && req.Cache != llm.CacheNone {
		ask.Headers = wire.Affinity(c.quirks.SessionFormat, req.SessionID)
	}
	return c.wire.Stream(ctx, ask)
}
