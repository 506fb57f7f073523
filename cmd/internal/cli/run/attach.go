package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/orchestrator"
	"muntin/tmux"
)

// NewAttach makes `muntin attach`.
func NewAttach(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "attach [run]",
		Short: "Watch a run: the board and the agents' panes",
		Long: "Show a run's tmux session on this terminal. Inside that tmux server the client\n" +
			"switches to it. The run goes on when you detach (prefix d).",
		Args: app.Args(0, 1, "at most a run"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			run, err := a.Run(first(args))
			if err != nil {
				return err
			}
			return Attach(ctx, a, run)
		}),
	}
}

// Attach shows a run's tmux session on this terminal until the person
// detaches or the session ends.
func Attach(ctx context.Context, a *app.App, run orchestrator.Run) error {
	if !a.Streams.Interactive() {
		return app.Usage("attaching needs a terminal; without one use `muntin logs` and `muntin ls`")
	}
	argv, env, err := attachCommand(ctx, a, run)
	if err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ProcessState.Sys().(syscall.WaitStatus).Exited() {
		return fmt.Errorf("attaching to run %s: tmux ended with status %d", run.Name, exit.ExitCode())
	}
	return err
}

func attachCommand(ctx context.Context, a *app.App, run orchestrator.Run) (argv, env []string, err error) {
	server, err := a.Tmux(ctx, run.Socket)
	if err != nil {
		return nil, nil, err
	}
	session, err := server.FindSession(ctx, run.Session)
	if errors.Is(err, tmux.ErrNoSuchSession) || errors.Is(err, tmux.ErrNoServer) {
		return nil, nil, app.Hint(fmt.Errorf("run %s has ended: its tmux session is gone", run.Name),
			"its logs and checkpoints are kept: `muntin logs <agent> --run %s`, `muntin checkpoint ls <agent> --run %s`", run.Name, run.Name)
	}
	if err != nil {
		return nil, nil, err
	}
	return server.Attach(session.ID, a.Environ)
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
