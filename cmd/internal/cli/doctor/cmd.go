// Package doctor holds `muntin doctor`: what this machine has of what muntin
// needs, and what to do where it is not well.
package doctor

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
)

// A Grade says how well something is.
type Grade string

// The grades of a finding.
const (
	Good Grade = "ok"
	Warn Grade = "warning"
	Bad  Grade = "bad" // muntin cannot work like this
)

// A Finding is one line of the doctor's report.
type Finding struct {
	Name  string `json:"name"`
	Grade Grade  `json:"grade"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"`
}

// NewCmd makes `muntin doctor`.
func NewCmd(a *app.App) *cobra.Command {
	var asJSON, running bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check this machine, and say what to do where it is not well",
		Long: "Check versions, the terminal, disk space, system limits and paths, and prove that\n" +
			"panes work with your own tmux and configuration: on a server that is started for it\n" +
			"and then gone, or on the one you use. The exit status is 1 when something is bad\n" +
			"enough that muntin cannot work.",
		Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			findings := examine(ctx, a, running)
			if asJSON {
				if err := a.PrintJSON(findings); err != nil {
					return err
				}
			} else {
				show(a, findings)
			}
			for _, f := range findings {
				if f.Grade == Bad {
					return app.Exit(app.ExitFailed)
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&running, "running", false, "prove it on the tmux server that you use, in a session of its own")
	cmd.AddCommand(newReader())
	return cmd
}

func examine(ctx context.Context, a *app.App, running bool) []Finding {
	prove := func(ctx context.Context, a *app.App) []Finding { return proveTmux(ctx, a, running) }
	var list []Finding
	for _, check := range []func(context.Context, *app.App) []Finding{
		checkTmux, prove, checkGit, checkRepo, checkTerminal, checkLocale, checkDisk, checkWatches, checkPaths, checkModels,
	} {
		list = append(list, check(ctx, a)...)
	}
	return list
}

func show(a *app.App, findings []Finding) {
	t := a.Theme
	for _, f := range findings {
		mark := t.Good.Render("✓")
		switch f.Grade {
		case Warn:
			mark = t.Warn.Render("!")
		case Bad:
			mark = t.Bad.Render("✗")
		case Good:
		}
		fmt.Fprintf(a.Streams.Out, "%s %-18s %s\n", mark, f.Name, f.Found)
		if f.Do != "" {
			fmt.Fprintf(a.Streams.Out, "  %-18s %s\n", "", t.Dim.Render(f.Do))
		}
	}
}
