package checkpoint

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// RevertOptions say how to take a turn back.
type RevertOptions struct {
	Paths   []string // only these files and folders, as in Restore; nil: all
	Markers bool     // write conflicts into the files, between markers as git's, instead of refusing
}

// A conflictError lists the paths on which a turn cannot be taken back.
type conflictError struct {
	paths []PathNote
}

func (e *conflictError) Error() string {
	return fmt.Sprintf("%s in %s", ErrConflict, countOf(len(e.paths), "path"))
}

func (e *conflictError) Unwrap() error { return ErrConflict }

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// RevertTurn takes the change of one checkpoint back, the difference to the
// checkpoint before it on its chain, and keeps what came later: a path that
// is as the turn left it becomes as it was before, and one that was changed since is
// merged line by line. Undo takes the revert back.
//
// If that cannot be done for a path, the error matches ErrConflict, report.Conflicts has
// these paths, and nothing is changed. With Markers, text conflicts are
// written into the files, other conflicts leave their paths as they are, and
// all are in report.Conflicts without an error.
func (s *Store) RevertTurn(ctx context.Context, turn Checkpoint, opts RevertOptions) (RestoreReport, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return RestoreReport{}, err
	}
	defer end()
	c, err := s.revertOf(ctx, turn, opts)
	if err != nil {
		return RestoreReport{}, fmt.Errorf("reverting: %w", err)
	}
	return s.carryOut(ctx, c)
}

// revertOf is the change that takes a turn back.
func (s *Store) revertOf(ctx context.Context, turn Checkpoint, opts RevertOptions) (*change, error) {
	names, err := cleanPaths(opts.Paths)
	if err != nil {
		return nil, err
	}
	r, after, err := s.load(turn)
	if err != nil {
		return nil, err
	}
	if r.previous.IsZero() {
		return nil, fmt.Errorf("checkpoint #%d is the first of its chain: there is no change to take back", r.seq)
	}
	p, before, err := s.load(Checkpoint{Commit: r.previous.String()})
	if err != nil {
		return nil, err
	}
	if p.seq != r.seq-1 { // a gc took what was between
		return nil, fmt.Errorf("checkpoint #%d, from before its change, was dropped: %w", r.seq-1, ErrNotFound)
	}
	m := &merge{store: s, before: before, after: after, markers: opts.Markers, pick: func(string) bool { return true }}
	if len(names) > 0 {
		m.pick = inFolders(names)
	}
	what := fmt.Sprintf("#%d", r.seq)
	m.labels = [3]string{"now", "after " + what, "before " + what}
	return &change{
		what: "reverting " + what, target: r, ref: turn.Ref, aim: m.aim, meta: s.newestMeta(ctx),
		before: "before reverting " + what, after: "reverted " + what,
	}, nil
}

// A merge takes the change from before to after back on top of the present.
type merge struct {
	store         *Store
	before, after *saved
	pick          func(string) bool
	markers       bool
	labels        [3]string // of the present, the base and the other side

	from      saved // the present
	edits     []treeEdit
	raw       map[string]plumbing.Hash
	conflicts []PathNote // that are written into files, or leave their paths alone
}

