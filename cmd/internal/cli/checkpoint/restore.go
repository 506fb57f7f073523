package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
)

// restoredJSON is what restore, undo, redo, revert, recover and rollback print
// with --json. Run and agent are those of the agent whose chain it was.
type restoredJSON struct {
	Run          string                    `json:"run,omitempty"`
	Agent        string                    `json:"agent,omitempty"`
	Report       *checkpoint.RestoreReport `json:"report"` // null if no file was looked at
	Conversation *moved                    `json:"conversation,omitempty"`
}

func newRestore(s *scope) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "restore <checkpoint> [path...]",
		Short: "Bring the worktree, or some paths, back to a checkpoint",
		Long: "Bring all files, or the files and folders named, back to a checkpoint. The present\n" +
			"is saved first, and `undo` takes the restore back. Only what differs is written;\n" +
			"ignored files, nested repositories, index and HEAD are left alone.",
		Args: cobra.MinimumNArgs(1),
		RunE: s.with(func(ctx context.Context, c *chain, args []string) error {
			target, err := c.Find(ctx, args[0])
			if err != nil {
				return err
			}
			paths, err := s.paths(c, args[1:])
			if err != nil {
				return err
			}
			if dry {
				plan, err := c.Plan(ctx, target, paths...)
				if err != nil {
					return err
				}
				return preview(ctx, s, plan)
			}
			if err := worktreeAtRest(ctx, s.app, c.root); err != nil {
				return err
			}
			report, err := c.Restore(ctx, target, paths...)
			return s.told(c, fmt.Sprintf("as in checkpoint #%d", target.ID), report, err)
		}),
		ValidArgsFunction: s.completeIDs(1),
	}
	cmd.Flags().BoolVarP(&dry, "dry-run", "n", false, "only show what would change")
	return cmd
}

// paths makes what a person named, relative to the present folder, relative
// to the worktree.
func (s *scope) paths(c *chain, args []string) ([]string, error) {
	base, err := filepath.Abs(s.app.Dir)
	if err != nil {
		return nil, err
	}
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(c.root)
	if err != nil {
		return nil, err
	}
	if rel, err := filepath.Rel(root, base); err != nil || !filepath.IsLocal(rel) {
		base = root // an agent's worktree is elsewhere
	}
	var paths []string
	for _, arg := range args {
		full := arg
		if !filepath.IsAbs(full) {
			full = filepath.Join(base, arg)
		}
		rel, err := filepath.Rel(root, full)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, app.Usage("%s is not in the worktree %s", arg, root)
		}
		paths = append(paths, filepath.ToSlash(rel))
	}
	return paths, nil
}

// preview tells what a restore would do.
func preview(ctx context.Context, s *scope, plan checkpoint.Plan) error {
	if s.json {
		return s.app.PrintJSON(plan)
	}
	t, out := s.app.Theme, s.app.Streams.Out
	return s.app.Paged(ctx, func() error {
		for _, p := range plan.Write {
			fmt.Fprintf(out, "%s %s\n", t.Good.Render("write "), term.CleanLine(p))
		}
		for _, p := range plan.Delete {
			fmt.Fprintf(out, "%s %s\n", t.Bad.Render("delete"), term.CleanLine(p))
		}
		printNotes(s.app, "left alone", plan.Protected)
		_, err := fmt.Fprintf(out, "%d to write, %d to delete; nothing was changed\n", len(plan.Write), len(plan.Delete))
		return err
	})
}

func newStep(s *scope, step checkpoint.Step) *cobra.Command {
	short := "Take the last restore back"
	if step == checkpoint.StepRedo {
		short = "Take the last undo back"
	}
	return &cobra.Command{
		Use: string(step), Short: short,
		Long: "undo walks back through the restores, one at a time, and redo forward again, until\n" +
			"the next restore. Both save the present first, so nothing is lost.",
		Args: app.Args(0, 0, ""),
		RunE: s.with(func(ctx context.Context, c *chain, _ []string) error {
			if err := worktreeAtRest(ctx, s.app, c.root); err != nil {
				return err
			}
			report, err := walkStep(ctx, c, step)
			return s.told(c, stepText(step), report, err)
		}),
	}
}

func walkStep(ctx context.Context, c *chain, step checkpoint.Step) (checkpoint.RestoreReport, error) {
	if step == checkpoint.StepRedo {
		return c.Redo(ctx)
	}
	return c.Undo(ctx)
}

func stepText(step checkpoint.Step) string {
	if step == checkpoint.StepRedo {
		return "as before the undo"
	}
	return "as before the restore"
}

