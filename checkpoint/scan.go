package checkpoint

import (
	"context"
	"fmt"
	"runtime"
	"slices"
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

// maxWorkers bounds the folders that are read at once: more only wait for each other.
const maxWorkers = 8

// A scan walks the worktree once, with several workers over folders.
type scan struct {
	scanInput
	root    int          // open folder
	hashed  atomic.Int64 // files read
	now     func() time.Time
	mu      sync.Mutex // guards what follows, and the changed and below of all tasks
	ready   *sync.Cond // stack or active changed
	stack   []*task
	active  int
	err     error
	report  Report
	watched bool      // all folders read are watched
	hidden  []string  // on disk or not, git's index decides about these (skip-worktree)
	convert []pending // contents that git may convert
}

// scanInput is what a scan needs to know.
type scanInput struct {
	path       string // the worktree
	conf       *settings
	index      *index
	outside    *ignore.Scope
	outsideSig uint64
	attrs      *attrScope
	old        *node // root of the last snapshot, or nil
	odb        *objects
	cap        int64
	seed       func() bool       // the index vouches for contents
	skew       time.Duration     // the file system's clock minus ours, if behind
	forced     map[string]bool   // paths that count as tracked; their parents map to false
	hiddenFile map[string][]byte // .gitignore and .gitattributes that only the index has
	adopt      adopter           // nil: the store has what the index names

	relist  map[string]bool // folders whose part of the index is another than in old
	all     bool            // list every folder, whatever old says
	watcher Watcher         // or nil
	dirty   map[string]bool // nil: look everywhere; else only at these folders; true: and all below
	above   map[string]bool // the folders above those in dirty
}

// A task is one folder to look at.
type task struct {
	path    string // "" is the root
	name    string // the last part of path
	parent  *task
	old     *node
	node    *node // the result; old itself if nothing changed in this folder
	scope   *ignore.Scope
	sig     uint64 // of scope
	attrs   *attrScope
	ignored bool // the folder is ignored: only what is tracked in it counts
	full    bool // everything below must be looked at, whatever dirty says
	again   bool // see node

	changed bool    // node is not old, or something below is
	below   []*task // the subfolders that changed
}

// scanWorktree reads the worktree into nodes. Blobs that the old nodes
// and the index do not have are written; trees are not made yet.
func scanWorktree(ctx context.Context, in scanInput) (*node, *scan, error) {
	s := &scan{scanInput: in, now: time.Now, watched: in.watcher != nil}
	s.ready = sync.NewCond(&s.mu)
	var err error
	if s.root, err = openRoot(in.path); err != nil {
		return nil, nil, fmt.Errorf("scanning worktree: %w", err)
	}
	defer unix.Close(s.root)
	root := &task{old: in.old, scope: in.outside, sig: in.outsideSig, attrs: in.attrs, full: in.dirty == nil || in.dirty[""]}
	s.stack = []*task{root}
	stop := context.AfterFunc(ctx, func() { s.fail(context.Cause(ctx)) })
	defer stop()
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxWorkers) {
		wg.Go(s.work)
	}
	wg.Wait()
	if s.err != nil {
		return nil, nil, fmt.Errorf("scanning worktree %s: %w", in.path, s.err)
	}
	s.settle(root)
	root.node = s.overlay(root.node)
	return root.node, s, nil
}

// sortNotes puts notes in order and drops those that were made twice.
func sortNotes(notes []PathNote) []PathNote {
	slices.SortFunc(notes, func(a, b PathNote) int { return strings.Compare(a.Path+"\x00"+a.Why, b.Path+"\x00"+b.Why) })
	return slices.Compact(notes)
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
	r := &reader{dirents: make([]byte, 32<<10)}
	for {
		t, ok := s.pop()
		if !ok {
			return
		}
		subs, err := s.visit(t, r)
		if err != nil {
			s.fail(err)
		}
		s.done(t, subs)
	}
}

func (s *scan) pop() (*task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.stack) == 0 && s.active > 0 && s.err == nil {
		s.ready.Wait()
	}
	if len(s.stack) == 0 || s.err != nil {
		return nil, false
	}
	t := s.stack[len(s.stack)-1]
	s.stack = s.stack[:len(s.stack)-1]
	s.active++
	return t, true
}

// done ends a task, marks what it changed, and queues its subfolders: the
// last in, the first out, so that the stack stays small.
func (s *scan) done(t *task, subs []*task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.node != t.old {
		for at := t; at != nil && !at.changed; at = at.parent {
			at.changed = true
			if at.parent != nil {
				at.parent.below = append(at.parent.below, at)
			}
		}
	}
	s.stack = append(s.stack, subs...)
	s.active--
	if len(subs) > 1 || s.active == 0 && len(s.stack) == 0 {
		s.ready.Broadcast()
	}
}

// touched tells whether a partial scan must look at or below a subfolder.
func (s *scan) touched(sub *task) bool {
	if sub.full || sub.old == nil || sub.old.againBelow || s.above[sub.path] {
		return true
	}
	_, ok := s.dirty[sub.path]
	return ok
}

// settle puts the nodes of changed folders into those of their parents, and
// turns folders that turned out to be repositories into gitlinks.
func (s *scan) settle(t *task) {
	if len(t.below) > 0 {
		t.node = t.node.own()
	}
	for _, sub := range t.below {
		s.settle(sub)
		e := t.node.find(sub.name)
		switch {
		case !sub.node.nested:
			e.dir = sub.node
			continue
		case sub.node.hash.IsZero():
			s.skip(sub, "", "nested repository without a commit")
			t.node.ents = slices.DeleteFunc(t.node.ents, func(e ent) bool { return e.name == sub.name })
		default:
			*e = ent{name: e.name, mode: modeGitlink, hash: sub.node.hash}
		}
		t.node.again = true // its commit can change without a trace in this folder
	}
}

// overlay adds what the index alone decides: entries that are not checked
// out (sparse checkouts) would otherwise look deleted.
func (s *scan) overlay(root *node) *node {
	for _, i := range s.index.skipped {
		e := s.index.entry(i)
		if e.stage != 0 {
			continue
		}
		name := string(s.index.path(i))
		if was := root.lookup(name); was != nil {
			if was.stat == (statKey{}) && was.mode != modeDir {
				s.hidden = append(s.hidden, name) // from the last snapshot, in a folder that was not looked at
			}
			continue // a sparse checkout with the file on disk
		}
		root = root.own()
		root.reach(name)
		if root.insert(name, ent{mode: e.mode, hash: e.hash}, false) {
			s.hidden = append(s.hidden, name)
		}
	}
	return root
}

// skip notes a name of t's folder, or t's folder itself, as left out. What is
// left out is looked at every time.
func (s *scan) skip(t *task, name, why string) {
	t.again = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Skipped = append(s.report.Skipped, PathNote{Path: joinAny(t.path, name), Why: why})
}

func (s *scan) unstable(path, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Unstable = append(s.report.Unstable, PathNote{Path: path, Why: why})
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// joinAny is join where name may be empty for dir itself.
func joinAny(dir, name string) string {
	if name == "" {
		return dir
	}
	return join(dir, name)
}
