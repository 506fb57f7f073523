package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
)

func newExport(s *scope) *cobra.Command {
	var opts checkpoint.ExportOptions
	cmd := &cobra.Command{
		Use:   "export <checkpoint> <branch>",
		Short: "Make an ordinary branch of a checkpoint",
		Long:  "Make a new branch with the files of a checkpoint in one commit on top of HEAD, or\nwith --chain in one commit for every checkpoint up to it. Nothing is checked out.",
		Args:  app.Args(2, 2, "a checkpoint and a new branch"),
		RunE: s.with(func(ctx context.Context, c *chain, args []string) error {
			p, err := c.Find(ctx, args[0])
			if err != nil {
				return err
			}
			out, err := c.Export(ctx, p, args[1], opts)
			if errors.Is(err, checkpoint.ErrExists) {
				return app.Hint(err, "name another branch, or delete that one with `git branch -D %s`", args[1])
			}
			if err != nil {
				return err
			}
			if s.json {
				return s.app.PrintJSON(out)
			}
			commits := "one commit"
			if out.Commits != 1 {
				commits = fmt.Sprintf("%d commits", out.Commits)
			}
			t := s.app.Theme
			fmt.Fprintf(s.app.Streams.Out, "%s branch %s has checkpoint #%d in %s  %s\n", t.Good.Render("✓"), t.Strong.Render(out.Branch), p.ID, commits, t.Dim.Render(short(out.Commit)))
			return nil
		}),
		ValidArgsFunction: s.completeIDs(1),
	}
	cmd.Flags().BoolVar(&opts.Chain, "chain", false, "a commit for every checkpoint")
	cmd.Flags().StringVarP(&opts.Message, "message", "m", "", "the message of the commit")
	return cmd
}
