package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Request is one that the server got.
type Request struct {
	Path   string
	Query  string
	Header http.Header
	Body   []byte

	// From the body.
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`

	// The same in the APIs that call them so, as they came.
	Input    []json.RawMessage `json:"input"`    // Responses
	Contents []json.RawMessage `json:"contents"` // Gemini
}

// A Message is one of a request, in the terms of the wire format.
type Message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
}

// Text gives the content when it is a plain text, else "".
func (m Message) Text() string {
	var text string
	_ = json.Unmarshal(m.Content, &text) // null and lists have no plain text
	return text
}

// A Server is a model on the loopback interface. Close ends it.
type Server struct {
	// URL is the base URL for a client: http://127.0.0.1:port/v1. The API that the
	// server speaks is told by the path after it.
	URL string

	script Script
	server *http.Server
	closed chan struct{} // closed by Close: replies on hold end
	done   chan struct{} // closed when the accept loop has ended

	mu       sync.Mutex // guards requests
	requests []Request
	arrived  chan struct{} // holds one: requests has grown
	once     sync.Once
}

// NewServer starts a server. It panics when the loopback interface does not
// work, as httptest.NewServer does.
func NewServer(s Script) *Server {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("llmtest: listening on the loopback interface: %v", err))
	}
	srv := &Server{
		URL:     "http://" + listener.Addr().String() + "/v1",
		script:  s,
		closed:  make(chan struct{}),
		done:    make(chan struct{}),
		arrived: make(chan struct{}, 1),
	}
	srv.server = &http.Server{Handler: srv, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(srv.done)
		_ = srv.server.Serve(listener) // it always ends with the error that it was closed
	}()
	return srv
}

// Close ends all connections and waits for the server's goroutines.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.closed)
		_ = s.server.Close() // nothing depends on it any more
		<-s.done
	})
}

// Requests gives what came so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Arrived gives a value after each request that came, or after several at once.
func (s *Server) Arrived() <-chan struct{} { return s.arrived }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, req, err := s.record(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	speak := formatOf(r.URL.Path)
	if r.Method != http.MethodPost || speak == nil {
		fail(w, Failure{Status: http.StatusNotFound, Message: "no such endpoint: " + r.Method + " " + r.URL.Path})
		return
	}
	reply, ok := s.reply(n, req)
	if !ok {
		fail(w, Failure{Status: http.StatusBadRequest, Message: fmt.Sprintf("the script has no reply %d", n+1)})
		return
	}
	if reply.Fail != nil {
		fail(w, *reply.Fail)
		return
	}
	a := &answer{w: w, flush: http.NewResponseController(w), reply: reply, model: req.Model}
	a.send(speak(a))
	if reply.Hold {
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
	}
	if reply.Cut {
		panic(http.ErrAbortHandler) // the server drops the connection, and logs nothing
	}
}

// formatOf tells the API by its path.
func formatOf(path string) func(*answer) format {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return func(a *answer) format { return chat{a} }
	case strings.HasSuffix(path, "/messages"), strings.HasSuffix(path, ":streamRawPredict"):
		return func(a *answer) format { return &messages{answer: a} }
	case strings.HasSuffix(path, "/converse-stream"):
		return func(a *answer) format { return &converse{answer: a} }
	case strings.HasSuffix(path, "/responses"):
		return func(a *answer) format { return &responses{answer: a} }
	case strings.HasSuffix(path, ":streamGenerateContent"):
		return func(a *answer) format { return gemini{a} }
	}
	return nil
}

func (s *Server) record(r *http.Request) (int, Request, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, Request{}, fmt.Errorf("reading the request: %w", err)
	}
	req := Request{}
	if err := json.Unmarshal(body, &req); err != nil {
		return 0, Request{}, fmt.Errorf("the request is not JSON: %w", err)
	}
	if len(req.Messages)+len(req.Input)+len(req.Contents) == 0 {
		return 0, Request{}, errors.New("the request has no messages")
	}
	req.Path, req.Query, req.Header, req.Body = r.URL.Path, r.URL.RawQuery, r.Header.Clone(), body
	s.mu.Lock()
	s.requests = append(s.requests, req)
	n := len(s.requests) - 1
	s.mu.Unlock()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	return n, req, nil
}

func (s *Server) reply(n int, r Request) (Reply, bool) {
	if s.script.Choose != nil {
		return s.script.Choose(n, r), true
	}
	if n >= len(s.script.Replies) {
		return Reply{}, false
	}
	return s.script.Replies[n], true
}

func fail(w http.ResponseWriter, f Failure) {
	w.Header().Set("Content-Type", "application/json")
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	for name, value := range f.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(f.Status)
	if f.Body != "" {
		_, _ = io.WriteString(w, f.Body) // the client may be gone
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": f.Message}})
}
