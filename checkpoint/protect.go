package checkpoint

import (
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

// protect takes the ops out of the plan that would touch what must be left alone.
func (s *Store) protect(p *plan, made map[string]bool) error {
	left := map[string]string{}
	for _, list := range [][]PathNote{p.goal.skipped, p.now.report.Skipped} {
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
	rules := []*targetRules{{store: s, to: &p.goal.saved, now: p.now, scopes: map[string]*ignore.Scope{}}}
	if p.goal.rules != nil {
		rules = append(rules, &targetRules{store: s, to: p.goal.rules, now: p.now, scopes: map[string]*ignore.Scope{}})
	}
	keep := p.ops[:0]
	for _, o := range p.ops {
		why := underProtected(left, o.path)
		if why == "" && o.old.mode == 0 && s.insideNested(p.now, o.path) {
			why = "inside a nested repository"
		}
		if why == "" && o.new.mode == 0 && !made[o.path] && !replaced(p.ops, o.path) {
			ignored, err := ignoredByAny(rules, o.path)
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
func replaced(ops []op, path string) bool {
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
		if key, err := s.lstat(o.path); err != nil || !key.isDir() {
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

func ignoredByAny(rules []*targetRules, name string) (bool, error) {
	for _, r := range rules {
		if ignored, err := r.ignored(name); err != nil || ignored {
			return ignored, err
		}
	}
	return false, nil
}

// ignored tells whether the rules ignore path or a folder above it, so that
// it may have been there, unseen, when the target was saved.
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
		above, _, err = t.store.outsideRules()
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
