package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"muntin/checkpoint/ignore"
)

// tick is how far a file's time stamps may lie behind the clock: kernels
// stamp with a coarse clock. A file stamped that close to the moment of its
// reading may change again without a new stamp.
const tick = 50 * time.Millisecond

// A scan walks the worktree once, with several workers over folders.
type scan struct {
	scanInput
	root    int          // open folder
	hashed  atomic.Int64 // files read
	now     func() time.Time
	mu      sync.Mutex // guards what follows
	ready   *sync.Cond // stack or active changed
	stack   []task
	active  int
	err     error
	report  Report
	hidden  []string  // on disk or not, git's index decides about these (skip-worktree)
	convert []pending // contents that git may convert
}

// scanInput is what a scan needs to know.
type scanInput struct {
	path       string // the worktree
	conf       *settings
	index      *index
	outside    *ignore.Scope
	attrs      *attrScope
	old        *node
	odb        *objects
	cap        int64
	seed       bool                                                   // the index vouches for contents
	skew       time.Duration                                          // the file system's clock minus ours, if behind
	forced     map[string]bool                                        // paths that count as tracked; their parents map to false
	adopt      func(ctx context.Context, paths map[string]bool) error // copies the index's contents of paths to the store; nil: it has them
	hiddenFile map[string][]byte                                      // .gitignore and .gitattributes that only the index has
}

// A task is one folder to read.
type task struct {
	path    string // "" is the root
	node    *node
	old     *node
	index   []indexEntry // the part of the index below path
	scope   *ignore.Scope
	attrs   *attrScope
	ignored bool // the folder is ignored: only what is tracked in it counts
}

// scanWorktree reads the whole worktree into nodes. Blobs that the old nodes
// and the index do not have are written; trees are not made yet.
func scanWorktree(ctx context.Context, in scanInput) (*node, *scan, error) {
	s := &scan{scanInput: in, now: time.Now}
	s.ready = sync.NewCond(&s.mu)
	var err error
	if s.root, err = openRoot(in.path); err != nil {
		return nil, nil, fmt.Errorf("scanning worktree: %w", err)
	}
	defer unix.Close(s.root)
	root := &node{}
	s.stack = []task{{node: root, old: in.old, index: in.index.entries, scope: in.outside, attrs: in.attrs}}
	stop := context.AfterFunc(ctx, func() { s.fail(context.Cause(ctx)) })
	defer stop()
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8) {
		wg.Go(s.work)
	}
	wg.Wait()
	if s.err != nil {
		return nil, nil, fmt.Errorf("scanning worktree %s: %w", in.path, s.err)
	}
	s.settle(root, "")
	s.overlay(root)
	for _, notes := range [][]PathNote{s.report.Skipped, s.report.Unstable} {
		slices.SortFunc(notes, func(a, b PathNote) int { return strings.Compare(a.Path, b.Path) })
	}
	return root, s, nil
}

func (s *scan) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.ready.Broadcast()
}

func (s *scan) work() {
	r := &reader{}
	for {
		t, ok := s.pop()
		if !ok {
			return
		}
		err := s.folder(t, r)
		if err != nil {
			s.fail(err)
		}
		s.mu.Lock()
		s.active--
		if s.active == 0 && len(s.stack) == 0 {
			s.ready.Broadcast()
		}
		s.mu.Unlock()
	}
}

func (s *scan) pop() (task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.stack) == 0 && s.active > 0 && s.err == nil {
		s.ready.Wait()
	}
	if len(s.stack) == 0 || s.err != nil {
		return task{}, false
	}
	t := s.stack[len(s.stack)-1]
	s.stack = s.stack[:len(s.stack)-1]
	s.active++
	return t, true
}

func (s *scan) push(ts []task) {
	if len(ts) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stack = append(s.stack, ts...)
	s.ready.Broadcast()
}

func (s *scan) skip(path, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Skipped = append(s.report.Skipped, PathNote{Path: path, Why: why})
}

func (s *scan) unstable(path, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Unstable = append(s.report.Unstable, PathNote{Path: path, Why: why})
}

