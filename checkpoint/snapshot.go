package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/checkpoint/ignore"
)

// A snapshot is the state of a worktree with all its objects written.
type snapshot struct {
	root    *node
	tree    plumbing.Hash
	report  Report
	hidden  []string // paths that the index decides about, whatever is on disk
	index   *index   // nil if it comes from a stat cache file
	basis   basis
	commit  plumbing.Hash // the checkpoint it was saved as; zero if it was not
	ref     string        // that checkpoint's chain
	hashed  int           // files that had to be read
	watched bool          // the watcher reports every change since this snapshot began
	seen    int           // how many answers of the watcher it has taken account of
	partial int           // how many partial scans there were since the last full one
}

// A basis is what all of a snapshot rests on beside the worktree itself.
type basis struct {
	index string // stamp of git's index
	conf  uint64 // the settings that matter to a scan
}

// A look says how a scan looks at the worktree; the zero value: everywhere.
type look struct {
	forced map[string]bool // paths that are taken even if they are ignored; their folders map to false
	since  *snapshot       // if it is the base still, only dirs changed since
	dirs   map[string]bool // folders, and all above them

	known map[plumbing.Hash]bool // objects that a ref holds

	everywhere bool // whatever the watcher says
}

// take scans the worktree.
func (s *Store) take(ctx context.Context, l look) (*snapshot, error) {
	conf, err := s.git.fresh(ctx, s.conf)
	if err != nil {
		return nil, err
	}
	s.conf = conf
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	in, err := s.scanInput(ctx, base)
	if err != nil {
		return nil, err
	}
	in.forced = l.forced
	s.odb.known = l.known
	defer func() { s.odb.known = nil }()
	snap := &snapshot{index: in.index, basis: basis{index: in.index.stamp, conf: s.conf.basis()}}
	if err := s.aim(ctx, &in, [2]*snapshot{base, snap}, l); err != nil {
		return nil, err
	}
	root, sc, err := scanWorktree(ctx, in)
	if err != nil {
		return nil, err
	}
	converter, err := s.converter()
	if err != nil {
		return nil, err
	}
	if err := sc.convertAll(ctx, converter, filepath.Join(s.dir, "convert.index")); err != nil {
		return nil, err
	}
	if err := root.finish(in.old, s.odb); err != nil {
		return nil, err
	}
	sc.report.Skipped, sc.report.Unstable = sortNotes(sc.report.Skipped), sortNotes(sc.report.Unstable)
	snap.root, snap.tree, snap.report, snap.hidden = root, root.hash, sc.report, sc.hidden
	snap.hashed, snap.watched = int(sc.hashed.Load()), sc.watched
	if root.hash.IsZero() {
		if snap.tree, err = s.odb.write(plumbing.TreeObject, nil); err != nil {
			return nil, err
		}
	}
	return snap, nil
}

// scanInput gathers what a scan needs to know, apart from where to look.
func (s *Store) scanInput(ctx context.Context, base *snapshot) (in scanInput, err error) {
	in = scanInput{path: s.repo.Root, conf: s.conf, odb: s.odb, cap: s.opts.SizeCap, skew: s.skew()}
	var had *index
	if base != nil {
		in.old, had = base.root, base.index
	}
	if s.where.Sidecar && had != nil && len(had.skipped) > 0 {
		had = nil // a gc may have dropped the copies of what is not on disk
	}
	if in.index, err = s.git.loadIndex(ctx, filepath.Join(s.repo.GitDir, "index"), had); err != nil {
		return in, err
	}
	if s.where.Sidecar {
		if in.index != had {
			if err := s.adoptIndex(ctx, in.index); err != nil {
				return in, err
			}
		}
		x := in.index
		in.adopt = func(ctx context.Context, paths map[string]bool) (map[plumbing.Hash]plumbing.Hash, error) {
			return s.importPaths(ctx, x, paths)
		}
	}
	if in.outside, in.outsideSig, err = s.outsideRules(); err != nil {
		return in, err
	}
	if in.attrs, err = s.git.rootAttrs(s.conf); err != nil {
		return in, fmt.Errorf("reading attributes: %w", err)
	}
	if in.hiddenFile, err = s.hiddenRules(in.index); err != nil {
		return in, err
	}
	in.seed = sync.OnceValue(func() bool { return s.seedable(in.index) })
	return in, nil
}

