package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muntin/agent/session"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/durable"
	"muntin/internal/id"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/board"
	"muntin/orchestrator/panes"
)

// OpenFleet makes what takes points of a run, and goes back to them.
func OpenFleet(ctx context.Context, a *app.App, run orchestrator.Run) (orchestrator.RollbackOptions, error) {
	repo, err := state.FindRepo(run.Root)
	if err != nil {
		return orchestrator.RollbackOptions{}, err
	}
	dir := a.Layout.Repo(repo)
	git, err := orchestrator.OpenGit(ctx, repo, dir, a.Now)
	if err != nil {
		return orchestrator.RollbackOptions{}, err
	}
	recipe, err := run.Recipe()
	if err != nil {
		return orchestrator.RollbackOptions{}, err
	}
	o := orchestrator.RollbackOptions{
		PointTaker: orchestrator.PointTaker{Run: run, Git: git, Recipe: recipe, Now: a.Now},
		Todo: board.File{
			Path: run.Todo, LockPath: dir.BoardLock(run.Todo), Versions: dir.BoardVersions(run.Todo), Log: dir.BoardLog(run.Todo), By: board.Person,
		},
		Talks: talks{a, run}, Self: a.Self, Env: a.Environ,
	}
	if server, err := a.Tmux(ctx, run.Socket); err == nil {
		o.Host = panes.New(server)
	} else {
		fmt.Fprintf(a.Streams.Err, "%s what is ended for it is not started again: %v\n", a.Theme.Warn.Render("warning:"), err)
	}
	return o, nil
}

// talks are the conversations of a run's built-in agents.
type talks struct {
	app *app.App
	run orchestrator.Run
}

// Move implements orchestrator.Conversations.
func (t talks) Move(agent, entry string) (moved bool, err error) {
	file := t.run.Dir.Agent(agent).Session()
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	s, err := session.Open(file, session.Options{Now: t.app.Now})
	if errors.Is(err, durable.ErrLocked) {
		return false, app.NeedsPerson(fmt.Errorf("%s is running, and a conversation cannot be moved under its agent", agent))
	}
	if err != nil {
		return false, err
	}
	if s.Leaf() != entry {
		err = s.Move(entry)
	}
	return true, errors.Join(err, s.Close())
}

// wholeRun is the value of --run without one.
const wholeRun = " "

// fleetFlag adds the --run of commands that can be about a whole run: it may stand
// without a value, and a run's name after it is an argument.
func (s *scope) fleetFlag(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.run, "run", "", "a whole run (default: the living one); with an agent: the agent's run")
	f.Lookup("run").NoOptDefVal = wholeRun
}

// wants tells whether a command with a fleetFlag is about a whole run. If not, it takes
// the run's name from the arguments.
func (s *scope) wants(cmd *cobra.Command, args []string) (fleet bool, rest []string, err error) {
	if !cmd.Flags().Changed("run") {
		if s.agent != "" && len(args) > 0 || len(args) > 1 {
			return false, nil, app.Usage("one agent at most")
		}
		return false, args, nil
	}
	if s.run != wholeRun {
		args = append(args, s.run)
	}
	s.run = ""
	switch {
	case s.agent != "" && len(args) > 0:
		s.run = args[len(args)-1]
		return false, args[:len(args)-1], nil
	case len(args) == 2: // ls <agent> --run <run>
		s.run = args[1]
		return false, args[:1], nil
	}
	return s.agent == "", args, nil
}

// fleetOr makes a RunE of what is to be done for a whole run, and else.
func (s *scope) fleetOr(whole func(context.Context, *scope, []string) error, one func(context.Context, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		fleet, args, err := s.wants(cmd, args)
		if err != nil {
			return err
		}
		return s.app.Interruptible(func(ctx context.Context, args []string) error {
			if fleet {
				return whole(ctx, s, args)
			}
			return one(ctx, args)
		})(cmd, args)
	}
}

