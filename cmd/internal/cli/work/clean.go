package work

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/orchestrator"
)

// CleanOptions are clean's arguments.
type CleanOptions struct {
	App  *app.App
	Run  string
	Dry  bool
	Yes  bool
	JSON bool
}

// NewClean makes `muntin clean`.
func NewClean(a *app.App) *cobra.Command {
	o := CleanOptions{App: a}
	cmd := &cobra.Command{
		Use:   "clean [run]",
		Short: "Remove the worktrees of runs that have ended",
		Long: "Remove the worktrees and branches of a run that has ended, or of all of this\n" +
			"repository. It shows what is in them and what is not merged, and asks first.\n" +
			"Nothing is lost: commits and uncommitted files are kept, and `muntin undo --removed`\n" +
			"brings a worktree back. Checkpoints, conversations and logs stay where they are.\n" +
			"A worktree in which a process still works is left alone.",
		Example: "  muntin clean --dry-run\n  muntin clean nightly\n  muntin clean nightly --yes",
		Args:    app.Args(0, 1, "at most a run"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Run = first(args)
			return runClean(ctx, o)
		}),
		ValidArgsFunction: completeRun(a),
	}
	f := cmd.Flags()
	f.BoolVarP(&o.Dry, "dry-run", "n", false, "only show what would be removed")
	f.BoolVarP(&o.Yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

// A cleaning is one run and what it has left.
type cleaning struct {
	req  orchestrator.DiscardRequest
	list []orchestrator.Leftover
}

func runClean(ctx context.Context, o CleanOptions) error {
	a := o.App
	runs, err := cleanable(a, o.Run)
	if err != nil {
		return err
	}
	var all []cleaning
	n := 0
	for _, run := range runs {
		repo, err := repoOf(run)
		if err != nil {
			return err
		}
		c := cleaning{req: orchestrator.DiscardRequest{Repo: repo, Dir: a.Layout.Repo(repo), Run: run, Now: a.Now, Environ: a.Environ}}
		if c.list, err = orchestrator.Leftovers(ctx, c.req); err != nil {
			return err
		}
		n += len(c.list)
		all = append(all, c)
	}
	if !o.JSON {
		for _, c := range all {
			tellLeftovers(a, c.list)
		}
	}
	if n == 0 && !o.JSON {
		_, err := fmt.Fprintln(a.Streams.Out, "there are no worktrees to remove")
		return err
	}
	if o.Dry || n == 0 {
		return printLeftovers(o, all)
	}
	if err := agreed(o, n); err != nil {
		return err
	}
	return removeAll(ctx, o, all)
}

// cleanable returns the run that is named, or all that have ended. A living one
// is an error.
func cleanable(a *app.App, name string) ([]orchestrator.Run, error) {
	if name != "" {
		run, err := a.Run(name)
		if err == nil && run.Alive() {
			err = app.Hint(fmt.Errorf("run %s is alive", run.Name), "end it with `muntin down %s`", run.Name)
		}
		return []orchestrator.Run{run}, err
	}
	repo, err := a.Repo()
	if err != nil {
		return nil, err
	}
	runs, err := orchestrator.Runs(a.Layout.Repo(repo))
	var ended []orchestrator.Run
	for _, r := range runs {
		if !r.Alive() {
			ended = append(ended, r)
		}
	}
	return ended, err
}

func tellLeftovers(a *app.App, list []orchestrator.Leftover) {
	t, w := a.Theme, a.Streams.Out
	for _, l := range list {
		fmt.Fprintf(w, "%s  %s\n", t.Strong.Render(l.Run+"/"+l.Name), t.Dim.Render(l.Path))
		var what []string
		for _, c := range []struct {
			n    int
			what string
		}{{l.Commits, "commit that is on no other branch"}, {l.Modified, "modified file"}, {l.Untracked, "untracked file"}, {l.Ignored, "ignored path"}} {
			if c.n > 0 {
				what = append(what, count(c.n, c.what))
			}
		}
		if len(what) > 0 {
			fmt.Fprintf(w, "    %s\n", strings.Join(what, ", "))
		}
		if len(l.Unmerged) > 0 {
			fmt.Fprintf(w, "    %s %s\n", t.Warn.Render("not merged:"), cleaned(l.Unmerged))
		}
		if l.Refused != "" {
			fmt.Fprintf(w, "    %s %s\n", t.Bad.Render("stays:"), l.Refused)
		}
		for _, note := range l.Notes {
			fmt.Fprintf(w, "    %s\n", t.Dim.Render(note))
		}
	}
}

func printLeftovers(o CleanOptions, all []cleaning) error {
	if !o.JSON {
		return nil
	}
	list := []orchestrator.Leftover{}
	for _, c := range all {
		list = append(list, c.list...)
	}
	return o.App.PrintJSON(list)
}

// agreed asks a person, unless they have said yes.
func agreed(o CleanOptions, n int) error {
	a := o.App
	if o.Yes {
		return nil
	}
	if !a.Streams.Interactive() || o.JSON {
		return app.NeedsPerson(app.Hint(fmt.Errorf("removing %s needs a yes", count(n, "worktree")), "say --yes, or --dry-run to see only"))
	}
	fmt.Fprintf(a.Streams.Err, "Remove %s? [y/N] ", count(n, "worktree"))
	line, err := bufio.NewReader(io.LimitReader(a.Streams.In, 1<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return app.NeedsPerson(errors.New("nothing was removed"))
	}
	return nil
}

func removeAll(ctx context.Context, o CleanOptions, all []cleaning) error {
	a := o.App
	var errs []error
	removed, refused := 0, 0
	for i := range all {
		list, err := orchestrator.Clean(ctx, all[i].req, all[i].list)
		all[i].list = list
		errs = append(errs, err)
		for _, l := range list {
			if l.Entry != "" {
				removed++
			}
			if l.Refused != "" {
				refused++
				if !o.JSON {
					fmt.Fprintf(a.Streams.Err, "%s %s/%s stays: %s\n", a.Theme.Warn.Render("!"), l.Run, l.Name, l.Refused)
				}
			}
		}
	}
	if o.JSON {
		errs = append(errs, printLeftovers(o, all))
	} else {
		fmt.Fprintf(a.Streams.Out, "%s removed %s; `muntin undo --removed` brings the last back\n", a.Theme.Good.Render("✓"), count(removed, "worktree"))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if refused > 0 {
		return app.Exit(app.ExitPerson)
	}
	return nil
}
