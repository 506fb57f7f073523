// Package checkpoint holds the commands about checkpoints: ls, diff, rollback
// and undo.
package checkpoint

import (
	"context"
	"fmt"

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
	cmd := &cobra.Command{
		Use:     "checkpoint",
		Aliases: []string{"cp"},
		Short:   "List and compare the checkpoints of an agent's turns",
		Args:    cobra.ArbitraryArgs, RunE: app.Subcommand,
	}
	cmd.AddCommand(newLs(a), newDiff(a))
	return cmd
}

func newLs(a *app.App) *cobra.Command {
	var run string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls <agent>",
		Short: "List an agent's checkpoints, newest first",
		Args:  app.Args(1, 1, "an agent"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			store, _, err := open(ctx, a, run, args[0])
			if err != nil {
				return err
			}
			list, err := store.List(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			return printList(a, args[0], list)
		}),
	}
	cmd.Flags().StringVar(&run, "run", "", "the run (default: the living one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printList(a *app.App, agent string, list []checkpoint.Checkpoint) error {
	if len(list) == 0 {
		fmt.Fprintf(a.Streams.Out, "%s has no checkpoints yet\n", agent)
		return nil
	}
	width := 0
	if a.Streams.OutTTY {
		width, _ = a.Streams.Size()
	}
	table := term.NewTable("#", "TURN", "WHEN", "COMMIT", "FILES", "WHY")
	for _, c := range list {
		why := string(c.Cause)
		if c.Note != "" {
			why += ": " + term.CleanLine(c.Note)
		}
		table.Row(fmt.Sprint(c.ID), fmt.Sprint(c.Turn), c.Time.Local().Format("Jan 02 15:04:05"),
			a.Theme.Dim.Render(short(c.Commit)), fmt.Sprint(c.Files), why)
	}
	return table.Write(a.Streams.Out, a.Theme, width)
}

// diffJSON is what `diff --json` prints.
type diffJSON struct {
	From    checkpoint.Checkpoint `json:"from"`
	To      checkpoint.Checkpoint `json:"to"`
	Changes []checkpoint.Change   `json:"changes"`
}

func newDiff(a *app.App) *cobra.Command {
	var run string
	var stat, asJSON bool
	cmd := &cobra.Command{
		Use:   "diff <agent> [from] [to]",
		Short: "What changed between two checkpoints, or since one",
		Long: "Compare two checkpoints of an agent. Name them as #7 or 7 (its number), turn:3 or\n" +
			"a commit. With one, it is compared with the files as they are now; with none, the\n" +
			"newest is compared with the one before it.",
		Args: app.Args(1, 3, "an agent and up to two checkpoints"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			store, _, err := open(ctx, a, run, args[0])
			if err != nil {
				return err
			}
			from, to, err := ends(ctx, store, args[1:])
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				changes, err := store.Diff(ctx, from, to)
				if err != nil {
					return err
				}
				return a.PrintJSON(diffJSON{From: from, To: to, Changes: changes})
			case stat:
				changes, err := store.Diff(ctx, from, to)
				if err != nil {
					return err
				}
				printStat(a, changes)
				return nil
			}
			return store.Patch(ctx, newPainter(a), from, to)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&run, "run", "", "the run (default: the living one)")
	f.BoolVar(&stat, "stat", false, "only the files and how much they changed")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// ends finds the two sides of a diff.
func ends(ctx context.Context, store *checkpoint.Store, specs []string) (from, to checkpoint.Checkpoint, err error) {
	switch len(specs) {
	case 0:
		list, err := store.List(ctx)
		if err != nil {
			return from, to, err
		}
		if len(list) < 2 {
			return from, to, app.Usage("there are fewer than two checkpoints to compare")
		}
		return list[1], list[0], nil
	case 1:
		if from, err = store.Find(ctx, specs[0]); err != nil {
			return from, to, err
		}
		to, err = store.Worktree(ctx)
		return from, to, err
	}
	if from, err = store.Find(ctx, specs[0]); err != nil {
		return from, to, err
	}
	to, err = store.Find(ctx, specs[1])
	return from, to, err
}

func printStat(a *app.App, changes []checkpoint.Change) {
	t := a.Theme
	table := term.NewTable("FILE", "CHANGE", "+", "-")
	added, deleted := 0, 0
	for _, c := range changes {
		plus, minus := fmt.Sprint(c.Additions), fmt.Sprint(c.Deletions)
		if c.Binary {
			plus, minus = "bin", "bin"
		}
		table.Row(term.CleanLine(c.Path), string(c.Kind), t.Good.Render(plus), t.Bad.Render(minus))
		added, deleted = added+c.Additions, deleted+c.Deletions
	}
	if len(changes) > 0 {
		_ = table.Write(a.Streams.Out, t, 0)
	}
	fmt.Fprintf(a.Streams.Out, "%d files, %d lines added, %d deleted\n", len(changes), added, deleted)
}

// open finds a run and opens the chain of one of its agents.
func open(ctx context.Context, a *app.App, runName, agent string) (*checkpoint.Store, orchestrator.Run, error) {
	run, err := a.Run(runName)
	if err != nil {
		return nil, run, err
	}
	store, err := openChain(ctx, a, run, agent)
	return store, run, err
}

func openChain(ctx context.Context, a *app.App, run orchestrator.Run, agent string) (*checkpoint.Store, error) {
	dir, err := app.Agent(run, agent)
	if err != nil {
		return nil, err
	}
	workDir, err := workDirOf(run, dir)
	if err != nil {
		return nil, err
	}
	return checkpoint.Open(ctx, checkpoint.Options{
		Worktree: workDir, Ref: orchestrator.CheckpointRef(run.Name, agent), CacheDir: dir.Path, Now: a.Now,
	})
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

func short(commit string) string { return commit[:min(len(commit), 8)] }
