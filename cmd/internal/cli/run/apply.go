package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/recipe"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/panes"
	"muntin/recipes"
)

// ApplyOptions are the arguments of apply, scale and diff-recipe.
type ApplyOptions struct {
	App    *app.App
	Source recipe.Source
	Run    string
	Recipe string // empty: the one that the run came from
	Model  string
	DryRun bool
	JSON   bool
	Wait   time.Duration
	Within time.Duration

	scale func(*recipes.Recipe) error // nil: as the recipe has it
}

// applyWithin is how long an agent that is ended may go on with its turn.
const applyWithin = 10 * time.Minute

// NewApply makes `muntin apply`.
func NewApply(a *app.App) *cobra.Command {
	o := ApplyOptions{App: a, Source: recipe.Source{App: a}}
	cmd := &cobra.Command{
		Use:   "apply [recipe]",
		Short: "Make a run what its recipe says now",
		Long: "Make a run what its recipe says now: agents that are new in it are started, those\n" +
			"that are gone are ended, what changed is started again with its conversation, and\n" +
			"limits and checks count from now on. Agents are ended when their turns are over; a\n" +
			"task of one that goes is finished or given back, its worktree can be restored with\n" +
			"`muntin undo --removed`, and its checkpoints stay. Whatever else is missing of the run is\n" +
			"brought back. Without a recipe the one that the run came from is read again, with\n" +
			"the same parameters.",
		Example: "  muntin apply --dry-run             what would be done\n" +
			"  muntin apply\n" +
			"  muntin apply ./fleet.yaml --set n=5 --run fleet",
		ValidArgsFunction: o.Source.Complete,
		Args:              app.Args(0, 1, "at most a recipe"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Recipe = first(args)
			return applyRecipe(ctx, o)
		}),
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
	return cmd
}

// NewScale makes `muntin scale`.
func NewScale(a *app.App) *cobra.Command {
	o := ApplyOptions{App: a, Source: recipe.Source{App: a}}
	cmd := &cobra.Command{
		Use:   "scale <role> <number>",
		Short: "Have a run with more or fewer agents of a role",
		Long: "Apply a run's recipe with another number of agents of a role. The last ones go, as\n" +
			"with `muntin apply`; new ones are like the last. The recipe's file stays as it is.",
		Example: "  muntin scale worker 5",
		Args:    app.Args(2, 2, "a role and a number"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 0 {
				return app.Usage("%q is no number of agents", args[1])
			}
			o.scale = func(r *recipes.Recipe) error { return r.Scale(args[0], n) }
			return applyRecipe(ctx, o)
		}),
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
	return cmd
}

// NewDiffRecipe makes `muntin diff-recipe`.
func NewDiffRecipe(a *app.App) *cobra.Command {
	o := ApplyOptions{App: a, Source: recipe.Source{App: a}, DryRun: true}
	cmd := &cobra.Command{
		Use:   "diff-recipe [recipe]",
		Short: "Show what differs between a run and its recipe",
		Long: "Show what differs between a run and a recipe, by default the one that it came from\n" +
			"as it is now. The exit code is 1 when something does.",
		Example:           "  muntin diff-recipe\n  muntin diff-recipe ./fleet.yaml --run fleet --json",
		ValidArgsFunction: o.Source.Complete,
		Args:              app.Args(0, 1, "at most a recipe"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Recipe = first(args)
			run, want, err := o.wanted(ctx)
			if err != nil {
				return err
			}
			change, err := orchestrator.Compare(run, want)
			if err != nil {
				return err
			}
			if err := tellChange(a, run, change, o.JSON); err != nil || change.Empty() {
				return err
			}
			return app.Exit(app.ExitFailed)
		}),
	}
	o.Source.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the newest living one)")
	f.StringVar(&o.Model, "model", "", "model of agents that name none, as provider/id")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func (o *ApplyOptions) flags(cmd *cobra.Command) {
	o.Source.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the newest living one)")
	f.StringVar(&o.Model, "model", "", "model of agents that name none, as provider/id (default: as at the run's start)")
	f.BoolVar(&o.JSON, "json", false, "print what was done as JSON")
	f.DurationVar(&o.Within, "within", applyWithin, "how long agents that are ended may go on with their turns")
	f.DurationVar(&o.Wait, "wait", DefaultWait, "how long to wait until all agents are ready")
}

// wanted finds the run, and the recipe with all that it was given before.
func (o *ApplyOptions) wanted(ctx context.Context) (orchestrator.Run, *recipes.Recipe, error) {
	run, err := o.App.Run(o.Run)
	if err != nil {
		return run, nil, err
	}
	have, err := run.Recipe()
	if err != nil {
		return run, nil, err
	}
	name := cmp.Or(o.Recipe, run.Origin.Recipe)
	want := have
	if name != "" {
		name = place(name)
		o.App.Dir = run.Root // recipes of the run's repository, wherever we are
		if o.Recipe == "" || o.Recipe == run.Origin.Recipe {
			o.Source.Before(run.Origin.Set)
		}
		if want, err = o.Source.Load(ctx, name); err != nil {
			return run, nil, err
		}
	}
	if o.scale != nil {
		if err := o.scale(want); err != nil {
			return run, nil, &app.ExitError{Code: app.ExitUsage, Err: err}
		}
	}
	if want.Model == "" {
		want.Model = have.Model
	}
	o.Recipe, o.Model = name, cmp.Or(o.Model, run.Origin.Model)
	return run, want, usable(o.App, want, o.Model)
}

