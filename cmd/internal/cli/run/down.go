package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/orchestrator"
	"muntin/orchestrator/panes"
)

// stopTimeout is how long an agent has to end when its run is taken down.
const stopTimeout = 15 * time.Second

// NewDown makes `muntin down`.
func NewDown(a *app.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down [run]",
		Short: "End a run's agents; worktrees, checkpoints and logs stay",
		Args:  app.Args(0, 1, "at most a run"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			if all && len(args) > 0 {
				return app.Usage("name a run or say --all, not both")
			}
			if all {
				return downAll(ctx, a)
			}
			run, err := a.Run(first(args))
			if err != nil {
				return err
			}
			return downOne(ctx, a, run)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "every living run of every repository")
	return cmd
}

func downAll(ctx context.Context, a *app.App) error {
	runs, err := orchestrator.AllRuns(a.Layout)
	errs := []error{err}
	n := 0
	for _, run := range runs {
		if !run.Alive() {
			continue
		}
		n++
		errs = append(errs, downOne(ctx, a, run))
	}
	if n == 0 {
		fmt.Fprintln(a.Streams.Out, "no run is alive")
	}
	return errors.Join(errs...)
}

func downOne(ctx context.Context, a *app.App, run orchestrator.Run) error {
	alive := run.Alive()
	if err := Down(ctx, a, run); err != nil {
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

// Down ends a run's processes: the agents through their supervisors, then the
// tmux session with the orchestrator. It returns when they are gone.
func Down(ctx context.Context, a *app.App, run orchestrator.Run) error {
	names, err := run.AgentNames()
	if err != nil {
		return err
	}
	server, err := a.Tmux(ctx, run.Socket)
	if err != nil {
		return err
	}
	// The orchestrator goes first: it must not take the agents' end for a crash.
	orchestrator.StopServing(ctx, run)
	stop, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var group errgroup.Group
	for _, name := range names {
		group.Go(func() error {
			err := stopAgent(stop, run, name)
			if errors.Is(err, pty.ErrNotRunning) {
				return nil
			}
			return err
		})
	}
	stopErr := group.Wait()
	err = errors.Join(stopErr, panes.New(server).Stop(ctx, run.Session))
	if err == nil {
		err = os.RemoveAll(run.Dir.Sockets()) // the sockets, and the environment kept beside them
	}
	return err
}

func stopAgent(ctx context.Context, run orchestrator.Run, name string) error {
	client, err := pty.Dial(ctx, run.Dir.Agent(name).Socket)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Stop(ctx); err != nil {
		return fmt.Errorf("stopping agent %s: %w", name, err)
	}
	return nil
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
