package checkpoint

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
)

// savedJSON is what save prints with --json.
type savedJSON struct {
	checkpoint.Checkpoint
	Report checkpoint.Report `json:"report"`
}

func newSave(s *scope) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "save",
		Short: "Take a checkpoint of the worktree",
		Args:  app.Args(0, 0, ""),
		RunE: s.with(func(ctx context.Context, c *chain, _ []string) error {
			c.bar.Show("saving", 0, 0)
			saved, report, err := c.Save(ctx, checkpoint.Meta{Run: c.run, Agent: c.agent, Cause: checkpoint.CauseManual, Note: note})
			if err != nil {
				return err
			}
			if s.json {
				return s.app.PrintJSON(savedJSON{Checkpoint: saved, Report: report})
			}
			printSaved(s.app, saved, report)
			return nil
		}),
	}
	cmd.Flags().StringVarP(&note, "message", "m", "", "a note, to find it again")
	return cmd
}

func printSaved(a *app.App, c checkpoint.Checkpoint, r checkpoint.Report) {
	t := a.Theme
	since := "since #" + fmt.Sprint(c.ID-1)
	if c.Parent == "" {
		since = "since HEAD"
	}
	fmt.Fprintf(a.Streams.Out, "%s checkpoint %s saved, %s %s  %s\n", t.Good.Render("✓"), t.Strong.Render(fmt.Sprintf("#%d", c.ID)),
		changed(c.Files), since, t.Dim.Render(short(c.Commit)))
	printNotes(a, "left out", r.Skipped)
	printNotes(a, "changed while it was read", r.Unstable)
	printNotes(a, "not converted", r.Unconverted)
}

func changed(files int) string {
	switch files {
	case 0:
		return "no change"
	case 1:
		return "1 file changed"
	}
	return fmt.Sprintf("%d files changed", files)
}

// shownNotes bounds how many paths of one kind are printed.
const shownNotes = 10

func printNotes(a *app.App, what string, notes []checkpoint.PathNote) {
	for i, n := range notes {
		if i == shownNotes && len(notes) > shownNotes+1 {
			fmt.Fprintf(a.Streams.Out, "  %s %d more\n", a.Theme.Warn.Render(what+":"), len(notes)-i)
			return
		}
		fmt.Fprintf(a.Streams.Out, "  %s %s (%s)\n", a.Theme.Warn.Render(what+":"), term.CleanLine(n.Path), term.CleanLine(n.Why))
	}
}
