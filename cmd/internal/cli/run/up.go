// Package run holds the commands about whole runs: up, ls, attach, down and
// the orchestrator's own process.
package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/adapter/custom"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/recipe"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/panes"
	"muntin/recipes"
)

// DefaultWait is how long up waits for its agents.
const DefaultWait = time.Minute

// UpOptions are up's arguments.
type UpOptions struct {
	App    *app.App
	Source recipe.Source
	Recipe string
	Loaded *recipes.Recipe // used in place of Recipe when it is there
	Name   string
	Model  string
	Attach bool
	JSON   bool
	Anyway bool // also when the machine is too small
	Wait   time.Duration
}

// NewUp makes `muntin up`.
func NewUp(a *app.App) *cobra.Command {
	o := UpOptions{App: a, Source: recipe.Source{App: a}}
	cmd := &cobra.Command{
		Use:   "up <recipe>",
		Short: "Start a run from a recipe",
		Long: "Start a run: a git worktree and a tmux pane for each agent of the recipe, and\n" +
			"the orchestrator that gives them the board's tasks. The recipe is a name (see\n" +
			"`muntin recipe ls`) or the path of a file. A repository's own recipe is used when\n" +
			"you have seen what it would run and trust the repository.",
		Example: "  muntin up workers\n" +
			"  muntin up ./fleet.yaml --set n=3 --set model=openai/gpt-5",
		ValidArgsFunction: o.Source.Complete,
		Args:              app.Args(1, 1, "the recipe"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Recipe = args[0]
			_, err := Up(ctx, o)
			return err
		}),
	}
	o.Source.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "the run's name (default: the recipe's)")
	f.StringVar(&o.Model, "model", "", "model of agents that name none, as provider/id (default: $MUNTIN_MODEL)")
	f.BoolVarP(&o.Attach, "attach", "a", false, "attach to the run when it is up")
	f.BoolVar(&o.JSON, "json", false, "print what was started as JSON")
	f.BoolVar(&o.Anyway, "anyway", false, "also when the machine seems too small for the agents")
	f.DurationVar(&o.Wait, "wait", DefaultWait, "how long to wait until all agents are ready")
	return cmd
}

// Up starts a run, waits until its agents are ready, and says so.
func Up(ctx context.Context, o UpOptions) (orchestrator.Run, error) {
	a := o.App
	repo, err := a.Repo()
	if err != nil {
		return orchestrator.Run{}, err
	}
	recipe := o.Loaded
	if recipe == nil {
		if recipe, err = o.Source.Load(ctx, o.Recipe); err != nil {
			return orchestrator.Run{}, err
		}
	}
	if err := usable(a, recipe, o.Model); err != nil {
		return orchestrator.Run{}, err
	}
	run, err := bringUp(ctx, o, repo, recipe)
	if err != nil {
		return orchestrator.Run{}, err
	}
	if err := awaitReady(ctx, o, run); err != nil {
		return run, err
	}
	if err := tellUp(a, run, recipe, o.JSON); err != nil {
		return run, err
	}
	if o.Attach {
		return run, Attach(ctx, a, run)
	}
	return run, nil
}

// usable makes sure that a recipe can be carried out, and gives agents without a
// model one.
func usable(a *app.App, recipe *recipes.Recipe, model string) error {
	if err := orchestrator.CheckMode(recipe); err != nil {
		return &app.ExitError{Code: app.ExitUsage, Err: err}
	}
	for _, agent := range recipe.Resolve() {
		if agent.Adapter == "" {
			continue
		}
		if _, err := custom.Find(custom.Dir(a.Getenv), agent.Adapter); err != nil {
			return app.Hint(app.Usage("agent %s: %w", agent.Name, err), "see `muntin adapter ls`")
		}
	}
	return setModel(a, recipe, model)
}

// noteLayout says when the panes are not placed as the recipe has it.
func noteLayout(a *app.App, recipe *recipes.Recipe, cols, rows int) {
	if note := panes.Note(recipe.Layout, len(recipe.Resolve()), cols, rows); note != "" {
		fmt.Fprintf(a.Streams.Err, "%s %s\n", a.Theme.Warn.Render("layout:"), note)
	}
}

func bringUp(ctx context.Context, o UpOptions, repo state.Repo, recipe *recipes.Recipe) (orchestrator.Run, error) {
	a := o.App
	server, err := a.Tmux(ctx, "")
	if err != nil {
		return orchestrator.Run{}, err
	}
	dir := a.Layout.Repo(repo)
	name, err := runName(dir, o.Name, recipe.Name)
	if err != nil {
		return orchestrator.Run{}, err
	}
	cols, rows := size(a)
	up := orchestrator.UpOptions{
		Repo: repo, Dir: dir, Recipe: recipe, Name: name, Host: panes.New(server), Socket: server.Socket(),
		Self: a.Self, Program: a.Version, Environ: a.Environ, Cols: cols, Rows: rows, Now: a.Now,
		Origin: orchestrator.Origin{Recipe: place(o.Recipe), Set: o.Source.Values(), Model: o.Model},
	}
	if err := admit(ctx, o, up); err != nil {
		return orchestrator.Run{}, err
	}
	run, err := orchestrator.Up(ctx, up)
	if errors.Is(err, orchestrator.ErrRunExists) {
		return run, existing(a, dir, name, recipe)
	}
	if err == nil {
		noteLayout(a, recipe, cols, rows)
	}
	return run, err
}

