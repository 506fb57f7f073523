package extension

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"muntin/agent"
	"muntin/agent/llm"
)

// A GateError says that an extension that gates something did not decide, and that
// this counts as a no.
type GateError struct {
	Extension string
	Gate      string
	Err       error
}

func (e *GateError) Error() string {
	return fmt.Sprintf("extension %s, which must agree (%s), did not decide: %v", e.Extension, e.Gate, e.Err)
}

func (e *GateError) Unwrap() error { return e.Err }

// A RefusedError says that an extension did not want something to happen.
type RefusedError struct {
	Extension string
	Reason    string // of the extension; may be empty
}

func (e *RefusedError) Error() string {
	if e.Reason == "" {
		return "extension " + e.Extension + " does not allow it"
	}
	return "extension " + e.Extension + ": " + e.Reason
}

// asking is what one gate asks of extensions.
type asking[R any] struct {
	on, tool string                                        // tool is "" for gates without one
	ask      func() any                                    // makes the question for the next one
	take     func(name string, r R) (more bool, err error) // takes its answer
}

// gating goes through the extensions with a gate, in order.
func gating[R any](ctx context.Context, h *Host, a asking[R]) error {
	for _, r := range h.all() {
		g, ok := r.ext.gate(a.on, a.tool)
		if !ok {
			continue
		}
		raw, err := r.request(ctx, order{method: a.on, params: a.ask(), deadline: g.Deadline.or(DefaultGate)})
		var result R
		if err == nil && len(raw) > 0 {
			if err = json.Unmarshal(raw, &result); err != nil {
				err = fmt.Errorf("its answer: %w", err)
			}
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && g.Open:
			h.notify(r.ext.Name, "warning", "it did not decide on %s, and was passed over: %v", a.on, err)
			continue
		case err != nil:
			return &GateError{Extension: r.ext.Name, Gate: a.on, Err: err}
		}
		if more, err := a.take(r.ext.Name, result); err != nil || !more {
			return err
		}
	}
	return nil
}

// gated tells whether any extension has a gate.
func (h *Host) gated(on string) bool {
	return slices.ContainsFunc(h.all(), func(r *runner) bool {
		return slices.ContainsFunc(r.ext.Gates, func(g Gate) bool { return g.On == on })
	})
}

// Input asks about a prompt. handled means that nothing is to be sent; then the
// text is for the user.
func (h *Host) Input(ctx context.Context, in Input) (text string, handled bool, err error) {
	err = gating(ctx, h, asking[InputResult]{GateInput, "", func() any { return in }, func(name string, r InputResult) (bool, error) {
		switch r.Action {
		case "", "continue":
		case "transform":
			in.Text = r.Text
		case "handled":
			in.Text, handled = r.Message, true
		default:
			return false, &GateError{Extension: name, Gate: GateInput, Err: fmt.Errorf("action %q is unknown", r.Action)}
		}
		return !handled, nil
	}})
	return in.Text, handled, err
}

// BeforeStart asks about a run that is about to begin. It gives the system prompt
// for it and what is added to the user's message.
func (h *Host) BeforeStart(ctx context.Context, s Start) (system, added string, err error) {
	err = gating(ctx, h, asking[StartResult]{GateStart, "", func() any { return s }, func(_ string, r StartResult) (bool, error) {
		if r.System != nil {
			s.System = *r.System
		}
		if r.Append != "" {
			added += "\n\n" + r.Append
		}
		return true, nil
	}})
	return s.System, added, err
}

// Context asks what a request is to show of the conversation.
func (h *Host) Context(ctx context.Context, messages []llm.Message) ([]llm.Message, error) {
	err := gating(ctx, h, asking[ContextResult]{GateContext, "", func() any { return Context{messages} }, func(_ string, r ContextResult) (bool, error) {
		if len(r.Messages) > 0 {
			messages = r.Messages
		}
		return true, nil
	}})
	return messages, err
}

// Request asks about one request to a model.
func (h *Host) Request(ctx context.Context, req llm.Request) (llm.Request, error) {
	err := gating(ctx, h, asking[RequestResult]{GateRequest, "", func() any { return wire(req) }, func(_ string, r RequestResult) (bool, error) {
		if r.System != nil {
			req.System = *r.System
		}
		if len(r.Messages) > 0 {
			req.Messages = llm.Sendable(r.Messages)
		}
		if r.Tools != nil {
			req.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(t llm.Tool) bool { return !slices.Contains(r.Tools, t.Name) })
		}
		if r.MaxTokens > 0 {
			req.MaxTokens = r.MaxTokens
		}
		if r.Thinking != "" {
			req.Thinking = r.Thinking
		}
		return true, nil
	}})
	return req, err
}