// fleetRun finds the run that `--run [name]` means.
func fleetRun(a *app.App, args []string) (orchestrator.Run, error) {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	return a.Run(name)
}

func saveFleet(ctx context.Context, s *scope, args []string, note string) error {
	run, err := fleetRun(s.app, args)
	if err != nil {
		return err
	}
	o, err := OpenFleet(ctx, s.app, run)
	if err != nil {
		return err
	}
	if err := o.SaveChanged(ctx); err != nil {
		return err
	}
	p, err := o.Take(ctx, orchestrator.Point{Cause: orchestrator.PointManual, Note: note})
	if err != nil {
		return err
	}
	if s.json {
		return s.app.PrintJSON(p)
	}
	t := s.app.Theme
	_, err = fmt.Fprintf(s.app.Streams.Out, "%s point %s of run %s saved: %d agents, %d tasks  %s\n", t.Good.Render("✓"), t.Strong.Render(strconv.Itoa(p.ID)),
		run.Name, len(p.Agents), len(p.Tasks), t.Dim.Render(short(p.Kept)))
	return err
}

func listFleet(ctx context.Context, s *scope, args []string) error {
	run, err := fleetRun(s.app, args)
	if err != nil {
		return err
	}
	all, err := orchestrator.Points(run.Dir)
	if err != nil {
		return err
	}
	if s.json {
		return s.app.PrintJSON(nonNil(all))
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(s.app.Streams.Out, "run %s has no points yet\n", run.Name)
		return err
	}
	return s.app.Paged(ctx, func() error {
		table := term.NewTable("POINT", "WHEN", "DONE", "MERGED", "WHY")
		for i := len(all) - 1; i >= 0; i-- {
			p := all[i]
			done := 0
			for _, t := range p.Tasks {
				if t.State == board.Done {
					done++
				}
			}
			table.Row(strconv.Itoa(p.ID), when(s.app.Now(), p.Time), fmt.Sprintf("%d/%d", done, len(p.Tasks)), s.app.Theme.Dim.Render(short(p.Commit)), pointText(p))
		}
		return table.Write(s.app.Streams.Out, s.app.Theme, tableWidth(s.app))
	})
}

func pointText(p orchestrator.Point) string {
	switch {
	case p.Note != "":
		return term.CleanLine(p.Note)
	case p.Cause == orchestrator.PointMerge:
		return "^" + term.CleanLine(p.Task) + " has landed"
	}
	return "by hand"
}

// A fleetBack is `muntin rollback --run <point>`.
type fleetBack struct {
	app  *app.App
	run  orchestrator.Run
	req  orchestrator.RollbackRequest
	dry  bool
	json bool
	now  bool
}

// parsePoint takes `7` or `name:7` for a point of a run. A number that is the name of a run is that.
func parsePoint(a *app.App, spec string) (run string, point int, ok bool) {
	text := spec
	if name, rest, found := strings.Cut(spec, ":"); found {
		run, text = name, rest
	} else if _, err := a.Run(spec); err == nil && id.CheckName("run", spec) == nil {
		return "", 0, false
	}
	point, err := strconv.Atoi(strings.TrimPrefix(text, "#"))
	return run, point, err == nil && point > 0
}

func (f fleetBack) do(ctx context.Context) error {
	a := f.app
	for _, name := range f.req.Agents {
		if _, err := app.Agent(f.run, name); err != nil {
			return err
		}
	}
	o, err := OpenFleet(ctx, a, f.run)
	if err != nil {
		return err
	}
	o.Busy = f.now
	if f.dry {
		plan, err := o.PlanRollback(ctx, f.req)
		if err != nil {
			return f.hint(err)
		}
		return f.tellPlan(plan)
	}
	r, err := o.Rollback(ctx, f.req)
	if err != nil {
		return f.hint(err)
	}
	return f.tell(r)
}

func (f fleetBack) hint(err error) error {
	switch {
	case errors.Is(err, orchestrator.ErrNoPoint):
		return app.Hint(err, "list them with `muntin checkpoint ls --run`")
	case errors.Is(err, orchestrator.ErrBusy):
		return app.NeedsPerson(app.Hint(err, "wait for the end of the turn, or end it with --now"))
	}
	return err
}

