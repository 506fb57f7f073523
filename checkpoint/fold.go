package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/internal/durable"
	"muntin/internal/proc"
)

const (
	// foldFrom is from how many packs of ours on Maintain folds. Git's own
	// automatic gc begins at 50 packs (gc.autoPackLimit), which would then be ours.
	foldFrom = 16
	// foldGrowth: a pack is left alone if it is larger than this times all smaller ones.
	foldGrowth = 2
	// leftover is the age from which on a temporary file or a guard of ours
	// belongs to a process that was killed.
	leftover = 10 * time.Minute
	// gcPatience is how old a gc.pid file may be and still mean a running gc, as git has it.
	gcPatience = 12 * time.Hour
)

// A MaintainReport tells what Maintain did.
type MaintainReport struct {
	Packs  int    `json:"packs"`            // of ours, after it
	Folded int    `json:"folded,omitempty"` // packs that became one
	Freed  int64  `json:"freed,omitempty"`  // bytes
	Why    string `json:"why,omitempty"`    // why nothing was done
}

// Maintain folds the many small packs of saves into few, with deltas, in a
// niced git. Call it between turns, when nobody waits: it may take seconds.
// It can be called at any time and from several processes; only one works.
// With a watcher it also looks at the whole worktree now and then, since a watcher does not see everything.
// It touches no pack that git or a person made, and no object is lost: who
// drops what nothing reaches is the user's gc, and in a sidecar GC.
func (s *Store) Maintain(ctx context.Context) (MaintainReport, error) {
	wrap := func(err error) error { return fmt.Errorf("folding packs of %s: %w", s.where.Path, err) }
	if err := s.lookAround(ctx); err != nil {
		return MaintainReport{}, wrap(err)
	}
	held, err := durable.TryLock(filepath.Join(s.where.Path, "muntin", "maintain.lock"))
	if errors.Is(err, durable.ErrLocked) {
		return MaintainReport{Why: "another process is at it"}, nil
	}
	if err != nil {
		return MaintainReport{}, wrap(err)
	}
	defer func() { _ = held.Unlock() }()
	f := folder{dir: filepath.Join(s.where.Path, "objects", "pack"), common: s.where.Path, git: s.storeGit()}
	f.sweep()
	own, err := f.own()
	if err != nil {
		return MaintainReport{}, wrap(err)
	}
	rep := MaintainReport{Packs: len(own)}
	switch {
	case len(own) < foldFrom:
		rep.Why = "the packs are few"
	case s.ext["preciousobjects"] != "" && s.ext["preciousobjects"] != "false":
		rep.Why = "extensions.preciousObjects is set"
	case f.gcRuns():
		rep.Why = "git gc is running"
	}
	if rep.Why != "" {
		return rep, nil
	}
	small := smallPacks(own)
	if rep.Freed, err = f.fold(ctx, small); err != nil && f.missing(small) {
		rep.Why = "git gc was faster"
		return rep, nil
	} else if err != nil {
		return rep, wrap(err)
	}
	rep.Folded, rep.Packs = len(small), len(own)-len(small)+1
	return rep, nil
}

// storeGit is git on the store alone, wherever that is.
func (s *Store) storeGit() *git {
	repo := s.repo
	repo.GitDir, repo.CommonDir = s.where.Path, s.where.Path
	return newGit(repo)
}

// A folder folds the packs of one objects/pack folder.
type folder struct {
	dir    string
	common string
	git    *git
}

// An ownPack is a pack of ours that no guard protects.
type ownPack struct {
	name string // without ".pack"
	size int64
}

// own lists our packs that may go.
func (f *folder) own() ([]ownPack, error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []ownPack
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".pack")
		if !ok || !isOwnPack(name) || exists(filepath.Join(f.dir, name+".keep")) || !exists(filepath.Join(f.dir, name+".idx")) {
			continue
		}
		if info, err := e.Info(); err == nil { // else a gc took it
			list = append(list, ownPack{name: name, size: info.Size()})
		}
	}
	return list, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// smallPacks picks the packs to fold: all but those that are much larger than
// the smaller ones together. So a pack is folded again only when as much came
// to it, and the number of packs stays logarithmic.
func smallPacks(list []ownPack) []ownPack {
	slices.SortFunc(list, func(a, b ownPack) int { return cmp.Compare(a.size, b.size) })
	var sum int64
	end := 0
	for i, p := range list {
		if i < 2 || p.size <= foldGrowth*sum {
			end = i + 1
		}
		sum += p.size
	}
	return list[:end]
}

