package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sync/errgroup"
)

// A RestoreReport tells what a restore did.
type RestoreReport struct {
	Target     Checkpoint `json:"target"`
	Undo       Checkpoint `json:"undo"` // the state before, saved first; zero if nothing was to be changed
	Now        Checkpoint `json:"now"`  // the state after, on the chain as CauseRestored; zero if nothing was to be changed, or it was rolled back
	Written    []string   `json:"written,omitempty"`
	Deleted    []string   `json:"deleted,omitempty"`
	Protected  []PathNote `json:"protected,omitempty"`  // differ from the target and were left alone on purpose
	Conflicts  []PathNote `json:"conflicts,omitempty"`  // could not be brought to the target; what it says happened to them instead
	Notes      []string   `json:"notes,omitempty"`      // what a person should know about the repository: HEAD moved, a merge is going on
	RolledBack bool       `json:"rolledBack,omitempty"` // it was taken back and not finished
}

// A Step says which way a restore walks along the restores before it.
type Step string

// The steps; the zero Step is a restore of its own.
const (
	StepUndo Step = "undo"
	StepRedo Step = "redo"
)

// Restore brings the worktree to the state of target, a checkpoint of this
// repository: all of it, or only what paths name, files and folders relative to the
// worktree, with slashes. The present is saved first, as report.Undo, and the
// result at the end, as report.Now. Exactly the paths that differ are changed: each file by
// rename, so that it is the old or the new one at any time; all others keep
// their modification times. Index, HEAD and branches stay, so that git status
// shows the difference.
//
// Left alone and reported as protected: files that the present or the target
// checkpoint had to leave out, nested repositories, files that are ignored by
// the target's rules, and folders with such files. An ignored file whose path
// is in the target is saved in report.Undo and then replaced.
//
// If another process changes a file that is to be restored, the restore is
// taken back and tried again; if that goes on, the error matches ErrBusy,
// report.Conflicts has the files, and nothing is changed. A path that neither the target
// nor the present has is an error that matches ErrNoPath.
//
// A crash leaves a journal, and the next Open or change finishes the restore (see
// Recover). Any other error takes it back.
func (s *Store) Restore(ctx context.Context, target Checkpoint, paths ...string) (RestoreReport, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return RestoreReport{}, err
	}
	defer end()
	c, err := s.restoreOf(ctx, target, paths)
	if err != nil {
		return RestoreReport{}, fmt.Errorf("restoring: %w", err)
	}
	return s.carryOut(ctx, c)
}

// A change is a journalled change of the worktree, with a checkpoint before it and one after.
type change struct {
	what   string  // for errors: "restoring checkpoint #7"
	target *record // the checkpoint that it is about
	ref    string  // that checkpoint's chain
	aim    aim     // what it makes of the worktree
	made   *record // the state before a restore, if it is taken back: what it made may be deleted, ignored or not
	step   Step
	before string // notes of the two checkpoints
	after  string
	meta   Meta // of the checkpoint after
}

// restoreOf is the change that Restore makes.
func (s *Store) restoreOf(ctx context.Context, target Checkpoint, paths []string) (*change, error) {
	names, err := cleanPaths(paths)
	if err != nil {
		return nil, err
	}
	to, state, err := s.load(target)
	if err != nil {
		return nil, err
	}
	c := &change{
		what: fmt.Sprintf("restoring checkpoint #%d", to.seq), target: to, ref: target.Ref, aim: wholly(to, state), made: to, meta: to.meta,
		before: fmt.Sprintf("before restoring #%d", to.seq), after: fmt.Sprintf("restored #%d", to.seq),
	}
	if len(names) > 0 {
		c.aim = s.known(names, state)
		c.after += " in part"
		c.meta = s.newestMeta(ctx) // the conversation does not go back with some files
	}
	return c, nil
}

// busyTries bounds how often a restore is begun again because another process
// changed a file under it; busyWait is the time between.
const (
	busyTries = 3
	busyWait  = 100 * time.Millisecond
)

// carryOut makes a change, again if another process was in its way.
func (s *Store) carryOut(ctx context.Context, c *change) (RestoreReport, error) {
	for try := 1; ; try++ {
		report, err := s.attempt(ctx, c)
		if err == nil {
			return report, nil
		}
		if err = fmt.Errorf("%s: %w", c.what, err); !errors.Is(err, ErrBusy) || try == busyTries {
			return report, err
		}
		wait := time.NewTimer(busyWait)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return report, errors.Join(err, context.Cause(ctx))
		}
	}
}

