// Package responses speaks the Responses API of OpenAI, as streamed by OpenAI and
// by servers that are compatible with it. Nothing is kept at the server: each
// request carries the conversation, with the model's encrypted reasoning. It makes
// one request for one response and never retries.
//
// Source: https://platform.openai.com/docs/api-reference/responses-streaming
package responses

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// API is what messages of this dialect carry as their API.
const API = "openai-responses"

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options are what a Client is made of. All may be left out. The compat object of
// Endpoint.Model is read as Quirks.
type Options struct {
	llm.Endpoint
	HTTPClient *http.Client // default: one of its own, with the proxy of the environment
	API        string       // what messages carry; default API
	Path       string       // after the base URL; default /responses
}

// Quirks say how a server differs from OpenAI's own. The JSON is the compat
// object of Pi's models.json, with some fields of ours at the end.
type Quirks struct {
	CacheKeyMode   string `json:"promptCacheKeyMode"` // disabled: it rejects prompt_cache_key
	SessionHeaders bool   `json:"sendSessionAffinityHeaders"`
	SessionFormat  string `json:"sessionAffinityFormat"`
	NoLongCache    bool   `json:"-"` // supportsLongCacheRetention: false
	NoEffort       bool   `json:"-"` // supportsReasoningEffort: false
	NoMaxTokens    bool   `json:"-"` // supportsMaxOutputTokens: false

	// Ours.
	NoSummary bool            `json:"noReasoningSummary"` // it rejects reasoning.summary
	Extra     json.RawMessage `json:"extraBody"`          // more fields of the body
}

func parseQuirks(compat json.RawMessage) (Quirks, error) {
	q := Quirks{}
	defaultTrue := struct {
		Long   *bool `json:"supportsLongCacheRetention"`
		Effort *bool `json:"supportsReasoningEffort"`
		Max    *bool `json:"supportsMaxOutputTokens"`
	}{}
	if err := wire.ReadCompat(compat, &q, &defaultTrue); err != nil {
		return q, err
	}
	q.NoLongCache, q.NoEffort, q.NoMaxTokens = wire.IsFalse(defaultTrue.Long), wire.IsFalse(defaultTrue.Effort), wire.IsFalse(defaultTrue.Max)
	return q, nil
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
	if o.Path == "" {
		o.Path = "/responses"
	}
	c := &Client{o: o, wire: wire.NewClient(o.Endpoint, o.HTTPClient, wire.Dialect{
		API: o.API, Provider: "openai", BaseURL: DefaultBaseURL, KeyHeader: "Authorization",
	})}
	c.quirks, c.wrong = parseQuirks(o.Model.Compat)
	return c
}

// CloseIdleConnections closes connections that no stream uses.
func (c *Client) CloseIdleConnections() { c.wire.CloseIdleConnections() }

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	ask := wire.Ask{
		Model: req.Model,
		Path:  c.o.Path,
		Encode: func() ([]byte, error) {
			if c.wrong != nil {
				return nil, c.wrong
			}
			return c.encode(req)
		},
		Decode: func(a *wire.Answer) wire.Decoder { return newDecoder(a).event },
	}
	if c.quirks.SessionHeaders && req.Cache != llm.CacheNone {
		ask.Headers = wire.Affinity(c.quirks.SessionFormat, req.SessionID)
	}
	return c.wire.Stream(ctx, ask)
}
