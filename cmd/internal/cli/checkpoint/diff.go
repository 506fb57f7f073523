package checkpoint

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/proc"
	"muntin/internal/term"
)

// diffJSON is what `diff --json` prints.
type diffJSON struct {
	From    checkpoint.Checkpoint `json:"from"`
	To      checkpoint.Checkpoint `json:"to"`
	Changes []checkpoint.Change   `json:"changes"`
}

func newDiff(s *scope) *cobra.Command {
	var stat bool
	var tool string
	cmd := &cobra.Command{
		Use:   "diff [from] [to]",
		Short: "What changed between two checkpoints, or since one",
		Long: "Compare two checkpoints. With one, it is compared with the files as they are now;\n" +
			"with none, the newest is. --tool shows both as folders in git's difftool: the\n" +
			"one that git's configuration names (diff.guitool, diff.tool, merge.tool), or one\n" +
			"that `git difftool --tool-help` lists, as --tool=meld.",
		Example: "  muntin checkpoint diff\n  muntin checkpoint diff 3 5 --stat\n  muntin checkpoint diff latest --tool=vimdiff",
		Args:    app.Args(0, 2, "up to two checkpoints"),
		RunE: s.with(func(ctx context.Context, c *chain, args []string) error {
			from, to, err := ends(ctx, c.Store, args)
			if err != nil {
				return err
			}
			if tool != "" {
				if s.json {
					return app.Usage("--tool shows a difference to a person: it prints no JSON")
				}
				return diffTool(ctx, s.app, c, []string{tool, from.Tree, to.Tree})
			}
			if !stat && !s.json {
				return s.app.Paged(ctx, func() error { return c.Patch(ctx, newPainter(s.app), from, to) })
			}
			changes, err := c.Diff(ctx, from, to)
			if err != nil {
				return err
			}
			if s.json {
				return s.app.PrintJSON(diffJSON{From: from, To: to, Changes: changes})
			}
			return s.app.Paged(ctx, func() error { return printStat(s.app, changes) })
		}),
		ValidArgsFunction: s.completeIDs(2),
	}
	f := cmd.Flags()
	f.BoolVar(&stat, "stat", false, "only the files and how much they changed")
	f.BoolP("patch", "p", false, "the change of every line (the default)")
	f.StringVar(&tool, "tool", "", "show it in git's difftool, this one or the configured one")
	f.Lookup("tool").NoOptDefVal = configuredTool
	cmd.MarkFlagsMutuallyExclusive("stat", "patch", "tool")
	return cmd
}

// ends finds the two sides of a diff.
func ends(ctx context.Context, store *checkpoint.Store, specs []string) (from, to checkpoint.Checkpoint, err error) {
	spec := "latest"
	if len(specs) > 0 {
		spec = specs[0]
	}
	if from, err = store.Find(ctx, spec); err != nil {
		return from, to, err
	}
	if len(specs) < 2 {
		to, err = store.Worktree(ctx)
	} else {
		to, err = store.Find(ctx, specs[1])
	}
	return from, to, err
}

func printStat(a *app.App, changes []checkpoint.Change) error {
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
		if err := table.Write(a.Streams.Out, t, 0); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.Streams.Out, "%s, %d lines added, %d deleted\n", changed(len(changes)), added, deleted)
	return err
}

// configuredTool stands for the tool that git's configuration names.
const configuredTool = "configured"

// diffTool has git show what a tool makes of two trees; args are the tool and these. Trees of a sidecar are not in the
// worktree's own repository, if there is one.
func diffTool(ctx context.Context, a *app.App, c *chain, args []string) error {
	name, trees := args[0], args[1:]
	argv := []string{"git"}
	if where := c.Where(); where.Sidecar {
		argv = append(argv, "--git-dir="+where.Path, "--work-tree="+c.root)
	}
	argv = append(argv, "difftool", "--dir-diff", "--no-prompt")
	if name != configuredTool {
		argv = append(argv, "--tool="+name)
	}
	_, err := proc.Run(ctx, proc.Spec{
		Argv: append(argv, trees...), Dir: c.root, Env: a.Environ,
		Stdin: a.Streams.In, Stdout: os.Stdout, Stderr: os.Stderr, Terminal: true,
	})
	if err != nil {
		return app.Hint(fmt.Errorf("showing the difference in git's difftool: %w", err), "`git difftool --tool-help` lists the tools; --tool=<name> takes one of them")
	}
	return nil
}