// admit says when the machine is small for what the agents will need, and
// refuses when it is too small. A repository without a commit is Up's to refuse.
func admit(ctx context.Context, o UpOptions, up orchestrator.UpOptions) error {
	needs, err := orchestrator.Admit(ctx, up)
	var full *orchestrator.CapacityError
	t := o.App.Theme
	switch {
	case errors.As(err, &full) && !o.Anyway:
		return app.Hint(err, "start fewer agents, or --anyway")
	case errors.As(err, &full):
		fmt.Fprintf(o.App.Streams.Err, "%s %v\n", t.Warn.Render("anyway:"), err)
		return nil
	case err != nil:
		return nil
	}
	for _, r := range needs {
		if r.Tight() {
			fmt.Fprintf(o.App.Streams.Err, "%s this takes more than 80 %% of %s\n", t.Warn.Render("tight:"), r)
		}
	}
	return nil
}

// runName is the name asked for, or the recipe's with a number behind it where
// a run that has ended bears it already.
func runName(dir state.RepoDir, asked, recipe string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	runs, err := orchestrator.Runs(dir)
	if err != nil && len(runs) == 0 {
		return "", err
	}
	taken := map[string]orchestrator.Run{}
	for _, r := range runs {
		taken[r.Name] = r
	}
	name := recipe
	for n := 2; ; n++ {
		r, ok := taken[name]
		if !ok || r.Alive() {
			return name, nil // a living one makes Up fail with what to do
		}
		name = fmt.Sprintf("%s-%d", recipe, n)
	}
}

// existing says what to do about a run that is there, and how it differs.
func existing(a *app.App, dir state.RepoDir, name string, recipe *recipes.Recipe) error {
	run := orchestrator.Run{Dir: dir.Run(name)}
	err := fmt.Errorf("a run named %s exists in this repository", name)
	info, infoErr := orchestrator.ReadInfo(run.Dir)
	run.Info = info
	change, compareErr := orchestrator.Compare(run, recipe)
	if infoErr == nil && compareErr == nil && run.Alive() {
		if change.Empty() {
			return app.Hint(err, "it is as this recipe says; look at it with `muntin attach %s`, or start another with --name", name)
		}
		writeChange(a.Streams.Err, a.Theme, change)
		return app.Hint(fmt.Errorf("%w and differs from this recipe", err), "make it so with `muntin apply`, end it with `muntin down %s`, or start another with --name", name)
	}
	if run.Alive() {
		return app.Hint(err, "look at it with `muntin attach %s`, end it with `muntin down %s`, or start another with --name", name, name)
	}
	return app.Hint(err, "it has ended; start another with --name")
}

// setModel gives agents without a model the one of the command line or the
// environment, and refuses when one stays without.
func setModel(a *app.App, recipe *recipes.Recipe, flag string) error {
	switch {
	case flag != "":
		recipe.Model = flag
	case recipe.Model == "":
		recipe.Model = a.Getenv("MUNTIN_MODEL")
	}
	for _, agent := range recipe.Resolve() {
		if agent.BuiltIn() && agent.Model == "" {
			return app.Hint(app.Usage("agent %s has no model", agent.Name),
				"name one with --model openai/<id> or in $MUNTIN_MODEL; without a key try --model scripted/demo")
		}
	}
	return nil
}

// size is the size the run's windows get: the terminal's, or one that a
// person who attaches later is likely to have.
func size(a *app.App) (cols, rows int) {
	if !a.Streams.OutTTY {
		return 200, 50
	}
	cols, rows = a.Streams.Size()
	if cols < 80 || rows < 24 {
		fmt.Fprintf(a.Streams.Err, "%s the terminal has %d x %d cells; from 80 x 24 on everything can be read\n", a.Theme.Warn.Render("small:"), cols, rows)
	}
	return max(cols, 80), max(rows, 24)
}

func awaitReady(ctx context.Context, o UpOptions, run orchestrator.Run) error {
	wait, cancel := context.WithTimeoutCause(ctx, o.Wait, context.DeadlineExceeded)
	defer cancel()
	err := orchestrator.WaitReady(wait, run)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil { // Ctrl-C before all are ready: nothing is left behind
		return errors.Join(context.Cause(ctx), Discard(context.WithoutCancel(ctx), o.App, run))
	}
	return app.Hint(err, "look at it with `muntin attach %s`, end it with `muntin down %s`", run.Name, run.Name)
}

// upJSON is what `up --json` prints.
type upJSON struct {
	orchestrator.Info
	Agents []string `json:"agents"`
}

func tellUp(a *app.App, run orchestrator.Run, recipe *recipes.Recipe, asJSON bool) error {
	var names []string
	for _, agent := range recipe.Resolve() {
		names = append(names, agent.Name)
	}
	if asJSON {
		return a.PrintJSON(upJSON{Info: run.Info, Agents: names})
	}
	t := a.Theme
	fmt.Fprintf(a.Streams.Out, "%s run %s is up: %s\n", t.Good.Render("✓"), t.Strong.Render(run.Name), strings.Join(names, ", "))
	fmt.Fprintf(a.Streams.Out, "  %s   %s   %s\n",
		t.Command.Render(a.Command()+" attach "+run.Name), t.Command.Render(a.Command()+" ls"), t.Command.Render(a.Command()+" down "+run.Name))
	for _, path := range run.Missing {
		fmt.Fprintf(a.Streams.Err, "%s the worktrees lack %s: there is none here\n", t.Warn.Render("!"), term.CleanLine(path))
	}
	return nil
}
