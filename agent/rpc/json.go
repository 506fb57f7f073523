package rpc

import (
	"context"
	"io"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/session"
)

// JSON writes runs as one JSON object a line: first the session's header, then
// each event as it happens, in Pi's form. Make it with NewJSON, give its OnEvent to
// harness.Open, then call Run.
type JSON struct {
	lines lineWriter
	enc   encoder
}

// NewJSON makes a writer of events to out.
func NewJSON(out io.Writer) *JSON { return &JSON{lines: lineWriter{out: out}} }

// OnEvent writes one event.
func (j *JSON) OnEvent(e agent.Event) {
	o, err := j.enc.encode(e)
	if err != nil {
		o = object{"type": e.Type, "errorMessage": err.Error()}
	}
	j.lines.write(o)
}

// Run writes the header, sends the prompts one after the other and returns when
// the agent has settled. The error is the model's failure, after which no more is
// sent, or that of writing: then the run was aborted.
func (j *JSON) Run(ctx context.Context, h Prompter, header session.Header, prompts []harness.Input) error {
	j.lines.onError(h.Abort)
	j.lines.write(header)
	for _, prompt := range prompts {
		if err := j.lines.failed(); err != nil {
			return err
		}
		outcome, err := h.PromptWith(ctx, prompt)
		if werr := j.lines.failed(); werr != nil {
			return werr
		}
		if err := outcome.Failure(err); err != nil {
			return err
		}
	}
	return nil
}
