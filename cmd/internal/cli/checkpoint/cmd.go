// Package checkpoint holds the commands about checkpoints: those of muntin
// checkpoint, which need no run, and rollback, undo and redo of an agent's files.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/recipes"
)

// NewCmd makes `muntin checkpoint`.
func NewCmd(a *app.App) *cobra.Command {
	s := &scope{app: a}
	cmd := &cobra.Command{
		Use:     "checkpoint",
		Aliases: []string{"cp"},
		Short:   "Save, compare and restore whole worktrees",
		Long: "A checkpoint is the state of a worktree: all files, tracked or not, that are not\n" +
			"ignored. It lies on a private ref of the repository; index, HEAD, branches, stash\n" +
			"and hooks are never touched. Every restore saves the present first, so nothing is\n" +
			"lost, and undo takes it back.\n\n" +
			"Without --agent the commands are about the checkpoints taken by hand in this\n" +
			"worktree; with it, about those of an agent's turns. A checkpoint is named by its\n" +
			"number (7 or #7), turn:3, a commit, a label, or latest.",
		Example: "  muntin checkpoint save -m \"before the big change\"\n" +
			"  muntin checkpoint diff latest\n" +
			"  muntin checkpoint restore 7 src\n" +
			"  muntin checkpoint undo",
		Args: cobra.ArbitraryArgs, RunE: app.Subcommand,
	}
	f := cmd.PersistentFlags()
	f.StringVarP(&s.agent, "agent", "a", "", "the chain of this agent's turns")
	f.StringVar(&s.run, "run", "", "the agent's run (default: the living one)")
	f.BoolVar(&s.json, "json", false, "print JSON")
	_ = cmd.RegisterFlagCompletionFunc("agent", s.completeAgent) // it is a flag of this very command
	cmd.AddCommand(newSave(s), newLs(s), newShow(s), newDiff(s), newRestore(s), newStep(s, checkpoint.StepUndo), newStep(s, checkpoint.StepRedo),
		newRevert(s), newLabel(s), newExport(s), newVerify(s), newRecover(s), newGC(s))
	return cmd
}

// A scope says whose checkpoints a command is about.
type scope struct {
	app        *app.App
	agent, run string
	json       bool
}

// A chain is an open store, with what its commands say about it.
type chain struct {
	*checkpoint.Store
	root      string // the worktree
	run       string // of an agent's chain
	agent     string
	recovered *checkpoint.RestoreReport // what opening it, or a command, finished of an interrupted restore
	bar       *term.Progress
}

// open opens the chain that the scope is about. Whoever calls it must call done.
func (s *scope) open(ctx context.Context) (c *chain, done func(), err error) {
	if s.agent != "" {
		run, err := s.app.Run(s.run)
		if err != nil {
			return nil, nil, err
		}
		return openAgent(ctx, s.app, run, s.agent)
	}
	if s.run != "" {
		return nil, nil, app.Usage("--run is about an agent: name it with --agent")
	}
	opts := checkpoint.Options{Worktree: s.app.Dir}
	repo, err := state.FindRepo(s.app.Dir)
	switch {
	case err == nil:
		opts.CacheDir = filepath.Join(s.app.Layout.Repo(repo).Path, "checkpoints")
		if err := os.MkdirAll(opts.CacheDir, 0o700); err != nil {
			return nil, nil, fmt.Errorf("making the cache folder: %w", err)
		}
	case !errors.Is(err, state.ErrNoRepo):
		return nil, nil, err
	}
	if opts.Ref, err = checkpoint.HandRef(s.app.Dir); err != nil {
		return nil, nil, err
	}
	return openStore(ctx, s.app, &chain{}, opts)
}

// openAgent opens the chain of an agent of a run.
func openAgent(ctx context.Context, a *app.App, run orchestrator.Run, agent string) (*chain, func(), error) {
	dir, err := app.Agent(run, agent)
	if err != nil {
		return nil, nil, err
	}
	workDir, err := workDirOf(run, dir)
	if err != nil {
		return nil, nil, err
	}
	return openStore(ctx, a, &chain{root: workDir, run: run.Name, agent: agent}, checkpoint.Options{
		Worktree: workDir, Ref: orchestrator.CheckpointRef(run.Name, agent), CacheDir: dir.Path,
	})
}

func openStore(ctx context.Context, a *app.App, c *chain, opts checkpoint.Options) (*chain, func(), error) {
	c.bar = term.NewProgress(a.Streams, a.Theme, a.Now)
	opts.Now = a.Now
	opts.Progress = func(p checkpoint.Progress) { c.bar.Show(p.What, p.Done, p.Total) }
	opts.Recovered = func(r checkpoint.RestoreReport) { c.recovered = &r }
	store, err := checkpoint.Open(ctx, opts)
	if errors.Is(err, state.ErrNoRepo) {
		_, err = a.Repo() // with its hint
	}
	if err != nil {
		return nil, nil, err
	}
	if c.Store = store; c.root == "" {
		c.root = store.Root()
	}
	return c, func() {
		c.bar.Done()
		_ = store.Close() // it writes a cache; without it the next command is slower
	}, nil
}

func workDirOf(run orchestrator.Run, dir state.AgentDir) (string, error) {
	recipe, err := run.Recipe()
	if err != nil {
		return "", err
	}
	for _, agent := range recipe.Agents {
		if agent.Name == dir.Name {
			return orchestrator.WorkDir(run.Dir, run.Root, agent), nil
		}
	}
	return orchestrator.WorkDir(run.Dir, run.Root, recipes.Agent{Name: dir.Name, Isolation: recipes.IsolationWorktree}), nil
}

// with makes a RunE that opens the scope's chain first.
func (s *scope) with(run func(ctx context.Context, c *chain, args []string) error) func(*cobra.Command, []string) error {
	return s.app.Interruptible(func(ctx context.Context, args []string) error {
		c, done, err := s.open(ctx)
		if err != nil {
			return err
		}
		defer done()
		err = run(ctx, c, args)
		c.bar.Done()
		if c.recovered != nil {
			fmt.Fprintf(s.app.Streams.Err, "%s %s\n", s.app.Theme.Warn.Render("recovered:"), recoveredText(c.recovered))
		}
		return err
	})
}

func short(commit string) string { return commit[:min(len(commit), 8)] }