// attempt makes a change, or none.
func (s *Store) attempt(ctx context.Context, c *change) (RestoreReport, error) {
	report := RestoreReport{Target: c.target.checkpoint(c.ref)}
	p, err := s.plan(ctx, c)
	if err != nil {
		var conflict *conflictError
		if errors.As(err, &conflict) {
			report.Conflicts = conflict.paths
		}
		return report, err
	}
	if report.Conflicts = p.unstable(); len(report.Conflicts) > 0 {
		return report, ErrBusy
	}
	if err := s.haveBlobs(ctx, p.ops); err != nil {
		return report, err
	}
	report.Protected, report.Conflicts = p.protected, p.goal.notes
	report.Notes = s.repoNotes(c.target)
	if len(p.ops) == 0 && c.step == "" {
		return report, nil // no checkpoints of it, and nothing to undo; undo and redo count their steps
	}
	s.reached("planned")
	before := s.newestMeta(ctx)
	if err := s.hold(p.goal, c.target.seq); err != nil {
		return report, err
	}
	s.reached("goal held")
	before.Cause, before.Note = CauseUndo, c.before
	first := record{meta: before, restored: c.target.hash}
	if p.goal.commit != c.target.hash {
		first.goal = p.goal.commit
	}
	meta := c.meta
	meta.Cause, meta.Note = CauseRestored, c.after
	j := journal{Ref: s.opts.Ref, Goal: p.goal.commit.String(), Target: c.target.hash.String(), Step: c.step, Meta: meta}
	undo, err := s.commit(ctx, saving{ref: j.Ref, snap: p.now, record: first, soon: true, beside: func(h plumbing.Hash) error {
		// Before the chain has the commit it says that nothing was begun.
		j.Undo = h.String()
		err := s.writeJournal(j)
		s.reached("journal written")
		return err
	}})
	if err != nil {
		if s.interrupted() {
			err = errors.Join(err, s.dropJournal())
		}
		return report, err
	}
	report.Undo = undo.checkpoint(j.Ref)
	s.reached("present saved")
	return s.underJournal(ctx, &j, p, report)
}

// underJournal carries a plan out. Whatever goes wrong is taken back.
func (s *Store) underJournal(ctx context.Context, j *journal, p *plan, report RestoreReport) (RestoreReport, error) {
	// New files are written while the chain's move waits for the disk, and put in their places after it.
	var ref errgroup.Group
	ref.Go(func() error { return s.syncRef(j.Ref) })
	a, err := s.apply(ctx, p.now, p.ops, ref.Wait)
	err = errors.Join(err, ref.Wait())
	s.reached("carried out")
	if err == nil && len(a.conflicts) > 0 {
		report.Conflicts = a.conflicts
		err = ErrBusy
	}
	if err == nil {
		report.fill(a)
		err = s.finish(ctx, &ending{journal: j, report: &report, look: s.changed(p), synced: a.synced.Wait})
	}
	if err == nil {
		return report, nil
	}
	if a != nil {
		err = errors.Join(err, a.synced.Wait())
	}
	// Not half of it: back to the state before, whatever ended the context.
	ctx = context.WithoutCancel(ctx)
	undo, made, backErr := s.commits(j)
	if backErr == nil {
		_, _, backErr = s.roll(ctx, made, undo)
	}
	s.reached("taken back")
	if backErr == nil {
		backErr = s.takeBackJournal()
	}
	report.Written, report.Deleted, report.RolledBack = nil, nil, backErr == nil
	return report, errors.Join(err, backErr)
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

// repoNotes are what a restore does not change and a person may trip over.
func (s *Store) repoNotes(target *record) []string {
	var notes []string
	for _, f := range []struct{ file, what string }{
		{"MERGE_HEAD", "a merge"}, {"rebase-merge", "a rebase"}, {"rebase-apply", "a rebase"},
		{"CHERRY_PICK_HEAD", "a cherry-pick"}, {"REVERT_HEAD", "a revert"}, {"BISECT_LOG", "a bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(s.repo.GitDir, f.file)); err == nil {
			notes = append(notes, f.what+" is going on; its state in git was left as it is")
			break
		}
	}
	head, err := headCommit(s.repo.GitDir, s.repo.CommonDir)
	if err == nil && !target.head.IsZero() && head != target.head {
		notes = append(notes, fmt.Sprintf("HEAD was %.8s then and is %.8s now; it was not moved", target.head, head))
	}
	return notes
}

// An ending is a change that was carried out and is not saved yet.
type ending struct {
	journal *journal
	report  *RestoreReport
	look    look         // where the change may have changed something
	synced  func() error // waits until the change is durable
}

// finish saves the state after a change and ends it.
func (s *Store) finish(ctx context.Context, e *ending) error {
	j := e.journal
	undo, made, err := s.commits(j)
	if err != nil {
		return err
	}
	snap, err := s.take(ctx, e.look)
	if err != nil {
		return err
	}
	if err := s.verify(snap, undo, made, e.report); err != nil {
		return err
	}
	s.reached("result seen")
	now, err := s.commit(ctx, saving{ref: j.Ref, snap: snap, record: j.record(), beside: func(plumbing.Hash) error { return e.synced() }})
	if err != nil {
		return err
	}
	e.report.Now = now.checkpoint(j.Ref)
	s.reached("result saved")
	err = s.dropJournal()
	s.reached("journal dropped")
	return err
}

// verify reports paths that are not as the goal has them and that no note explains.
func (s *Store) verify(snap *snapshot, undo, made *record, report *RestoreReport) error {
	want, err := s.odb.saved(made)
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