func wire(req llm.Request) Request {
	w := Request{
		Model: req.Model, System: req.System, Messages: req.Messages, Tools: []Spec{}, MaxTokens: req.MaxTokens, Thinking: req.Thinking,
	}
	for _, t := range req.Tools {
		w.Tools = append(w.Tools, Spec(t))
	}
	return w
}

// BeforeTool asks whether a call may run; see agent.Hooks. A later extension sees
// the arguments that an earlier one has changed.
func (h *Host) BeforeTool(ctx context.Context, call agent.ToolCall) (agent.Verdict, error) {
	var v agent.Verdict
	c := ToolCall{ID: call.ID, Name: call.Name, Args: call.Args}
	err := gating(ctx, h, asking[ToolCallResult]{GateToolCall, call.Name, func() any { return c }, func(name string, r ToolCallResult) (bool, error) {
		if r.Block {
			v = agent.Verdict{Block: true, Terminate: r.Terminate, Reason: (&RefusedError{name, r.Reason}).Error()}
			return false, nil
		}
		if len(r.Args) > 0 {
			c.Args, v.Args = r.Args, r.Args
		}
		return true, nil
	}})
	return v, err
}

// AfterTool asks about the result of a call that ran; see agent.Hooks.
func (h *Host) AfterTool(ctx context.Context, call agent.ToolCall, res agent.ToolResult) (agent.ToolResult, error) {
	ask := func() any {
		return ToolResult{
			ToolCall: ToolCall{ID: call.ID, Name: call.Name, Args: call.Args}, Content: res.Content, Details: res.Details, IsError: res.IsError,
		}
	}
	err := gating(ctx, h, asking[ToolResultResult]{GateToolResult, call.Name, ask, func(_ string, r ToolResultResult) (bool, error) {
		if r.Content != nil {
			res.Content = r.Content
		}
		if len(r.Details) > 0 {
			res.Details = r.Details
		}
		if r.IsError != nil {
			res.IsError = *r.IsError
		}
		return true, nil
	}})
	return res, err
}

// FinishTurn asks how a run goes on; see agent.Hooks. The first that says something
// decides.
func (h *Host) FinishTurn(ctx context.Context, turn agent.Turn) (agent.Action, error) {
	action := agent.ActionDefault
	ask := func() any { return Turn{Message: turn.Message, ToolResults: turn.ToolResults} }
	err := gating(ctx, h, asking[TurnResult]{GateTurn, "", ask, func(_ string, r TurnResult) (bool, error) {
		switch r.Action {
		case "continue":
			action = agent.ActionContinue
		case "end":
			action = agent.ActionEnd
		}
		return action == agent.ActionDefault, nil
	}})
	return action, err
}

// Compaction asks about room that is about to be made. messages is called when an
// extension wants to know. A cancelled one is a *RefusedError.
func (h *Host) Compaction(ctx context.Context, c Compaction, messages func() []llm.Message) (CompactionResult, error) {
	var result CompactionResult
	if !h.gated(GateCompaction) {
		return result, nil
	}
	c.Messages = messages()
	err := gating(ctx, h, asking[CompactionResult]{GateCompaction, "", func() any { return c }, func(name string, r CompactionResult) (bool, error) {
		if r.Cancel {
			return false, &RefusedError{name, r.Reason}
		}
		if r.Instructions != "" {
			c.Instructions, result.Instructions = r.Instructions, r.Instructions
		}
		result.Summary = r.Summary
		return r.Summary == "", nil
	}})
	return result, err
}

// Switch asks whether the conversation may be left. The error is a *RefusedError or
// a *GateError when it may not.
func (h *Host) Switch(ctx context.Context, s Switch) error {
	return gating(ctx, h, asking[SwitchResult]{GateSwitch, "", func() any { return s }, func(name string, r SwitchResult) (bool, error) {
		if r.Cancel {
			return false, &RefusedError{name, r.Reason}
		}
		return true, nil
	}})
}

// UserBash asks whether a command of the user may run. Errors are as for Switch.
func (h *Host) UserBash(ctx context.Context, b UserBash) error {
	return gating(ctx, h, asking[UserBashResult]{GateUserBash, "", func() any { return b }, func(name string, r UserBashResult) (bool, error) {
		if r.Block {
			return false, &RefusedError{name, r.Reason}
		}
		return true, nil
	}})
}
