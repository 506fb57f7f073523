package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sync/errgroup"
)

// moveTries bounds how often a commit is made anew because another process
// moved the chain meanwhile.
const moveTries = 20

// Save takes a checkpoint of the worktree and puts it at the head of the
// chain. It always makes a commit: a turn that changed nothing has the tree of the one
// before. When Save returns, the checkpoint is durable. The zero Cause is CauseManual.
//
// What the report names as skipped is not in the checkpoint. If the
// worktree changes while it is read, the checkpoint may hold states of
// different files from different moments: save when the agent has settled.
func (s *Store) Save(ctx context.Context, m Meta) (Checkpoint, Report, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return Checkpoint{}, Report{}, err
	}
	defer end()
	if m.Cause == "" {
		m.Cause = CauseManual
	}
	snap, err := s.take(ctx, look{})
	if err != nil {
		return Checkpoint{}, Report{}, fmt.Errorf("saving checkpoint of %s: %w", s.repo.Root, err)
	}
	r, err := s.commit(ctx, saving{ref: s.opts.Ref, snap: snap, record: record{meta: m}})
	if err != nil {
		return Checkpoint{}, Report{}, fmt.Errorf("saving checkpoint of %s: %w", s.repo.Root, err)
	}
	return r.checkpoint(s.opts.Ref), snap.report, nil
}

// Worktree returns the present state as a checkpoint that is not saved: its
// ID is 0 and its Commit empty, its objects are written but no ref holds them.
// It is meant for Diff and Patch, soon.
func (s *Store) Worktree(ctx context.Context) (Checkpoint, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	defer end()
	snap, err := s.take(ctx, look{})
	if err != nil {
		return Checkpoint{}, fmt.Errorf("looking at worktree %s: %w", s.repo.Root, err)
	}
	// Git may be asked to read them.
	if err := errors.Join(s.odb.sync(), s.odb.settle()); err != nil {
		return Checkpoint{}, fmt.Errorf("looking at worktree %s: %w", s.repo.Root, err)
	}
	return Checkpoint{Tree: snap.tree.String(), Ref: s.opts.Ref, Time: s.opts.Now().UTC().Truncate(time.Second)}, nil
}

// A saving is a snapshot on its way to the head of a chain.
type saving struct {
	ref    string
	snap   *snapshot
	record record // the caller sets meta, restored, before, step and goal

	// beside is called with the new commit's hash while its objects are made
	// durable; the ref moves when it has returned. nil: nothing to do.
	beside func(plumbing.Hash) error
	soon   bool // the caller makes the move durable, by syncRef
}

// commit puts a snapshot at the head of its chain.
func (s *Store) commit(ctx context.Context, c saving) (_ *record, err error) {
	defer func() { err = errors.Join(err, s.odb.settle()) }()
	r, snap := c.record, c.snap
	r.tree, r.time = snap.tree, s.opts.Now().UTC().Truncate(time.Second)
	if r.time.Unix() < 0 { // git has no dates before 1970
		r.time = time.Unix(0, 0).UTC()
	}
	if r.head, r.headName, err = s.head(ctx); err != nil {
		return nil, err
	}
	if r.side, err = s.odb.writeSide(snap.saved()); err != nil {
		return nil, err
	}
	for range moveTries {
		err = s.append(ctx, &c, &r)
		if !errors.Is(err, errMoved) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	snap.commit, snap.ref = r.hash, c.ref
	// All the next process would have to do again that this one did.
	worth := s.last == nil || snap.hashed >= rehashed || s.last.index == nil && s.last.basis != snap.basis
	s.last = snap
	if worth {
		// A cache that cannot be written costs time later and nothing else.
		_ = s.saveCache(snap)
	}
	return &r, nil
}

// append makes r the next commit of the chain.
func (s *Store) append(ctx context.Context, c *saving, r *record) error {
	old, err := s.readRef(c.ref)
	if err != nil {
		return err
	}
	var before plumbing.Hash
	r.previous, r.seq, r.files = old, 1, 0
	if !old.IsZero() {
		p, err := s.record(old)
		if err != nil {
			return err
		}
		r.seq, before = p.seq+1, p.tree
	} else if !r.head.IsZero() {
		if before, err = s.odb.commitTree(r.head); err != nil {
			return err
		}
	}
	err = s.odb.diffTrees(before, r.tree, func(pathDiff) error {
		r.files++
		return nil
	})
	if err != nil {
		return err
	}
	if r.hash, err = s.odb.write(plumbing.CommitObject, r.encode()); err != nil {
		return err
	}
	// The ref is locked, and its new value synced, while the objects are; it moves when they are on disk.
	var objects errgroup.Group
	objects.Go(s.odb.sync)
	if c.beside != nil {
		objects.Go(func() error { return c.beside(r.hash) })
	}
	err = s.moveRef(ctx, refMove{name: c.ref, old: old, next: r.hash, ready: objects.Wait, soon: c.soon})
	if syncErr := objects.Wait(); syncErr != nil {
		return syncErr
	}
	return err
}

// saved is the snapshot as a restore sees it.
func (snap *snapshot) saved() saved {
	return saved{tree: snap.tree, raw: snap.root.rawHashes(), skipped: snap.report.Skipped}
}

// Close writes the stat cache, if there is a folder for it, and drops objects
// that no checkpoint holds. The Store can still be used.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odb.discard()
	s.odb.read.close()
	if s.last == nil {
		return nil
	}
	return s.saveCache(s.last)
}

// cacheFile is a file of the cache folder for the worktree, "" for none.
func (s *Store) cacheFile(kind string) string {
	if s.opts.CacheDir == "" {
		return ""
	}
	h := plumbing.ComputeHash(plumbing.BlobObject, []byte(s.repo.Root))
	return filepath.Join(s.opts.CacheDir, kind+"-"+h.String()[:16])
}
