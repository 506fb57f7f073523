// Package anthropic speaks the Messages API of Anthropic, as streamed by Anthropic
// and by servers that are compatible with it. It makes one request for one
// response and never retries. A response counts as whole only when it had both a
// stop reason and the message_stop event.
//
// Source: https://docs.anthropic.com/en/api/messages and
// https://docs.anthropic.com/en/docs/build-with-claude/streaming
package anthropic

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// API is what messages of this dialect carry as their API.
const API = "anthropic-messages"

// DefaultBaseURL is Anthropic's own.
const DefaultBaseURL = "https://api.anthropic.com"

// Version is the version of the API that is asked for.
const Version = "2023-06-01"

// Options are what a Client is made of. All may be left out. The compat object of
// Endpoint.Model is read as Quirks.
type Options struct {
	llm.Endpoint
	HTTPClient *http.Client // default: one of its own, with the proxy of the environment

	// Path gives the path for a model, after the base URL; default /v1/messages.
	Path func(model string) string
	// BodyVersion is sent in the body as anthropic_version, in place of the model
	// and the version header: so it is at Vertex.
	BodyVersion string
}

// Quirks say how a server differs from Anthropic's own. The JSON is the compat
// object of Pi's models.json, with some fields of ours at the end.
type Quirks struct {
	Adaptive       bool   `json:"forceAdaptiveThinking"` // the level goes as an effort, not as a budget
	EmptySignature bool   `json:"allowEmptySignature"`   // takes back thinking that has no signature
	NoEagerInput   bool   `json:"-"`                     // supportsEagerToolInputStreaming: false
	NoToolCache    bool   `json:"-"`                     // supportsCacheControlOnTools: false
	NoLongCache    bool   `json:"-"`                     // supportsLongCacheRetention: false
	SessionHeaders bool   `json:"sendSessionAffinityHeaders"`
	SessionFormat  string `json:"sessionAffinityFormat"`

	// Ours.
	Betas         []string        `json:"betas"`         // sent as anthropic-beta with each request
	ThinkingBetas *[]string       `json:"thinkingBetas"` // the same, when thinking has a budget
	Extra         json.RawMessage `json:"extraBody"`     // more fields of the body
}

func parseQuirks(compat json.RawMessage) (Quirks, error) {
	q := Quirks{}
	defaultTrue := struct {
		Eager *bool `json:"supportsEagerToolInputStreaming"`
		Tools *bool `json:"supportsCacheControlOnTools"`
		Long  *bool `json:"supportsLongCacheRetention"`
	}{}
	if err := wire.ReadCompat(compat, &q, &defaultTrue); err != nil {
		return q, err
	}
	q.NoEagerInput, q.NoToolCache, q.NoLongCache = wire.IsFalse(defaultTrue.Eager), wire.IsFalse(defaultTrue.Tools), wire.IsFalse(defaultTrue.Long)
	if q.ThinkingBetas == nil {
		q.ThinkingBetas = &[]string{"interleaved-thinking-2025-05-14"}
	}
	if q.SessionFormat == "" {
		q.SessionFormat = "anthropic"
	}
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
	d := wire.Dialect{API: API, Provider: "anthropic", BaseURL: DefaultBaseURL, KeyHeader: "X-Api-Key"}
	if o.BodyVersion == "" {
		d.Headers = map[string]string{"Anthropic-Version": Version}
	}
	if o.Path == nil {
		o.Path = func(string) string { return "/v1/messages" }
	}
	c := &Client{wire: wire.NewClient(o.Endpoint, o.HTTPClient, d), o: o}
	c.quirks, c.wrong = parseQuirks(o.Model.Compat)
	return c
}

// CloseIdleConnections closes connections that no stream uses.
func (c *Client) CloseIdleConnections() { c.wire.CloseIdleConnections() }

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	ask := wire.Ask{
		Model: req.Model,
		Path:  c.o.Path(req.Model),
		Encode: func() ([]byte, error) {
			if c.wrong != nil {
				return nil, c.wrong
			}
			return c.encode(req)
		},
		Decode: func(a *wire.Answer) wire.Decoder { return newDecoder(a).event },
	}
	ask.Headers = map[string]string{}
	if c.quirks.SessionHeaders && req.Cache != llm.CacheNone {
		ask.Headers = wire.Affinity(c.quirks.SessionFormat, req.SessionID)
	}
	if betas := c.betas(req); len(betas) > 0 {
		if ask.Headers == nil {
			ask.Headers = map[string]string{}
		}
		ask.Headers["Anthropic-Beta"] = strings.Join(betas, ",")
	}
	return c.wire.Stream(ctx, ask)
}

func (c *Client) betas(req llm.Request) []string {
	betas := append([]string{}, c.quirks.Betas...)
	if t := c.thinking(req, c.maxTokens(req)); t.thinking != nil && t.thinking.Budget > 0 && len(req.Tools) > 0 {
		betas = append(betas, *c.quirks.ThinkingBetas...)
	}
	return betas
}