func newRevert(s *scope) *cobra.Command {
	var opts checkpoint.RevertOptions
	cmd := &cobra.Command{
		Use:   "revert <checkpoint> [path...]",
		Short: "Take the change of one checkpoint back, and keep what came later",
		Long: "Take back what changed from the checkpoint before to this one, of an agent's turn\n" +
			"for example, by a three-way merge with the files as they are now. If what came\n" +
			"later is in the way, the paths are listed and nothing is changed; --markers\n" +
			"writes such conflicts into the files instead, as git does.",
		Args: cobra.MinimumNArgs(1),
		RunE: s.with(func(ctx context.Context, c *chain, args []string) error {
			turn, err := c.Find(ctx, args[0])
			if err != nil {
				return err
			}
			if opts.Paths, err = s.paths(c, args[1:]); err != nil {
				return err
			}
			if err := worktreeAtRest(ctx, s.app, c.root); err != nil {
				return err
			}
			report, err := c.RevertTurn(ctx, turn, opts)
			if errors.Is(err, checkpoint.ErrConflict) {
				err = app.Hint(err, "name the other paths to revert these alone, or write the conflicts into the files with --markers")
			}
			err = s.told(c, fmt.Sprintf("without the change of #%d", turn.ID), report, err)
			if err == nil && len(report.Conflicts) > 0 {
				return app.Exit(app.ExitPerson)
			}
			return err
		}),
		ValidArgsFunction: s.completeIDs(1),
	}
	cmd.Flags().BoolVar(&opts.Markers, "markers", false, "write conflicts into the files")
	return cmd
}

func newRecover(s *scope) *cobra.Command {
	return &cobra.Command{
		Use:   "recover",
		Short: "Finish a restore that a crash interrupted",
		Long:  "Finish a restore that a crash interrupted, or take it back where that cannot be\ndone. Every other checkpoint command does this first, by itself.",
		Args:  app.Args(0, 0, ""),
		RunE: s.app.Interruptible(func(ctx context.Context, _ []string) error {
			c, done, err := s.open(ctx)
			if err != nil {
				return err
			}
			defer done()
			if _, err := c.Recover(ctx); err != nil {
				return err
			}
			switch {
			case s.json:
				return s.app.PrintJSON(restoredJSON{Run: c.run, Agent: c.agent, Report: c.recovered})
			case c.recovered == nil:
				fmt.Fprintln(s.app.Streams.Out, "nothing to recover: no restore was interrupted")
			default:
				fmt.Fprintf(s.app.Streams.Out, "%s %s\n", s.app.Theme.Good.Render("✓"), recoveredText(c.recovered))
			}
			return nil
		}),
	}
}

func recoveredText(r *checkpoint.RestoreReport) string {
	if r.RolledBack {
		return fmt.Sprintf("an interrupted restore of #%d was taken back", r.Target.ID)
	}
	return fmt.Sprintf("an interrupted restore of #%d was finished: %d written, %d deleted, %d left alone", r.Target.ID, len(r.Written), len(r.Deleted), len(r.Conflicts))
}

// told prints what a restore did, or why not.
func (s *scope) told(c *chain, how string, report checkpoint.RestoreReport, err error) error {
	c.bar.Done()
	r := restored{run: c.run, agent: c.agent, how: how, report: report}
	if err == nil {
		return r.tell(s.app, s.json)
	}
	if errors.Is(err, checkpoint.ErrBusy) || errors.Is(err, checkpoint.ErrConflict) {
		if s.json {
			if printErr := s.app.PrintJSON(restoredJSON{Run: c.run, Agent: c.agent, Report: &report}); printErr != nil {
				return printErr
			}
		} else {
			printNotes(s.app, "conflict", report.Conflicts)
		}
		return app.NeedsPerson(err)
	}
	return err
}

// restored is what a rollback or an undo did.
type restored struct {
	run, agent string
	how        string // "as in checkpoint #7"
	report     checkpoint.RestoreReport
	moved      *moved
}

func (r restored) tell(a *app.App, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(restoredJSON{Run: r.run, Agent: r.agent, Report: &r.report, Conversation: r.moved})
	}
	t, out := a.Theme, a.Streams.Out
	whose, undo := "the files", "muntin checkpoint undo"
	if r.agent != "" {
		whose, undo = "the files of "+t.Strong.Render(r.agent), "muntin undo "+r.agent
	}
	if r.report.Now.Step == checkpoint.StepUndo {
		undo = undo[:len(undo)-len("undo")] + "redo"
		if r.agent != "" {
			undo = "muntin redo " + r.agent
		}
	}
	done := "nothing to change"
	if r.report.Now.ID != 0 {
		done = fmt.Sprintf("%d written, %d deleted", len(r.report.Written), len(r.report.Deleted))
	}
	fmt.Fprintf(out, "%s %s are %s: %s\n", t.Good.Render("✓"), whose, r.how, done)
	printNotes(a, "left alone", r.report.Protected)
	printNotes(a, "conflict", r.report.Conflicts)
	for _, n := range r.report.Notes {
		fmt.Fprintf(out, "  %s %s\n", t.Warn.Render("note:"), n)
	}
	if r.report.Now.ID != 0 {
		fmt.Fprintf(out, "  %s takes it back\n", t.Command.Render(undo))
	}
	return nil
}
