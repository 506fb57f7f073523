package harness

import (
	"context"
	"errors"
	"iter"

	"muntin/agent"
	"muntin/agent/compact"
	"muntin/agent/extension"
	"muntin/agent/llm"
	"muntin/agent/tool"
)

// What front ends need of extensions, so that they need not import them.
type (
	// A UI shows what extensions say, and asks what they want to know.
	UI = extension.UI
	// A Question is a dialog of an extension.
	Question = extension.Question
	// An Answer is what came of one.
	Answer = extension.Answer
	// A Notice is a line of an extension for people.
	Notice = extension.Notice
	// A Status is a short text of an extension that stays on the screen.
	Status = extension.Status
)

// The words of extensions that front ends meet.
const (
	AskSelect  = extension.AskSelect
	AskConfirm = extension.AskConfirm
	AskInput   = extension.AskInput

	LevelReply = extension.LevelReply // of a notice that is also the outcome of a prompt
)

// The reasons for which a conversation is left; see MaySwitch.
const (
	SwitchNew      = "new"
	SwitchResume   = "resume"
	SwitchFork     = "fork"
	SwitchNavigate = "navigate"
)

// attach connects the extensions to this agent.
func (h *Harness) attach(opts Options) {
	if h.ext == nil {
		return
	}
	h.ext.Attach(extension.Attachment{Session: h.session.Header().ID, UI: opts.UI, Send: func(s extension.Sending) {
		in := Input{Text: s.Text}
		if s.As == "steer" {
			h.SteerWith(in)
		} else {
			h.FollowUp(in)
		}
		h.mu.Lock()
		idle := h.run.done == nil && !h.closed
		h.mu.Unlock()
		if idle && opts.OnWaiting != nil {
			opts.OnWaiting()
		}
	}})
}

// A ToolSource is where tools beside the built-in ones come from.
type ToolSource interface {
	// Tools gives the tools that there are; it is called more than once.
	Tools() []agent.Tool
	// Close is called once, when no tool of it runs any more.
	Close() error
}

// toolsNamed gives tools by name: those of extensions, those of the other source, those
// of the set. nil is the default ones and all of the others.
func (h *Harness) toolsNamed(names []string) ([]agent.Tool, error) {
	theirs := h.ext.Tools()
	if more := h.source(); more != nil {
		theirs = append(theirs, more.Tools()...)
	}
	byName := map[string]agent.Tool{}
	for _, t := range theirs {
		if name := t.Spec().Name; byName[name] == nil {
			byName[name] = t
		}
	}
	if names == nil {
		names = tool.Defaults()
		for _, t := range theirs {
			names = append(names, t.Spec().Name)
		}
	}
	var all []agent.Tool
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		if t := byName[name]; t != nil {
			all = append(all, t)
			continue
		}
		ours, err := h.tools.Tools(name)
		if err != nil {
			return nil, err
		}
		all = append(all, ours...)
	}
	return all, nil
}

// Extensions gives the names of the extensions, in the order in which they are asked.
func (h *Harness) Extensions() []string {
	var names []string
	for _, e := range h.ext.Extensions() {
		names = append(names, e.Name)
	}
	return names
}

// MaySwitch asks the extensions whether the conversation may be left, before a front
// end opens another one. target is a file or an entry. The error says who does not
// want it, and why.
func (h *Harness) MaySwitch(ctx context.Context, reason, target string) error {
	return h.ext.Switch(ctx, extension.Switch{Reason: reason, Target: target})
}

