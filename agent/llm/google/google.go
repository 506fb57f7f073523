// Package google speaks the Gemini API of Google, as streamed by AI Studio and by
// Vertex AI. It makes one request for one response and never retries.
//
// Source: https://ai.google.dev/api/generate-content and, for thought signatures,
// https://ai.google.dev/gemini-api/docs/thought-signatures
package google

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// API is what messages of this dialect carry as their API.
const API = "google-generative-ai"

// VertexAPI is what they carry when they come from Vertex.
const VertexAPI = "google-vertex"

// DefaultBaseURL is that of AI Studio.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/v1beta"

// Options are what a Client is made of. All may be left out. The compat object of
// Endpoint.Model is read as Quirks.
type Options struct {
	llm.Endpoint
	HTTPClient *http.Client // default: one of its own, with the proxy of the environment
	API        string       // what messages carry; default API

	// ModelPath gives the path of a model, after the base URL; default
	// /models/<model>. The verb comes after it.
	ModelPath func(model string) string
}

// Quirks say how a model differs.
type Quirks struct {
	Levels bool            `json:"thinkingLevels"` // thinking goes by a level, as in Gemini 3, not by a budget
	Extra  json.RawMessage `json:"extraBody"`      // more fields of the body
}

// A Client is an llm.Provider.
type Client struct {
	wire   *wire.Client
	o      Options
	quirks Quirks
	wrong  error // of the quirks
}

// New makes a client. It does not look at the address or the key; what is wrong
// with them comes as the error of the first stream.
func New(o Options) *Client {
	if o.API == "" {
		o.API = API
	}
	if o.ModelPath == nil {
		o.ModelPath = func(model string) string { return "/models/" + url.PathEscape(strings.TrimPrefix(model, "models/")) }
	}
	c := &Client{o: o, wire: wire.NewClient(o.Endpoint, o.HTTPClient, wire.Dialect{
		API: o.API, Provider: "google", BaseURL: DefaultBaseURL, KeyHeader: "X-Goog-Api-Key",
	})}
	c.wrong = wire.ReadCompat(o.Model.Compat, &c.quirks)
	return c
}

// CloseIdleConnections closes connections that no stream uses.
func (c *Client) CloseIdleConnections() { c.wire.CloseIdleConnections() }

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	return c.wire.Stream(ctx, wire.Ask{
		Model: req.Model,
		Path:  c.o.ModelPath(req.Model) + ":streamGenerateContent?alt=sse",
		Encode: func() ([]byte, error) {
			if c.wrong != nil {
				return nil, c.wrong
			}
			return c.encode(req)
		},
		Decode: func(a *wire.Answer) wire.Decoder { return newDecoder(a).event },
	})
}