// aim works out the state without the turn's change.
func (m *merge) aim(ctx context.Context, now *snapshot) (*goal, error) {
	m.from = now.saved()
	m.edits, m.conflicts, m.raw = nil, nil, map[string]plumbing.Hash{}
	ops, err := m.store.changes(m.after, m.before)
	if err != nil {
		return nil, err
	}
	for _, o := range ops {
		if !m.pick(o.path) {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := m.path(ctx, now, o); err != nil {
			return nil, fmt.Errorf("merging %s: %w", o.path, err)
		}
	}
	m.dropBlocked(now)
	if len(m.conflicts) > 0 && !m.markers {
		return nil, &conflictError{paths: m.conflicts}
	}
	made := saved{raw: m.raw}
	for name, h := range m.from.raw {
		if _, ok := m.raw[name]; !ok {
			made.raw[name] = h
		}
	}
	for name, h := range made.raw {
		if h.IsZero() {
			delete(made.raw, name)
		}
	}
	made.tree, err = m.store.odb.editRoot(m.from.tree, m.edits)
	return &goal{saved: made, rules: m.before, notes: m.conflicts}, err
}

// path merges one path: o.old is what the turn left there, o.new what was there before it.
func (m *merge) path(ctx context.Context, now *snapshot, o op) error {
	var at fileState
	e := now.root.lookup(o.path)
	if e != nil && e.mode != modeDir {
		at = fileState{mode: e.mode, hash: e.disk()}
	}
	same := m.store.same
	switch {
	case o.old.mode == modeGitlink || o.new.mode == modeGitlink:
		m.conflict(o.path, "nested repository")
	case same(at, o.new): // it is as before already
	case same(at, o.old):
		return m.take(o.path)
	case isFile(at.mode) && (isFile(o.old.mode) || o.old.mode == 0) && isFile(o.new.mode):
		return m.file(ctx, o, at)
	case at.mode == 0 && (e != nil || o.new.mode == 0):
		m.conflict(o.path, "is a folder now")
	case at.mode == 0:
		m.conflict(o.path, "was deleted since")
	case o.new.mode == 0:
		m.conflict(o.path, "was added by the turn and changed since")
	default:
		m.conflict(o.path, "was changed since, and is not a file in all three states")
	}
	return nil
}

func (m *merge) conflict(name, why string) {
	m.conflicts = append(m.conflicts, PathNote{Path: name, Why: why})
}

// take gives a path the state of before the turn.
func (m *merge) take(name string) error {
	e, err := m.store.odb.lookup(m.before.tree, name)
	if err != nil {
		return err
	}
	if e.isTree() {
		e = treeEntry{} // what is in it has edits of its own
	}
	m.edits = append(m.edits, treeEdit{path: name, entry: e})
	m.raw[name] = m.before.raw[name] // zero: no other bytes than the blob's
	return nil
}

// file merges contents and executable bits.
func (m *merge) file(ctx context.Context, o op, at fileState) error {
	to := treeEntry{mode: o.new.mode, hash: at.hash}
	if at.mode != o.old.mode && o.old.mode != 0 {
		to.mode = at.mode // changed since
	}
	switch {
	case o.old.hash == o.new.hash: // the turn changed the mode only
	case at.hash == o.old.hash:
		to.hash = o.new.hash
	case at.hash != o.new.hash:
		text, why, err := m.text(ctx, o, at)
		if err != nil {
			return err
		}
		if why != "" {
			m.conflict(o.path, why)
		}
		if text == nil {
			return nil
		}
		if to.hash, err = m.store.odb.write(plumbing.BlobObject, text); err != nil {
			return err
		}
	}
	m.edits = append(m.edits, treeEdit{path: o.path, entry: to})
	m.raw[o.path] = plumbing.ZeroHash // the blob has the bytes for the disk
	return nil
}

// text merges three contents. A text of nil is one that cannot be merged, or
// not without conflicts while none are asked for; why says so.
func (m *merge) text(ctx context.Context, o op, at fileState) (text []byte, why string, err error) {
	var sides [3][]byte // now, base, other
	for i, h := range []plumbing.Hash{at.hash, o.old.hash, o.new.hash} {
		if h.IsZero() {
			continue // both were added: nothing in common
		}
		if sides[i], err = m.store.blob(ctx, h); err != nil {
			return nil, "", err
		}
		if isBinary(sides[i]) {
			return nil, "is binary and was changed since", nil
		}
	}
	text, conflicts, err := m.store.git.mergeFile(ctx, m.store.dir, sides, m.labels)
	if err != nil || conflicts == 0 {
		return text, "", err
	}
	why = countOf(conflicts, "conflict") + " with what came later"
	if !m.markers {
		text = nil
	}
	return text, why, nil
}

// dropBlocked makes conflicts of paths that cannot come back because a file
// is in the place of a folder, or a folder with other files in their own.
func (m *merge) dropBlocked(now *snapshot) {
	gone := map[string]bool{}
	for _, e := range m.edits {
		gone[e.path] = e.entry.mode == 0
	}
	m.edits = slices.DeleteFunc(m.edits, func(e treeEdit) bool {
		if e.entry.mode == 0 {
			return false
		}
		for dir := path.Dir(e.path); dir != "."; dir = path.Dir(dir) {
			if at := now.root.lookup(dir); at != nil && at.mode != modeDir && !gone[dir] {
				m.block(e.path, "a file is in the place of its folder "+dir)
				return true
			}
		}
		if at := now.root.lookup(e.path); at != nil && at.mode == modeDir {
			left := ""
			at.dir.each(e.path+"/", func(name string, _ *ent) {
				if !gone[name] {
					left = name
				}
			})
			if left != "" {
				m.block(e.path, "is a folder now, with "+strings.TrimPrefix(left, e.path+"/"))
				return true
			}
		}
		return false
	})
}

func (m *merge) block(name, why string) {
	m.conflict(name, why)
	if h, ok := m.from.raw[name]; ok {
		m.raw[name] = h
	} else {
		m.raw[name] = plumbing.ZeroHash
	}
}
