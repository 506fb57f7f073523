package work

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/checkpoint"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/worktree"
)

// last names the newest removal.
const last = "last"

// NewUndo makes `muntin undo`, which takes back rollbacks and, with --removed,
// the removal of worktrees.
func NewUndo(a *app.App) *cobra.Command {
	cmd := checkpoint.NewUndo(a)
	cmd.Short = "Take the last rollback back, or a removal"
	cmd.Long += "\n\n--removed brings a worktree back that was removed: the last one, or the one whose\n" +
		"id, path or agent is given; its branch, index and files are as they were. --list shows\n" +
		"which there are."
	cmd.Example = "  muntin undo ada\n  muntin undo --list\n  muntin undo --removed\n  muntin undo --removed=nightly/ada"
	var removed string
	var list bool
	f := cmd.Flags()
	f.StringVar(&removed, "removed", "", "bring a removed worktree back: last, an id, a path, or <run>/<agent>")
	f.Lookup("removed").NoOptDefVal = last
	f.BoolVar(&list, "list", false, "list the worktrees that can be brought back")
	cmd.MarkFlagsMutuallyExclusive("removed", "list", "run")
	rollback := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if removed == "" && !list {
			return rollback(cmd, args)
		}
		json, err := cmd.Flags().GetBool("json")
		if err != nil {
			return err
		}
		if len(args) > 0 {
			return app.Usage("an agent is named for a rollback: write --removed=%s", args[0])
		}
		return a.Interruptible(func(ctx context.Context, _ []string) error {
			return restore(ctx, a, removed, json)
		})(cmd, args)
	}
	return cmd
}

// restore brings a removal back, or lists them when none is named.
func restore(ctx context.Context, a *app.App, which string, json bool) error {
	repo, err := a.Repo()
	if err != nil {
		return err
	}
	git, err := orchestrator.OpenGit(ctx, repo, a.Layout.Repo(repo), a.Now)
	if err != nil {
		return err
	}
	entries, err := git.Entries()
	if err != nil && len(entries) == 0 {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e worktree.Entry) bool { return e.State != worktree.EntryRemoved })
	if which == "" {
		return tellEntries(a, entries, json)
	}
	e, err := find(entries, which)
	if err != nil {
		return err
	}
	wt, err := git.Restore(ctx, e.ID)
	if err != nil {
		return err
	}
	if json {
		return a.PrintJSON(wt)
	}
	on := "on branch " + wt.Branch
	if wt.Branch == "" {
		on = "at " + wt.Head[:min(len(wt.Head), 8)] + ", on no branch"
	}
	_, err = fmt.Fprintf(a.Streams.Out, "%s %s is back, %s\n", a.Theme.Good.Render("✓"), wt.Path, on)
	return err
}

// find finds the newest removal that is meant.
func find(entries []worktree.Entry, which string) (worktree.Entry, error) {
	for _, e := range slices.Backward(entries) {
		if which == last || e.ID == strings.ToUpper(which) || e.Path == which || nameOf(e) == which {
			return e, nil
		}
	}
	if which == last {
		return worktree.Entry{}, errors.New("no worktree was removed")
	}
	return worktree.Entry{}, app.Hint(fmt.Errorf("no worktree %s was removed", which), "list them with `muntin undo --list`")
}

// nameOf is <run>/<agent>.
func nameOf(e worktree.Entry) string {
	return filepath.Base(filepath.Dir(e.Path)) + "/" + filepath.Base(e.Path)
}

func tellEntries(a *app.App, entries []worktree.Entry, json bool) error {
	if json {
		return a.PrintJSON(append([]worktree.Entry{}, entries...))
	}
	if len(entries) == 0 {
		_, err := fmt.Fprintln(a.Streams.Out, "no worktree was removed")
		return err
	}
	table := term.NewTable("ID", "REMOVED", "WORKTREE", "COMMITS", "CHANGED", "IGNORED")
	for _, e := range slices.Backward(entries) {
		table.Row(e.ID, e.Time.Local().Format("2006-01-02 15:04"), term.CleanLine(nameOf(e)),
			fmt.Sprint(e.Commits), fmt.Sprint(e.Modified+e.Untracked), fmt.Sprint(e.Ignored))
	}
	return table.Write(a.Streams.Out, a.Theme, 0)
}
