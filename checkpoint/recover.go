package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// Recover finishes a restore that a crash interrupted; if that cannot be
// done, it takes it back. It returns nil if there was none. Paths that are
// neither in the old nor in the new state were changed by someone since; they
// are left alone and reported as conflicts. Open and all methods that change
// something do this by themselves.
func (s *Store) Recover(ctx context.Context) (*RestoreReport, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return s.recoverLocked(ctx)
}

func (s *Store) recoverLocked(ctx context.Context) (*RestoreReport, error) {
	j, err := s.readJournal()
	if err != nil || j == nil {
		return nil, err
	}
	begun, done, err := s.progressOf(j)
	if err != nil {
		return nil, fmt.Errorf("recovering an interrupted restore: %w", err)
	}
	if !begun {
		return nil, s.forget(j)
	}
	undo, made, err := s.commits(j)
	if err != nil {
		return nil, fmt.Errorf("recovering an interrupted restore: %w", err)
	}
	target, err := s.record(plumbing.NewHash(j.Target))
	if err != nil {
		return nil, fmt.Errorf("recovering an interrupted restore: %w", err)
	}
	report := &RestoreReport{Target: target.checkpoint(j.Ref), Undo: undo.checkpoint(j.Ref)}
	if done != nil {
		report.Now = done.checkpoint(j.Ref)
		return report, s.dropJournal()
	}
	a, protected, err := s.roll(ctx, undo, made)
	if err == nil {
		report.Protected = protected
		report.fill(a)
		err = s.finish(ctx, &ending{journal: j, report: report, synced: func() error { return nil }})
	}
	if err == nil {
		return report, nil
	}
	if ctx.Err() != nil { // the next call tries again
		return nil, fmt.Errorf("recovering an interrupted restore: %w", err)
	}
	if _, _, backErr := s.roll(ctx, made, undo); backErr != nil {
		return nil, fmt.Errorf("recovering an interrupted restore: %w", errors.Join(err, backErr))
	}
	report.RolledBack = true
	return report, s.takeBackJournal()
}

// progressOf tells by the chain how far the journal's restore came. It has
// begun if the chain has the checkpoint before it, since that is put there
// first; done is the one after it, if that was saved, however long ago.
func (s *Store) progressOf(j *journal) (begun bool, done *record, err error) {
	undo := plumbing.NewHash(j.Undo)
	h, err := s.readRef(j.Ref)
	for err == nil && !h.IsZero() {
		if h == undo {
			return true, nil, nil
		}
		var r *record
		if r, err = s.record(h); err != nil {
			break
		}
		if r.meta.Cause == CauseRestored && r.before == undo {
			return true, r, nil
		}
		if r.wasCommit(undo) {
			return true, nil, nil
		}
		h = r.previous
	}
	return false, nil, err
}

// forget ends a restore that had not begun. After a power loss new files may
// lie beside their places already, but then what the journal names is whole.
func (s *Store) forget(j *journal) error {
	undo, made, err := s.commits(j)
	if err != nil {
		return s.dropJournal() //nolint:nilerr // it had not come as far as new files
	}
	start, errStart := s.odb.saved(undo)
	aim, errAim := s.odb.saved(made)
	if errStart == nil && errAim == nil {
		if ops, err := s.changes(start, aim); err == nil {
			if err := s.dropTemps(ops); err != nil {
				return err
			}
		}
	}
	return s.dropJournal()
}

// roll brings the worktree from a mixture of two states to the second one. A
// path is changed if it is in the first state or absent, since a crash can
// come between a deletion and a write.
func (s *Store) roll(ctx context.Context, from, to *record) (*applier, []PathNote, error) {
	start, err := s.odb.saved(from)
	if err != nil {
		return nil, nil, err
	}
	aim, err := s.odb.saved(to)
	if err != nil {
		return nil, nil, err
	}
	ops, err := s.changes(start, aim)
	if err != nil {
		return nil, nil, err
	}
	if err := s.dropTemps(ops); err != nil {
		return nil, nil, err
	}
	// Files that are ignored now were saved when the restore began, so they count.
	forced := map[string]bool{}
	for _, o := range ops {
		force(forced, o.path)
	}
	now, err := s.take(ctx, look{forced: forced})
	if err != nil {
		return nil, nil, err
	}
	p := &plan{now: now, goal: &goal{saved: *aim}}
	var changed []PathNote
	for _, o := range ops {
		var at fileState
		if e := now.root.lookup(o.path); e != nil && e.mode != modeDir {
			at = fileState{mode: e.mode, hash: e.disk()}
		}
		switch {
		case s.same(at, o.new):
		case s.same(at, o.old), at.mode == 0:
			p.ops = append(p.ops, op{path: o.path, old: at, new: o.new})
		default:
			changed = append(changed, PathNote{Path: o.path, Why: "changed since the restore was interrupted"})
		}
	}
	made, err := s.madeByRestore(to)
	if err != nil {
		return nil, nil, err
	}
	if err := s.protect(p, made); err != nil {
		return nil, nil, err
	}
	a, err := s.apply(ctx, now, p.ops, func() error { return nil })
	if err == nil {
		err = a.synced.Wait()
	}
	if err != nil {
		return nil, nil, err
	}
	a.conflicts = append(a.conflicts, changed...)
	return a, p.protected, nil
}

// onDisk tells whether a path has the content that an op would give it.
func (s *Store) onDisk(o op) bool {
	file := filepath.Join(s.repo.Root, o.path)
	info, err := os.Lstat(file)
	if err != nil {
		return false
	}
	var content []byte
	if o.new.mode == modeSymlink {
		var target string
		target, err = os.Readlink(file)
		content = []byte(target)
	} else if info.Mode().IsRegular() {
		content, err = os.ReadFile(file)
	}
	return err == nil && plumbing.ComputeHash(plumbing.BlobObject, content) == o.new.hash
}

// dropTemps removes what an interrupted restore left in the folders of ops,
// whether it carried them out or took them back.
func (s *Store) dropTemps(ops []op) error {
	root, err := openRoot(s.repo.Root)
	if err != nil {
		return fmt.Errorf("opening worktree: %w", err)
	}
	defer unix.Close(root)
	byEnd, dirs := map[string]op{}, map[string]bool{}
	for _, o := range ops {
		byEnd[o.tempEnd()], byEnd[o.back().tempEnd()] = o, o.back()
		dirs[path.Dir(o.path)] = true
	}
	for dir := range dirs {
		fd, err := openDir(root, dir)
		if err != nil {
			continue // no such folder: nothing left in it
		}
		f := os.NewFile(uintptr(fd), dir)
		list, err := f.Readdirnames(-1)
		for _, name := range list {
			if !strings.HasPrefix(name, tempPrefix) {
				continue
			}
			if o, ok := byEnd[name[max(strings.LastIndexByte(name, '-'), 0):]]; ok {
				err = errors.Join(err, s.dropTemp(fd, name, o))
			} else {
				err = errors.Join(err, unix.Unlinkat(fd, name, 0))
			}
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("cleaning folder %s: %w", filepath.Join(s.repo.Root, dir), err)
		}
	}
	return nil
}
