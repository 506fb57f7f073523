package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"muntin/agent/llm"
)

// ErrInStream marks an error object that came inside the stream.
var ErrInStream = errors.New("error object in the stream")

// afterFinish is how long the counts may take once the answer is whole.
const afterFinish = 5 * time.Second

// A Dialect is what one API has of its own in the sending of requests.
type Dialect struct {
	API       string
	Provider  string            // the default
	BaseURL   string            // the default
	KeyHeader string            // the default; Authorization takes the key as a bearer token
	Headers   map[string]string // sent with each request
	Accept    string            // default: server-sent events
	Events    func(io.Reader) Events

	// Authorize signs a request, in place of a key header. It is called last.
	Authorize func(r *http.Request, body []byte) error
}

// A Client sends the requests of one dialect to one endpoint.
type Client struct {
	http     *http.Client
	endpoint llm.Endpoint
	dialect  Dialect
}

// NewClient makes a client. Without h it has an HTTP client of its own, with the
// proxy of the environment. What is wrong with the endpoint comes as the error of
// the first stream.
func NewClient(e llm.Endpoint, h *http.Client, d Dialect) *Client {
	if e.BaseURL == "" {
		e.BaseURL = d.BaseURL
	}
	if e.Provider == "" {
		e.Provider = d.Provider
	}
	if e.KeyHeader == "" {
		e.KeyHeader = d.KeyHeader
	}
	if e.Now == nil {
		e.Now = time.Now
	}
	headers := maps.Clone(d.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	for _, more := range []map[string]string{e.Model.Headers, e.Headers} {
		for name, value := range more {
			headers[http.CanonicalHeaderKey(name)] = value
		}
	}
	e.Headers = headers
	if h == nil {
		h = ownClient()
	}
	return &Client{http: h, endpoint: e, dialect: d}
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

// Endpoint gives the endpoint with its defaults.
func (c *Client) Endpoint() llm.Endpoint { return c.endpoint }

// CloseIdleConnections closes connections that no stream uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// An Ask is one request and how its answer is read.
type Ask struct {
	Model   string
	Path    string // after the base URL; with a query if need be
	Headers map[string]string
	Encode  func() ([]byte, error)
	Decode  func(*Answer) Decoder
}

// A Decoder takes the next event. It returns io.EOF at the end mark. Data is
// valid until it returns.
type Decoder func(SSEvent) error

// An Answer is a response on its way. A decoder sets Stop once the response is
// whole: from then on, whatever is missing is only the counts.
type Answer struct {
	Out   *llm.Builder
	Usage *llm.Usage
	Stop  llm.StopReason
	Head  llm.Message

	stream *Stream
}

// Stream sends a request and hands out its answer by the rules of llm.Provider.
func (c *Client) Stream(ctx context.Context, ask Ask) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) {
		head := llm.Message{API: c.dialect.API, Provider: c.endpoint.Provider, Model: ask.Model, Timestamp: c.endpoint.Now().UnixMilli()}
		a := &Answer{Out: llm.NewBuilder(head, yield), Head: head}
		if err := c.read(ctx, ask, a); err != nil {
			a.Out.Fail(err, c.priced(a.Usage))
		}
	}
}

// read reads one response into a. A nil error means that it has ended the stream
// or that the reader has stopped.
func (c *Client) read(ctx context.Context, ask Ask, a *Answer) error {
	s, err := c.open(ctx, ask)
	if err != nil {
		return err
	}
	defer s.Close()
	a.stream = s
	decode := ask.Decode(a)
	for !a.Out.Stopped() {
		e, err := s.Next()
		if err == nil {
			err = decode(e)
		}
		if a.Stop != "" {
			s.Hurry(afterFinish)
		}
		switch {
		case err == nil:
		case a.Stop != "" && !errors.Is(err, ErrInStream):
			a.Out.Done(a.Stop, c.priced(a.Usage))
		case errors.Is(err, io.EOF):
			return &llm.Error{Class: llm.ClassRetryable, Message: "the response ended without a finish reason", Err: io.ErrUnexpectedEOF}
		default:
			return err
		}
	}
	return nil
}

func (c *Client) priced(u *llm.Usage) *llm.Usage {
	if u == nil {
		return nil
	}
	priced := *u
	if priced.Cost == (llm.Cost{}) {
		priced.Cost = c.endpoint.Model.Price.Of(*u)
	}
	return &priced
}

func (c *Client) open(ctx context.Context, ask Ask) (*Stream, error) {
	body, err := ask.Encode()
	if err != nil {
		return nil, &llm.Error{Class: llm.ClassInvalid, Message: "making the request: " + err.Error()}
	}
	if limit := c.endpoint.Model.InputLimits.MaxRequestBytes; limit > 0 && len(body) > limit {
		return nil, &llm.Error{Class: llm.ClassOverflow, Message: fmt.Sprintf("the request has %d bytes, and its server takes %d (inputLimits.maxRequestBytes)", len(body), limit)}
	}
	key := ""
	if c.endpoint.Key != nil {
		if key, err = c.endpoint.Key(ctx); err != nil {
			return nil, keyError(ctx, c.endpoint.Provider, err)
		}
	}
	r, err := c.request(ask, body, key)
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return nil, e
	}
	if err != nil {
		return nil, &llm.Error{Class: llm.ClassInvalid, Message: "making the request: " + err.Error()}
	}
	return Open(ctx, Call{
		Client: c.http, Request: r, Deadlines: c.endpoint.Deadlines, Secrets: c.secrets(key, r), Events: c.dialect.Events,
	})
}

