package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/checkpoint/ignore"
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
	ops       []op
	protected []PathNote
}

// Plan tells what Restore would do, and changes nothing.
func (s *Store) Plan(ctx context.Context, target Checkpoint) (Plan, error) {
	end, err := s.beginChange(ctx)
	if err != nil {
		return Plan{}, err
	}
	defer end()
	r, to, err := s.load(target)
	if err != nil {
		return Plan{}, fmt.Errorf("planning a restore: %w", err)
	}
	p, err := s.plan(ctx, to)
	if err != nil {
		return Plan{}, fmt.Errorf("planning a restore of #%d: %w", r.seq, err)
	}
	out := Plan{Target: r.checkpoint(target.Ref), Protected: p.protected}
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

// plan compares the worktree with a saved state. Ignored files that the
// restore would replace are in the plan's snapshot, so that they are saved first.
func (s *Store) plan(ctx context.Context, to *saved) (*plan, error) {
	now, err := s.take(ctx, nil)
	if err != nil {
		return nil, err
	}
	from := now.saved()
	ops, err := s.changes(&from, to)
	if err != nil {
		return nil, err
	}
	if forced := s.inTheWay(now, ops); len(forced) > 0 {
		if now, err = s.take(ctx, forced); err != nil {
			return nil, err
		}
		from = now.saved()
		if ops, err = s.changes(&from, to); err != nil {
			return nil, err
		}
	}
	p := &plan{now: now, ops: ops}
	return p, s.protect(p, to)
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
// ignored, and that the ops would replace, with their folders.
func (s *Store) inTheWay(now *snapshot, ops []op) map[string]bool {
	forced := map[string]bool{}
	for _, o := range ops {
		if o.old.mode != 0 || o.new.mode == 0 {
			continue
		}
		for at := o.path; at != "."; at = path.Dir(at) {
			if e := now.root.lookup(at); e != nil {
				break
			}
			info, err := os.Lstat(filepath.Join(s.repo.Root, at))
			if err != nil || info.IsDir() || !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
				continue
			}
			forced[at] = true
			for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
				if _, ok := forced[dir]; !ok {
					forced[dir] = false
				}
			}
			break
		}
	}
	return forced
}

// protect takes the ops out of the plan that would touch what must be left alone.
func (s *Store) protect(p *plan, to *saved) error {
	left := map[string]string{}
	for _, list := range [][]PathNote{to.skipped, p.now.report.Skipped} {
		for _, n := range list {
			left[n.Path] = "not in a checkpoint: " + n.Why
		}
	}
	for _, path := range p.now.hidden {
		left[path] = "not checked out (skip-worktree)"
	}
	for _, o := range p.ops {
		if o.old.mode == modeGitlink || o.new.mode == modeGitlink {
			left[o.path] = "nested repository"
		}
	}
	rules := targetRules{store: s, to: to, now: p.now, scopes: map[string]*ignore.Scope{}}
	keep := p.ops[:0]
	for _, o := range p.ops {
		why := underProtected(left, o.path)
		if why == "" && o.old.mode == 0 && s.insideNested(p.now, o.path) {
			why = "inside a nested repository"
		}
		if why == "" && o.new.mode == 0 && !s.replaced(p.ops, o.path) {
			ignored, err := rules.ignored(o.path)
			if err != nil {
				return err
			}
			if ignored {
				why = "ignored in that checkpoint"
			}
		}
		if why != "" {
			p.protected = append(p.protected, PathNote{Path: o.path, Why: why})
			continue
		}
		keep = append(keep, o)
	}
	p.ops = keep
	return s.protectFolders(p)
}

// replaced tells that some op needs a folder where path is a file now.
func (s *Store) replaced(ops []op, path string) bool {
	i, _ := slices.BinarySearchFunc(ops, path+"/", func(o op, want string) int { return strings.Compare(o.path, want) })
	return i < len(ops) && strings.HasPrefix(ops[i].path, path+"/") && ops[i].new.mode != 0
}

func underProtected(left map[string]string, name string) string {
	for at := name; at != "."; at = path.Dir(at) {
		if why, ok := left[at]; ok {
			return why
		}
	}
	return ""
}