// gcRuns tells whether a git gc is at work, which packs anew what we would fold.
func (f *folder) gcRuns() bool {
	info, err := os.Stat(filepath.Join(f.common, "gc.pid"))
	return err == nil && time.Since(info.ModTime()) < gcPatience
}

// sweep removes what killed processes left: guards, and half-made files.
func (f *folder) sweep() {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(f.dir, e.Name())
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < leftover {
			continue
		}
		switch name := e.Name(); {
		case strings.HasSuffix(name, ".keep") && isOwnPack(name):
			if text, err := os.ReadFile(path); err == nil && string(text) == keepText {
				_ = os.Remove(path) // else the next one does
			}
		case strings.HasSuffix(name, ".pack") && isOwnPack(name) && !exists(strings.TrimSuffix(path, ".pack")+".idx"):
			_ = os.Remove(path)
		}
	}
	made, _ := filepath.Glob(filepath.Join(filepath.Dir(f.dir), "muntin-fold-*"))
	for _, dir := range made {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > leftover {
			_ = os.RemoveAll(dir)
		}
	}
}

// fold makes one pack of several and removes these. It returns the bytes freed.
func (f *folder) fold(ctx context.Context, list []ownPack) (int64, error) {
	temp, err := os.MkdirTemp(filepath.Dir(f.dir), "muntin-fold-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp)
	var names bytes.Buffer
	for _, p := range list {
		names.WriteString(p.name + ".pack\n")
	}
	made, err := f.packObjects(ctx, &names, temp)
	if err != nil {
		return 0, err
	}
	if err := f.complete(made, list); err != nil {
		return 0, err
	}
	sum, ok := parseHash(strings.TrimPrefix(filepath.Base(made), "pack-"))
	if !ok {
		return 0, fmt.Errorf("git pack-objects made %s", made)
	}
	name := ownPackName(sum)
	var freed int64
	for _, ext := range []string{".pack", ".rev", ".idx"} { // the index last: it makes the pack seen
		err := os.Rename(made+ext, filepath.Join(f.dir, name+ext))
		if err != nil && (ext != ".rev" || !errors.Is(err, fs.ErrNotExist)) {
			return 0, err
		}
	}
	if err := durable.SyncDir(f.dir); err != nil {
		return 0, err
	}
	if info, err := os.Stat(filepath.Join(f.dir, name+".pack")); err == nil {
		freed -= info.Size()
	}
	for _, p := range list {
		if p.name == name {
			continue
		}
		freed += p.size
		// The index first: without it nobody looks into the pack.
		for _, ext := range []string{".idx", ".rev", ".pack"} {
			if err := os.Remove(filepath.Join(f.dir, p.name+ext)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return freed, err
			}
		}
	}
	return freed, nil
}

// packObjects lets git make a pack of packs in the folder temp; it returns
// the pack's path without ".pack".
func (f *folder) packObjects(ctx context.Context, names io.Reader, temp string) (string, error) {
	argv := []string{"git", "-c", "core.fsync=pack,pack-metadata", "pack-objects", "--stdin-packs", "--delta-base-offset", "--threads=1", "-q", filepath.Join(temp, "pack")}
	if nice, err := exec.LookPath("nice"); err == nil {
		argv = append([]string{nice, "-n", "10"}, argv...)
	}
	var out bytes.Buffer
	if _, err := proc.Run(ctx, proc.Spec{Argv: argv, Dir: f.common, Env: f.git.env, Stdin: names, Stdout: &out}); err != nil {
		return "", fmt.Errorf("git pack-objects: %w", err)
	}
	return filepath.Join(temp, "pack-"+strings.TrimSpace(out.String())), nil
}

// complete makes sure that a pack has every object of some others.
func (f *folder) complete(made string, list []ownPack) error {
	x, err := openPackIndex(made + ".idx")
	if err != nil {
		return fmt.Errorf("reading the new pack: %w", err)
	}
	defer x.close()
	for _, p := range list {
		old, err := openPackIndex(filepath.Join(f.dir, p.name+".idx"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a gc was faster
		}
		if err != nil {
			return err
		}
		old.each(func(h plumbing.Hash) {
			if _, ok, findErr := x.find(h); !ok || findErr != nil {
				err = fmt.Errorf("git left object %s of %s out of the new pack", h, p.name)
			}
		})
		old.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// missing tells whether one of the packs went away.
func (f *folder) missing(list []ownPack) bool {
	return slices.ContainsFunc(list, func(p ownPack) bool { return !exists(filepath.Join(f.dir, p.name+".pack")) })
}
