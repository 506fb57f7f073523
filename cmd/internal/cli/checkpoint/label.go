package checkpoint

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
)

func newLabel(s *scope) *cobra.Command {
	var drop string
	cmd := &cobra.Command{
		Use:   "label [checkpoint] [name]",
		Short: "Name a checkpoint, so that it is found and kept",
		Long:  "Give a checkpoint a name, by which every command knows it and which `gc` keeps it\nfor; without arguments, list the names. A name holds in the whole repository.",
		Args:  app.Args(0, 2, "a checkpoint and a name"),
		RunE: s.with(func(ctx context.Context, c *chain, args []string) error {
			switch {
			case drop != "" && len(args) > 0 || len(args) == 1:
				return app.Usage("want a checkpoint and a name, or --delete and a name")
			case drop != "":
				if err := c.Unlabel(ctx, drop); err != nil {
					return err
				}
				return listLabels(ctx, s, c)
			case len(args) == 0:
				return listLabels(ctx, s, c)
			}
			p, err := c.Find(ctx, args[0])
			if err != nil {
				return err
			}
			if err := c.Label(ctx, p, args[1]); err != nil {
				return err
			}
			if s.json {
				return s.app.PrintJSON(checkpoint.Label{Name: args[1], Checkpoint: p})
			}
			fmt.Fprintf(s.app.Streams.Out, "%s checkpoint #%d is %s\n", s.app.Theme.Good.Render("✓"), p.ID, s.app.Theme.Accent.Render("["+args[1]+"]"))
			return nil
		}),
		ValidArgsFunction: s.completeIDs(1),
	}
	cmd.Flags().StringVarP(&drop, "delete", "d", "", "take this name away")
	return cmd
}

func listLabels(ctx context.Context, s *scope, c *chain) error {
	labels, err := c.Labels(ctx)
	if err != nil {
		return err
	}
	if s.json {
		return s.app.PrintJSON(nonNil(labels))
	}
	if len(labels) == 0 {
		fmt.Fprintln(s.app.Streams.Out, "no checkpoint has a name")
		return nil
	}
	table := term.NewTable("LABEL", "#", "WHEN", "COMMIT", "WHY")
	for _, l := range labels {
		table.Row(s.app.Theme.Accent.Render(l.Name), fmt.Sprint(l.Checkpoint.ID), when(s.app.Now(), l.Checkpoint.Time),
			s.app.Theme.Dim.Render(short(l.Checkpoint.Commit)), whyOf(s.app, l.Checkpoint))
	}
	return table.Write(s.app.Streams.Out, s.app.Theme, tableWidth(s.app))
}
