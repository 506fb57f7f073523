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
	save := s.with(func(ctx context.Context, c *chain, _ []string) error {
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
	})
	cmd := &cobra.Command{
		Use:   "save [--run [run]]",
		Short: "Take a checkpoint of the worktree, or a point of a whole run",
		Long: "Take a checkpoint of the worktree. With --run, and without --agent, it is a point of\n" +
			"a whole run: every agent's files and conversation, the board with its claims, and\n" +
			"what is merged. An agent in a turn is in it as it was before that.",
		Example: "  muntin checkpoint save -m \"before the big change\"\n  muntin checkpoint save --run -m \"all green\"",
		Args:    app.Args(0, 1, "at most a run, with --run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fleet, args, err := s.wants(cmd, args)
			if err != nil {
				return err
			}
			if !fleet {
				return save(cmd, args)
			}
			return s.app.Interruptible(func(ctx context.Context, args []string) error { return saveFleet(ctx, s, args, note) })(cmd, args)
		},
	}
	s.fleetFlag(cmd)
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
