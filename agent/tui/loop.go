package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/session"
	"muntin/internal/term"
)

// local is who sent what was typed in the pane.
const local = "user"

// loop is the state of a Run. It belongs to Run's goroutine.
type loop struct {
	*UI
	agent    Agent
	lines    <-chan string
	messages <-chan Incoming
	queue    []message   // they begin a turn each
	done     chan result // the running turn's end
	running  *message    // what began it
	waited   int         // messages that waited for a turn when it began
	eof      bool        // no more lines will come
	quit     bool
	lastStop time.Time // of the last Ctrl-C while nothing ran
}

// A message is one from the pane or from the link.
type message struct {
	id, text, from string
	resume         bool // it stands in the session already: go on from there
	typed          bool // the terminal has shown it
}

type result struct {
	outcome harness.Outcome
	err     error
}

// Run is the front end's life: it returns nil when the person leaves, ctx's error
// when ctx ends, and another error when the terminal or the session can no longer
// be written. The turn that runs is aborted and waited for. notices are told to
// the person first.
func (u *UI) Run(ctx context.Context, a Agent, notices ...string) error {
	l := &loop{UI: u, agent: a, done: make(chan result, 1)}
	u.screen.head(u.opts, notices)
	stop := l.readLines()
	defer stop()
	if u.opts.Link != nil {
		if err := u.opts.Link.Ready(ctx); err != nil {
			return fmt.Errorf("announcing the agent: %w", err)
		}
		l.messages = u.opts.Link.Messages()
	}
	if strings.TrimSpace(u.opts.First) != "" {
		first, err := a.Expand(u.opts.First)
		if err != nil {
			return err
		}
		l.queue = append(l.queue, message{text: first, from: local})
	}
	err := l.run(ctx)
	if l.running != nil {
		a.Abort()
		err = errors.Join(err, l.finish(<-l.done))
	}
	return errors.Join(err, u.screen.leave())
}

func (l *loop) run(ctx context.Context) error {
	l.screen.status(stateIdle, "")
	for {
		if l.running == nil && len(l.queue) > 0 && !l.quit {
			next := l.queue[0]
			l.queue = l.queue[1:]
			l.start(ctx, next)
		}
		if l.running == nil && (l.quit || l.eof) {
			return nil
		}
		if l.running == nil {
			l.screen.mark()
		}
		if err := l.screen.failed(); err != nil {
			return err
		}
		if err := l.wait(ctx); err != nil {
			return err
		}
	}
}

// wait handles the next thing that happens.
func (l *loop) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case r := <-l.done:
		return l.finish(r)
	case line, ok := <-l.lines:
		if !ok {
			l.lines, l.eof = nil, true
			return nil
		}
		l.typed(line)
	case in, ok := <-l.messages:
		if !ok {
			l.messages = nil
			return nil
		}
		l.incoming(in)
	case <-l.opts.Interrupts:
		l.interrupt()
	}
	return nil
}

// start begins a turn in a goroutine whose end comes over done.
func (l *loop) start(ctx context.Context, m message) {
	l.running, l.waited = &m, l.agent.Queued()
	l.turn.begin(m)
	if !m.typed && !m.resume {
		l.screen.prompt(m, "")
	}
	l.screen.status(stateWorking, "")
	go func() {
		var r result
		if m.resume {
			r.outcome, r.err = l.agent.Continue(ctx)
			if errors.Is(r.err, agent.ErrNothingToContinue) { // it was answered before
				r.err = nil
			}
		} else {
			r.outcome, r.err = l.agent.PromptFrom(ctx, session.Origin{ID: m.id, From: m.from}, m.text)
		}
		l.done <- r
	}()
}

// finish tells of a turn's end. The error is one after which nothing more can be
// done.
func (l *loop) finish(r result) error {
	l.screen.footer(r.outcome, r.err)
	switch failure := r.outcome.Failure(r.err); {
	case errors.Is(failure, harness.ErrAborted):
		l.screen.status(stateIdle, "")
	case failure != nil:
		l.screen.status(stateError, failure.Error())
	default:
		l.screen.status(stateDone, "")
	}
	l.turn.end(r.outcome, r.err)
	resumed := l.running.resume
	l.running = nil
	var broken *agent.EventError
	if errors.As(r.err, &broken) {
		return broken.Err // the session cannot be written: no turn can go on
	}
	// A steer came too late for the turn; unless it is one that not even a turn
	// of its own could take.
	if n := l.agent.Queued(); n > 0 && !(resumed && n >= l.waited) {
		l.queue = append([]message{{resume: true}}, l.queue...)
	}
	return nil
}

// typed handles a line from the pane.
func (l *loop) typed(line string) {
	l.screen.entered()
	text := strings.TrimSpace(line)
	if text == "" {
		return
	}
	text, err := l.agent.Expand(text)
	if err != nil {
		l.screen.note(err.Error())
		return
	}
	m := message{text: text, from: local, typed: l.opts.Echo && l.running == nil}
	if l.running == nil {
		l.queue = append(l.queue, m)
		return
	}
	l.steer(m)
}

func (l *loop) steer(m message) {
	l.turn.expect(m)
	l.screen.prompt(m, "steering")
	l.agent.SteerFrom(session.Origin{ID: m.id, From: m.from}, m.text)
}

// incoming handles a message from the link.
func (l *loop) incoming(in Incoming) {
	link := l.opts.Link
	m := message{id: in.ID, text: in.Text, from: term.CleanLine(in.From)}
	if in.Kind == KindAbort {
		if l.running == nil {
			link.Refused(in.ID, "no turn is running")
			return
		}
		l.screen.note("abort asked for by " + m.from)
		link.Accepted(in.ID)
		l.agent.Abort()
		return
	}
	switch {
	case in.Kind != KindPrompt && in.Kind != KindSteer && in.Kind != KindFollowUp:
		link.Refused(in.ID, fmt.Sprintf("unknown kind of message %q", in.Kind))
	case strings.TrimSpace(in.Text) == "":
		link.Refused(in.ID, "the message is empty")
	case in.ID != "" && l.agent.Knows(in.ID): // it came before a restart, and was taken
		link.Accepted(in.ID)
		if in.Kind != KindSteer || l.running == nil {
			m.resume = true
			l.queue = append(l.queue, m)
		}
	case in.Kind == KindSteer && l.running != nil:
		l.steer(m)
	default:
		l.queue = append(l.queue, m)
		if l.running != nil {
			l.screen.note("message from " + m.from + " waits for the end of the turn")
		}
	}
}

// interrupt is Ctrl-C.
func (l *loop) interrupt() {
	if l.running != nil {
		l.agent.Abort()
		return
	}
	now := l.opts.Now()
	if now.Sub(l.lastStop) <= quitWindow {
		l.quit = true
		return
	}
	l.lastStop = now
	l.screen.note("Press Ctrl-C again, or Ctrl-D, to leave.")
}
