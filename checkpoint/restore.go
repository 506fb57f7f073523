package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A RestoreReport tells what a restore did.
type RestoreReport struct {
	Target     Checkpoint `json:"target"`
	Undo       Checkpoint `json:"undo"` // the state before, saved first
	Now        Checkpoint `json:"now"`  // the state after, on the chain as CauseRestored; zero if rolled back
	Written    []string   `json:"written,omitempty"`
	Deleted    []string   `json:"deleted,omitempty"`
	Protected  []PathNote `json:"protected,omitempty"`  // differ from the target and were left alone on purpose
	Conflicts  []PathNote `json:"conflicts,omitempty"`  // were changed by another process meanwhile and left alone
	RolledBack bool       `json:"rolledBack,omitempty"` // an interrupted restore was taken back, not finished
}

// Restore brings the worktree to the state of target, a checkpoint of this
// repository. The present is saved first, as report.Undo, and the result at the end,
// as report.Now. Exactly the paths that differ are changed: each file by
// rename, so that it is the old or the new one at any time; all others keep
// their modification times. Index, HEAD and branches stay, so that git status
// shows the difference.
//
// Left alone and reported as protected: files that the present or the target
// checkpoint had to leave out, nested repositories, files that are ignored by
// the target's rules, and folders with such files. An ignored file whose path
// is in the target is saved in report.Undo and then replaced.
//
// A crash leaves a journal, and the next Open or change finishes the restore (see
// Recover). Any other error takes it back.
func (s *Store) Restore(ctx context.Context, target Checkpoint) (RestoreReport, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return RestoreReport{}, err
	}
	defer end()
	return s.restore(ctx, target)
}

// Undo takes the last restore back: it restores the state before it. As that
// is a restore too, a second Undo takes the first one back (redo), and so on.
// What was saved or changed since is in the new report.Undo. The error
// matches ErrNothingToUndo if nothing on the chain was restored yet.
func (s *Store) Undo(ctx context.Context) (RestoreReport, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return RestoreReport{}, err
	}
	defer end()
	var last *record
	err = s.walk(ctx, func(r *record) bool {
		if r.meta.Cause == CauseRestored && !r.before.IsZero() {
			last = r
		}
		return last == nil
	})
	if err != nil {
		return RestoreReport{}, fmt.Errorf("looking for a restore on %s: %w", s.opts.Ref, err)
	}
	if last == nil {
		return RestoreReport{}, fmt.Errorf("%w on %s", ErrNothingToUndo, s.opts.Ref)
	}
	return s.restore(ctx, Checkpoint{Commit: last.before.String(), Ref: s.opts.Ref})
}

func (s *Store) restore(ctx context.Context, target Checkpoint) (RestoreReport, error) {
	to, state, err := s.load(target)
	if err != nil {
		return RestoreReport{}, fmt.Errorf("restoring: %w", err)
	}
	wrap := func(err error) error { return fmt.Errorf("restoring checkpoint #%d: %w", to.seq, err) }
	p, err := s.plan(ctx, to, state)
	if err != nil {
		return RestoreReport{}, wrap(err)
	}
	if err := s.haveBlobs(ctx, p.ops); err != nil {
		return RestoreReport{}, wrap(err)
	}
	report := RestoreReport{Target: to.checkpoint(target.Ref), Protected: p.protected}
	before := s.newestMeta(ctx)
	before.Cause, before.Note = CauseUndo, fmt.Sprintf("before restoring #%d", to.seq)
	undo, err := s.commit(ctx, s.opts.Ref, p.now, record{meta: before, restored: to.hash})
	if err != nil {
		return RestoreReport{}, wrap(err)
	}
	report.Undo = undo.checkpoint(s.opts.Ref)
	after := to.meta // the conversation goes back with the files
	after.Cause, after.Note = CauseRestored, fmt.Sprintf("restored #%d", to.seq)
	j := journal{Ref: s.opts.Ref, Undo: undo.hash.String(), Target: to.hash.String(), Meta: after}
	if err := s.writeJournal(j); err != nil {
		return report, wrap(err)
	}
	a, err := s.apply(ctx, p.now, p.ops)
	if err == nil {
		report.fill(a)
		err = s.finish(ctx, &j, &report)
	}
	if err != nil {
		// Not half of it: back to the state before, whatever ended the context.
		_, _, backErr := s.roll(context.WithoutCancel(ctx), to, undo)
		if backErr == nil {
			backErr = s.dropJournal()
		}
		report.Written, report.Deleted, report.RolledBack = nil, nil, backErr == nil
		return report, errors.Join(wrap(err), backErr)
	}
	return report, nil
}

func (r *RestoreReport) fill(a *applier) {
	r.Written, r.Deleted = append(r.Written, a.written...), append(r.Deleted, a.deleted...)
	r.Conflicts = append(r.Conflicts, a.conflicts...)
	slices.Sort(r.Written)
	slices.Sort(r.Deleted)
}

// newestMeta is what the newest checkpoint says about run, agent and turn.
func (s *Store) newestMeta(ctx context.Context) Meta {
	var m Meta
	// Without a readable chain there is nothing to copy; the save that follows reports it.
	_ = s.walk(ctx, func(r *record) bool {
		m = r.meta
		return false
	})
	return m
}

// haveBlobs makes sure that what will be written is there, before anything is
// changed. In a partial clone it makes git fetch.
func (s *Store) haveBlobs(ctx context.Context, ops []op) error {
	for _, o := range ops {
		if o.new.mode == 0 || s.odb.has(o.new.hash) {
			continue
		}
		if _, err := s.git.run(ctx, "", nil, "cat-file", "-e", o.new.hash.String()); err != nil {
			return fmt.Errorf("looking for the content of %s: %w", o.path, err)
		}
	}
	return nil
}

// finish saves the state after a restore and ends it.
func (s *Store) finish(ctx context.Context, j *journal, report *RestoreReport) error {
	undo, target, err := s.commits(j)
	if err != nil {
		return err
	}
	snap, err := s.take(ctx, nil)
	if err != nil {
		return err
	}
	if err := s.verify(snap, undo, target, report); err != nil {
		return err
	}
	now, err := s.commit(ctx, j.Ref, snap, record{meta: j.Meta, restored: target.hash, before: undo.hash})
	if err != nil {
		return err
	}
	report.Now = now.checkpoint(j.Ref)
	return s.dropJournal()
}

// verify reports paths that are not as the target has them and that no note explains.
func (s *Store) verify(snap *snapshot, undo, target *record, report *RestoreReport) error {
	want, err := s.odb.saved(target)
	if err != nil {
		return err
	}
	have := snap.saved()
	left, err := s.changes(&have, want)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, list := range [][]PathNote{report.Protected, report.Conflicts} {
		for _, n := range list {
			known[n.Path] = true
		}
	}
	for _, o := range left {
		before, err := s.odb.lookup(undo.tree, o.path)
		if err != nil {
			return err
		}
		switch {
		case known[o.path], o.old.mode == 0 && s.onDisk(o): // it is there and ignored again, as it may be
		case o.new.mode == 0 && before.mode == 0:
			report.Protected = append(report.Protected, PathNote{Path: o.path, Why: "was ignored before the restore"})
		default:
			report.Conflicts = append(report.Conflicts, PathNote{Path: o.path, Why: "not as restored: changed again by another process, or other rules of git's apply to it now"})
		}
	}
	return nil
}