func (f fleetBack) tell(r orchestrator.Rollback) error {
	if f.json {
		return f.app.PrintJSON(r)
	}
	plan := r.Plan
	plan.Notes = r.Notes
	if err := f.tellPlan(plan); err != nil {
		return err
	}
	t := f.app.Theme
	_, err := fmt.Fprintf(f.app.Streams.Out, "%s run %s is as at point %d again\n  %s takes it back\n", t.Good.Render("✓"), t.Strong.Render(f.run.Name),
		plan.Request.Point, t.Command.Render(fmt.Sprintf("muntin rollback --run %s:%d", f.run.Name, r.Before)))
	return err
}

func (f fleetBack) tellPlan(p orchestrator.RollbackPlan) error {
	if f.json {
		return f.app.PrintJSON(p)
	}
	out, t := f.app.Streams.Out, f.app.Theme
	for _, a := range p.Agents {
		what := []string{}
		if a.Files {
			what = append(what, fmt.Sprintf("%s from checkpoint #%d to #%d", changed(len(a.Stat)), a.From.Checkpoint, a.To.Checkpoint))
		}
		if a.Talk {
			what = append(what, fmt.Sprintf("the conversation to turn %d", a.To.Turn))
		}
		fmt.Fprintf(out, "%s  %s\n", t.Strong.Render(a.Name), strings.Join(what, ", "))
		for _, s := range a.Stat {
			f.tellStat(s.Path, s.Added, s.Deleted, s.Binary)
		}
	}
	if p.Branch.Moves {
		fmt.Fprintf(out, "%s  %s, %s to %s\n", t.Strong.Render(f.run.Branch), changed(len(p.Branch.Stat)), short(p.Branch.From), short(p.Branch.To))
		for _, s := range p.Branch.Stat {
			f.tellStat(s.Path, s.Added, s.Deleted, s.Binary)
		}
	}
	for _, task := range p.Tasks {
		fmt.Fprintf(out, "^%s  %s → %s\n", task.ID, task.From, task.To)
	}
	list := func(what string, names []string, sign string) {
		if len(names) > 0 {
			fmt.Fprintf(out, "%s %s\n", t.Warn.Render(what), sign+strings.Join(names, ", "+sign))
		}
	}
	list("stays merged:", p.Branch.Stays, "^")
	list("built on what goes:", p.Built, "")
	list("comes after what is opened again:", p.Depends, "^")
	for _, n := range p.Notes {
		fmt.Fprintf(out, "%s %s\n", t.Warn.Render("note:"), term.CleanLine(n))
	}
	return nil
}

func (f fleetBack) tellStat(path string, added, deleted int, binary bool) {
	how := fmt.Sprintf("+%d -%d", added, deleted)
	if binary {
		how = "binary"
	}
	fmt.Fprintf(f.app.Streams.Out, "  %s  %s\n", term.CleanLine(path), f.app.Theme.Dim.Render(how))
}

// undoFleet takes the last rollback of a run back, if that was the last thing that was
// restored in it. It reports false if it was not.
func undoFleet(ctx context.Context, a *app.App, run orchestrator.Run, asJSON bool) (bool, error) {
	all, err := orchestrator.Points(run.Dir)
	if err != nil || len(all) == 0 || all[len(all)-1].Cause != orchestrator.PointRestored {
		return false, err
	}
	for i := len(all) - 2; i >= 0; i-- {
		if p := all[i]; p.Cause == orchestrator.PointRollback && all[len(all)-1].Key == p.Key+"-restored" {
			f := fleetBack{app: a, run: run, json: asJSON, req: orchestrator.RollbackRequest{
				Point: p.ID, Files: true, Conversation: true, Agents: p.Undoes,
			}}
			return true, f.do(ctx)
		}
	}
	return false, nil
}
