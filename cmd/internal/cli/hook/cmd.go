// Package hook is the command that agents' hooks run.
package hook

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/adapter"
	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
)

// limit is how long the supervisor has to take what is told: the agent stands
// still meanwhile.
const limit = 100 * time.Millisecond

// NewCmd makes `muntin hook`. It prints nothing and always succeeds: what a
// hook prints, or a status other than 0, can stop the agent's turn.
func NewCmd(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:    "hook <event>",
		Short:  "Tell the supervisor what an agent's hook was given (run by agents)",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			tell(cmd.Context(), a, args)
			return nil
		},
	}
}

func tell(ctx context.Context, a *app.App, args []string) {
	socket := a.Getenv("MUNTIN_SOCKET")
	if len(args) != 1 || socket == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	given := make(chan adapter.HookInput, 1)
	go func() { given <- adapter.ReadHook(args[0], a.Streams.In) }() // ends with the process if nobody writes
	var in adapter.HookInput
	select {
	case in = <-given:
	case <-ctx.Done():
		in.Event = args[0]
	}
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	client, err := pty.Dial(ctx, socket)
	if err != nil {
		return // there is no supervisor; the agent goes on without
	}
	defer client.Close()
	_ = client.Hook(ctx, in) // the same
}