// folder reads one folder, fills its node and queues its subfolders.
func (s *scan) folder(t task, r *reader) error {
	fd, err := openDir(s.root, t.path)
	if err != nil {
		return s.folderError(t, err)
	}
	dir := os.NewFile(uintptr(fd), t.path)
	defer dir.Close()
	list, err := dir.ReadDir(-1)
	if err != nil {
		return s.folderError(t, err)
	}
	slices.SortFunc(list, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if t.path != "" && len(t.index) == 0 && slices.ContainsFunc(list, func(d os.DirEntry) bool { return d.Name() == ".git" }) {
		if n, ok := openNested(filepath.Join(s.path, t.path)); ok {
			if !t.ignored { // an ignored one is only here because of a forced path, which it takes precedence over
				t.node.nested, t.node.hash = true, n.commit()
			}
			return nil
		}
	}
	if !t.ignored {
		t.scope = t.scope.Enter(t.path, ignore.Parse(s.ruleFile(fd, t.path, ".gitignore", list), s.conf.fold))
	}
	t.attrs = t.attrs.enter(s.ruleFile(fd, t.path, ".gitattributes", list))
	t.node.attrs = t.attrs.sig
	if t.old != nil && t.old.attrs != t.attrs.sig {
		t.old = nil // other rules of conversion: all hashes are open again
	}
	t.node.ents = make([]ent, 0, len(list))
	var below []task
	for _, d := range list {
		e, sub, ok := s.entry(&t, fd, d, r)
		if !ok {
			continue
		}
		t.node.ents = append(t.node.ents, e)
		if sub != nil {
			below = append(below, *sub)
		}
	}
	s.push(below)
	return nil
}

// folderError decides about a folder that cannot be read: one that went away
// is no error, and one that we may not read is left out.
func (s *scan) folderError(t task, err error) error {
	switch {
	case t.path == "":
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		s.unstable(t.path, "changed while it was read")
	default:
		s.skip(t.path, reason(err))
	}
	return nil
}

// reason is the bare system error, for notes.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}

// ruleFile reads a .gitignore or .gitattributes of an open folder. Symlinks
// are not followed, as in git. One that is not checked out comes from the index.
func (s *scan) ruleFile(dir int, path, name string, list []os.DirEntry) []byte {
	_, found := slices.BinarySearchFunc(list, name, func(d os.DirEntry, n string) int { return strings.Compare(d.Name(), n) })
	if !found {
		return s.hiddenFile[join(path, name)]
	}
	fd, err := retry(func() (int, error) { return unix.Openat(dir, name, fileFlags, 0) })
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	content, err := readAll(f)
	if err != nil {
		return nil // unreadable rules are no rules, as in git; the file itself is reported
	}
	return content
}

// entry decides about one name of a folder: what it is in the snapshot, and
// the folder to read next if it is one.
func (s *scan) entry(t *task, dir int, d os.DirEntry, r *reader) (ent, *task, bool) {
	name := d.Name()
	path := join(t.path, name)
	if name == ".git" || s.conf.fold && strings.EqualFold(name, ".git") {
		return ent{}, nil, false
	}
	tracked := findEntry(t.index, path)
	if d.IsDir() {
		return s.subfolder(t, name, path, tracked)
	}
	if tracked != nil && tracked.mode == modeGitlink {
		tracked = nil
	}
	if tracked == nil && !s.forced[path] && (t.ignored || t.scope.Match(path, false) == ignore.Ignored) {
		return ent{}, nil, false
	}
	if dotGitLike(name) {
		s.skip(path, "git refuses this name")
		return ent{}, nil, false
	}
	if tracked != nil && tracked.skipWorktree && !s.conf.sparse {
		return ent{}, nil, false // overlay takes it from the index
	}
	f := file{task: t, dir: dir, name: name, path: path, tracked: tracked}
	if t.old != nil {
		f.old = t.old.find(name)
	}
	e, ok := s.read(&f, r)
	return e, nil, ok
}

func (s *scan) subfolder(t *task, name, path string, tracked *indexEntry) (ent, *task, bool) {
	if dotGitLike(name) {
		if t.ignored || t.scope.Match(path, true) == ignore.Ignored {
			return ent{}, nil, false
		}
		s.skip(path, "git refuses this name")
		return ent{}, nil, false
	}
	if tracked != nil && tracked.mode == modeGitlink {
		e := ent{name: name, mode: modeGitlink, hash: tracked.hash}
		if n, ok := openNested(filepath.Join(s.path, path)); ok {
			if h := n.commit(); !h.IsZero() {
				e.hash = h
			}
		}
		return e, nil, true
	}
	sub := task{path: path, node: &node{}, index: entriesBelow(t.index, path), scope: t.scope, attrs: t.attrs, ignored: t.ignored}
	if !sub.ignored {
		sub.ignored = t.scope.Match(path, true) == ignore.Ignored
	}
	if sub.ignored && len(sub.index) == 0 && !s.hasForced(path) {
		return ent{}, nil, false
	}
	if was := t.old.find(name); was != nil {
		sub.old = was.dir
	}
	return ent{name: name, mode: modeDir, dir: sub.node}, &sub, true
}

func (s *scan) hasForced(dir string) bool {
	_, ok := s.forced[dir]
	return ok
}

// settle turns folders that turned out to be repositories into gitlinks.
func (s *scan) settle(n *node, dir string) {
	keep := n.ents[:0]
	for _, e := range n.ents {
		switch {
		case e.mode != modeDir:
		case !e.dir.nested:
			s.settle(e.dir, join(dir, e.name))
		case e.dir.hash.IsZero():
			s.skip(join(dir, e.name), "nested repository without a commit")
			continue
		default:
			e = ent{name: e.name, mode: modeGitlink, hash: e.dir.hash}
		}
		keep = append(keep, e)
	}
	n.ents = keep
}

// overlay adds what the index alone decides: entries that are not checked
// out (sparse checkouts) would otherwise look deleted.
func (s *scan) overlay(root *node) {
	for i := range s.index.entries {
		e := &s.index.entries[i]
		if !e.skipWorktree || e.stage != 0 {
			continue
		}
		if was := root.lookup(e.path); was != nil {
			continue // a sparse checkout with the file on disk
		}
		if root.insert(e.path, ent{mode: e.mode, hash: e.hash}, false) {
			s.hidden = append(s.hidden, e.path)
		}
	}
}

// findEntry returns the entry of path in a part of the index, or nil.
func findEntry(entries []indexEntry, path string) *indexEntry {
	i := sort.Search(len(entries), func(i int) bool { return entries[i].path >= path })
	if i < len(entries) && entries[i].path == path {
		return &entries[i]
	}
	return nil
}

// entriesBelow returns the part of entries that lies under the folder dir.
func entriesBelow(entries []indexEntry, dir string) []indexEntry {
	if len(entries) == 0 {
		return nil
	}
	from := sort.Search(len(entries), func(i int) bool { return entries[i].path >= dir+"/" })
	to := sort.Search(len(entries), func(i int) bool { return entries[i].path >= dir+"0" }) // "0" follows "/"
	return entries[from:to]
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