// aim tells the scan where it must look, as far as that is known.
func (s *Store) aim(ctx context.Context, in *scanInput, snaps [2]*snapshot, l look) error {
	base, snap := snaps[0], snaps[1]
	if s.opts.Watcher != nil && len(in.index.at) >= s.opts.WatchFrom {
		in.watcher = s.opts.Watcher
		if err := s.drain(ctx); err != nil {
			return err
		}
		snap.seen = s.answers
	}
	switch {
	case base == nil:
		return nil
	case base.basis.conf != snap.basis.conf, len(in.forced) > 0, base.index == nil && base.basis.index != snap.basis.index:
		in.all = true
		return nil
	case base.index != nil && base.index != in.index:
		in.relist = base.index.changed(in.index)
	}
	dirty, ok := s.dirty(in, base, l)
	if !ok {
		return nil
	}
	for dir := range in.relist {
		if _, known := dirty[dir]; !known {
			dirty[dir] = false
		}
	}
	in.dirty, in.above = dirty, map[string]bool{}
	for dir := range dirty {
		for up := parent(dir); dir != "" && !in.above[up]; dir, up = up, parent(up) {
			in.above[up] = true
		}
	}
	snap.partial = base.partial + 1
	return nil
}

// dirty returns the folders that may have changed since base, true for those
// with everything below them. ok is false if that is not known.
func (s *Store) dirty(in *scanInput, base *snapshot, l look) (dirs map[string]bool, ok bool) {
	only := l.since != nil && l.since == base
	switch {
	case in.watcher == nil && only:
		return maps.Clone(l.dirs), true
	case l.everywhere, in.watcher == nil, !base.watched, base.partial >= maxPartial && !only:
		return nil, false
	}
	if dirs, ok = s.dirtySince(base.seen); ok && only {
		for dir := range l.dirs {
			if _, known := dirs[dir]; !known {
				dirs[dir] = false
			}
		}
	}
	return dirs, ok
}

// parent is the folder above a path, "" for the root.
func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}

// basis is a number that is another one if files must be judged anew.
func (c *settings) basis() uint64 {
	var b uint64
	for _, set := range []bool{c.fileMode, c.symlinks, c.fold, c.sparse} {
		b <<= 1
		if set {
			b |= 1
		}
	}
	return b
}

// skew compares the file system's clock with ours by the lock file, which
// was written when the lock was taken.
func (s *Store) skew() time.Duration {
	info, err := os.Stat(filepath.Join(s.dir, "lock"))
	if err != nil {
		return 0
	}
	return minSkew(info.ModTime(), time.Now())
}

// outsideRules reads the ignore lists that are not in the worktree.
func (s *Store) outsideRules() (*ignore.Scope, uint64, error) {
	global, err := readOptional(s.conf.path("core.excludesfile", xdgFile("ignore")))
	if err != nil && !os.IsPermission(err) {
		return nil, 0, fmt.Errorf("reading core.excludesFile: %w", err)
	}
	exclude, err := readOptional(filepath.Join(s.repo.CommonDir, "info", "exclude"))
	if err != nil && !os.IsPermission(err) {
		return nil, 0, fmt.Errorf("reading info/exclude: %w", err)
	}
	scope := ignore.Root(ignore.Parse(global, s.conf.fold), ignore.Parse(exclude, s.conf.fold))
	return scope, mix(sum(global), sum(exclude)), nil
}

// seedable tells whether git's index may vouch for contents. Its stat data
// say that a file is unchanged since git add, not that git would convert it in the
// same way today. So it may not if there are filters, or if attributes changed.
func (s *Store) seedable(x *index) bool {
	for key := range s.conf.values {
		if strings.HasPrefix(key, "filter.") {
			return false
		}
	}
	for _, i := range x.attrs {
		e := x.entry(i)
		if e.skipWorktree {
			continue
		}
		if key, err := s.lstat(string(x.path(i))); err != nil || !x.clean(&e, key, s.conf.fileMode) {
			return false
		}
	}
	return true
}

// hiddenRules reads rule files that a sparse checkout left out, as git does.
func (s *Store) hiddenRules(x *index) (map[string][]byte, error) {
	var rules map[string][]byte
	for _, i := range x.skipped {
		name := string(x.path(i))
		if base := path.Base(name); base != ignoreName && base != attrsName {
			continue
		}
		content, err := s.odb.content(plumbing.BlobObject, x.entry(i).hash)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if rules == nil {
			rules = map[string][]byte{}
		}
		rules[name] = content
	}
	return rules, nil
}

// base returns the snapshot to look unchanged files up in, or nil. Its
// objects are known to exist because its checkpoint is on its chain.
func (s *Store) base() (*snapshot, error) {
	if s.last == nil {
		s.last = s.loadCache()
	}
	if s.last == nil {
		return nil, nil
	}
	head, err := s.readRef(s.last.ref)
	if err != nil {
		return nil, err
	}
	ok, err := s.onChain(head, s.last.commit)
	if err != nil || !ok {
		s.last = nil
		return nil, err
	}
	return s.last, nil
}

// onChain looks for a commit among the first parents of head.
func (s *Store) onChain(head, commit plumbing.Hash) (bool, error) {
	for range 10_000 { // a longer way back is not worth the search
		if head == commit {
			return true, nil
		}
		if head.IsZero() {
			return false, nil
		}
		c, err := s.record(head)
		if err != nil {
			return false, err
		}
		if c.wasCommit(commit) {
			return true, nil
		}
		head = c.previous
	}
	return false, nil
}
