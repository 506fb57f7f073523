package rpc

import (
	"context"
	"errors"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
)

// errBusy is the answer to a prompt that comes during a run.
const errBusy = said("Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.")

// a message is the part of a command that is for the model.
type message struct {
	Message  string      `json:"message"`
	Images   []llm.Block `json:"images"`
	Behavior string      `json:"streamingBehavior"`
}

// input is the message for the model: a template's text in place of its name.
func (m message) input(h *harness.Harness) (harness.Input, error) {
	for i, b := range m.Images {
		if b.Type != llm.BlockImage || b.Data == "" || b.MimeType == "" {
			return harness.Input{}, errors.New("an image needs type, data and mimeType")
		}
		m.Images[i] = llm.Block{Type: b.Type, Data: b.Data, MimeType: b.MimeType}
	}
	text, err := h.Expand(m.Message)
	return harness.Input{Text: text, Images: m.Images}, err
}

func (s *Server) prompt(ctx context.Context, c command) answer {
	var m message
	if err := c.params(&m); err != nil {
		return answer{err: err}
	}
	in, err := m.input(s.current())
	if err != nil {
		return answer{err: err}
	}
	h, end := s.begin()
	if end != nil {
		return answer{data: object{"disposition": "started"}, then: func() {
			s.runOn(h, end, func() error { _, err := h.PromptWith(ctx, in); return err })
		}}
	}
	switch m.Behavior {
	case "steer":
		return s.queue((*harness.Harness).SteerWith, in)
	case "followUp":
		return s.queue((*harness.Harness).FollowUp, in)
	case "":
		return answer{err: errBusy}
	}
	return answer{err: errors.New("streamingBehavior is neither steer nor followUp")}
}

func (s *Server) steer(_ context.Context, c command) answer {
	return s.queued(c, (*harness.Harness).SteerWith)
}

func (s *Server) followUp(_ context.Context, c command) answer {
	return s.queued(c, (*harness.Harness).FollowUp)
}

func (s *Server) queued(c command, put func(*harness.Harness, harness.Input)) answer {
	var m message
	if err := c.params(&m); err != nil {
		return answer{err: err}
	}
	in, err := m.input(s.current())
	if err != nil {
		return answer{err: err}
	}
	return s.queue(put, in)
}

// queue puts a message into a queue. It holds the lock so that the run's end does
// not miss it.
func (s *Server) queue(put func(*harness.Harness, harness.Input), in harness.Input) answer {
	h := s.current()
	s.mu.Lock()
	idle := s.run == nil
	put(h, in)
	s.mu.Unlock()
	if idle {
		s.tellQueue(h)
	}
	return answer{data: object{"disposition": "queued"}}
}

// tellQueue tells of a change in the queues that no run tells of.
func (s *Server) tellQueue(h *harness.Harness) {
	steering, followUp := h.Waiting()
	s.onEvent(agent.Event{Type: agent.EventQueue, Steering: steering, FollowUp: followUp})
}

func (s *Server) clearQueue(_ context.Context, _ command) answer {
	h := s.current()
	s.mu.Lock()
	idle := s.run == nil
	steering, followUp := h.ClearQueue()
	s.mu.Unlock()
	if idle && len(steering)+len(followUp) > 0 {
		s.tellQueue(h)
	}
	return answer{data: object{"steering": steering, "followUp": followUp}}
}

// begin takes the place of the one run. end is nil when another has it.
func (s *Server) begin() (h *harness.Harness, end chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil || s.closing {
		return s.agent, nil
	}
	s.run = make(chan struct{})
	return s.agent, s.run
}

// runOn makes a run that begin has found the place for, and goes on as long as
// messages wait. After a failure of the model they stay waiting.
func (s *Server) runOn(h *harness.Harness, end chan struct{}, first func() error) {
	next := first
	for next != nil {
		err := next()
		next = nil
		s.mu.Lock()
		if (err == nil || errors.Is(err, harness.ErrAborted)) && !s.closing && h.Queued() > 0 {
			next = func() error { _, err := h.Continue(s.ctx); return err }
			close(end) // for whoever waits for an abort
			end = make(chan struct{})
			s.run = end
		} else {
			s.settle(err) // within the lock: what is queued now is after the settled
			s.run = nil
			close(end)
		}
		s.mu.Unlock()
	}
}

// abort ends what goes on and waits for its end. Messages that wait then go on.
func (s *Server) abort(ctx context.Context, _ command) answer {
	s.halt()
	return answer{err: ctx.Err()}
}

// halt aborts the present run or compaction and waits for its end.
func (s *Server) halt() {
	s.mu.Lock()
	h, run := s.agent, s.run
	s.mu.Unlock()
	h.Abort()
	if run != nil {
		<-run
	}
}

// pause is halt after which no run follows, until resume is called: what waits
// stays waiting.
func (s *Server) pause() (resume func()) {
	closing := func(on bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closing = on
	}
	closing(true)
	s.halt()
	return func() { closing(false) }
}

func (s *Server) current() *harness.Harness {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent
}

func (s *Server) compactNow(ctx context.Context, c command) answer {
	var p struct {
		Instructions string `json:"customInstructions"`
	}
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	s.pause()()
	h, end := s.begin()
	if end == nil { // only this goroutine begins anything
		return answer{err: errBusy}
	}
	return answer{later: func() answer {
		var done agent.Compaction
		var err error
		s.runOn(h, end, func() error {
			done, err = h.Compact(ctx, p.Instructions)
			return nil
		})
		return answer{data: done, err: err}
	}}
}

func (s *Server) bash(ctx context.Context, c command) answer {
	var p struct {
		Command string `json:"command"`
		Exclude bool   `json:"excludeFromContext"`
	}
	if err := c.params(&p); err != nil {
		return answer{err: err}
	}
	h := s.current()
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.lastKey++
	key := s.lastKey
	s.commands[key] = cancel
	s.mu.Unlock()
	return answer{later: func() answer {
		defer func() {
			cancel()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.commands, key)
		}()
		b, err := h.Bash(ctx, harness.BashRequest{Command: p.Command, Exclude: p.Exclude, OnOutput: func(delta string) {
			o := object{"type": "bash_execution_update", "delta": delta}
			if c.id != nil {
				o["id"] = c.id
			}
			s.out.write(o)
		}})
		o := object{"output": b.Output, "cancelled": b.Cancelled, "truncated": b.Truncated}
		if b.ExitCode != nil {
			o["exitCode"] = *b.ExitCode
		}
		if b.FullOutput != "" {
			o["fullOutputPath"] = b.FullOutput
		}
		return answer{data: o, err: err}
	}}
}

func (s *Server) abortBash(_ context.Context, _ command) answer {
	s.endCommands()
	return answer{}
}

func (s *Server) endCommands() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.commands {
		cancel()
	}
}

// A said is an error in the words that Pi has for it, which its clients may look for.
type said string

func (s said) Error() string { return string(s) }
