// Package trust holds the commands about folders that a person trusts.
package trust

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/resource"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/resources"
	"muntin/internal/term"
	"muntin/internal/trust"
)

// Options are the arguments of `muntin trust`.
type Options struct {
	App    *app.App
	Dir    string // "": the project that the present folder lies in
	No     bool
	Forget bool
	JSON   bool
}

// NewCmd makes `muntin trust`.
func NewCmd(a *app.App) *cobra.Command {
	o := Options{App: a}
	cmd := &cobra.Command{
		Use: "trust [folder]", Short: "Trust a folder's settings, skills, prompts and recipes", Args: app.Args(0, 1, "at most one folder"),
		Long: "A project's settings, skills, prompt templates, themes and recipes are loaded only\n" +
			"where you trust the folder: by default the top of the repository that you are in.\n" +
			"A decision counts for all that is below the folder, unless a nearer one says\n" +
			"otherwise. Worktrees that muntin made follow their repository.\n\n" +
			resources.NoSandbox + "\nAGENTS.md and CLAUDE.md are read without it: they are text for the model.",
		Example: "  muntin trust                 this repository\n" +
			"  muntin trust ~/src           and all in it\n" +
			"  muntin trust --no            never ask, never load\n" +
			"  muntin trust --forget        ask again\n" +
			"  muntin trust ls",
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				o.Dir = args[0]
			}
			return run(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.No, "no", false, "do not trust it")
	f.BoolVar(&o.Forget, "forget", false, "drop the decision")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("no", "forget")
	cmd.AddCommand(newLs(a))
	return cmd
}

// result is what `muntin trust` prints.
type result struct {
	Folder  string   `json:"folder"`
	Trusted *bool    `json:"trusted"`         // null: forgotten
	Loads   []string `json:"loads,omitempty"` // what the folder brings along
}

func run(ctx context.Context, o Options) error {
	a := o.App
	folder := o.Dir
	if folder == "" {
		var err error
		if folder, err = resources.ProjectOf(a, a.Dir); err != nil {
			return err
		}
	}
	if o.Forget {
		return forget(ctx, o, folder)
	}
	d, err := resources.Store(a).Decide(ctx, folder, !o.No)
	if err != nil {
		return err
	}
	r := result{Folder: d.Folder, Trusted: &d.Trusted}
	for _, item := range resource.Brought(d.Folder, resource.Own(a.Getenv("HOME"), a.Layout.Config)...) {
		r.Loads = append(r.Loads, item.Path)
	}
	if o.JSON {
		return a.PrintJSON(r)
	}
	if o.No {
		fmt.Fprintf(a.Streams.Out, "%s is not trusted: nothing of it is loaded\n", term.CleanLine(d.Folder))
		return nil
	}
	fmt.Fprintf(a.Streams.Out, "%s is trusted, and all that is in it\n", a.Theme.Strong.Render(term.CleanLine(d.Folder)))
	for _, path := range r.Loads {
		fmt.Fprintf(a.Streams.Out, "  loads %s\n", term.CleanLine(path))
	}
	fmt.Fprintln(a.Streams.Out, a.Theme.Dim.Render(resources.NoSandbox))
	return nil
}

func forget(ctx context.Context, o Options, folder string) error {
	a := o.App
	was, err := resources.Store(a).Forget(ctx, folder)
	if err != nil {
		return err
	}
	canonical, err := trust.Canonical(folder)
	if err != nil {
		return err
	}
	if !was {
		return app.Hint(fmt.Errorf("nobody has decided on %s", canonical), "see muntin trust ls: it may follow from a folder above")
	}
	if o.JSON {
		return a.PrintJSON(result{Folder: canonical})
	}
	fmt.Fprintf(a.Streams.Out, "forgot the decision on %s\n", term.CleanLine(canonical))
	return nil
}

func newLs(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the decisions", Args: app.Args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			list, err := resources.Store(a).List()
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			table := term.NewTable("TRUSTED", "SINCE", "FOLDER")
			for _, d := range list {
				word := a.Theme.Bad.Render("no")
				if d.Trusted {
					word = a.Theme.Good.Render("yes")
				}
				table.Row(word, d.At.Local().Format(time.DateOnly), term.CleanLine(d.Folder))
			}
			return table.Write(a.Streams.Out, a.Theme, 0)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