// insideNested looks for a repository between the root and a path that is
// not in the snapshot.
func (s *Store) insideNested(now *snapshot, name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if e := now.root.lookup(dir); e != nil {
			return e.mode == modeGitlink
		}
		if _, ok := openNested(filepath.Join(s.repo.Root, dir)); ok {
			return true
		}
	}
	return false
}

// protectFolders leaves a folder alone that a file should replace while it
// holds what the plan does not delete: ignored files, FIFOs, repositories.
func (s *Store) protectFolders(p *plan) error {
	var blocked []string
	for _, o := range p.ops {
		if o.new.mode == 0 {
			continue
		}
		info, err := os.Lstat(filepath.Join(s.repo.Root, o.path))
		if err != nil || !info.IsDir() {
			continue
		}
		full, err := s.holdsMore(p.ops, o.path)
		if err != nil {
			return err
		}
		if full {
			blocked = append(blocked, o.path)
		}
	}
	if len(blocked) == 0 {
		return nil
	}
	p.ops = slices.DeleteFunc(p.ops, func(o op) bool {
		for _, dir := range blocked {
			if o.path == dir || strings.HasPrefix(o.path, dir+"/") {
				p.protected = append(p.protected, PathNote{Path: o.path, Why: "the folder " + dir + " holds files that are not in a checkpoint"})
				return true
			}
		}
		return false
	})
	return nil
}

// holdsMore tells whether a folder has anything in it, other than folders,
// that no op deletes.
func (s *Store) holdsMore(ops []op, dir string) (bool, error) {
	more := errors.New("found")
	err := filepath.WalkDir(filepath.Join(s.repo.Root, dir), func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(s.repo.Root, file)
		if err != nil {
			return err
		}
		i, ok := slices.BinarySearchFunc(ops, filepath.ToSlash(rel), func(o op, want string) int { return strings.Compare(o.path, want) })
		if !ok || ops[i].new.mode != 0 {
			return more
		}
		return nil
	})
	if errors.Is(err, more) || errors.Is(err, fs.ErrPermission) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking into folder %s: %w", dir, err)
	}
	return false, nil
}

// targetRules are the ignore rules as they will be after a restore.
type targetRules struct {
	store  *Store
	to     *saved
	now    *snapshot
	scopes map[string]*ignore.Scope // by folder
}

// ignored tells whether the rules ignore path or a folder above it.
func (t *targetRules) ignored(name string) (bool, error) {
	dir := ""
	for part := range strings.SplitSeq(name, "/") {
		scope, err := t.scope(dir)
		if err != nil {
			return false, err
		}
		at := join(dir, part)
		if scope.Match(at, at != name) == ignore.Ignored {
			return true, nil
		}
		dir = at
	}
	return false, nil
}

func (t *targetRules) scope(dir string) (*ignore.Scope, error) {
	if s, ok := t.scopes[dir]; ok {
		return s, nil
	}
	var above *ignore.Scope
	var err error
	if dir == "" {
		above, err = t.store.outsideRules()
	} else if i := strings.LastIndexByte(dir, '/'); i >= 0 {
		above, err = t.scope(dir[:i])
	} else {
		above, err = t.scope("")
	}
	if err != nil {
		return nil, err
	}
	content, err := t.list(join(dir, ".gitignore"))
	if err != nil {
		return nil, err
	}
	s := above.Enter(dir, ignore.Parse(content, t.store.conf.fold))
	t.scopes[dir] = s
	return s, nil
}

// list reads a .gitignore from the target; one that no checkpoint has, since
// it is ignored itself, stays as it is on disk.
func (t *targetRules) list(file string) ([]byte, error) {
	e, err := t.store.odb.lookup(t.to.tree, file)
	if err != nil {
		return nil, err
	}
	if isFile(e.mode) {
		return t.store.odb.content(plumbing.BlobObject, t.to.disk(file, e))
	}
	if e.mode != 0 || t.now.root.lookup(file) != nil {
		return nil, nil
	}
	info, err := os.Lstat(filepath.Join(t.store.repo.Root, file))
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	content, err := readOptional(filepath.Join(t.store.repo.Root, file))
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	return content, nil
}
