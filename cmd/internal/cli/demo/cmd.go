// Package demo holds `muntin demo`: a fleet of three agents that build a small
// program, with nothing but the model replayed from a file.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/recipe"
	"muntin/cmd/internal/cli/run"
	"muntin/internal/proc"
	"muntin/orchestrator"
	"muntin/recipes/builtin"
)

// Options are demo's arguments.
type Options struct {
	App   *app.App
	Dir   string
	Speed string
	Down  bool
}

// NewCmd makes `muntin demo`.
func NewCmd(a *app.App) *cobra.Command {
	o := Options{App: a}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch three agents build a small program: no key, no network",
		Long: "Make a git repository with a small unfinished program, a plan and a board, and let\n" +
			"three agents of muntin's own finish it. Their model replays a file; everything else\n" +
			"is real: tools, shell commands, checks, git, panes. On a terminal the run is shown\n" +
			"(prefix d detaches, the run goes on); without one the demo waits for its end, and\n" +
			"exits with 0 only if every task is done and the merged program passes its tests.",
		Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			return demo(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", "", "where to make the repository: a new or empty folder (default: a new temporary one)")
	f.StringVar(&o.Speed, "speed", "", "how fast the model speaks: 1 as a person reads, 2 twice as fast, 0 at once (default: 1 on a terminal, else 0)")
	f.BoolVar(&o.Down, "down", false, "take the run down at its end (without a terminal)")
	return cmd
}

func demo(ctx context.Context, o Options) error {
	a := o.App
	dir, err := makeProject(ctx, a, o.Dir)
	if err != nil {
		return err
	}
	speed := o.Speed
	if speed == "" {
		speed = "0"
		if a.Streams.Interactive() {
			speed = "1"
		}
	}
	a.Dir = dir
	a.Environ = append(slices.Clone(a.Environ), "MUNTIN_SCRIPT_SPEED="+speed)
	fmt.Fprintf(a.Streams.Out, "%s %s\n", a.Theme.Dim.Render("a fresh repository in"), dir)
	r, err := run.Up(ctx, run.UpOptions{App: a, Source: recipe.Source{App: a}, Recipe: "demo", Attach: a.Streams.Interactive(), Wait: run.DefaultWait})
	if err != nil {
		return err
	}
	if a.Streams.Interactive() {
		return afterwards(o, r)
	}
	err = wait(ctx, o, r)
	if o.Down {
		err = errors.Join(err, run.Down(context.WithoutCancel(ctx), a, r))
	}
	return err
}

// makeProject makes the demo's repository and its first commit.
func makeProject(ctx context.Context, a *app.App, asked string) (string, error) {
	dir, err := target(asked)
	if err != nil {
		return "", err
	}
	if err := writeProject(builtin.DemoProject(), dir); err != nil {
		return "", fmt.Errorf("writing the demo's project: %w", err)
	}
	env := gitEnv(a.Environ)
	for _, argv := range [][]string{
		{"git", "init", "-q", "-b", "main"},
		{"git", "add", "-A"},
		{"git", "commit", "-q", "--no-verify", "-m", "A ledger, to be built"},
	} {
		if _, err := proc.Run(ctx, proc.Spec{Argv: argv, Dir: dir, Env: env}); err != nil {
			return "", fmt.Errorf("making the demo's repository: %w", err)
		}
	}
	return dir, nil
}

// gitEnv is for our own repository: the person's identity may be missing, and
// their signing keys and hooks have no business in it.
func gitEnv(environ []string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") })
	return append(env,
		"GIT_AUTHOR_NAME=muntin demo", "GIT_AUTHOR_EMAIL=demo@muntin.invalid",
		"GIT_COMMITTER_NAME=muntin demo", "GIT_COMMITTER_EMAIL=demo@muntin.invalid",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
	)
}

// target is the folder for the repository: never one with something in it.
func target(asked string) (string, error) {
	if asked == "" {
		dir, err := os.MkdirTemp("", "muntin-demo-")
		if err != nil {
			return "", fmt.Errorf("making a folder for the demo: %w", err)
		}
		return filepath.EvalSymlinks(dir)
	}
	if err := os.MkdirAll(asked, 0o755); err != nil {
		return "", fmt.Errorf("making a folder for the demo: %w", err)
	}
	entries, err := os.ReadDir(asked)
	if err != nil {
		return "", fmt.Errorf("making a folder for the demo: %w", err)
	}
	if len(entries) > 0 {
		return "", app.Hint(app.Usage("%s is not empty", asked), "name a new folder: the demo makes a repository in it")
	}
	abs, err := filepath.Abs(asked)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func writeProject(project fs.FS, dir string) error {
	return fs.WalkDir(project, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := fs.ReadFile(project, path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(string(data), "#!") {
			mode = 0o755
		}
		return os.WriteFile(to, data, mode)
	})
}

// wait follows the run to its end, tells its story, and judges it.
func wait(ctx context.Context, o Options, r orchestrator.Run) error {
	story := newStory(o.App)
	var last orchestrator.State
	err := orchestrator.Observe(ctx, r, func(s orchestrator.State) bool {
		story.tell(s)
		last = s
		return s.Phase == orchestrator.PhaseDone || s.Phase == orchestrator.PhaseWaiting && s.Rev > 0 && len(s.Tasks) > 0
	})
	if err != nil {
		return err
	}
	return summary(o, r, last)
}
