package work

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/worktree"
)

// OverlapOptions are overlap's arguments.
type OverlapOptions struct {
	App  *app.App
	Run  string
	JSON bool
}

// overlapJSON is what `overlap --json` prints.
type overlapJSON struct {
	Run      string                 `json:"run"`
	Overlaps []orchestrator.Overlap `json:"overlaps"`
	Error    string                 `json:"error,omitempty"` // why the last look saw nothing
}

// NewOverlap makes `muntin overlap`.
func NewOverlap(a *app.App) *cobra.Command {
	o := OverlapOptions{App: a}
	cmd := &cobra.Command{
		Use:   "overlap [run]",
		Short: "Where agents' work will conflict",
		Long: "Show where the work of agents will conflict with that of others, or with what is\n" +
			"merged already, once it is merged itself. The orchestrator looks after every\n" +
			"checkpoint, at the checkpoints as they are then.",
		Example: "  muntin overlap\n  muntin overlap nightly --json",
		Args:    app.Args(0, 1, "at most a run"),
		RunE: a.Interruptible(func(_ context.Context, args []string) error {
			o.Run = first(args)
			return runOverlap(o)
		}),
		ValidArgsFunction: completeRun(a),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func runOverlap(o OverlapOptions) error {
	a := o.App
	run, err := a.Run(o.Run)
	if err != nil {
		return err
	}
	st, err := orchestrator.Now(run)
	if err != nil {
		return err
	}
	if o.JSON {
		return a.PrintJSON(overlapJSON{
			Run: run.Name, Overlaps: append([]orchestrator.Overlap{}, st.Radar.Overlaps...), Error: st.Radar.Error,
		})
	}
	if st.Radar.Error != "" {
		fmt.Fprintf(a.Streams.Err, "%s the last look saw nothing: %s\n", a.Theme.Warn.Render("!"), st.Radar.Error)
	}
	if len(st.Radar.Overlaps) == 0 {
		_, err := fmt.Fprintf(a.Streams.Out, "no conflicts are coming in run %s\n", run.Name)
		return err
	}
	table := term.NewTable("WHO", "AND", "FILE", "WHERE", "AND THERE")
	for _, v := range st.Radar.Overlaps {
		other := v.B
		if other == worktree.Merged {
			other = run.Branch
		}
		for _, f := range v.Files {
			if len(f.Hunks) == 0 {
				table.Row(v.A, other, term.CleanLine(f.Path), f.Kind)
			}
			for _, h := range f.Hunks {
				table.Row(v.A, other, term.CleanLine(f.Path), h.A.String(), h.B.String())
			}
		}
	}
	return table.Write(a.Streams.Out, a.Theme, 0)
}
