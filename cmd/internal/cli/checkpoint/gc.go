package checkpoint

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
)

func newGC(s *scope) *cobra.Command {
	var days int
	var megabytes int64
	var p checkpoint.Policy
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Drop old checkpoints of the chain",
		Long: "Drop the checkpoints that are older than --days, or more than --count, or hold more\n" +
			"than --megabytes together. The newest one and those with a label are kept; numbers\n" +
			"stay. In a repository the space comes back with git's own gc.",
		Args: app.Args(0, 0, ""),
		RunE: s.with(func(ctx context.Context, c *chain, _ []string) error {
			p.MaxAge, p.MaxBytes = time.Duration(days)*24*time.Hour, megabytes<<20
			if p.MaxAge <= 0 && p.MaxCount <= 0 && p.MaxBytes <= 0 {
				return app.Usage("say what to keep: --days, --count or --megabytes")
			}
			report, err := c.GC(ctx, p)
			if err != nil {
				return err
			}
			if s.json {
				return s.app.PrintJSON(report)
			}
			verb := "dropped"
			if p.DryRun {
				verb = "would be dropped"
			}
			fmt.Fprintf(s.app.Streams.Out, "%s %d checkpoints %s, %d kept\n", s.app.Theme.Good.Render("✓"), len(report.Dropped), verb, report.Kept)
			return nil
		}),
	}
	f := cmd.Flags()
	f.IntVar(&days, "days", 0, "keep those of the last days")
	f.IntVar(&p.MaxCount, "count", 0, "keep this many, the newest")
	f.Int64Var(&megabytes, "megabytes", 0, "keep the newest that fit")
	f.BoolVarP(&p.DryRun, "dry-run", "n", false, "only tell")
	return cmd
}
