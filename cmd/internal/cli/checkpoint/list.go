package checkpoint

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
)

func newLs(s *scope) *cobra.Command {
	var all bool
	var lines int
	cmd := &cobra.Command{
		Use:   "ls [agent] [--run [run]]",
		Short: "List checkpoints, newest first, or the points of a run",
		Args:  app.Args(0, 2, "at most an agent, and a run"),
		RunE: s.fleetOr(listFleet, func(ctx context.Context, args []string) error {
			if all {
				return listChains(ctx, s)
			}
			if len(args) > 0 {
				s.agent = args[0]
			}
			c, done, err := s.open(ctx)
			if err != nil {
				return err
			}
			defer done()
			list, err := c.List(ctx)
			if err != nil {
				return err
			}
			if lines > 0 {
				list = list[:min(lines, len(list))]
			}
			if s.json {
				return s.app.PrintJSON(nonNil(list))
			}
			labels, err := c.Labels(ctx)
			if err != nil {
				return err
			}
			return s.app.Paged(ctx, func() error { return printList(s.app, c, list, labels) })
		}),
		ValidArgsFunction: s.completeAgent,
	}
	s.fleetFlag(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "the newest checkpoint of every chain of the repository")
	cmd.Flags().IntVarP(&lines, "lines", "n", 0, "only the newest (0: all)")
	return cmd
}

// nonNil makes an empty list one that JSON shows as a list.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func printList(a *app.App, c *chain, list []checkpoint.Checkpoint, labels []checkpoint.Label) error {
	if len(list) == 0 {
		who := "this worktree"
		if c.agent != "" {
			who = c.agent
		}
		fmt.Fprintf(a.Streams.Out, "%s has no checkpoints yet\n", who)
		if c.agent == "" {
			fmt.Fprintf(a.Streams.Out, "  %s takes one; %s shows those of agents\n",
				a.Theme.Command.Render("muntin checkpoint save"), a.Theme.Command.Render("muntin checkpoint ls --all"))
		}
		return nil
	}
	head := []string{"#", "WHEN", "FILES", "COMMIT", "WHY"}
	if c.agent != "" {
		head = []string{"#", "TURN", "WHEN", "FILES", "COMMIT", "WHY"}
	}
	table := term.NewTable(head...)
	named := map[string][]string{}
	for _, l := range labels {
		named[l.Checkpoint.Commit] = append(named[l.Checkpoint.Commit], l.Name)
	}
	for i, p := range list {
		if p.Cause == checkpoint.CauseUndo && p.Files == 0 && i > 0 && len(named[p.Commit]) == 0 {
			continue // the present before a restore was saved already, as the one below
		}
		row := []string{fmt.Sprint(p.ID)}
		if c.agent != "" {
			row = append(row, fmt.Sprint(p.Turn))
		}
		why := whyOf(a, p)
		for _, name := range named[p.Commit] {
			why = a.Theme.Accent.Render("["+name+"]") + " " + why
		}
		table.Row(append(row, when(a.Now(), p.Time), fmt.Sprint(p.Files), a.Theme.Dim.Render(short(p.Commit)), why)...)
	}
	return table.Write(a.Streams.Out, a.Theme, tableWidth(a))
}

func tableWidth(a *app.App) int {
	if !a.Streams.OutTTY {
		return 0
	}
	width, _ := a.Streams.Size()
	return width
}

// whyOf says in words what a checkpoint is of.
func whyOf(a *app.App, c checkpoint.Checkpoint) string {
	note := term.CleanLine(c.Note)
	switch {
	case c.Cause == checkpoint.CauseManual && note != "":
		return note
	case c.Cause == checkpoint.CauseManual:
		return "by hand"
	case c.Cause == checkpoint.CauseTurn:
		return fmt.Sprintf("after turn %d", c.Turn)
	case c.Cause == checkpoint.CauseStart:
		return "before the first turn"
	case c.Cause == checkpoint.CauseRestored && note != "":
		return a.Theme.Busy.Render(note)
	case note != "":
		return a.Theme.Dim.Render(note)
	}
	return string(c.Cause)
}

// when shows a time as short as it is clear.
func when(now, t time.Time) string {
	now, t = now.Local(), t.Local()
	switch {
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("15:04:05")
	case t.Year() == now.Year():
		return t.Format("Jan 02 15:04")
	}
	return t.Format("2006-01-02")
}

func listChains(ctx context.Context, s *scope) error {
	chains, err := checkpoint.Chains(ctx, s.app.Dir, "")
	if err != nil {
		return err
	}
	if s.json {
		return s.app.PrintJSON(nonNil(chains))
	}
	if len(chains) == 0 {
		fmt.Fprintln(s.app.Streams.Out, "this repository has no checkpoints yet")
		return nil
	}
	table := term.NewTable("CHAIN", "NEWEST", "WHEN", "COMMIT", "WHY")
	for _, c := range chains {
		table.Row(strings.TrimPrefix(c.Ref, "refs/muntin/"), fmt.Sprintf("#%d", c.Newest.ID), when(s.app.Now(), c.Newest.Time),
			s.app.Theme.Dim.Render(short(c.Newest.Commit)), whyOf(s.app, c.Newest))
	}
	return table.Write(s.app.Streams.Out, s.app.Theme, tableWidth(s.app))
}

// showJSON is what show prints with --json.
type showJSON struct {
	checkpoint.Checkpoint
	Changes []checkpoint.Change `json:"changes"` // since the checkpoint before; null for the first
}

func newShow(s *scope) *cobra.Command {
	var patch bool
	cmd := &cobra.Command{
		Use:   "show <checkpoint>",
		Short: "What a checkpoint is, and what changed since the one before it",
		Args:  app.Args(1, 1, "a checkpoint"),
		RunE: s.with(func(ctx context.Context, c *chain, args []string) error {
			p, err := c.Find(ctx, args[0])
			if err != nil {
				return err
			}
			out := showJSON{Checkpoint: p}
			var before checkpoint.Checkpoint
			if p.Parent != "" {
				if before, err = c.Find(ctx, p.Parent); err != nil {
					return err
				}
				if out.Changes, err = c.Diff(ctx, before, p); err != nil {
					return err
				}
			}
			if s.json {
				return s.app.PrintJSON(out)
			}
			return s.app.Paged(ctx, func() error {
				printCheckpoint(s.app, p)
				if p.Parent == "" {
					return nil
				}
				fmt.Fprintln(s.app.Streams.Out)
				if patch {
					return c.Patch(ctx, newPainter(s.app), before, p)
				}
				return printStat(s.app, out.Changes)
			})
		}),
		ValidArgsFunction: s.completeIDs(1),
	}
	cmd.Flags().BoolVarP(&patch, "patch", "p", false, "the change of every line")
	return cmd
}

func printCheckpoint(a *app.App, c checkpoint.Checkpoint) {
	t := a.Theme
	fmt.Fprintf(a.Streams.Out, "%s  %s\n", t.Title.Render(fmt.Sprintf("checkpoint #%d", c.ID)), whyOf(a, c))
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(a.Streams.Out, "  %s %s\n", t.Dim.Render(fmt.Sprintf("%-8s", name)), value)
		}
	}
	line("when", c.Time.Local().Format("2006-01-02 15:04:05"))
	line("agent", term.CleanLine(c.Agent))
	line("commit", c.Commit)
	line("tree", c.Tree)
	line("head", c.Head)
	line("ref", c.Ref)
}
