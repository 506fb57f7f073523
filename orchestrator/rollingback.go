package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muntin/agent/pty"
	"muntin/internal/durable"
	"muntin/internal/id"
	"muntin/internal/state"
	"muntin/orchestrator/board"
	"muntin/orchestrator/worktree"
)

// A Rollback is a rollback of a run that is being carried out, or was: rollback.json in
// the run's folder while it is. Every step can be done again, so that whoever comes
// after a crash does all of them.
type Rollback struct {
	ID       string       `json:"id"`
	Time     time.Time    `json:"time"`
	Plan     RollbackPlan `json:"plan"`
	Before   int          `json:"before"`   // the point that goes back to the present
	Restored int          `json:"restored"` // the point of the end; 0 while it is not there
	Notes    []string     `json:"notes"`

	Told map[string]string `json:"told"` // the ids of the messages to those who built on what goes
}

func rollbackPath(d state.RunDir) string { return filepath.Join(d.Path, "rollback.json") }

// Unfinished returns the rollback of a run that was cut off, if there is one.
func Unfinished(d state.RunDir) (*Rollback, error) {
	b, err := os.ReadFile(rollbackPath(d))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the unfinished rollback of run %s: %w", d.Name, err)
	}
	var r Rollback
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("reading the unfinished rollback %s: %w", rollbackPath(d), err)
	}
	return &r, nil
}

// Rollback takes a run, or some of its agents, back to a fleet point. The present is a
// point of its own first. The run's orchestrator is ended for that time, and so are the agents
// that go back; what was alive is started again. A rollback that was cut off before is
// finished first. The error matches ErrNoPoint, ErrBusy if an agent is in a turn and
// may not be ended in it, and ErrServed.
func (o RollbackOptions) Rollback(ctx context.Context, req RollbackRequest) (Rollback, error) {
	if _, err := o.FinishRollback(ctx); err != nil {
		return Rollback{}, err
	}
	plan, err := o.PlanRollback(ctx, req)
	if err != nil {
		return Rollback{}, err
	}
	if err := o.atRest(ctx, plan); err != nil {
		return Rollback{}, err
	}
	var r Rollback
	err = o.alone(ctx, plan, func() error {
		r = Rollback{ID: id.New(o.Now()), Time: o.Now().UTC()}
		before, err := o.Take(ctx, Point{Cause: PointRollback, Target: req.Point, Undoes: req.Agents, Note: fmt.Sprintf("before the rollback to point %d", req.Point), Key: r.ID})
		if err != nil {
			return err
		}
		r.Before = before.ID
		// What agents changed last is in it, and may change the plan.
		if r.Plan, err = o.PlanRollback(ctx, req); err != nil {
			return err
		}
		r.Told = map[string]string{}
		for _, name := range r.Plan.Built {
			r.Told[name] = id.New(o.Now())
		}
		if err := o.note(r); err != nil {
			return err
		}
		return o.carryOut(ctx, &r)
	})
	return r, err
}

// FinishRollback finishes a rollback that was cut off, and returns it; nil if there was none.
func (o RollbackOptions) FinishRollback(ctx context.Context) (*Rollback, error) {
	r, err := Unfinished(o.Run.Dir)
	if err != nil || r == nil {
		return nil, err
	}
	err = o.alone(ctx, r.Plan, func() error { return o.carryOut(ctx, r) })
	return r, err
}

func (o RollbackOptions) note(r Rollback) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing down the rollback: %w", err)
	}
	return durable.WriteFile(rollbackPath(o.Run.Dir), append(b, '\n'), 0o600)
}

// atRest makes sure that no agent that goes back is in a turn, unless it may be
// ended in it.
func (o RollbackOptions) atRest(ctx context.Context, plan RollbackPlan) error {
	if o.Busy {
		return nil
	}
	for _, a := range plan.Agents {
		client, err := pty.Dial(ctx, o.Run.Dir.Agent(a.Name).Socket)
		if errors.Is(err, pty.ErrNotRunning) {
			continue
		}
		if err != nil {
			return err
		}
		status, err := client.Status(ctx)
		_ = client.Close() // it was only asked
		if err == nil && status.State == pty.AgentWorking {
			return fmt.Errorf("%w: %s, in turn %d", ErrBusy, a.Name, status.Turn)
		}
	}
	return nil
}

