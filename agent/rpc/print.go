// Package rpc is the front ends of the coding agent that need no screen: print
// mode, which gives the answer, and JSON mode, which gives every event. Both
// return an error when the model failed, so that a caller's exit status is true.
package rpc

import (
	"context"
	"fmt"
	"io"
	"strings"

	"muntin/agent/harness"
)

// A Prompter is what a front end needs of the coding agent. *harness.Harness is one.
type Prompter interface {
	Prompt(ctx context.Context, text string) (harness.Outcome, error)
	Abort()
}

// Print sends one prompt and writes the text of the last answer, with a newline
// at its end. What was written of an answer that failed or was cut off is
// printed too; the error says that it is not whole.
func Print(ctx context.Context, h Prompter, prompt string, out io.Writer) error {
	outcome, err := h.Prompt(ctx, prompt)
	if text := outcome.Text; strings.TrimSpace(text) != "" {
		if _, werr := fmt.Fprintln(out, strings.TrimRight(text, "\n")); werr != nil {
			return fmt.Errorf("printing the answer: %w", werr)
		}
	}
	return outcome.Failure(err)
}
