package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"muntin/agent"
	"muntin/agent/session"
)

// JSON writes a run as one JSON object a line: first the session's header, then
// each event as it happens. Make it with NewJSON, give its OnEvent to
// harness.Open, then call Run.
type JSON struct {
	mu  sync.Mutex // guards all below, and keeps lines whole
	out io.Writer
	err error  // the first error of out
	off func() // ends the run when nobody reads it
}

// NewJSON makes a writer of events to out.
func NewJSON(out io.Writer) *JSON { return &JSON{out: out} }

// OnEvent writes one event. An update of a message carries what is new and not
// the message so far, so that the output grows with the text only.
func (j *JSON) OnEvent(e agent.Event) {
	if e.Type == agent.EventMessageUpdate {
		e.Message = nil
	}
	j.line(e)
}

// Run writes the header, sends the prompt and returns when the agent has
// settled. The error is the model's failure, or that of writing: then the run
// was aborted.
func (j *JSON) Run(ctx context.Context, h Prompter, header session.Header, prompt string) error {
	j.mu.Lock()
	j.off = h.Abort
	j.mu.Unlock()
	j.line(header)
	if err := j.failed(); err != nil {
		return err
	}
	outcome, err := h.Prompt(ctx, prompt)
	if werr := j.failed(); werr != nil {
		return werr
	}
	return outcome.Failure(err)
}

func (j *JSON) line(v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // ends with a newline, the only one in it
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return
	}
	if err == nil {
		_, err = j.out.Write(b.Bytes())
	}
	if err != nil {
		j.err = fmt.Errorf("writing events: %w", err)
		if j.off != nil {
			j.off()
		}
	}
}

func (j *JSON) failed() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}