// alone does fn while nobody else decides for the run, and no agent that goes back runs.
// What was alive is started again, also after an error.
func (o RollbackOptions) alone(ctx context.Context, plan RollbackPlan, fn func() error) (err error) {
	served := o.Run.Served()
	StopServing(ctx, o.Run)
	wait, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	lock, err := durable.Lock(wait, o.Run.Dir.Lock())
	if errors.Is(err, durable.ErrLocked) {
		return fmt.Errorf("%w: process %d", ErrServed, durable.Holder(o.Run.Dir.Lock()))
	}
	if err != nil {
		return err
	}
	var ended []string
	defer func() {
		err = errors.Join(err, lock.Unlock())
		if o.Host != nil && (served || len(ended) > 0) {
			err = errors.Join(err, o.startAgain(context.WithoutCancel(ctx)))
		}
	}()
	down := DownOptions{Run: o.Run, Host: o.Host, OnStep: func(string, DownStep) {}, Now: o.Now}
	for _, a := range plan.Agents {
		if answers(ctx, o.Run.Dir.Agent(a.Name).Socket) {
			ended = append(ended, a.Name)
		}
		if err := down.agent(ctx, a.Name); err != nil {
			return fmt.Errorf("ending agent %s: %w", a.Name, err)
		}
	}
	return fn()
}

// startAgain brings back what was ended for the rollback.
func (o RollbackOptions) startAgain(ctx context.Context) error {
	_, err := Resume(ctx, ResumeOptions{Run: o.Run, Host: o.Host, Self: o.Self, Environ: o.Env})
	if err != nil {
		return fmt.Errorf("starting the run's processes again: %w", err)
	}
	return nil
}

// carryOut does the steps of a rollback, all of them again after a crash.
func (o RollbackOptions) carryOut(ctx context.Context, r *Rollback) error {
	r.Notes = slices.Clone(r.Plan.Notes)
	if b := r.Plan.Branch; b.Moves {
		if err := o.moveBranch(ctx, r, b); err != nil {
			return err
		}
	}
	for _, a := range r.Plan.Agents {
		if err := o.takeBack(ctx, r, a); err != nil {
			return fmt.Errorf("taking %s back: %w", a.Name, err)
		}
	}
	if err := o.editBoard(ctx, r.Plan); err != nil {
		return err
	}
	if err := o.tellReducer(*r); err != nil {
		return err
	}
	if err := o.tellBuilt(ctx, *r); err != nil {
		return err
	}
	target := r.Plan.Request.Point
	done, err := o.Take(ctx, Point{Cause: PointRestored, Target: target, Note: fmt.Sprintf("went back to point %d", target), Key: r.ID + "-restored"})
	if err != nil {
		return err
	}
	r.Restored = done.ID
	if err := os.Remove(rollbackPath(o.Run.Dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("ending the rollback: %w", err)
	}
	return durable.SyncDir(o.Run.Dir.Path)
}

func (o RollbackOptions) moveBranch(ctx context.Context, r *Rollback, b BranchBack) error {
	tip, err := o.Git.Tip(ctx, o.Run.Branch)
	if err != nil || tip == b.To {
		return err
	}
	err = o.Git.MoveBranch(ctx, o.Run.Branch, b.From, b.To)
	if errors.Is(err, worktree.ErrMoved) {
		r.Notes = append(r.Notes, o.Run.Branch+" was moved by somebody else meanwhile, and is left alone")
		return nil
	}
	return err
}

// takeBack takes one agent's files, branch and conversation back.
func (o RollbackOptions) takeBack(ctx context.Context, r *Rollback, b AgentBack) error {
	if b.Files {
		if err := o.restore(ctx, b); err != nil {
			return err
		}
		if b.To.Branch != "" {
			if err := o.moveHead(ctx, r, b); err != nil {
				return err
			}
		}
	}
	if !b.Talk || o.Talks == nil {
		return nil
	}
	if b.To.Entry == "" && b.To.Turn > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("checkpoint #%d of %s does not say where in the conversation it was taken: that stays", b.To.Checkpoint, b.Name))
		return nil
	}
	moved, err := o.Talks.Move(b.Name, b.To.Entry)
	if err == nil && !moved {
		r.Notes = append(r.Notes, b.Name+" has no conversation that muntin keeps")
	}
	return err
}

