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
	"muntin/internal/id"
	"muntin/orchestrator"
	"muntin/tmux"
)

// AttachOptions are attach's arguments.
type AttachOptions struct {
	App      *app.App
	Name     string // of a run or an agent
	Run      string
	ReadOnly bool
}

// NewAttach makes `muntin attach`.
func NewAttach(a *app.App) *cobra.Command {
	o := AttachOptions{App: a}
	cmd := &cobra.Command{
		Use:   "attach [agent | run]",
		Short: "Watch a run: the board and the agents' panes",
		Long: "Show a run's tmux session on this terminal, with the keys going to the agent that\n" +
			"is named. Inside that tmux server the client switches to it; inside another one it\n" +
			"opens in a popup, so that every key is this session's. The run goes on when you\n" +
			"detach (prefix d).\n\n" +
			"--read-only does not go through tmux: it shows what the agents' supervisors have,\n" +
			"so that nothing is resized, no focus moves, and no agent ever waits for it.",
		Example: "  muntin attach\n  muntin attach ada\n  muntin attach ada --read-only",
		Args:    app.Args(0, 1, "at most an agent, or a run"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Name = first(args)
			return runAttach(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the living one); a name is then an agent's")
	f.BoolVar(&o.ReadOnly, "read-only", false, "look only, in the dashboard")
	return cmd
}

func runAttach(ctx context.Context, o AttachOptions) error {
	run, agent, err := o.find()
	if err != nil {
		return err
	}
	if !o.ReadOnly {
		return attach(ctx, o.App, run, agent)
	}
	if !o.App.Streams.Interactive() {
		return needsTerminal()
	}
	view := "fleet"
	if agent != "" {
		view = "agent"
	}
	return watchRun(ctx, run, WatchOptions{App: o.App, View: view, Agent: agent, ReadOnly: true})
}

// find tells which run and agent are meant. A name is a run's if there is one of
// that name, unless the run is given.
func (o AttachOptions) find() (run orchestrator.Run, agent string, err error) {
	if o.Name != "" && o.Run == "" {
		if err := id.CheckName("run or agent", o.Name); err != nil {
			return run, "", &app.ExitError{Code: app.ExitUsage, Err: err}
		}
		if run, err = o.App.Run(o.Name); err == nil {
			return run, "", nil
		}
		if run, noRun := o.App.Run(""); noRun == nil {
			if _, noAgent := app.Agent(run, o.Name); noAgent == nil {
				return run, o.Name, nil
			}
		}
		return run, "", err
	}
	if run, err = o.App.Run(o.Run); err == nil && o.Name != "" {
		_, err = app.Agent(run, o.Name)
	}
	return run, o.Name, err
}

func needsTerminal() error {
	return app.Usage("attaching needs a terminal; without one use `muntin logs` and `muntin ls`")
}

// Attach shows a run's tmux session on this terminal until the person
// detaches or the session ends.
func Attach(ctx context.Context, a *app.App, run orchestrator.Run) error {
	return attach(ctx, a, run, "")
}

func attach(ctx context.Context, a *app.App, run orchestrator.Run, agent string) error {
	if !a.Streams.Interactive() {
		return needsTerminal()
	}
	argv, env, err := attachCommand(ctx, a, run, agent)
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

func attachCommand(ctx context.Context, a *app.App, run orchestrator.Run, agent string) (argv, env []string, err error) {
	server, err := a.Tmux(ctx, run.Socket)
	if err != nil {
		return nil, nil, err
	}
	target, err := attachTarget(ctx, server, run, agent)
	if err != nil {
		return nil, nil, err
	}
	argv, env, err = server.Attach(target, a.Environ)
	if err != nil || server.Inside(a.Environ) {
		return argv, env, err
	}
	if over, ok := server.Overlaid(ctx, argv, a.Environ); ok {
		return over, a.Environ, nil
	}
	return argv, env, nil
}

// attachTarget is the run's session, or the pane of its agent.
func attachTarget(ctx context.Context, server *tmux.Server, run orchestrator.Run, agent string) (tmux.Target, error) {
	sn, err := server.Snapshot(ctx)
	if err != nil && !errors.Is(err, tmux.ErrNoServer) {
		return nil, err
	}
	found := false
	for _, p := range sn.Panes {
		switch {
		case p.SessionName != run.Session:
		case agent == "":
			return p.Session, nil
		case p.Meta["name"] == agent:
			return p.Ref.ID, nil
		default:
			found = true
		}
	}
	if found {
		return nil, app.Hint(fmt.Errorf("agent %s of run %s has no pane any more", agent, run.Name), "bring it back with `muntin resume %s`", run.Name)
	}
	return nil, app.Hint(fmt.Errorf("run %s has ended: its tmux session is gone", run.Name),
		"its logs and checkpoints are kept: `muntin logs <agent> --run %s`, `muntin checkpoint ls <agent> --run %s`", run.Name, run.Name)
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