func keyError(ctx context.Context, provider string, err error) error {
	if ctx.Err() != nil {
		return &llm.Error{Class: llm.ClassAborted, Message: "the request was aborted", Err: context.Cause(ctx)}
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	return &llm.Error{Class: llm.ClassAuth, Message: "getting the key of " + provider + ": " + err.Error(), Err: err}
}

func (c *Client) request(ask Ask, body []byte, key string) (*http.Request, error) {
	address, err := join(c.endpoint.BaseURL, ask.Path)
	if err != nil {
		return nil, err
	}
	// The stream sets the context.
	r, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body)) //nolint:noctx // see above
	if err != nil {
		return nil, errBaseURL
	}
	accept := c.dialect.Accept
	if accept == "" {
		accept = "text/event-stream"
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	r.Header.Set("User-Agent", "muntin")
	if key != "" && c.endpoint.KeyHeader != "" {
		if strings.HasSuffix(strings.ToLower(c.endpoint.KeyHeader), "authorization") {
			key = "Bearer " + key
		}
		r.Header.Set(c.endpoint.KeyHeader, key)
	}
	for _, headers := range []map[string]string{ask.Headers, c.endpoint.Headers} {
		for name, value := range headers {
			if value == "" {
				r.Header.Del(name)
				continue
			}
			r.Header.Set(name, value)
		}
	}
	if c.dialect.Authorize != nil {
		if err := c.dialect.Authorize(r, body); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// errBaseURL has no cause: that would show the address, and a key within.
var errBaseURL = errors.New("the base URL is not valid")

// join puts a path behind a base URL, before the query of either.
func join(base, path string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return "", errBaseURL
	}
	path, query, _ := strings.Cut(path, "?")
	u.RawPath, u.Path = "", strings.TrimRight(u.Path, "/")
	address := url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: u.Path}
	text := address.String() + path
	switch {
	case u.RawQuery != "" && query != "":
		text += "?" + u.RawQuery + "&" + query
	case u.RawQuery+query != "":
		text += "?" + u.RawQuery + query
	}
	return text, nil
}

// secrets gives what no error may show: what was configured, and what signing added.
func (c *Client) secrets(key string, r *http.Request) []string {
	secrets := []string{key}
	for name, values := range r.Header {
		if isSecret(name) {
			for _, value := range values {
				secrets = append(secrets, strings.TrimPrefix(value, "Bearer "))
			}
		}
	}
	if u, err := url.Parse(c.endpoint.BaseURL); err == nil {
		if password, ok := u.User.Password(); ok {
			secrets = append(secrets, password)
		}
		for name, values := range u.Query() {
			if isSecret(name) {
				secrets = append(secrets, values...)
			}
		}
	}
	return secrets
}

func isSecret(header string) bool {
	h := strings.ToLower(header)
	return strings.Contains(h, "auth") || strings.Contains(h, "key") || strings.Contains(h, "token") || strings.Contains(h, "cookie")
}

// Broken is the error for an event that cannot be read.
func Broken(data []byte, err error) error {
	return &llm.Error{Class: llm.ClassRetryable, Message: "the stream is broken: " + err.Error() + " in an event of " + size(len(data))}
}

// Failed gives an error object that came in the stream as an error. Its code may
// be an HTTP status, its type a name that tells one.
func (a *Answer) Failed(object json.RawMessage) error {
	var known struct {
		Code   json.RawMessage `json:"code"`
		Status json.RawMessage `json:"status"`
		Type   string          `json:"type"`
	}
	status := 0
	if json.Unmarshal(object, &known) == nil {
		for _, field := range []json.RawMessage{known.Code, known.Status} {
			var n int
			if json.Unmarshal(field, &n) == nil && n >= 400 && n <= 599 { // often a name, and then no status
				status = n
				break
			}
		}
	}
	whole := []byte(`{"error":` + string(object) + `}`)
	said := ErrorText(whole)
	if a.stream != nil {
		said = a.stream.ErrorText(whole)
	}
	return &llm.Error{Class: llm.ClassifyStatus(status, said+" "+known.Type), Status: status, Message: said, Err: ErrInStream}
}

// Marshal gives v as JSON. It leaves <, > and & alone: code is full of them.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

// Join adds the fields of more JSON objects to one that has fields. What is no
// object, or has none, adds nothing.
func Join(object []byte, more ...json.RawMessage) []byte {
	for _, m := range more {
		m = bytes.TrimSpace(m)
		if len(m) == 0 || m[0] != '{' || !json.Valid(m) {
			continue
		}
		if fields := bytes.TrimSpace(m[1:]); fields[0] != '}' {
			object = append(append(object[:len(object)-1], ','), fields...)
		}
	}
	return object
}
