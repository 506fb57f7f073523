package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// A goal is the state that a change of the worktree aims at.
type goal struct {
	saved
	rules  *saved        // whose ignore rules decide too what may have been there unseen; nil: the goal's alone
	commit plumbing.Hash // that holds the state; zero until hold makes one
	notes  []PathNote    // conflicts that are written into the files
}

// An aim works out the goal from the present.
type aim func(ctx context.Context, now *snapshot) (*goal, error)

// wholly aims at a checkpoint as it is.
func wholly(r *record, to *saved) aim {
	return func(context.Context, *snapshot) (*goal, error) {
		return &goal{saved: *to, commit: r.hash}, nil
	}
}

// partly aims at a checkpoint for the paths that pick takes, and at the
// present for all others.
func (s *Store) partly(to *saved, pick func(string) bool) aim {
	return func(_ context.Context, now *snapshot) (*goal, error) {
		from := now.saved()
		ops, err := s.changes(&from, to)
		if err != nil {
			return nil, err
		}
		made, err := s.compose(&from, to, choose(ops, pick))
		if err != nil {
			return nil, err
		}
		made.skipped = slices.DeleteFunc(slices.Clone(to.skipped), func(n PathNote) bool { return !pick(n.Path) })
		return &goal{saved: *made, rules: to}, nil
	}
}

// choose returns the paths of the ops that pick takes, with the files that
// are where folders must be for them.
func choose(ops []op, pick func(string) bool) []string {
	chosen := map[string]bool{}
	for _, o := range ops {
		if !pick(o.path) {
			continue
		}
		chosen[o.path] = true
		for dir := path.Dir(o.path); o.new.mode != 0 && dir != "."; dir = path.Dir(dir) {
			i, ok := slices.BinarySearchFunc(ops, dir, func(o op, want string) int { return strings.Compare(o.path, want) })
			if ok && ops[i].new.mode == 0 {
				chosen[dir] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(chosen))
}

// compose takes some paths from one state and all others from another.
func (s *Store) compose(from, to *saved, chosen []string) (*saved, error) {
	made := &saved{raw: maps.Clone(from.raw)}
	if made.raw == nil {
		made.raw = map[string]plumbing.Hash{}
	}
	edits := make([]treeEdit, 0, len(chosen))
	for _, name := range chosen {
		e, err := s.odb.lookup(to.tree, name)
		if err != nil {
			return nil, err
		}
		if e.isTree() {
			e = treeEntry{} // what is in it has edits of its own
		}
		edits = append(edits, treeEdit{path: name, entry: e})
		delete(made.raw, name)
		if h, ok := to.raw[name]; ok {
			made.raw[name] = h
		}
	}
	var err error
	made.tree, err = s.odb.editRoot(from.tree, edits)
	return made, err
}

// inFolders picks the paths that are one of names or lie below one; "." is
// the whole worktree.
func inFolders(names []string) func(string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			return n == "." || name == n || strings.HasPrefix(name, n+"/")
		})
	}
}

// cleanPaths brings paths to the form of a tree's. Those that would leave the
// worktree are an error.
func cleanPaths(paths []string) ([]string, error) {
	clean := make([]string, 0, len(paths))
	for _, p := range paths {
		c := path.Clean(p)
		if p == "" || path.IsAbs(c) || c == ".." || strings.HasPrefix(c, "../") {
			return nil, fmt.Errorf("path %q is not in the worktree: %w", p, ErrNoPath)
		}
		clean = append(clean, c)
	}
	return clean, nil
}

// known makes sure that each path is in a checkpoint or in the present.
func (s *Store) known(names []string, to *saved) aim {
	part := s.partly(to, inFolders(names))
	return func(ctx context.Context, now *snapshot) (*goal, error) {
		for _, name := range names {
			e, err := s.odb.lookup(to.tree, name)
			if err != nil {
				return nil, err
			}
			if name != "." && e.mode == 0 && now.root.lookup(name) == nil {
				return nil, fmt.Errorf("%s: %w", name, ErrNoPath)
			}
		}
		return part(ctx, now)
	}
}

// hold writes the goal's commit, if it is not a checkpoint's own state. The
// checkpoint before the change has it as a parent, so that no gc takes it away.
func (s *Store) hold(g *goal, seq int) error {
	if !g.commit.IsZero() {
		return nil
	}
	r := record{tree: g.tree, seq: seq, time: s.opts.Now().UTC(), meta: Meta{Cause: causeGoal}}
	var err error
	if r.side, err = s.odb.writeSide(g.saved); err != nil {
		return err
	}
	g.commit, err = s.odb.write(plumbing.CommitObject, r.encode())
	return err
}

// causeGoal marks a commit that is no checkpoint but what a restore aims at.
const causeGoal Cause = "goal"

// A treeEdit replaces one leaf of a tree; mode 0 takes it away.
type treeEdit struct {
	path  string
	entry treeEntry
}

// errBoth says that a path would be a file and a folder.
var errBoth = errors.New("would be a file and a folder")

// editRoot is edit for a whole worktree, which may be empty.
func (o *objects) editRoot(root plumbing.Hash, edits []treeEdit) (plumbing.Hash, error) {
	h, err := o.edit(root, edits)
	if err == nil && h.IsZero() {
		return o.write(plumbing.TreeObject, nil)
	}
	return h, err
}

// edit writes the trees that edits, sorted by path, make of a tree. The
// result is zero if nothing is left in it.
func (o *objects) edit(tree plumbing.Hash, edits []treeEdit) (plumbing.Hash, error) {
	if len(edits) == 0 {
		return tree, nil
	}
	old, err := o.tree(tree)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	entries := make(map[string]treeEntry, len(old))
	for _, e := range old {
		entries[e.name] = e
	}
	leaves, below := map[string]treeEntry{}, map[string][]treeEdit{}
	for _, e := range edits {
		name, rest, more := strings.Cut(e.path, "/")
		if more {
			below[name] = append(below[name], treeEdit{path: rest, entry: e.entry})
		} else {
			leaves[name] = e.entry
		}
	}
	for name := range below {
		if _, ok := leaves[name]; !ok {
			leaves[name] = treeEntry{}
			if e := entries[name]; !e.isTree() {
				leaves[name] = e
			}
		}
	}
	for name, leaf := range leaves {
		var sub plumbing.Hash
		if e := entries[name]; e.isTree() {
			sub = e.hash
		}
		if sub, err = o.edit(sub, below[name]); err != nil {
			return plumbing.ZeroHash, err
		}
		switch {
		case leaf.mode != 0 && !sub.IsZero():
			return plumbing.ZeroHash, fmt.Errorf("%s: %w", name, errBoth)
		case leaf.mode != 0:
			entries[name] = treeEntry{name: name, mode: leaf.mode, hash: leaf.hash}
		case !sub.IsZero():
			entries[name] = treeEntry{name: name, mode: modeDir, hash: sub}
		default:
			delete(entries, name)
		}
	}
	if len(entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	list := slices.Collect(maps.Values(entries))
	return o.write(plumbing.TreeObject, encodeTree(list))
}
