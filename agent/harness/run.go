package harness

import (
	"context"
	"errors"
	"slices"
	"time"

	"muntin/agent"
	"muntin/agent/llm"
	"muntin/agent/session"
)

// ErrAborted matches the error of a run that Abort or the context ended.
var ErrAborted = agent.ErrAborted

// An Outcome tells how a run ended. After an error it is filled as far as the
// run came.
type Outcome struct {
	Text     string         // of the last response
	Stop     llm.StopReason // of the last response
	Usage    llm.Usage      // of all responses of the run
	Entry    string         // the session's leaf
	Duration time.Duration
	Handled  bool // the model was not asked: Text is what a command or an extension said
}

// tally is what is known of the run that goes on.
type tally struct {
	done  chan struct{} // closed at the run's end; nil while none goes on
	usage llm.Usage
	last  *llm.Message // the last response
}

// Prompt sends a message of the user and runs until the agent has settled. The
// error matches agent.ErrBusy while another run goes on, ErrAborted after Abort,
// and is a *agent.ModelError when no response could be had.
func (h *Harness) Prompt(ctx context.Context, text string) (Outcome, error) {
	return h.PromptFrom(ctx, session.Origin{}, text)
}

// PromptFrom is Prompt for a message that came from elsewhere; its origin is kept
// in the session with it, so that Knows can tell whether it was taken.
func (h *Harness) PromptFrom(ctx context.Context, from session.Origin, text string) (Outcome, error) {
	return h.PromptWith(ctx, Input{Text: text, Origin: from})
}

// An Input is a message of the user.
type Input struct {
	Text   string
	Images []llm.Block // of type image
	Origin session.Origin
}

// PromptWith is Prompt for a message that is more than a text.
func (h *Harness) PromptWith(ctx context.Context, in Input) (Outcome, error) {
	var said string
	var handled bool
	out, err := h.execute(func() (err error) {
		said, handled, err = h.prompt1(ctx, in)
		return err
	})
	if handled {
		out.Text, out.Handled = said, true
	}
	return out, err
}

// Continue runs on without a new message: after a run that ended early, or for
// messages that came too late for one. Without any of these it returns
// agent.ErrNothingToContinue.
func (h *Harness) Continue(ctx context.Context) (Outcome, error) {
	return h.execute(func() error { return h.kernel.Continue(ctx) })
}

// Steer puts a message into the run: the model sees it with its next request.
// See Queued for one that comes too late.
func (h *Harness) Steer(text string) { h.SteerFrom(session.Origin{}, text) }

// SteerFrom is Steer for a message that came from elsewhere.
func (h *Harness) SteerFrom(from session.Origin, text string) {
	h.SteerWith(Input{Text: text, Origin: from})
}

// SteerWith is Steer for a message that is more than a text.
func (h *Harness) SteerWith(in Input) {
	m, _ := h.message(in)
	h.kernel.Steer(m)
}

// FollowUp queues a message for the moment when the run would otherwise end.
func (h *Harness) FollowUp(in Input) {
	m, _ := h.message(in)
	h.kernel.FollowUp(m)
}

// Waiting gives the texts of the messages that no run has taken yet.
func (h *Harness) Waiting() (steering, followUp []string) {
	a, b := h.kernel.Queued()
	return texts(a), texts(b)
}

// ClearQueue takes the messages back that no run has taken yet, and gives their texts.
func (h *Harness) ClearQueue() (steering, followUp []string) {
	a, b := h.kernel.ClearQueue()
	return texts(a), texts(b)
}

// SetQueueModes changes how many waiting messages are delivered at once. "" keeps a mode.
func (h *Harness) SetQueueModes(steering, followUp agent.QueueMode) {
	h.kernel.SetQueueModes(steering, followUp)
}

func texts(ms []llm.Message) []string {
	all := []string{}
	for _, m := range ms {
		all = append(all, m.Text())
	}
	return all
}