// moveHead takes an agent's branch back.
func (o RollbackOptions) moveHead(ctx context.Context, r *Rollback, b AgentBack) error {
	err := o.Git.MoveHead(ctx, o.worktreeOf(o.agent(b.Name)), b.To.Branch)
	if errors.Is(err, worktree.ErrOffBranch) {
		r.Notes = append(r.Notes, b.Name+" is on another branch than its own, which is left alone")
		return nil
	}
	return err
}

func (o RollbackOptions) restore(ctx context.Context, b AgentBack) (err error) {
	store, err := o.store(ctx, o.agent(b.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	target, err := store.Find(ctx, fmt.Sprintf("#%d", b.To.Checkpoint))
	if err != nil {
		return err
	}
	if target.Tree != b.To.Tree {
		return fmt.Errorf("checkpoint #%d is not the one of the point", target.ID)
	}
	now, err := store.Worktree(ctx)
	if err != nil || now.Tree == target.Tree {
		return err
	}
	_, err = store.Restore(ctx, target)
	return err
}

// editBoard gives tasks their states back. All else on the board is people's.
func (o RollbackOptions) editBoard(ctx context.Context, p RollbackPlan) error {
	if len(p.Tasks) == 0 {
		return nil
	}
	then := map[string]PointTask{}
	for _, t := range p.Target.Tasks {
		then[t.ID] = t
	}
	_, _, err := o.Todo.Update(ctx, func(brd *board.Board) error {
		var errs []error
		for _, t := range p.Tasks {
			task, ok := brd.Task(t.ID)
			if !ok || task.State != t.From {
				continue // a person has settled it meanwhile, or it is done already
			}
			errs = append(errs, brd.SetState(t.ID, t.To), brd.SetReason(t.ID, ""))
			was, known := then[t.ID]
			for _, name := range task.Assignees {
				if t.To == board.Open && (known && was.State != board.Claimed && !slices.Contains(was.Names, name) || name == task.Claim && (!known || was.State == board.Claimed)) {
					errs = append(errs, brd.ClearClaim(t.ID, name))
				}
			}
			if known && t.To != board.Open && was.Claim != "" {
				errs = append(errs, brd.SetClaim(t.ID, was.Claim))
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("opening tasks again: %w", err)
	}
	return nil
}

// tellReducer journals the rollback, so that the next orchestrator does not go on with
// what the agents were at.
func (o RollbackOptions) tellReducer(r Rollback) error {
	journal, st, _, err := OpenJournal(o.Run.Dir.Journal(), InitialState(o.Run, o.Recipe), o.Now)
	if err != nil {
		return err
	}
	back := Back{Point: r.Plan.Request.Point}
	for _, a := range r.Plan.Agents {
		back.Agents = append(back.Agents, a.Name)
	}
	in := Input{Kind: InputBack, Time: o.Now().UTC().Round(0), Back: &back}
	next, effects := Reduce(st, in)
	_, err = journal.step(in, st, next, effects)
	return errors.Join(err, journal.Close())
}

// tellBuilt tells agents at work that what they built on is gone.
func (o RollbackOptions) tellBuilt(ctx context.Context, r Rollback) error {
	for _, name := range r.Plan.Built {
		dir := o.Run.Dir.Agent(name)
		client, err := pty.Dial(ctx, dir.Socket)
		if errors.Is(err, pty.ErrNotRunning) {
			continue
		}
		if err != nil {
			return err
		}
		status, err := client.Status(ctx)
		_ = client.Close() // it was only asked
		if err != nil || status.State != pty.AgentWorking {
			continue
		}
		m := pty.Message{
			ID: r.Told[name], Kind: pty.KindSteer, Text: goneText(r.Plan, o.Run.Branch),
			From: orchestratorName, Task: status.Task, Time: o.Now(),
		}
		if _, err := pty.Deliver(ctx, dir, pty.Delivery{Message: m, Until: pty.StateQueued}); err != nil {
			return fmt.Errorf("telling %s: %w", name, err)
		}
	}
	return nil
}
