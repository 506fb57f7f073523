package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"muntin/agent/llm"
)

// A Call is one request for a stream.
type Call struct {
	Client    *http.Client
	Request   *http.Request // its context is replaced
	Deadlines llm.Deadlines
	Secrets   []string               // what error texts must not show
	Events    func(io.Reader) Events // how the body is read; nil: as server-sent events
}

// Events are the events of a body. The error at its clean end is io.EOF.
type Events interface {
	Next() (SSEvent, error)
}

// A Stream is the answer to a call. It is for one goroutine.
type Stream struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	body    io.ReadCloser
	events  Events
	whole   *time.Timer // nil: no bound
	dog     *watchdog
	idle    time.Duration
	secrets []string
}

// Open sends the request and returns when the answer begins. All errors are
// *llm.Error. The caller closes the stream.
//
// The connect deadline ends when a connection is there, which http.Transport
// tells; with another kind of transport it lasts until the answer begins.
func Open(ctx context.Context, c Call) (*Stream, error) {
	limits := c.Deadlines.WithDefaults()
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Stream{ctx: ctx, cancel: cancel, dog: &watchdog{cancel: cancel}, idle: limits.Idle, secrets: c.Secrets}
	s.dog.set("no connection", limits.Connect)
	if limits.Whole > 0 {
		s.whole = time.AfterFunc(limits.Whole, func() {
			cancel(&llm.Error{Class: llm.ClassRetryable, Message: fmt.Sprintf("the response was not whole after %s", limits.Whole)})
		})
	}
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { s.dog.set("no answer", limits.FirstEvent) }}
	resp, err := c.Client.Do(c.Request.WithContext(httptrace.WithClientTrace(ctx, trace))) //nolint:bodyclose // Close does
	if err != nil {
		err = s.fail(err)
		s.Close()
		return nil, err
	}
	s.body = resp.Body
	if err := s.check(resp); err != nil {
		s.Close()
		return nil, err
	}
	if c.Events != nil {
		s.events = c.Events(resp.Body)
	} else {
		s.events = NewReader(resp.Body, 0)
	}
	return s, nil
}

// Next gives the next event. At the clean end of the answer it returns io.EOF;
// all other errors are *llm.Error.
func (s *Stream) Next() (SSEvent, error) {
	e, err := s.events.Next()
	if err != nil {
		if err == io.EOF { //nolint:errorlint // only the clean end, not one within an error
			return SSEvent{}, io.EOF
		}
		return SSEvent{}, s.fail(err)
	}
	s.dog.alive("silence", s.idle)
	return e, nil
}

// Hurry shortens the deadline between events for what is left of the stream.
func (s *Stream) Hurry(limit time.Duration) {
	if s.idle < 0 || limit < s.idle {
		s.idle = limit
		s.dog.set("silence", limit)
	}
}

// Close ends the request, wherever it is.
func (s *Stream) Close() {
	s.dog.stop()
	if s.whole != nil {
		s.whole.Stop()
	}
	s.cancel(context.Canceled)
	if s.body != nil {
		_ = s.body.Close() // there is nothing left to lose
	}
}

// check turns an answer that is no stream of events into an error.
func (s *Stream) check(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && kind != "application/json" && kind != "text/html" {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil && resp.StatusCode == http.StatusOK {
		return s.fail(err)
	}
	text := s.ErrorText(body)
	if resp.StatusCode == http.StatusOK {
		return &llm.Error{Class: classOrInvalid(text), Message: fmt.Sprintf("expected an event stream, got %s: %s", kind, text)}
	}
	if text == "" {
		text = http.StatusText(resp.StatusCode)
	}
	e := &llm.Error{
		Class:      llm.ClassifyStatus(resp.StatusCode, text),
		Status:     resp.StatusCode,
		RetryAfter: retryAfter(resp.Header, time.Now()),
		Message:    text,
	}
	if e.RetryAfter == 0 {
		if e.RetryAfter = retryDelay(body); e.RetryAfter > 0 && resp.StatusCode == http.StatusTooManyRequests {
			e.Class = llm.ClassRetryable // a quota of a minute, which reads like one of a month
		}
	}
	e.Class = shouldRetry(resp.Header.Get("X-Should-Retry"), e.Class)
	return e
}

// shouldRetry follows the server's own word, where it gives one: it knows what a
// status cannot tell. A request that is too long, or has no key, stays so.
func shouldRetry(word string, class llm.Class) llm.Class {
	switch {
	case word == "true" && class != llm.ClassOverflow && class != llm.ClassAuth:
		return llm.ClassRetryable
	case word == "false" && class == llm.ClassRetryable:
		return llm.ClassOther
	}
	return class
}

func classOrInvalid(text string) llm.Class {
	if class := llm.ClassifyStatus(0, text); class != llm.ClassOther {
		return class
	}
	return llm.ClassInvalid
}

// fail classifies an error of the transport. The cause of the context, that is
// the caller's abort or a deadline of ours, counts before what it led to.
func (s *Stream) fail(err error) error {
	if s.ctx.Err() != nil {
		cause := context.Cause(s.ctx)
		if e, ok := errors.AsType[*llm.Error](cause); ok {
			return e
		}
		return &llm.Error{Class: llm.ClassAborted, Message: "the request was aborted", Err: cause}
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the address, which may hold a key
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	class := llm.Classify(err)
	if errors.Is(err, ErrTooLarge) {
		class = llm.ClassOther
	}
	text := err.Error()
	clean := redact(text, s.secrets)
	e := &llm.Error{Class: class, Message: "connection failed: " + clean, Err: err}
	if clean != text {
		e.Err = nil // its text shows a key
	}
	return e
}
