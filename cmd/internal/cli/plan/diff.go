package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/durable"
	"muntin/internal/term"
	"muntin/orchestrator/board"
)

// keep remembers the text that was approved.
func (p plan) keep(text string) error {
	return durable.WriteFile(p.approved, board.PlanBody([]byte(text)), 0o600)
}

func newDiff(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "diff", Short: "Show what changed since the plan was approved", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(context.Context, []string) error {
			p, err := open(a)
			if err != nil {
				return err
			}
			text, err := p.text()
			if err != nil {
				return err
			}
			was, err := os.ReadFile(p.approved)
			if errors.Is(err, fs.ErrNotExist) {
				return app.Hint(errors.New("the plan was never approved here"), "`muntin plan approve` does it, and remembers the text")
			}
			if err != nil {
				return fmt.Errorf("reading the plan as it was approved: %w", err)
			}
			name := filepath.Base(p.File.Path)
			diff := udiff.Unified(name+" (approved)", name, string(was), string(board.PlanBody([]byte(text))))
			if asJSON {
				return a.PrintJSON(struct {
					Path string `json:"path"`
					Diff string `json:"diff"`
				}{p.File.Path, diff})
			}
			_, err = fmt.Fprint(a.Streams.Out, term.Clean(diff))
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
