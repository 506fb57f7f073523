package checkpoint

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"golang.org/x/sys/unix"
)

// A Plan is what a restore would do now.
type Plan struct {
	Target    Checkpoint `json:"target"`
	Write     []string   `json:"write,omitempty"` // new, or other content, kind or executable bit
	Delete    []string   `json:"delete,omitempty"`
	Protected []PathNote `json:"protected,omitempty"` // differ from the target and would be left alone
}

// A fileState is one path on disk; the zero value is a path that is not there.
type fileState struct {
	mode uint32
	hash plumbing.Hash // of the bytes on disk
}

// An op brings one path from old to new.
type op struct {
	path     string
	old, new fileState
}

// A plan is a Plan with what it takes to carry it out.
type plan struct {
	now       *snapshot
	goal      *goal
	ops       []op
	protected []PathNote
}

// changed is the look at what carrying out the plan may have changed. What
// another process changed elsewhere meanwhile is for the next save to find.
// What the goal holds is known: the checkpoint before the change, or the target's, keeps it.
func (s *Store) changed(p *plan) look {
	l := look{since: p.now, dirs: map[string]bool{"": false}, known: map[plumbing.Hash]bool{p.goal.tree: true}}
	for _, o := range p.ops {
		l.known[o.new.hash] = true
		for dir := parent(o.path); dir != ""; dir = parent(dir) {
			if _, seen := l.dirs[dir]; seen {
				break
			}
			l.dirs[dir] = false
			if e, err := s.odb.lookup(p.goal.tree, dir); err == nil { // else it is written again
				l.known[e.hash] = true
			}
		}
	}
	return l
}

// unstable lists files that changed while they were read and that are to be changed.
func (p *plan) unstable() []PathNote {
	var notes []PathNote
	for _, n := range p.now.report.Unstable {
		if slices.ContainsFunc(p.ops, func(o op) bool { return o.path == n.Path }) {
			notes = append(notes, n)
		}
	}
	return notes
}

// Plan tells what Restore would do, and changes nothing.
func (s *Store) Plan(ctx context.Context, target Checkpoint, paths ...string) (Plan, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return Plan{}, err
	}
	defer end()
	c, err := s.restoreOf(ctx, target, paths)
	if err != nil {
		return Plan{}, fmt.Errorf("planning a restore: %w", err)
	}
	p, err := s.plan(ctx, c)
	if err != nil {
		return Plan{}, fmt.Errorf("planning a restore of #%d: %w", c.target.seq, err)
	}
	out := Plan{Target: c.target.checkpoint(target.Ref), Protected: p.protected}
	for _, o := range p.ops {
		if o.new.mode == 0 {
			out.Delete = append(out.Delete, o.path)
		} else {
			out.Write = append(out.Write, o.path)
		}
	}
	return out, nil
}

// load reads the commit of a checkpoint and what it holds.
func (s *Store) load(c Checkpoint) (*record, *saved, error) {
	h, ok := parseHash(c.Commit)
	if !ok {
		return nil, nil, fmt.Errorf("checkpoint has no commit: %w", ErrNotFound)
	}
	r, err := s.record(h)
	if err != nil {
		return nil, nil, err
	}
	v, err := s.odb.saved(r)
	return r, v, err
}

// plan compares the worktree with what a change aims at. Ignored files that
// it would replace are in the plan's snapshot, so that they are saved first.
func (s *Store) plan(ctx context.Context, c *change) (*plan, error) {
	made, err := s.madeByRestore(c.made)
	if err != nil {
		return nil, err
	}
	p, err := s.compare(ctx, c.aim, nil)
	if err != nil {
		return nil, err
	}
	if forced := s.inTheWay(p.now, p.ops, made); len(forced) > 0 {
		if p, err = s.compare(ctx, c.aim, forced); err != nil {
			return nil, err
		}
	}
	return p, s.protect(p, made)
}

// compare looks at the worktree and lists what differs from the goal.
func (s *Store) compare(ctx context.Context, aim aim, forced map[string]bool) (*plan, error) {
	now, err := s.take(ctx, look{forced: forced})
	if err != nil {
		return nil, err
	}
	p := &plan{now: now}
	if p.goal, err = aim(ctx, now); err != nil {
		return nil, err
	}
	from := now.saved()
	p.ops, err = s.changes(&from, &p.goal.saved)
	return p, err
}

