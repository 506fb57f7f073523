// Package watch tells which folders of a worktree changed, so that a
// checkpoint looks only at those. It implements checkpoint.Watcher.
//
// It does not interpret events: a folder in which anything happened is named,
// and the ordinary scan finds out what. In doubt (lost events, a folder that
// was renamed, the limit of watches) it says so, and the scan looks everywhere.
package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"muntin/internal/durable"
)

// ErrUnsupported says that this system cannot watch a tree without opening
// every file of it (kqueue): there the full scan is the cheaper way.
var ErrUnsupported = errors.New("watching a worktree is not supported on " + runtime.GOOS)

// errDoubt is the reason to look everywhere after something that events do not tell well.
var errDoubt = errors.New("events of the worktree were lost or cannot be trusted")

// maxDirty bounds the folders that are kept between two questions.
const maxDirty = 50_000

// Options say what to watch.
type Options struct {
	Root string // the worktree
	Dir  string // an existing folder outside of it, or below its .git, for the marks that tell when all events are in
	Max  int    // folders; 0: half of the system's limit, which all programs of the user share
}

// A Watcher watches the folders of one worktree. Its methods may be called
// from several goroutines.
type Watcher struct {
	root, marks string
	max         int
	held        *durable.Held // the lock in marks

	mu     sync.Mutex // guards what follows
	fs     *fsnotify.Watcher
	done   chan struct{}   // closed when the reader of fs has ended
	dirs   map[string]bool // watched, relative to root
	dirty  map[string]bool // see checkpoint.Watcher
	doubt  error           // looking everywhere is needed
	off    error           // watching was given up
	mark   int             // marks made so far
	seen   int             // the newest mark that came back
	news   chan struct{}   // closed and replaced when seen or doubt changed
	closed bool
}

// New makes a watcher that does not watch anything yet. Close it. The error
// matches ErrUnsupported where trees cannot be watched well.
func New(opts Options) (*Watcher, error) {
	if runtime.GOOS != "linux" {
		return nil, ErrUnsupported
	}
	root, err := filepath.Abs(opts.Root)
	if err != nil {
		return nil, fmt.Errorf("watching worktree: %w", err)
	}
	clearMarks(opts.Dir)
	marks, err := os.MkdirTemp(opts.Dir, marksPrefix)
	if err != nil {
		return nil, fmt.Errorf("watching worktree %s: %w", opts.Root, err)
	}
	w := &Watcher{root: root, marks: marks, max: opts.Max, news: make(chan struct{})}
	if w.max == 0 {
		w.max = systemLimit() / 2
	}
	if w.held, err = durable.TryLock(filepath.Join(marks, lockName)); err == nil {
		err = w.start()
	}
	if err != nil {
		err = errors.Join(err, w.release())
		return nil, fmt.Errorf("watching worktree %s: %w", opts.Root, err)
	}
	return w, nil
}

const (
	marksPrefix = "watch-" // of the names of folders for marks
	lockName    = "lock"   // in such a folder, held while its watcher lives
)

// clearMarks removes the folders of watchers that were killed. What cannot be
// removed is tried again by the next watcher.
func clearMarks(dir string) {
	list, err := filepath.Glob(filepath.Join(dir, marksPrefix+"*"))
	if err != nil {
		return
	}
	for _, marks := range list {
		lock := filepath.Join(marks, lockName)
		if _, err := os.Stat(lock); err != nil {
			continue // not a watcher's, or of one that begins just now
		}
		held, err := durable.TryLock(lock)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(marks)
		_ = held.Unlock()
	}
}

// release gives up the folder for marks.
func (w *Watcher) release() error {
	err := os.RemoveAll(w.marks)
	if w.held != nil {
		err = errors.Join(err, w.held.Unlock())
	}
	return err
}

// start begins with an empty set of folders. w.mu is held, or w is new.
func (w *Watcher) start() error {
	fs, err := fsnotify.NewBufferedWatcher(4096)
	if err != nil {
		return explain(err)
	}
	if err := fs.Add(w.marks); err != nil {
		return errors.Join(explain(err), fs.Close())
	}
	w.fs, w.done = fs, make(chan struct{})
	w.dirs, w.dirty = map[string]bool{}, map[string]bool{}
	go w.read(fs, w.done)
	return nil
}

// Add implements checkpoint.Watcher.
func (w *Watcher) Add(dir string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return fsnotify.ErrClosed
	case w.off != nil:
		return w.off
	case w.dirs[dir]:
		return nil
	case w.fs == nil:
		return errDoubt
	case len(w.dirs) >= w.max:
		w.off = fmt.Errorf("the worktree has more than %d folders, the share of fs.inotify.max_user_watches that one watcher takes", w.max)
		return w.off
	}
	err := w.fs.Add(filepath.Join(w.root, dir))
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ELOOP) {
		return nil // it went away, or cannot be read anyway: the scan will see, and its parent is watched
	}
	if err != nil {
		w.off = explain(err)
		return w.off
	}
	w.dirs[dir] = true
	if !w.real(dir) {
		// A symlink took its place, which the system follows: the watch is another folder's.
		w.distrust(errDoubt)
	}
	return nil
}

