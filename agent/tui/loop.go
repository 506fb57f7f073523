package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/session"
	"muntin/agent/tui/editor"
	"muntin/internal/term"
)

// local is who sent what was typed in the pane.
const local = "user"

// loop is the state of a Run. It belongs to Run's goroutine, but for the
// fields that say otherwise.
type loop struct {
	*UI
	typing   <-chan input
	messages <-chan Incoming
	queue    []message   // they begin a turn each
	done     chan result // the running turn's end
	running  *message    // what began it
	waited   int         // messages that waited for a turn when it began
	eof      bool        // no more input will come
	quit     bool
	ending   bool      // the process was told to end: its turn is cut off, not aborted
	lastStop time.Time // of the last Ctrl-C while nothing ran

	command  *running      // the slash command that goes on; nil: none
	later    []string      // slash commands that wait for its end
	over     chan *running // the end of a command or of a person's shell command
	shells   []*running    // the person's shell commands that go on
	work     sync.WaitGroup
	lastCall int

	back *wayBack // of the last going back; it belongs to the command that goes on

	named atomic.Pointer[[]Command] // commands of the agent
}

// A message is one from the pane or from the link.
type message struct {
	id, text, from string
	images         []llm.Block
	resume         bool // it stands in the session already: go on from there
	typed          bool // the terminal has shown it
}

func (m message) input() harness.Input {
	return harness.Input{Text: m.text, Images: m.images, Origin: session.Origin{ID: m.id, From: m.from}}
}

type result struct {
	outcome harness.Outcome
	err     error
}

// A running is something that goes on beside the loop.
type running struct {
	cancel context.CancelFunc
	idle   bool // no turn may begin meanwhile
	err    error
}

// Run is the front end's life: it returns nil when the person leaves, ctx's error
// when ctx ends, and another error when the terminal or the session can no longer
// be written. The turn that runs is aborted and waited for. notices are told to
// the person first. Commands may exchange
// the agent: the caller closes the one that Agent gives.
func (u *UI) Run(ctx context.Context, a *harness.Harness, notices ...string) error {
	l := &loop{UI: u, done: make(chan result, 1), over: make(chan *running)}
	l.present.Store(a)
	l.learn()
	u.opts.commands = l.commands
	u.display.head(ctx, u.opts, notices)
	if a.Resumed() {
		u.display.past(a.Messages())
	}
	l.cost.begin(a.Session())
	l.tellFacts(ctx)
	l.typing = u.display.inputs()
	err := l.life(ctx)
	return errors.Join(err, u.display.leave())
}

func (l *loop) life(ctx context.Context) error {
	if l.opts.Link != nil {
		if err := l.opts.Link.Ready(ctx); err != nil {
			return fmt.Errorf("announcing the agent: %w", err)
		}
		l.messages = l.opts.Link.Messages()
	}
	if strings.TrimSpace(l.opts.First) != "" {
		first, err := l.Agent().Expand(l.opts.First)
		if err != nil {
			return err
		}
		l.queue = append(l.queue, message{text: first, from: local})
	}
	err := l.run(ctx)
	l.asks.end()
	if l.running != nil {
		l.ending = ctx.Err() != nil
		l.Agent().Abort()
		err = errors.Join(err, l.finish(ctx, <-l.done))
	}
	l.endWork()
	return err
}

// endWork ends the commands that go on, and waits for them.
func (l *loop) endWork() {
	if l.command != nil {
		l.command.cancel()
	}
	for _, s := range l.shells {
		s.cancel()
	}
	ended := make(chan struct{})
	go func() { l.work.Wait(); close(ended) }()
	for {
		select {
		case <-l.over:
		case <-ended:
			return
		}
	}
}

