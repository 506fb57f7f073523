// Package rpc is the front ends of the coding agent that need no screen: print
// mode, which gives the answer, JSON mode, which gives every event, and RPC mode,
// in which another program drives the agent. The first two return an error when
// the model failed, so that a caller's exit status is true.
package rpc

import (
	"context"
	"fmt"
	"io"
	"strings"

	"muntin/agent/harness"
)

// A Prompter is what print and JSON mode need of the coding agent.
// *harness.Harness is one.
type Prompter interface {
	PromptWith(ctx context.Context, in harness.Input) (harness.Outcome, error)
	Abort()
}

// Print sends the prompts one after the other and writes the text of the last
// answer, with a newline at its end. What was written of an answer that failed or
// was cut off is printed too; the error says that it is not whole, and no more is
// sent.
func Print(ctx context.Context, h Prompter, prompts []harness.Input, out io.Writer) error {
	var outcome harness.Outcome
	var failure error
	for _, prompt := range prompts {
		var err error
		outcome, err = h.PromptWith(ctx, prompt)
		if failure = outcome.Failure(err); failure != nil {
			break
		}
	}
	if text := outcome.Text; strings.TrimSpace(text) != "" {
		if _, err := fmt.Fprintln(out, strings.TrimRight(text, "\n")); err != nil {
			return fmt.Errorf("printing the answer: %w", err)
		}
	}
	return failure
}
