package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/orchestrator"
	"muntin/orchestrator/panes"
)

// downWithin is how long an agent may go on with its turn when its run is taken
// down.
const downWithin = 30 * time.Second

// DownOptions are down's arguments.
type DownOptions struct {
	App    *app.App
	All    bool
	Now    bool
	Within time.Duration
}

// NewDown makes `muntin down`.
func NewDown(a *app.App) *cobra.Command {
	o := DownOptions{App: a}
	cmd := &cobra.Command{
		Use:   "down [run]",
		Short: "End a run's agents; worktrees, checkpoints and logs stay",
		Long: "End a run: no agent gets another prompt, and each is ended when its turn is over, or\n" +
			"after the time of --within in the middle of it. What it changed last is in a\n" +
			"checkpoint. `muntin resume` brings the run back.",
		Example: "  muntin down               the run of this repository\n" +
			"  muntin down --within 5m   with time for long turns\n" +
			"  muntin down --now --all   every run, at once",
		Args: app.Args(0, 1, "at most a run"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			if o.All && len(args) > 0 {
				return app.Usage("name a run or say --all, not both")
			}
			if o.Now {
				o.Within = 0
			}
			if o.All {
				return o.all(ctx)
			}
			run, err := a.Run(first(args))
			if err != nil {
				return err
			}
			return o.one(ctx, run)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.All, "all", false, "every living run of every repository")
	f.BoolVar(&o.Now, "now", false, "do not wait for the ends of turns")
	f.DurationVar(&o.Within, "within", downWithin, "how long an agent may go on with its turn")
	cmd.MarkFlagsMutuallyExclusive("now", "within")
	return cmd
}

func (o DownOptions) all(ctx context.Context) error {
	runs, err := orchestrator.AllRuns(o.App.Layout)
	errs := []error{err}
	n := 0
	for _, run := range runs {
		if !run.Alive() {
			continue
		}
		n++
		errs = append(errs, o.one(ctx, run))
	}
	if n == 0 {
		fmt.Fprintln(o.App.Streams.Out, "no run is alive")
	}
	return errors.Join(errs...)
}

func (o DownOptions) one(ctx context.Context, run orchestrator.Run) error {
	a := o.App
	alive := run.Alive()
	if err := o.down(ctx, run); err != nil {
		return err
	}
	if !alive {
		fmt.Fprintf(a.Streams.Out, "run %s had ended already\n", run.Name)
		return nil
	}
	fmt.Fprintf(a.Streams.Out, "%s run %s is down; its work is on branch %s, its checkpoints and logs are kept\n",
		a.Theme.Good.Render("✓"), a.Theme.Strong.Render(run.Name), run.Branch)
	return nil
}

func (o DownOptions) down(ctx context.Context, run orchestrator.Run) error {
	server, err := o.App.Tmux(ctx, run.Socket)
	if err != nil {
		return err
	}
	var mu sync.Mutex // one line at a time
	return orchestrator.Down(ctx, orchestrator.DownOptions{
		Run: run, Host: panes.New(server), Within: o.Within, Now: o.App.Now,
		OnStep: func(agent string, step orchestrator.DownStep) {
			if step == orchestrator.DownStopped {
				return // as expected
			}
			mu.Lock()
			defer mu.Unlock()
			text := string(step)
			if step == orchestrator.DownWaits {
				text += fmt.Sprintf("; it has %s for that (at once: --now)", o.Within)
			}
			fmt.Fprintf(o.App.Streams.Err, "%s %s\n", o.App.Theme.Strong.Render(agent), text)
		},
	})
}

// Down ends a run's processes at once. It returns when they are gone.
func Down(ctx context.Context, a *app.App, run orchestrator.Run) error {
	return DownOptions{App: a}.down(ctx, run)
}

// Discard takes down a run that has not come up, and removes what it made.
func Discard(ctx context.Context, a *app.App, run orchestrator.Run) error {
	if err := Down(ctx, a, run); err != nil {
		return err
	}
	repo, err := a.Repo()
	if err != nil {
		return err
	}
	return orchestrator.Discard(ctx, orchestrator.DiscardRequest{Repo: repo, Dir: a.Layout.Repo(repo), Run: run, Now: a.Now, Environ: a.Environ})
}
