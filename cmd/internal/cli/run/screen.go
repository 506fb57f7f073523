package run

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/proc"
	"muntin/internal/state"
	"muntin/orchestrator"
	"muntin/orchestrator/dash"
	"muntin/orchestrator/dash/source"
)

// A screen is the dashboard of a run on this process's terminal.
type screen struct {
	app    *app.App
	run    orchestrator.Run
	source *source.Source
}

func newScreen(ctx context.Context, a *app.App, run orchestrator.Run, onView func(dash.View)) (*screen, error) {
	recipe, err := run.Recipe()
	if err != nil {
		return nil, err
	}
	o := source.Options{Run: run, Recipe: recipe, Now: a.Now, OnView: onView}
	if repo, err := state.FindRepo(run.Root); err == nil {
		if git, err := orchestrator.OpenGit(ctx, repo, a.Layout.Repo(repo), a.Now); err == nil {
			o.Stat = func(ctx context.Context, agent string) (added, deleted int, err error) {
				return orchestrator.ChangedLines(ctx, git, run, agent)
			}
		}
	}
	return &screen{app: a, run: run, source: source.New(o)}, nil
}

// show draws until ctx ends or a person quits. Of o only what is shown first and
// how it is left is the caller's.
func (s *screen) show(ctx context.Context, o dash.Options) error {
	ctx, stop := context.WithCancel(ctx)
	views := make(chan dash.View)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { s.source.Run(ctx, views) })
	o.In, o.Out, o.Views, o.Env, o.Now = s.app.Streams.In, s.app.Streams.Out, views, s.app.Environ, s.app.Now
	if s.app.Streams.Interactive() {
		o.In, o.Out = os.Stdin, os.Stdout // the dashboard draws on the terminal itself
		o.Live = source.Live{Run: s.run}
	}
	return dash.Run(ctx, o)
}

// commands carries out muntin's own command lines for the run.
type commands struct {
	app *app.App
	run orchestrator.Run
}

// commandTimeout bounds a command of the dashboard.
const commandTimeout = time.Minute

// Run implements dash.Commands.
func (c commands) Run(ctx context.Context, argv []string) (string, error) {
	res, err := proc.Run(ctx, proc.Spec{Argv: c.argv(argv), Dir: c.run.Root, Env: c.env(), Merge: true, Timeout: commandTimeout})
	return string(res.Stdout), err
}

// Terminal implements dash.Commands.
func (c commands) Terminal(argv []string) *exec.Cmd {
	argv = c.argv(argv)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = c.run.Root, c.env()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

func (c commands) argv(argv []string) []string {
	return slices.Concat([]string{c.app.Self}, argv, []string{"--repo", c.run.Root})
}

// env says which board and plan are meant, and that a person acts.
func (c commands) env() []string {
	env := slices.DeleteFunc(slices.Clone(c.app.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"MUNTIN_AGENT", "MUNTIN_BOARD", "MUNTIN_PLAN", "MUNTIN_REPO", "MUNTIN_TASK"}, name)
	})
	return append(env, "MUNTIN_BOARD="+c.run.Todo, "MUNTIN_PLAN="+c.run.Plan, "MUNTIN_REPO="+c.run.Root, "NO_COLOR=1")
}
