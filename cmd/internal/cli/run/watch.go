package run

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"muntin/cmd/internal/cli/app"
	"muntin/orchestrator"
	"muntin/orchestrator/dash"
)

// WatchOptions are watch's arguments.
type WatchOptions struct {
	App      *app.App
	Run      string
	View     string
	Agent    string
	Key      string
	ReadOnly bool
}

// NewWatch makes `muntin watch`.
func NewWatch(a *app.App) *cobra.Command {
	o := WatchOptions{App: a}
	cmd := &cobra.Command{
		Use:   "watch [run]",
		Short: "The dashboard of a run, in any terminal",
		Long: "Show a run's dashboard here: its agents, board, overlaps, messages, what needs a\n" +
			"person, and what happened. Any number of them can be open. What is done in one is\n" +
			"a command line of muntin's, which it shows first. Without a terminal each change\n" +
			"is a line.",
		Example: "  muntin watch\n  muntin watch nightly --view needs\n  muntin watch --view agent --agent ada --read-only",
		Args:    app.Args(0, 1, "at most a run"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Run = first(args)
			return watch(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.View, "view", "fleet", "what is shown first: "+strings.Join(dash.TabNames(), ", "))
	f.StringVar(&o.Agent, "agent", "", "the agent that the agent view shows")
	f.BoolVar(&o.ReadOnly, "read-only", false, "look only")
	f.StringVar(&o.Key, "key", "", "a key that is pressed at once, and whose end is the end")
	_ = f.MarkHidden("key") // for popups
	return cmd
}

func watch(ctx context.Context, o WatchOptions) error {
	run, err := o.App.Run(o.Run)
	if err != nil {
		return err
	}
	return watchRun(ctx, run, o)
}

func watchRun(ctx context.Context, run orchestrator.Run, o WatchOptions) error {
	a := o.App
	tab, ok := dash.ParseTab(o.View)
	if !ok {
		return app.Usage("there is no view %q: there are %s", o.View, strings.Join(dash.TabNames(), ", "))
	}
	if o.Agent != "" {
		if _, err := app.Agent(run, o.Agent); err != nil {
			return err
		}
	}
	shown, err := newScreen(ctx, a, run, nil)
	if err != nil {
		return err
	}
	opts := dash.Options{Tab: tab, Agent: o.Agent, Key: o.Key, Once: o.Key != ""}
	if !o.ReadOnly {
		opts.Commands = commands{app: a, run: run}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer stop()
		err := shown.show(ctx, opts)
		if errors.Is(err, dash.ErrQuit) || ctx.Err() != nil {
			return nil
		}
		return err
	})
	group.Go(func() error {
		err := orchestrator.Follow(ctx, run, func(st orchestrator.State) { shown.source.Update(st, nil) })
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	return group.Wait()
}
