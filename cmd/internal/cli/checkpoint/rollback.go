package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/orchestrator"
)

// rollback is what `muntin rollback` was asked for.
type rollback struct {
	scope
	dry, files, conversation, both, now bool
}

// NewRollback makes `muntin rollback`.
func NewRollback(a *app.App) *cobra.Command {
	o := &rollback{scope: scope{app: a}}
	cmd := &cobra.Command{
		Use:   "rollback <agent> <turn> | rollback --run <point> [agent...]",
		Short: "Bring an agent's files back to how they were after a turn, or a whole run",
		Long: "Bring the files of an agent's worktree back to the checkpoint of a turn; turn 0 is\n" +
			"the state before the first. Any other checkpoint is named as #7, by its commit or\n" +
			"its label. The present state is saved first, so `muntin undo` takes the rollback\n" +
			"back. Ignored files are not touched. An agent that is working is left alone.\n\n" +
			"--conversation goes back to that turn in the conversation of a built-in agent\n" +
			"instead, and --both in both. The agent must not be running: it reads its\n" +
			"conversation when it starts.\n\n" +
			"--run 7 goes back to point 7 of the run (see `muntin checkpoint ls --run`), with all of\n" +
			"its agents or those named: their files, branches and conversations, what was merged,\n" +
			"and the states of tasks on the board. The agents that go back are ended for it and\n" +
			"started again. --run name:7 is for another run than the living one.",
		Example: "  muntin rollback ada 3\n  muntin rollback --run 7 --dry-run\n  muntin rollback --run 7 ada grace",
		Args:    cobra.ArbitraryArgs,
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			if name, point, ok := parsePoint(a, o.run); ok {
				return o.fleet(ctx, name, orchestrator.RollbackRequest{Point: point, Agents: args})
			}
			if len(args) != 2 {
				return app.Usage("want an agent and a turn, or --run with the number of a point")
			}
			o.agent = args[0]
			return o.do(ctx, turnSpec(args[1]))
		}),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return o.completeAgent(cmd, args, word)
			}
			o.agent = args[0]
			return o.turns(cmd.Context()), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.run, "run", "", "the run (default: the living one), or a point of it")
	f.BoolVarP(&o.dry, "dry-run", "n", false, "only show what would change")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVar(&o.files, "files", false, "the files (the default; of a run: the files and the conversations)")
	f.BoolVar(&o.conversation, "conversation", false, "the conversation, not the files")
	f.BoolVar(&o.both, "both", false, "the files and the conversation")
	f.BoolVar(&o.now, "now", false, "with a point: end turns that are running")
	cmd.MarkFlagsMutuallyExclusive("files", "conversation", "both")
	return cmd
}

// fleet goes back to a point of a run.
func (o *rollback) fleet(ctx context.Context, name string, req orchestrator.RollbackRequest) error {
	run, err := o.app.Run(name)
	if err != nil {
		return err
	}
	req.Files, req.Conversation = !o.conversation, !o.files
	return fleetBack{app: o.app, run: run, req: req, dry: o.dry, json: o.json, now: o.now}.do(ctx)
}

// turns completes the turns that can be gone back to.
func (o *rollback) turns(ctx context.Context) []cobra.Completion {
	c, done, err := o.open(ctx)
	if err != nil {
		return nil
	}
	defer done()
	list, _ := c.List(ctx)
	var all []cobra.Completion
	for _, p := range list {
		if p.Cause == checkpoint.CauseTurn || p.Cause == checkpoint.CauseStart {
			all = append(all, cobra.CompletionWithDesc(fmt.Sprint(p.Turn), when(o.app.Now(), p.Time)+" "+whyOf(o.app, p)))
		}
	}
	return all
}

