package checkpoint

import (
	"context"
	"fmt"
)

// Undo takes the last restore that was not taken back yet back: the state
// before it comes again. After a restore of some paths or the revert of a
// turn, only what that changed. What was changed since is in the new report.Undo, and Redo
// brings it again. The error matches ErrNothingToUndo if there is none.
func (s *Store) Undo(ctx context.Context) (RestoreReport, error) {
	return s.walkBack(ctx, StepUndo)
}

// Redo takes the last Undo back. A new restore ends what can be redone; the
// error then matches ErrNothingToRedo.
func (s *Store) Redo(ctx context.Context) (RestoreReport, error) {
	return s.walkBack(ctx, StepRedo)
}

func (s *Store) walkBack(ctx context.Context, step Step) (RestoreReport, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return RestoreReport{}, err
	}
	defer end()
	last, err := s.lastStep(ctx, step)
	if err != nil {
		return RestoreReport{}, fmt.Errorf("looking for a restore on %s: %w", s.opts.Ref, err)
	}
	if last == nil {
		none := ErrNothingToUndo
		if step == StepRedo {
			none = ErrNothingToRedo
		}
		return RestoreReport{}, fmt.Errorf("%w on %s", none, s.opts.Ref)
	}
	c, err := s.stepBack(last, step)
	if err != nil {
		return RestoreReport{}, fmt.Errorf("%s of #%d: %w", step, last.seq, err)
	}
	return s.carryOut(ctx, c)
}

// lastStep finds the restore that a step takes back. Walking from the newest
// one on, each undo cancels the restore or redo before it, and each redo the undo.
func (s *Store) lastStep(ctx context.Context, step Step) (*record, error) {
	var last *record
	cancelled := 0
	err := s.walk(ctx, func(r *record) bool {
		if r.meta.Cause != CauseRestored || r.before.IsZero() {
			return true
		}
		isUndo := r.step == StepUndo
		switch {
		case step == StepRedo && r.step == "":
			return false // a new restore ended what could be redone
		case isUndo != (step == StepRedo):
			cancelled++
		case cancelled > 0:
			cancelled--
		default:
			last = r
			return false
		}
		return true
	})
	return last, err
}

// stepBack is the change that takes a restore back.
func (s *Store) stepBack(last *record, step Step) (*change, error) {
	to, state, err := s.load(Checkpoint{Commit: last.before.String()})
	if err != nil {
		return nil, err
	}
	c := &change{
		what: fmt.Sprintf("%s of #%d", step, last.seq), target: to, ref: s.opts.Ref, aim: wholly(to, state), made: to, step: step,
		before: fmt.Sprintf("before the %s of #%d", step, last.seq), after: fmt.Sprintf("%s of #%d", step, last.seq), meta: to.meta,
	}
	if to.goal.IsZero() {
		return c, nil
	}
	// It changed some paths only, and so does this.
	made, err := s.record(to.goal)
	if err != nil {
		return nil, err
	}
	then, err := s.odb.saved(made)
	if err != nil {
		return nil, err
	}
	ops, err := s.changes(state, then)
	if err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for _, o := range ops {
		changed[o.path] = true
	}
	c.aim = s.partly(state, func(path string) bool { return changed[path] })
	return c, nil
}