// real tells whether a path leads through folders only.
func (w *Watcher) real(dir string) bool {
	for at := dir; at != "." && at != ""; at = filepath.Dir(at) {
		if info, err := os.Lstat(filepath.Join(w.root, at)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// Changed implements checkpoint.Watcher. It makes a mark in a folder of its
// own and waits until the system has reported it: then it has reported all before.
func (w *Watcher) Changed(ctx context.Context) (map[string]bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.off != nil {
		return nil, w.giveUp()
	}
	w.mark++
	want := w.mark
	if err := w.setMark(want); err != nil {
		return nil, fmt.Errorf("marking the time: %w", err)
	}
	for w.seen < want && w.doubt == nil && !w.closed {
		news := w.news
		w.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
		}
		w.mu.Lock()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if w.closed {
		return nil, fsnotify.ErrClosed
	}
	if err := w.doubt; err != nil {
		return nil, errors.Join(err, w.restart())
	}
	dirty := w.dirty
	w.dirty = map[string]bool{}
	return dirty, nil
}

// setMark makes a mark out of the one before, which is less work than a new file.
func (w *Watcher) setMark(n int) error {
	name := func(n int) string { return filepath.Join(w.marks, strconv.Itoa(n)) }
	err := os.Rename(name(n-1), name(n))
	if errors.Is(err, os.ErrNotExist) {
		err = os.WriteFile(name(n), nil, 0o600)
	}
	return err
}

// restart forgets all watches; the scan that follows adds them anew.
func (w *Watcher) restart() error {
	w.stop()
	w.doubt = nil
	if err := w.start(); err != nil {
		w.off = err
		return err
	}
	w.seen = w.mark
	return nil
}

// giveUp returns the watches to the system and tells why.
func (w *Watcher) giveUp() error {
	if w.fs != nil {
		w.stop()
	}
	return w.off
}

// stop ends the reader. w.mu is held, and is free while it waits.
func (w *Watcher) stop() {
	fs, done := w.fs, w.done
	w.fs = nil
	w.mu.Unlock()
	// It only gives up descriptors, and there is nothing to do about an error.
	_ = fs.Close()
	<-done
	w.mu.Lock()
}

// Close ends the watching.
func (w *Watcher) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if w.fs != nil {
		w.stop()
	}
	if err := w.release(); err != nil {
		return fmt.Errorf("closing watcher of %s: %w", w.root, err)
	}
	return nil
}

// Off returns why watching was given up, nil while it works.
func (w *Watcher) Off() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.off
}

// Folders returns how many folders are watched.
func (w *Watcher) Folders() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.dirs)
}

func (w *Watcher) read(fs *fsnotify.Watcher, done chan struct{}) {
	defer close(done)
	errs := fs.Errors
	for {
		select {
		case e, ok := <-fs.Events:
			if !ok {
				return
			}
			w.event(e)
		case err, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			w.mu.Lock()
			w.distrust(fmt.Errorf("%w: %w", errDoubt, err))
			w.mu.Unlock()
		}
	}
}

// distrust makes the next answer a doubt. w.mu is held.
func (w *Watcher) distrust(why error) {
	if w.doubt == nil {
		w.doubt = why
	}
	w.tell()
}

func (w *Watcher) tell() {
	close(w.news)
	w.news = make(chan struct{})
}

// event notes the folders that an event is about.
func (w *Watcher) event(e fsnotify.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if dir, name := filepath.Split(e.Name); filepath.Clean(dir) == w.marks {
		n := 0
		if _, err := fmt.Sscan(name, &n); err == nil && n > w.seen {
			w.seen = n
			w.tell()
		}
		return
	}
	rel, err := filepath.Rel(w.root, e.Name)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return
	}
	if rel == "." {
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			w.distrust(errDoubt)
		}
		w.note("", false)
		return
	}
	if w.dirs[rel] && (e.Has(fsnotify.Rename) || e.Has(fsnotify.Create)) {
		// The watches below follow the folder under its old name; or its watch is another folder's.
		w.distrust(errDoubt)
		return
	}
	// A name that came or went may be a folder, another one than before.
	whole := e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	if whole || w.dirs[rel] {
		w.note(rel, whole)
	}
	if e.Has(fsnotify.Remove) { // a folder was empty, so nothing below is watched any more
		delete(w.dirs, rel)
	}
	parent := filepath.Dir(rel)
	if parent == "." {
		parent = ""
	}
	w.note(parent, false)
}

func (w *Watcher) note(dir string, whole bool) {
	w.dirty[dir] = w.dirty[dir] || whole
	if len(w.dirty) > maxDirty {
		w.distrust(errDoubt)
		clear(w.dirty)
	}
}
