package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/checkpoint"
	"muntin/orchestrator"
	"muntin/orchestrator/panes"
)

// ResumeOptions are resume's arguments.
type ResumeOptions struct {
	App    *app.App
	Attach bool
	JSON   bool
	Wait   time.Duration
}

// NewResume makes `muntin resume`.
func NewResume(a *app.App) *cobra.Command {
	o := ResumeOptions{App: a}
	cmd := &cobra.Command{
		Use:   "resume [run]",
		Short: "Bring back what is missing of a run",
		Long: "Bring a run back whose processes have ended, all or some, by `muntin down`, by a\n" +
			"crash, or with the machine: its tmux session, its agents with their conversations,\n" +
			"and its orchestrator, which goes on from its journal. What lives is left alone.",
		Example: "  muntin resume          the newest run of this repository\n" +
			"  muntin resume workers  the one of that name",
		Args: app.Args(0, 1, "at most a run"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			run, err := a.Run(first(args))
			if err != nil {
				return err
			}
			return resume(ctx, o, run)
		}),
	}
	f := cmd.Flags()
	f.BoolVarP(&o.Attach, "attach", "a", false, "attach to the run when it is back")
	f.BoolVar(&o.JSON, "json", false, "print what was brought back as JSON")
	f.DurationVar(&o.Wait, "wait", DefaultWait, "how long to wait until all that was brought back is ready")
	return cmd
}

func resume(ctx context.Context, o ResumeOptions, run orchestrator.Run) error {
	a := o.App
	server, err := a.Tmux(ctx, run.Socket)
	if err != nil {
		return err
	}
	if err := finishRollback(ctx, a, run); err != nil {
		return fmt.Errorf("resuming run %s: %w", run.Name, err)
	}
	cols, rows := size(a)
	back, err := orchestrator.Resume(ctx, orchestrator.ResumeOptions{
		Run: run, Host: panes.New(server), Self: a.Self, Environ: a.Environ, Cols: cols, Rows: rows,
	})
	if err != nil {
		return fmt.Errorf("resuming run %s: %w", run.Name, err)
	}
	wait, cancel := context.WithTimeoutCause(ctx, o.Wait, context.DeadlineExceeded)
	defer cancel()
	if err := orchestrator.WaitResumed(wait, run, back); err != nil {
		return app.Hint(fmt.Errorf("resuming run %s: %w", run.Name, err), "look at it with `muntin attach %s`", run.Name)
	}
	if recipe, err := run.Recipe(); err == nil && back.Session {
		noteLayout(a, recipe, cols, rows)
	}
	if err := tellResumed(a, run, back, o.JSON); err != nil || !o.Attach {
		return err
	}
	return Attach(ctx, a, run)
}

// finishRollback finishes a rollback of the run that was cut off.
func finishRollback(ctx context.Context, a *app.App, run orchestrator.Run) error {
	cut, err := orchestrator.Unfinished(run.Dir)
	if err != nil || cut == nil {
		return err
	}
	fleet, err := checkpoint.OpenFleet(ctx, a, run)
	if err != nil {
		return err
	}
	fleet.Host = nil // all is started afterwards
	if _, err := fleet.FinishRollback(ctx); err != nil {
		return fmt.Errorf("finishing the rollback that was cut off: %w", err)
	}
	fmt.Fprintf(a.Streams.Err, "%s the rollback to point %d, which was cut off\n", a.Theme.Warn.Render("finished:"), cut.Plan.Request.Point)
	return nil
}

func tellResumed(a *app.App, run orchestrator.Run, back orchestrator.Resumed, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(struct {
			Run string `json:"run"`
			orchestrator.Resumed
		}{run.Name, back})
	}
	name := a.Theme.Strong.Render(run.Name)
	if back.Nothing() {
		fmt.Fprintf(a.Streams.Out, "run %s lives; nothing was missing\n", name)
		return nil
	}
	var what []string
	if back.Session {
		what = append(what, "its tmux session")
	}
	if back.Board {
		what = append(what, "the orchestrator")
	}
	what = append(what, back.Agents...)
	fmt.Fprintf(a.Streams.Out, "%s run %s is back: %s\n", a.Theme.Good.Render("✓"), name, strings.Join(what, ", "))
	if len(back.Alive) > 0 {
		fmt.Fprintf(a.Streams.Out, "  left alone: %s\n", strings.Join(back.Alive, ", "))
	}
	return nil
}