// madeByRestore returns the paths that a restore made, if target is the state
// before it. To take it back means to delete them, even if they are ignored: what was in
// their place then, ignored or not, is in the target.
func (s *Store) madeByRestore(target *record) (map[string]bool, error) {
	if target == nil || target.meta.Cause != CauseUndo || target.restored.IsZero() {
		return nil, nil
	}
	aim := target.goal
	if aim.IsZero() {
		aim = target.restored
	}
	restored, err := s.record(aim)
	if err != nil {
		return nil, err
	}
	made := map[string]bool{}
	err = s.odb.diffTrees(target.tree, restored.tree, func(d pathDiff) error {
		if d.old.mode == 0 {
			made[d.path] = true
		}
		return nil
	})
	return made, err
}

// changes lists the paths whose bytes, kind or executable bit differ.
func (s *Store) changes(from, to *saved) ([]op, error) {
	var ops []op
	seen := map[string]bool{}
	add := func(path string, old, new treeEntry) {
		o := op{path: path}
		if old.mode != 0 {
			o.old = fileState{mode: old.mode, hash: from.disk(path, old)}
		}
		if new.mode != 0 {
			o.new = fileState{mode: new.mode, hash: to.disk(path, new)}
		}
		seen[path] = true
		if !s.same(o.old, o.new) {
			ops = append(ops, o)
		}
	}
	err := s.odb.diffTrees(from.tree, to.tree, func(d pathDiff) error {
		add(d.path, d.old, d.new)
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Paths with one blob in both trees may still differ on disk, where git converts them.
	for _, raw := range []map[string]plumbing.Hash{from.raw, to.raw} {
		for path := range raw {
			if seen[path] {
				continue
			}
			e, err := s.odb.lookup(from.tree, path)
			if err != nil {
				return nil, err
			}
			add(path, e, e)
		}
	}
	slices.SortFunc(ops, func(a, b op) int { return strings.Compare(a.path, b.path) })
	return ops, nil
}

// same tells whether two states need no op between them. Without
// core.fileMode, the executable bit is git's alone.
func (s *Store) same(a, b fileState) bool {
	return a == b || a.hash == b.hash && !s.conf.fileMode && isFile(a.mode) && isFile(b.mode)
}

func isFile(mode uint32) bool { return mode == modeFile || mode == modeExec }

// inTheWay lists files on disk that are not in the snapshot, because they are
// ignored, and that the ops would replace or an undo would delete, with their folders.
func (s *Store) inTheWay(now *snapshot, ops []op, made map[string]bool) map[string]bool {
	forced := map[string]bool{}
	for name := range made {
		if s.firstLeaf(now, name) == name {
			force(forced, name)
		}
	}
	for _, o := range ops {
		if o.old.mode != 0 || o.new.mode == 0 {
			continue
		}
		if leaf := s.firstLeaf(now, o.path); leaf != "" {
			force(forced, leaf)
		}
	}
	return forced
}

// firstLeaf returns the first part of a path, from the top, that is a file or
// symlink on disk and not in the snapshot; "" if there is none.
func (s *Store) firstLeaf(now *snapshot, name string) string {
	at := ""
	for part := range strings.SplitSeq(name, "/") {
		at = join(at, part)
		if e := now.root.lookup(at); e != nil {
			if e.mode != modeDir {
				return ""
			}
			continue
		}
		key, err := s.lstat(at)
		if err != nil {
			return ""
		}
		if key.isRegular() || key.isSymlink() {
			return at
		}
	}
	return ""
}

// lstat describes a path in the worktree. A symlink above it is an error.
func (s *Store) lstat(name string) (statKey, error) {
	root, err := openRoot(s.repo.Root)
	if err != nil {
		return statKey{}, err
	}
	defer unix.Close(root)
	dir, err := openDir(root, path.Dir(name))
	if err != nil {
		return statKey{}, err
	}
	defer unix.Close(dir)
	st, err := lstatAt(dir, path.Base(name))
	return statKeyOf(&st), err
}

// force marks a path as one to take, and its folders as ones to look into.
func force(forced map[string]bool, name string) {
	forced[name] = true
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := forced[dir]; !ok {
			forced[dir] = false
		}
	}
}