// Queued is the number of messages that no run has taken yet. After a run it is
// above zero when a message came too late for it, or the run ended early; then
// Continue takes them.
func (h *Harness) Queued() int {
	steering, followUp := h.kernel.Queued()
	return len(steering) + len(followUp)
}

// Abort ends the run, the compaction or the move that goes on, if one does. It
// does not wait for its end.
func (h *Harness) Abort() {
	h.kernel.Abort()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop != nil {
		h.stop(ErrAborted)
	}
}

// Knows reports whether the session has taken a message with this origin id.
func (h *Harness) Knows(originID string) bool { return h.session.Knows(originID) }

// execute makes a run and counts it.
func (h *Harness) execute(run func() error) (Outcome, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return Outcome{}, ErrClosed
	}
	if h.run.done != nil {
		h.mu.Unlock()
		return Outcome{}, agent.ErrBusy
	}
	done := make(chan struct{})
	h.run = tally{done: done}
	h.mu.Unlock()
	start := h.now()
	err := run()
	out := Outcome{Duration: h.now().Sub(start), Entry: h.session.Leaf()}
	h.mu.Lock()
	defer h.mu.Unlock()
	out.Usage = h.run.usage
	if last := h.run.last; last != nil {
		out.Text, out.Stop = last.Text(), last.StopReason
	}
	h.run = tally{}
	if kept := h.keepBash(); kept != nil {
		err = errors.Join(err, kept)
	}
	close(done)
	return out, err
}

// message makes a message and remembers its origin, under a key, until the
// session has it.
func (h *Harness) message(in Input) (m llm.Message, key int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastKey++
	if in.Origin != (session.Origin{}) {
		h.waiting = append(h.waiting, waiting{h.lastKey, in.Text, in.Origin})
	}
	m = llm.UserText(in.Text, h.now().UnixMilli())
	m.Content = append(m.Content, in.Images...)
	return m, h.lastKey
}

// origin finds where a message came from, by its text: the kernel carries
// messages and nothing beside them.
func (h *Harness) origin(m llm.Message) (w waiting, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := m.Text()
	i := slices.IndexFunc(h.waiting, func(w waiting) bool { return w.text == text })
	if i < 0 {
		return waiting{}, false
	}
	return h.waiting[i], true
}

func (h *Harness) forget(key int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = slices.DeleteFunc(h.waiting, func(w waiting) bool { return w.key == key })
}

// event takes the kernel's events. A message goes into the session before
// anybody else hears of its end.
func (h *Harness) event(_ context.Context, e agent.Event) error {
	if e.Type == agent.EventMessageEnd && e.Message != nil {
		if err := h.keep(*e.Message); err != nil {
			return err
		}
	}
	h.tell(e)
	return nil
}

func (h *Harness) keep(m llm.Message) error {
	if m.Role == llm.RoleUser {
		w, known := h.origin(m)
		var from *session.Origin
		if known {
			from = &w.origin
		}
		if _, err := h.session.AppendMessage(m, from); err != nil {
			return err
		}
		h.forget(w.key)
		return nil
	}
	if m.Role == llm.RoleAssistant && m.Provider == "" {
		m.Provider = h.Model().provider()
	}
	if _, err := h.session.AppendMessage(m, nil); err != nil {
		return err
	}
	if m.Role == llm.RoleAssistant {
		h.mu.Lock()
		defer h.mu.Unlock()
		if m.Usage != nil {
			h.run.usage = h.run.usage.Add(*m.Usage)
		}
		h.run.last = &m
	}
	return nil
}

// Failure is why a run ended without a whole answer, in words for a person: err,
// or that the answer was cut off. It is nil for a run that ended well.
func (o Outcome) Failure(err error) error {
	var model *agent.ModelError
	switch {
	case errors.As(err, &model):
		return model.Err
	case err != nil:
		return err
	case o.Stop == llm.StopLength:
		return errors.New("the answer was cut off by the model's output limit")
	}
	return nil
}