func (l *loop) run(ctx context.Context) error {
	l.display.status(stateIdle, "")
	for {
		if l.running == nil && l.command == nil && len(l.queue) > 0 && !l.quit {
			next := l.queue[0]
			l.queue = l.queue[1:]
			l.showQueue()
			l.start(ctx, next)
		}
		if l.running == nil && l.command == nil && (l.quit || l.eof) {
			return nil
		}
		if l.running == nil && l.command == nil {
			l.display.ready()
		}
		if err := l.display.failed(); err != nil {
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
		return l.finish(ctx, r)
	case r := <-l.over:
		l.ended(ctx, r)
	case in, ok := <-l.typing:
		if !ok {
			l.typing, l.eof = nil, true
			l.asks.end()
			return nil
		}
		l.input(ctx, in)
	case in, ok := <-l.messages:
		if !ok {
			l.messages = nil
			return nil
		}
		l.incoming(in)
	case <-l.sent:
		if l.running == nil && l.Agent().Queued() > 0 { // else the turn takes them
			l.queue = append(l.queue, message{resume: true})
		}
	case <-l.opts.Interrupts:
		l.interrupt()
	}
	return nil
}

// start begins a turn in a goroutine whose end comes over done.
func (l *loop) start(ctx context.Context, m message) {
	a := l.Agent()
	l.running, l.waited = &m, a.Queued()
	l.turn.begin(m)
	if !m.typed && !m.resume {
		l.display.prompt(m, "")
	}
	l.display.status(stateWorking, "")
	l.tellFacts(ctx)
	go func() {
		var r result
		if m.resume {
			r.outcome, r.err = a.Continue(ctx)
			if errors.Is(r.err, agent.ErrNothingToContinue) { // it was answered before
				r.err = nil
			}
		} else {
			l.save(ctx, a, m)
			r.outcome, r.err = a.PromptWith(ctx, m.input())
		}
		l.done <- r
	}()
}

// save takes a checkpoint of the files before a turn. Where a supervisor watches
// over the agent, it does.
func (l *loop) save(ctx context.Context, a *harness.Harness, m message) {
	if l.opts.Host.Checkpoints == nil || l.opts.Link != nil {
		return
	}
	if err := l.opts.Host.Checkpoints.Save(ctx, a.Session().Leaf(), m.text); err != nil {
		l.display.note("no checkpoint: " + term.CleanLine(err.Error()))
	}
}

// finish tells of a turn's end. The error is one after which nothing more can be
// done.
func (l *loop) finish(ctx context.Context, r result) error {
	if !r.outcome.Handled || r.err != nil {
		l.display.footer(r.outcome, r.err)
	}
	switch failure := r.outcome.Failure(r.err); {
	case errors.Is(failure, harness.ErrAborted):
		l.display.status(stateIdle, "")
	case failure != nil:
		l.display.status(stateError, failure.Error())
	default:
		l.display.status(stateDone, "")
	}
	if l.ending {
		r.err = errors.Join(ErrEnding, r.err)
	}
	l.turn.end(r.outcome, r.err)
	resumed := l.running.resume
	l.running = nil
	l.tellFacts(ctx)
	var broken *agent.EventError
	if errors.As(r.err, &broken) {
		return broken.Err // the session cannot be written: no turn can go on
	}
	// A steer came too late for the turn; unless it is one that not even a turn
	// of its own could take.
	if n := l.Agent().Queued(); n > 0 && !(resumed && n >= l.waited) {
		l.queue = append([]message{{resume: true}}, l.queue...)
	}
	return nil
}

// input handles what a person did.
func (l *loop) input(ctx context.Context, in input) {
	switch in.kind {
	case inputLine, inputFollowUp:
		l.typed(ctx, in)
	case inputAbort:
		l.abort()
	case inputInterrupt:
		l.interrupt()
	case inputTakeBack:
		l.takeBack()
	case inputAnswer:
		l.asks.answer(in)
	case inputLeave:
		l.quit = true
	case inputModel:
		l.slash(ctx, "/model")
	case inputThinking:
		l.cycleThinking(ctx)
	}
}

// typed handles a text from the pane.
func (l *loop) typed(ctx context.Context, in input) {
	l.display.entered()
	text := strings.TrimSpace(in.text)
	if l.answerLine(text) || text == "" {
		return
	}
	l.work.Go(func() {
		if err := editor.SaveHistory(ctx, l.opts.History, text); err != nil {
			l.display.note(term.CleanLine(err.Error()))
		}
	})
	l.take(ctx, input{kind: in.kind, text: text})
}

// take carries a text of a person out: a command, or a prompt.
func (l *loop) take(ctx context.Context, in input) {
	text := in.text
	switch {
	case strings.HasPrefix(text, "!") && strings.Trim(text, "! ") != "":
		l.shell(ctx, text)
		return
	case l.slash(ctx, text):
		return
	}
	m := message{text: text, from: local, typed: l.opts.Echo && l.running == nil && !l.opts.Live}
	var err error
	if m.text, err = l.Agent().Expand(text); err != nil {
		l.display.note(term.CleanLine(err.Error()))
		return
	}
	m.images = l.pictures(m.text)
	if l.running != nil && in.kind == inputLine && !l.Agent().Calls(m.text) {
		l.steer(m)
		return
	}
	l.queue = append(l.queue, m)
	if l.running != nil || l.command != nil {
		l.showQueue()
	}
}

// showQueue shows the prompts that wait.
func (l *loop) showQueue() {
	var texts []string
	for _, m := range l.queue {
		if !m.resume {
			texts = append(texts, m.text)
		}
	}
	l.display.queued(texts)
}

func (l *loop) steer(m message) {
	l.turn.expect(m)
	l.display.prompt(m, "steering")
	l.Agent().SteerWith(m.input())
}

// takeBack gives a person back what it sent and nothing has taken yet. What others
// sent stays.
func (l *loop) takeBack() {
	a := l.Agent()
	var texts []string
	steering, followUp := a.ClearQueue()
	for _, text := range append(steering, followUp...) {
		m, known := l.turn.drop(text)
		if known && m.from != local {
			l.turn.expect(m)
			a.SteerWith(m.input())
			continue
		}
		texts = append(texts, text)
	}
	l.queue = slices.DeleteFunc(l.queue, func(m message) bool {
		if m.from == local && !m.resume {
			texts = append(texts, m.text)
			return true
		}
		return false
	})
	l.showQueue()
	l.display.giveBack(texts)
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
		l.display.note("abort asked for by " + m.from)
		link.Accepted(in.ID)
		l.Agent().Abort()
		return
	}
	switch {
	case in.Kind != KindPrompt && in.Kind != KindSteer && in.Kind != KindFollowUp:
		link.Refused(in.ID, fmt.Sprintf("unknown kind of message %q", in.Kind))
	case strings.TrimSpace(in.Text) == "":
		link.Refused(in.ID, "the message is empty")
	case in.ID != "" && l.Agent().Knows(in.ID): // it came before a restart, and was taken
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
			l.display.note("message from " + m.from + " waits for the end of the turn")
			l.showQueue()
		}
	}
}

// abort ends what goes on: the turn, else a command of the person. It reports
// whether there was anything.
func (l *loop) abort() bool {
	switch {
	case l.running != nil:
		l.Agent().Abort()
	case l.command != nil:
		l.command.cancel()
		l.Agent().Abort()
	case len(l.shells) > 0:
		l.shells[len(l.shells)-1].cancel()
	default:
		return false
	}
	return true
}

// interrupt is Ctrl-C.
func (l *loop) interrupt() {
	if l.abort() {
		return
	}
	now := l.opts.Now()
	if now.Sub(l.lastStop) <= quitWindow {
		l.quit = true
		return
	}
	l.lastStop = now
	l.display.note("Press Ctrl-C again, or Ctrl-D, to leave.")
}