// place is a recipe's name, or the absolute path of its file.
func place(name string) string {
	if !strings.ContainsRune(name, filepath.Separator) {
		return name
	}
	if path, err := filepath.Abs(name); err == nil {
		return path
	}
	return name
}

func applyRecipe(ctx context.Context, o ApplyOptions) error {
	a := o.App
	run, want, err := o.wanted(ctx)
	if err != nil {
		return err
	}
	change, err := orchestrator.Compare(run, want)
	if err != nil {
		return app.Hint(err, "end it with `muntin down %s` and start another", run.Name)
	}
	if o.DryRun {
		return tellChange(a, run, change, o.JSON)
	}
	server, err := a.Tmux(ctx, run.Socket)
	if err != nil {
		return err
	}
	repo, err := state.FindRepo(run.Root)
	if err != nil {
		return err
	}
	if !o.JSON && !change.Empty() {
		writeChange(a.Streams.Err, a.Theme, change)
	}
	cols, rows := size(a)
	done, err := orchestrator.Apply(ctx, orchestrator.ApplyOptions{
		Run: run, Repo: repo, Dir: a.Layout.Repo(repo), Recipe: want, Host: panes.New(server), Self: a.Self, Environ: a.Environ,
		Origin: orchestrator.Origin{Recipe: o.Recipe, Set: o.Source.Values(), Model: o.Model},
		Cols:   cols, Rows: rows, Within: o.Within, Now: a.Now,
		OnStep: func(agent string, step orchestrator.DownStep) { fmt.Fprintf(a.Streams.Err, "%s %s\n", agent, step) },
	})
	if err != nil {
		return app.Hint(fmt.Errorf("applying to run %s: %w", run.Name, err), "what was done stays: `muntin apply` goes on from there")
	}
	wait, cancel := context.WithTimeoutCause(ctx, o.Wait, context.DeadlineExceeded)
	defer cancel()
	if err := orchestrator.WaitResumed(wait, run, done.Resumed); err != nil {
		return app.Hint(fmt.Errorf("applying to run %s: %w", run.Name, err), "look at it with `muntin attach %s`", run.Name)
	}
	return tellApplied(a, run, done, o.JSON)
}

func tellApplied(a *app.App, run orchestrator.Run, done orchestrator.Applied, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(struct {
			Run string `json:"run"`
			orchestrator.Applied
		}{run.Name, done})
	}
	name := a.Theme.Strong.Render(run.Name)
	for _, note := range done.Notes {
		fmt.Fprintf(a.Streams.Err, "%s %s\n", a.Theme.Warn.Render("!"), term.CleanLine(note))
	}
	switch {
	case !done.Empty():
		fmt.Fprintf(a.Streams.Out, "%s run %s is as its recipe says: %d agents\n", a.Theme.Good.Render("✓"), name, len(done.Resumed.Agents)+len(done.Resumed.Alive))
	case done.Resumed.Nothing():
		fmt.Fprintf(a.Streams.Out, "run %s is as its recipe says; nothing was to be done\n", name)
	default:
		return tellResumed(a, run, done.Resumed, false)
	}
	return nil
}

// tellChange says what differs.
func tellChange(a *app.App, run orchestrator.Run, c orchestrator.Change, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(struct {
			Run string `json:"run"`
			orchestrator.Change
		}{run.Name, c})
	}
	if c.Empty() {
		fmt.Fprintf(a.Streams.Out, "run %s is as its recipe says\n", a.Theme.Strong.Render(run.Name))
		return nil
	}
	writeChange(a.Streams.Out, a.Theme, c)
	return nil
}

// writeChange lists what differs, a line each.
func writeChange(w io.Writer, t term.Theme, c orchestrator.Change) {
	for _, name := range c.Added {
		fmt.Fprintf(w, "%s agent %s\n", t.Good.Render("+"), name)
	}
	for _, name := range c.Removed {
		fmt.Fprintf(w, "%s agent %s\n", t.Bad.Render("-"), name)
	}
	change := func(what string, ch recipes.Change, why string) {
		from, to := cmp.Or(ch.From, "none"), cmp.Or(ch.To, "none")
		fmt.Fprintf(w, "%s %s%s: %s → %s%s\n", t.Warn.Render("~"), what, ch.Key, term.CleanLine(from), term.CleanLine(to), why)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Changed)) {
		why := ""
		if slices.Contains(c.Restart, name) {
			why = "  (it is started again)"
		}
		for _, ch := range c.Changed[name] {
			change("agent "+name+" ", ch, why)
		}
	}
	for _, ch := range c.Settings {
		why := ""
		if slices.Contains(c.Later, ch.Key) {
			why = "  (for what is made from now on)"
		}
		change("", ch, why)
	}
}
