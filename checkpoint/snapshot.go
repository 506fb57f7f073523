package checkpoint

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/checkpoint/ignore"
)

// A snapshot is the state of a worktree with all its objects written.
type snapshot struct {
	root   *node
	tree   plumbing.Hash
	report Report
	hidden []string // paths that the index decides about, whatever is on disk
	index  *index
	commit plumbing.Hash // the checkpoint it was saved as; zero if it was not
	ref    string        // that checkpoint's chain
	hashed int           // files that had to be read
}

// take scans the worktree. Paths in forced are taken even if they are ignored.
func (s *Store) take(ctx context.Context, forced map[string]bool) (*snapshot, error) {
	var err error
	if s.conf, err = s.git.fresh(ctx, s.conf); err != nil {
		return nil, err
	}
	in := scanInput{path: s.repo.Root, conf: s.conf, odb: s.odb, cap: s.opts.SizeCap, forced: forced, skew: s.skew()}
	if in.index, err = s.git.loadIndex(ctx, filepath.Join(s.repo.GitDir, "index")); err != nil {
		return nil, err
	}
	if s.where.Sidecar {
		if err := s.adoptIndex(ctx, in.index); err != nil {
			return nil, err
		}
		in.adopt = func(ctx context.Context, paths map[string]bool) error { return s.importPaths(ctx, in.index, paths) }
	}
	if in.outside, err = s.outsideRules(); err != nil {
		return nil, err
	}
	if in.attrs, err = s.git.rootAttrs(s.conf); err != nil {
		return nil, fmt.Errorf("reading attributes: %w", err)
	}
	if in.hiddenFile, err = s.hiddenRules(in.index); err != nil {
		return nil, err
	}
	in.seed = s.seedable(in.index)
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	if base != nil {
		in.old = base.root
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
	snap := &snapshot{root: root, tree: root.hash, report: sc.report, hidden: sc.hidden, index: in.index, hashed: int(sc.hashed.Load())}
	if root.hash.IsZero() {
		if snap.tree, err = s.odb.write(plumbing.TreeObject, nil); err != nil {
			return nil, err
		}
	}
	return snap, nil
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
func (s *Store) outsideRules() (*ignore.Scope, error) {
	global, err := readOptional(s.conf.path("core.excludesfile", xdgFile("ignore")))
	if err != nil && !os.IsPermission(err) {
		return nil, fmt.Errorf("reading core.excludesFile: %w", err)
	}
	exclude, err := readOptional(filepath.Join(s.repo.CommonDir, "info", "exclude"))
	if err != nil && !os.IsPermission(err) {
		return nil, fmt.Errorf("reading info/exclude: %w", err)
	}
	return ignore.Root(ignore.Parse(global, s.conf.fold), ignore.Parse(exclude, s.conf.fold)), nil
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
	for i := range x.entries {
		e := &x.entries[i]
		if path.Base(e.path) != ".gitattributes" || e.skipWorktree {
			continue
		}
		if key, err := s.lstat(e.path); err != nil || !x.clean(e, key, s.conf.fileMode) {
			return false
		}
	}
	return true
}

// hiddenRules reads rule files that a sparse checkout left out, as git does.
func (s *Store) hiddenRules(x *index) (map[string][]byte, error) {
	var rules map[string][]byte
	for _, e := range x.entries {
		if base := path.Base(e.path); !e.skipWorktree || base != ".gitignore" && base != ".gitattributes" {
			continue
		}
		content, err := s.odb.content(plumbing.BlobObject, e.hash)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", e.path, err)
		}
		if rules == nil {
			rules = map[string][]byte{}
		}
		rules[e.path] = content
	}
	return rules, nil
}

// rawHashes maps the converted paths to the hashes of their bytes on disk.
func (n *node) rawHashes() map[string]plumbing.Hash {
	raw := map[string]plumbing.Hash{}
	n.each("", func(path string, e *ent) {
		if !e.raw.IsZero() {
			raw[path] = e.raw
		}
	})
	return raw
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
