// Package openai speaks the Chat Completions API of OpenAI, as streamed by OpenAI
// and by the many servers that are compatible with it. It makes one request for
// one response and never retries.
//
// Source: https://platform.openai.com/docs/api-reference/chat and, for
// reasoning_content and the usage fields of other servers, their documentation.
package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// API is what messages of this dialect carry as their API.
const API = "openai-completions"

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options are what a Client is made of. All may be left out.
type Options struct {
	BaseURL    string            // up to the version, as in DefaultBaseURL
	APIKey     string            // sent as a bearer token; "" sends none
	HTTPClient *http.Client      // default: one of its own, with the proxy of the environment
	Provider   string            // the name in messages; default "openai"
	Headers    map[string]string // sent with each request, over the defaults
	Deadlines  llm.Deadlines

	// MaxTokensField names the field for the output limit. Default: OpenAI's own
	// max_completion_tokens for OpenAI's host, else max_tokens.
	MaxTokensField string
	Now            func() time.Time // for timestamps; default time.Now
}

// A Client is an llm.Provider.
type Client struct {
	o        Options
	endpoint string
	secrets  []string
}

// New makes a client. It does not look at the address or the key; what is wrong
// with them comes as the error of the first stream.
func New(o Options) *Client {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.Provider == "" {
		o.Provider = "openai"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.HTTPClient == nil {
		o.HTTPClient = ownClient()
	}
	o.Headers = maps.Clone(o.Headers)
	c := &Client{o: o, endpoint: strings.TrimRight(o.BaseURL, "/") + "/chat/completions", secrets: []string{o.APIKey}}
	for name, value := range o.Headers {
		if isSecret(name) {
			c.secrets = append(c.secrets, strings.TrimPrefix(value, "Bearer "))
		}
	}
	if c.o.MaxTokensField == "" {
		c.o.MaxTokensField = "max_tokens"
		if u, err := url.Parse(o.BaseURL); err == nil && u.Hostname() == "api.openai.com" {
			c.o.MaxTokensField = "max_completion_tokens"
		}
	}
	return c
}

// ownClient has no time limit for a whole response; the deadlines see to that.
// Compression is off because a proxy that compresses a stream holds it back.
func ownClient() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		transport = t.Clone()
	}
	transport.DisableCompression = true
	return &http.Client{Transport: transport}
}

func isSecret(header string) bool {
	h := strings.ToLower(header)
	return strings.Contains(h, "auth") || strings.Contains(h, "key") || strings.Contains(h, "token") || strings.Contains(h, "cookie")
}

// CloseIdleConnections closes connections that no stream uses.
func (c *Client) CloseIdleConnections() { c.o.HTTPClient.CloseIdleConnections() }

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) {
		head := llm.Message{API: API, Provider: c.o.Provider, Model: req.Model, Timestamp: c.o.Now().UnixMilli()}
		d := newDecoder(head, yield)
		if err := c.stream(ctx, req, d); err != nil {
			d.out.Fail(err, d.usage)
		}
	}
}

// stream reads one response into d. A nil error means that d has ended the
// stream or that the reader has stopped.
func (c *Client) stream(ctx context.Context, req llm.Request, d *decoder) error {
	httpReq, err := c.request(req)
	if err != nil {
		return &llm.Error{Class: llm.ClassInvalid, Message: "making the request: " + err.Error()}
	}
	s, err := wire.Open(ctx, wire.Call{Client: c.o.HTTPClient, Request: httpReq, Deadlines: c.o.Deadlines, Secrets: c.secrets})
	if err != nil {
		return err
	}
	defer s.Close()
	for !d.out.Stopped() {
		e, err := s.Next()
		if err == nil {
			err = d.event(e.Data, s)
		}
		switch {
		case err == nil:
		case d.stop != "" && !errors.Is(err, errInStream):
			// The answer was whole; only the counts after it are missing.
			d.out.Done(d.stop, d.usage)
		case errors.Is(err, io.EOF):
			return &llm.Error{Class: llm.ClassRetryable, Message: "the response ended without a finish reason", Err: io.ErrUnexpectedEOF}
		default:
			return err
		}
	}
	return nil
}

func (c *Client) request(req llm.Request) (*http.Request, error) {
	body, err := encode(req, c.o.MaxTokensField)
	if err != nil {
		return nil, err
	}
	// The stream sets the context.
	r, err := http.NewRequest(http.MethodPost, c.endpoint, bytes.NewReader(body)) //nolint:noctx // see above
	if err != nil {
		return nil, errors.New("the base URL is not valid") // the cause would show it, and a key within
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("User-Agent", "muntin")
	if c.o.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+c.o.APIKey)
	}
	for name, value := range c.o.Headers {
		r.Header.Set(name, value)
	}
	return r, nil
}