func (o *rollback) do(ctx context.Context, spec string) error {
	a := o.app
	run, err := a.Run(o.run)
	if err != nil {
		return err
	}
	c, done, err := openAgent(ctx, a, run, o.agent)
	if err != nil {
		return err
	}
	defer done()
	target, err := c.Find(ctx, spec)
	if err != nil {
		return err
	}
	if o.dry {
		plan, err := c.Plan(ctx, target)
		if err != nil {
			return err
		}
		return preview(ctx, &o.scope, plan)
	}
	var talk *conversation
	if o.conversation || o.both {
		if talk, err = openConversation(a, run, o.agent, target); err != nil {
			return err
		}
		defer talk.close()
		if err := talk.move(); err != nil {
			return err
		}
		if !o.both {
			return talk.tell(a, o.json, run.Name)
		}
	}
	if err := worktreeAtRest(ctx, a, c.root); err != nil {
		return errors.Join(err, talk.back())
	}
	report, err := c.Restore(ctx, target)
	if err != nil {
		return errors.Join(o.told(c, "", report, err), talk.back())
	}
	r := restored{run: run.Name, agent: o.agent, how: "as they were " + turnText(target), report: report}
	if talk == nil {
		return r.tell(a, o.json)
	}
	r.moved = &talk.moved
	if err := r.tell(a, o.json); err != nil || o.json {
		return err
	}
	return talk.tell(a, false, run.Name)
}

func turnText(c checkpoint.Checkpoint) string {
	switch c.Cause {
	case checkpoint.CauseTurn:
		return fmt.Sprintf("after turn %d (checkpoint #%d)", c.Turn, c.ID)
	case checkpoint.CauseStart:
		return fmt.Sprintf("before the first turn (checkpoint #%d)", c.ID)
	}
	return fmt.Sprintf("in checkpoint #%d", c.ID)
}

// turnSpec takes a bare number for a turn.
func turnSpec(s string) string {
	if _, err := strconv.Atoi(s); err == nil {
		return "turn:" + s
	}
	return s
}

// NewUndo makes `muntin undo`.
func NewUndo(a *app.App) *cobra.Command { return newAgentStep(a, checkpoint.StepUndo) }

// NewRedo makes `muntin redo`.
func NewRedo(a *app.App) *cobra.Command { return newAgentStep(a, checkpoint.StepRedo) }

func newAgentStep(a *app.App, step checkpoint.Step) *cobra.Command {
	s := &scope{app: a}
	short := "Take the last rollback back"
	long := "Take back the last rollback, of the agent named or of the whole run. Rollbacks are\ntaken back one at a time; `muntin redo` goes forward again."
	if step == checkpoint.StepRedo {
		short = "Take the last undo back"
		long = "Take back the last undo, of the agent named or of the whole run."
	}
	cmd := &cobra.Command{
		Use: string(step) + " [agent]", Short: short, Long: long,
		Args: app.Args(0, 1, "at most an agent"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			r, err := a.Run(s.run)
			if err != nil {
				return err
			}
			var agent string
			if len(args) > 0 {
				agent = args[0]
			} else if done, err := s.undoOr(ctx, r, step); done || err != nil {
				return err
			} else if agent, err = lastRestored(ctx, a, r); err != nil {
				return err
			}
			c, done, err := openAgent(ctx, a, r, agent)
			if err != nil {
				return err
			}
			defer done()
			if err := worktreeAtRest(ctx, a, c.root); err != nil {
				return err
			}
			report, err := walkStep(ctx, c, step)
			return s.told(c, agentStepText(step), report, err)
		}),
		ValidArgsFunction: s.completeAgent,
	}
	cmd.Flags().StringVar(&s.run, "run", "", "the run (default: the living one)")
	cmd.Flags().BoolVar(&s.json, "json", false, "print JSON")
	return cmd
}

// undoOr undoes the last rollback of the whole run, if there is one to undo.
func (s *scope) undoOr(ctx context.Context, run orchestrator.Run, step checkpoint.Step) (bool, error) {
	if step != checkpoint.StepUndo {
		return false, nil
	}
	return undoFleet(ctx, s.app, run, s.json)
}

func agentStepText(step checkpoint.Step) string {
	if step == checkpoint.StepRedo {
		return "as before the undo"
	}
	return "as before the rollback"
}

// lastRestored is the agent whose files were rolled back last.
func lastRestored(ctx context.Context, a *app.App, run orchestrator.Run) (string, error) {
	names, err := run.AgentNames()
	if err != nil {
		return "", err
	}
	var agent string
	var latest time.Time
	for _, name := range names {
		c, done, err := openAgent(ctx, a, run, name)
		if err != nil {
			return "", err
		}
		list, err := c.List(ctx)
		done()
		if err != nil {
			return "", err
		}
		for _, p := range list {
			if p.Cause == checkpoint.CauseRestored {
				if p.Time.After(latest) {
					agent, latest = name, p.Time
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
