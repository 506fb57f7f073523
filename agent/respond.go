package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"muntin/agent/llm"
)

// grace is how long an aborted tool or provider may take to come to an end.
const grace = 150 * time.Millisecond

// respond gets one response and adds it to the transcript, failed ones too. The
// error is why it failed; then the message says so as well. late allows a last
// look at the steering queue, for what came while a hook was at work.
func (r *run) respond(late bool) (llm.Message, error) {
	cfg := r.agent.settings()
	s := &stream{run: r, model: cfg.model, ended: make(chan struct{})}
	req, cause := r.request(cfg, late)
	switch {
	case r.broken != nil:
		return llm.Message{}, r.broken
	case r.ctx.Err() != nil:
		cause = r.aborted()
	case cause != nil:
		r.hookFailed = true
	default:
		cause = s.read(r.ctx, cfg.provider, req)
	}
	m := s.finish(cause)
	if !s.started {
		if err := r.emit(Event{Type: EventMessageStart, Message: &m}); err != nil {
			return m, err
		}
	}
	if err := r.commitEnd(m); err != nil {
		return m, err
	}
	if cause == nil {
		r.shortened = false
		return m, r.retryEnded(nil)
	}
	return m, cause
}

// request makes the next request.
func (r *run) request(cfg config, late bool) (llm.Request, error) {
	a := r.agent
	if hook := a.hooks.PrepareTurn; hook != nil && r.ctx.Err() == nil {
		messages, err := hook(r.ctx, a.Messages())
		if err != nil {
			return llm.Request{}, hookError("preparing the turn", err)
		}
		if messages != nil {
			r.replace(messages)
		}
		if late {
			if err := r.deliver(a.take(&a.steering)); err != nil {
				return llm.Request{}, err
			}
		}
	}
	messages := a.Messages()
	if hook := a.hooks.TransformContext; hook != nil && r.ctx.Err() == nil {
		var err error
		if messages, err = hook(r.ctx, messages); err != nil {
			return llm.Request{}, hookError("transforming the context", err)
		}
	}
	return llm.Request{
		Model:     cfg.model,
		System:    cfg.system,
		Messages:  llm.Sendable(messages),
		Tools:     cfg.tools.specs,
		MaxTokens: cfg.maxTokens,
		SessionID: a.sessionID,
		Thinking:  cfg.thinking,
	}, nil
}

func hookError(doing string, err error) error { return fmt.Errorf("%s: %w", doing, err) }

// a stream is the reading of one response. The provider's goroutine hands the
// events out itself: a channel between the two would cost more than all the rest.
type stream struct {
	run   *run
	model string
	ended chan struct{} // closed when there is nothing more to hand out

	mu      sync.Mutex // guards all below, and the run, while the provider is at work
	closed  bool       // nothing more may be handed out
	partial llm.Partial
	whole   *llm.Message // from the terminal event
	started bool         // message_start is out
	err     error        // why there is no whole response
	crash   any          // what OnEvent panicked with
}

// read hands out the provider's events until the response has ended. The error
// is why there is no whole response.
func (s *stream) read(ctx context.Context, provider llm.Provider, req llm.Request) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.pump(ctx, provider, req)
	}()
	s.wait(gone)
	s.close(s.run.aborted) // only does something when the provider was abandoned
	if s.crash != nil {
		panic(s.crash) // in the goroutine of whoever gave the OnEvent
	}
	return s.err
}

// wait returns when the provider has gone, or does not go soon after the end of
// the response or an abort.
func (s *stream) wait(gone <-chan struct{}) {
	done, ended := s.run.ctx.Done(), s.ended
	var patience <-chan time.Time
	for {
		select {
		case <-gone:
			return
		case <-patience:
			return
		case <-s.run.agent.kick:
			s.mu.Lock()
			if !s.closed {
				_ = s.run.emitQueue() // an error ends ctx, and is in run.broken
			}
			s.mu.Unlock()
			continue
		case <-done:
		case <-ended:
		}
		done, ended = nil, nil // the first of the two counts
		timer := time.NewTimer(grace)
		defer timer.Stop()
		patience = timer.C
	}
}

// pump reads the provider's stream up to its terminal event.
func (s *stream) pump(ctx context.Context, provider llm.Provider, req llm.Request) {
	defer s.close(func() error {
		return &llm.Error{Class: llm.ClassRetryable, Message: "the response ended without saying so"}
	})
	defer func() {
		if v := recover(); v != nil {
			s.close(func() error { return fmt.Errorf("the provider panicked: %v", v) })
		}
	}()
	for e := range provider.Stream(ctx, req) {
		if !s.take(e) {
			return
		}
	}
}

// close lets nothing more out. When the response has not ended yet, why says
// what that means.
func (s *stream) close(why func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.end(why())
	}
}

// end needs the lock.
func (s *stream) end(err error) {
	s.closed, s.err = true, err
	close(s.ended)
}

// take handles one event and tells whether there may be more.
func (s *stream) take(e llm.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if v := recover(); v != nil {
			s.crash = v
			s.end(nil)
		}
	}()
	if s.closed {
		return false
	}
	if ended, err := s.handle(e); ended || err != nil {
		s.end(err)
	}
	return !s.closed
}

func (s *stream) handle(e llm.Event) (ended bool, err error) {
	switch e.Type {
	case llm.EventDone, llm.EventError:
		s.whole = e.Message
		if s.whole == nil {
			m := s.partial.Message()
			s.whole = &m
		}
		return true, failure(e, s.whole)
	}
	s.partial.Add(e)
	if !s.started {
		s.started = true
		m := s.message()
		if err := s.run.emit(Event{Type: EventMessageStart, Message: &m}); err != nil {
			return true, err
		}
	}
	if e.Type == llm.EventStart {
		return false, nil
	}
	return false, s.run.emit(Event{Type: EventMessageUpdate, Stream: &e})
}

// failure gives why a terminal event is no good response, or nil.
func failure(e llm.Event, m *llm.Message) error {
	if e.Type == llm.EventDone && m.StopReason != llm.StopError && m.StopReason != llm.StopAborted {
		return nil
	}
	if e.Err != nil {
		return e.Err
	}
	if m.ErrorMessage != "" {
		return errors.New(m.ErrorMessage)
	}
	return errors.New("the provider gave no reason")
}

// finish gives the message as it goes into the transcript.
func (s *stream) finish(cause error) llm.Message {
	m := s.message()
	switch {
	case cause == nil:
		m.ErrorMessage = ""
		if m.StopReason == "" || m.StopReason == llm.StopEnd {
			m.StopReason = llm.StopEnd
			if len(m.ToolCalls()) > 0 {
				m.StopReason = llm.StopToolUse
			}
		}
	case s.run.ctx.Err() != nil:
		m.StopReason, m.ErrorMessage = llm.StopAborted, "Request was aborted"
	default:
		m.StopReason, m.ErrorMessage = llm.StopError, cause.Error()
	}
	return soundCalls(m)
}

func (s *stream) message() llm.Message {
	m := s.partial.Message()
	if s.whole != nil {
		m = *s.whole
	}
	m.Role = llm.RoleAssistant
	if m.Model == "" {
		m.Model = s.model
	}
	return s.run.agent.stamp(m)
}