// ask is what becomes of a prompt before the run: the command that it calls, and what
// extensions make of it. With handled there is nothing to run; text is for the user.
func (h *Harness) ask(ctx context.Context, in Input) (out Input, text string, handled bool, err error) {
	if h.ext == nil {
		return in, "", false, nil
	}
	res, known, err := h.ext.Command(ctx, in.Text)
	switch {
	case err != nil:
		return in, "", false, err
	case known && res.Prompt == "":
		return in, res.Text, true, nil
	case known:
		if res.Text != "" {
			h.ext.Say(res.Text)
		}
		in.Text = res.Prompt
	}
	text, handled, err = h.ext.Input(ctx, extension.Input{Text: in.Text, Images: in.Images})
	if err != nil || handled {
		return in, text, handled, err
	}
	in.Text = text
	h.mu.Lock()
	system := h.system
	h.mu.Unlock()
	changed, added, err := h.ext.BeforeStart(ctx, extension.Start{Prompt: in.Text, System: system})
	if err != nil {
		return in, "", false, err
	}
	h.kernel.SetSystem(changed)
	in.Text += added
	return in, "", false, nil
}

// stopping runs something that Abort ends although the kernel does not run yet.
func (h *Harness) stopping(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h.mu.Lock()
	h.stop = cancel
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.stop = nil
	}()
	return do(ctx)
}

// prompt1 is one prompt within a run. It gives what the user is told when the model
// was not asked.
func (h *Harness) prompt1(ctx context.Context, in Input) (said string, handled bool, err error) {
	err = h.stopping(ctx, func(ctx context.Context) (err error) {
		var next Input
		next, said, handled, err = h.ask(ctx, in)
		in = next
		return err
	})
	if err != nil || handled {
		if handled && said != "" {
			h.ext.Say(said)
		}
		// Whoever waits for the end of what a prompt began sees one, as of a run.
		h.show(agent.Event{Type: agent.EventSettled, Aborted: errors.Is(err, ErrAborted)})
		return said, handled, err
	}
	if h.ext != nil {
		defer func() {
			h.mu.Lock()
			system := h.system
			h.mu.Unlock()
			h.kernel.SetSystem(system)
		}()
	}
	m, key := h.message(in)
	defer h.forget(key) // when the run did not take it, it is gone
	return "", false, h.kernel.Prompt(ctx, m)
}

// withExtensions adds to the kernel's hooks what extensions decide.
func (h *Harness) withExtensions(hooks agent.Hooks) agent.Hooks {
	if h.ext == nil {
		return hooks
	}
	hooks.TransformContext = h.ext.Context
	hooks.BeforeTool = h.ext.BeforeTool
	hooks.AfterTool = h.ext.AfterTool
	own := hooks.FinishTurn
	hooks.FinishTurn = func(ctx context.Context, turn agent.Turn) (agent.Action, error) {
		action, err := own(ctx, turn)
		if err != nil || action != agent.ActionDefault {
			return action, err
		}
		return h.ext.FinishTurn(ctx, turn)
	}
	return hooks
}

// asked wraps a model so that extensions see each request to it.
func (h *Harness) asked(p llm.Provider) llm.Provider {
	if h.ext == nil || p == nil {
		return p
	}
	return gated{h.ext, p}
}

type gated struct {
	ext   *extension.Host
	model llm.Provider
}

// Stream implements llm.Provider.
func (g gated) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) {
		changed, err := g.ext.Request(ctx, req)
		if err != nil {
			llm.NewBuilder(llm.Message{Model: req.Model}, yield).Fail(&llm.Error{Class: llm.ClassInvalid, Message: err.Error(), Err: err}, nil)
			return
		}
		for e := range g.model.Stream(ctx, changed) {
			if !yield(e) {
				return
			}
		}
	}
}

// gateCompaction asks the extensions about room that is to be made. summary is not
// empty when one wrote it.
func (h *Harness) gateCompaction(ctx context.Context, reason string, req *compact.Request) (summary string, err error) {
	if h.ext == nil {
		return "", nil
	}
	res, err := h.ext.Compaction(ctx, extension.Compaction{Reason: reason, Instructions: req.Instructions, Previous: req.Previous},
		func() []llm.Message { return compact.Old(*req) })
	if res.Instructions != "" {
		req.Instructions = res.Instructions
	}
	return res.Summary, err
}
