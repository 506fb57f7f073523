package harness

import (
	"context"
	"fmt"

	"muntin/agent/extension"
	"muntin/agent/session"
)

// A BashRequest is a command that the user runs beside the conversation.
type BashRequest struct {
	Command  string
	Exclude  bool         // the model is not told
	OnOutput func(string) // takes the output as it comes; may be nil
}

// Bash runs a command of the user and keeps what came of it in the session, for
// the model to see with its next request; during a run when that has ended. The end
// of ctx ends the command, which is no error. Several may run at the same time.
func (h *Harness) Bash(ctx context.Context, r BashRequest) (session.Bash, error) {
	if err := h.ext.UserBash(ctx, extension.UserBash{Command: r.Command, Exclude: r.Exclude}); err != nil {
		return session.Bash{}, err
	}
	res, err := h.tools.Shell(ctx, r.Command, r.OnOutput)
	if err != nil {
		return session.Bash{}, err
	}
	b := session.Bash{
		Command: r.Command, Output: res.Output, Cancelled: res.Cancelled, Truncated: res.Truncated,
		FullOutput: res.Path, Timestamp: h.now().UnixMilli(), Excluded: r.Exclude,
	}
	if !res.Cancelled {
		b.ExitCode = &res.ExitCode
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bash = append(h.bash, b)
	if h.run.done != nil || h.closed {
		return b, nil // the run's end keeps it
	}
	return b, h.keepBash()
}

// keepBash puts what the user ran into the session. It needs the lock, and that no
// run goes on: an entry between a call and its result would part them.
func (h *Harness) keepBash() error {
	if len(h.bash) == 0 {
		return nil
	}
	for len(h.bash) > 0 {
		if _, err := h.session.AppendBash(h.bash[0]); err != nil {
			return fmt.Errorf("keeping a command in the session: %w", err)
		}
		h.bash = h.bash[1:]
	}
	return h.kernel.SetMessages(h.session.Messages())
}
