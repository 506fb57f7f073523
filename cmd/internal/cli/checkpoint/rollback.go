package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/pty"
	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator"
)

// restoredJSON is what rollback and undo print with --json.
type restoredJSON struct {
	Run    string                   `json:"run"`
	Agent  string                   `json:"agent"`
	Report checkpoint.RestoreReport `json:"report"`
}

// NewRollback makes `muntin rollback`.
func NewRollback(a *app.App) *cobra.Command {
	var run string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "rollback <agent> <turn>",
		Short: "Bring an agent's files back to how they were after a turn",
		Long: "Bring the files of an agent's worktree back to the checkpoint of a turn; turn 0 is\n" +
			"the state before the first. Any other checkpoint is named as #7 or by its commit.\n" +
			"The present state is saved first, so `muntin undo` takes the rollback back. Ignored\n" +
			"files are not touched. An agent that is working is left alone.",
		Args: app.Args(2, 2, "an agent and a turn"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			store, r, err := open(ctx, a, run, args[0])
			if err != nil {
				return err
			}
			target, err := store.Find(ctx, turnSpec(args[1]))
			if err != nil {
				return err
			}
			if dry {
				return preview(ctx, a, store, target)
			}
			if err := atRest(ctx, r.Dir.Agent(args[0])); err != nil {
				return err
			}
			report, err := store.Restore(ctx, target)
			if err != nil {
				return err
			}
			return restored{
				run: r.Name, agent: args[0], to: fmt.Sprintf("turn %d (checkpoint #%d)", target.Turn, target.ID), report: report,
			}.tell(a, asJSON)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&run, "run", "", "the run (default: the living one)")
	f.BoolVarP(&dry, "dry-run", "n", false, "only show what would change")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// turnSpec takes a bare number for a turn.
func turnSpec(s string) string {
	if _, err := strconv.Atoi(s); err == nil {
		return "turn:" + s
	}
	return s
}

func preview(ctx context.Context, a *app.App, store *checkpoint.Store, target checkpoint.Checkpoint) error {
	now, err := store.Worktree(ctx)
	if err != nil {
		return err
	}
	changes, err := store.Diff(ctx, now, target)
	if err != nil {
		return err
	}
	printStat(a, changes)
	return nil
}

// atRest makes sure that no turn of the agent is running.
func atRest(ctx context.Context, dir state.AgentDir) error {
	client, err := pty.Dial(ctx, dir.Socket)
	if errors.Is(err, pty.ErrNotRunning) {
		return nil
	}
	if err != nil {
		return err
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	if status.State == pty.AgentWorking {
		return app.NeedsPerson(app.Hint(fmt.Errorf("%s is working (turn %d): its files would change under it", dir.Name, status.Turn),
			"wait for the end of the turn, or end it with `muntin send %s --abort`", dir.Name))
	}
	return nil
}

// NewUndo makes `muntin undo`.
func NewUndo(a *app.App) *cobra.Command {
	var run string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "undo [agent]",
		Short: "Take the last rollback back",
		Long:  "Take back the last rollback, of the agent named or of the whole run. An undo is a\nrollback too: a second undo takes it back.",
		Args:  app.Args(0, 1, "at most an agent"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			r, err := a.Run(run)
			if err != nil {
				return err
			}
			var agent string
			if len(args) > 0 {
				agent = args[0]
			} else if agent, err = lastRestored(ctx, a, r); err != nil {
				return err
			}
			store, err := openChain(ctx, a, r, agent)
			if err != nil {
				return err
			}
			if err := atRest(ctx, r.Dir.Agent(agent)); err != nil {
				return err
			}
			report, err := store.Undo(ctx)
			if err != nil {
				return err
			}
			return restored{run: r.Name, agent: agent, to: "before the rollback", report: report}.tell(a, asJSON)
		}),
	}
	cmd.Flags().StringVar(&run, "run", "", "the run (default: the living one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// lastRestored is the agent whose files were rolled back last.
func lastRestored(ctx context.Context, a *app.App, run orchestrator.Run) (string, error) {
	names, err := run.AgentNames()
	if err != nil {
		return "", err
	}
	var agent string
	var when time.Time
	for _, name := range names {
		store, err := openChain(ctx, a, run, name)
		if err != nil {
			return "", err
		}
		list, err := store.List(ctx)
		if err != nil {
			return "", err
		}
		for _, c := range list {
			if c.Cause == checkpoint.CauseRestored {
				if c.Time.After(when) {
					agent, when = name, c.Time
				}
				break
			}
		}
	}
	if agent == "" {
		return "", fmt.Errorf("run %s has no rollback to take back", run.Name)
	}
	return agent, nil
}

// restored is what a rollback or an undo did.
type restored struct {
	run, agent string
	to         string // "turn 3 (checkpoint #7)"
	report     checkpoint.RestoreReport
}

func (r restored) tell(a *app.App, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(restoredJSON{Run: r.run, Agent: r.agent, Report: r.report})
	}
	t := a.Theme
	fmt.Fprintf(a.Streams.Out, "%s the files of %s are as they were %s: %d written, %d deleted\n",
		t.Good.Render("✓"), t.Strong.Render(r.agent), r.to, len(r.report.Written), len(r.report.Deleted))
	for _, p := range r.report.Protected {
		fmt.Fprintf(a.Streams.Out, "  %s %s: %s\n", t.Warn.Render("left alone"), term.CleanLine(p.Path), p.Why)
	}
	fmt.Fprintf(a.Streams.Out, "  %s\n", t.Command.Render("muntin undo "+r.agent))
	return nil
}
