package work

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/worktree"
)

// MergeOptions are merge's arguments.
type MergeOptions struct {
	App  *app.App
	Run  string
	Into string
	Dry  bool
	JSON bool
}

// mergeJSON is what `merge --json` prints.
type mergeJSON struct {
	Run    string               `json:"run"`
	Branch string               `json:"branch"` // the run's integration branch
	Into   string               `json:"into"`
	Dry    bool                 `json:"dry_run,omitempty"`
	Result worktree.MergeResult `json:"result"`
	// Unmerged is the agents' work that is not in the integration branch, and so not in this merge.
	Unmerged []orchestrator.Unmerged `json:"unmerged,omitempty"`
}

// NewMerge makes `muntin merge`.
func NewMerge(a *app.App) *cobra.Command {
	o := MergeOptions{App: a}
	cmd := &cobra.Command{
		Use:   "merge [run] --into <branch>",
		Short: "Merge a run's finished work into a branch of yours",
		Long: "Merge the run's integration branch, which holds the checked work of all agents,\n" +
			"into a branch of yours: a fast-forward where that is possible, else a merge commit.\n" +
			"This is the only command of muntin that moves a branch of yours. If the branch is\n" +
			"checked out, its files come along, unless they would overwrite something. With a\n" +
			"conflict nothing changes, and the exit code is 3.",
		Example: "  muntin merge --into main --dry-run\n  muntin merge nightly --into main",
		Args:    app.Args(0, 1, "at most a run"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Run = first(args)
			return runMerge(ctx, o)
		}),
		ValidArgsFunction: completeRun(a),
	}
	f := cmd.Flags()
	f.StringVar(&o.Into, "into", "", "the branch to merge into (required)")
	f.BoolVarP(&o.Dry, "dry-run", "n", false, "only tell what would happen")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func runMerge(ctx context.Context, o MergeOptions) error {
	a := o.App
	into := strings.TrimPrefix(o.Into, "refs/heads/")
	switch {
	case into == "":
		return app.Usage("name the branch to merge into with --into")
	case strings.HasPrefix(into, "muntin/"):
		return app.Usage("%s is a branch of a run: name one of yours with --into", into)
	}
	run, err := a.Run(o.Run)
	if err != nil {
		return err
	}
	git, err := openGit(ctx, a, run)
	if err != nil {
		return err
	}
	out := mergeJSON{Run: run.Name, Branch: run.Branch, Into: into, Dry: o.Dry}
	if out.Unmerged, err = orchestrator.FindUnmerged(ctx, git, run); err != nil {
		return err
	}
	if o.Dry {
		out.Result, err = git.Try(ctx, into, run.Branch)
	} else {
		out.Result, err = git.Land(ctx, worktree.Landing{
			Into: into, From: run.Branch, Message: "Merge run " + run.Name, Author: git.Person(ctx),
		})
	}
	if err != nil {
		return mergeError(err, out)
	}
	if o.JSON {
		err = a.PrintJSON(out)
	} else {
		err = tellMerge(a, out)
	}
	if err == nil && len(out.Result.Conflicts) > 0 {
		return app.NeedsPerson(app.Hint(fmt.Errorf("%s does not merge into %s: %s", run.Branch, into, count(len(out.Result.Conflicts), "conflict")),
			"settle it by hand: git switch %s && git merge %s", into, run.Branch))
	}
	return err
}

// mergeError says what a person can do about a merge that could not be made.
func mergeError(err error, out mergeJSON) error {
	var over *worktree.OverwriteError
	switch {
	case errors.As(err, &over):
		return app.NeedsPerson(app.Hint(err, "commit or stash what is in %s, then merge again", over.Dir))
	case errors.Is(err, worktree.ErrMissing):
		return app.Hint(err, "make the branch first: git branch %s", out.Into)
	}
	return err
}

func tellMerge(a *app.App, out mergeJSON) error {
	t, w := a.Theme, a.Streams.Out
	how := "was merged into"
	switch {
	case len(out.Result.Conflicts) > 0:
		how = "conflicts with"
	case out.Result.UpToDate:
		how = "is in"
	case out.Dry && out.Result.FastForward:
		how = "would fast-forward"
	case out.Dry:
		how = "would be merged into"
	case out.Result.FastForward:
		how = "fast-forwarded"
	}
	mark := t.Good.Render("✓")
	if len(out.Result.Conflicts) > 0 {
		mark = t.Bad.Render("✗")
	}
	fmt.Fprintf(w, "%s %s %s %s\n", mark, out.Branch, how, t.Strong.Render(out.Into))
	for _, c := range out.Result.Conflicts {
		fmt.Fprintf(w, "  %s  %s\n", term.CleanLine(c.Path), t.Dim.Render(c.Kind))
		for _, h := range c.Hunks {
			fmt.Fprintf(w, "    %s of %s, %s of the run\n", h.Ours, out.Into, h.Theirs)
		}
	}
	for _, u := range out.Unmerged {
		fmt.Fprintf(w, "%s not merged: %s has %s (%s)\n", t.Warn.Render("!"), u.Agent, count(len(u.Files), "changed file"), cleaned(u.Files))
	}
	return nil
}
