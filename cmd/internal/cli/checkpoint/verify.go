package checkpoint

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
)

func newVerify(s *scope) *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Read everything the repository's checkpoints hold and check it",
		Args:  app.Args(0, 0, ""),
		RunE: s.with(func(ctx context.Context, c *chain, _ []string) error {
			report, err := c.Verify(ctx, full)
			c.bar.Done()
			if err != nil {
				return err
			}
			if s.json {
				err = s.app.PrintJSON(report)
			} else {
				printVerified(s.app, report, full)
			}
			if err == nil && !report.OK() {
				return app.Exit(app.ExitFailed)
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&full, "full", false, "also read every file of the worktree, against the stat cache")
	return cmd
}

func printVerified(a *app.App, r checkpoint.VerifyReport, full bool) {
	t, out := a.Theme, a.Streams.Out
	for _, b := range r.Broken {
		where := "of checkpoint " + short(b.In)
		if b.Path != "" {
			where = term.CleanLine(b.Path) + " " + where
		}
		fmt.Fprintf(out, "%s %s %s %s: %s\n", t.Bad.Render("✗"), b.Kind, b.Hash, where, b.Why)
	}
	printNotes(a, "stale", r.Stale)
	mark := t.Good.Render("✓")
	if !r.OK() {
		mark = t.Bad.Render("✗")
	}
	fmt.Fprintf(out, "%s %d checkpoints on %d chains, %d labels: %d objects read, %d broken\n", mark, r.Checkpoints, r.Chains, r.Labels, r.Objects, len(r.Broken))
	if r.NotFetched > 0 {
		fmt.Fprintf(out, "  %d blobs are not in this partial clone; git fetches them when they are wanted\n", r.NotFetched)
	}
	if full {
		fmt.Fprintf(out, "  %d files of the worktree read, %d not as the stat cache has them\n", r.Files, len(r.Stale))
	}
}
