package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// A spy is a Watcher that says what the test wants and notes which folders
// the scan enters.
type spy struct {
	mu      sync.Mutex
	entered []string
	changed map[string]bool
	doubt   error
	full    error // returned by Add
}

func (s *spy) Add(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered = append(s.entered, dir)
	return s.full
}

func (s *spy) Changed(context.Context) (map[string]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dirs := s.changed
	s.changed = nil
	return dirs, s.doubt
}

// took returns the folders entered since the last call, in order.
func (s *spy) took() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	dirs := s.entered
	s.entered = nil
	slices.Sort(dirs)
	return fmt.Sprintf("%q", dirs)
}

// past gives everything in the worktree old times, so that nothing is racy.
func (r *repo) past(s *Store) {
	r.t.Helper()
	timer := time.NewTimer(2 * tick)
	defer timer.Stop()
	<-timer.C
	r.check(s)
}

func TestScanEntersOnlyWhatItMust(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, f := range []string{"a/x/1", "a/y/1", "b/1", "node_modules/m/1", "deep/node_modules/n/2", "tracked_ignored/in/1", "tracked_ignored/out/1"} {
		r.write(f, f)
	}
	r.git("add", "-f", "tracked_ignored/in/1")
	r.write(".gitignore", "node_modules/\ntracked_ignored\n")
	w := &spy{}
	s := r.open(Options{Watcher: w})
	r.check(s)
	everything := `["" "a" "a/x" "a/y" "b" "deep" "tracked_ignored" "tracked_ignored/in"]`
	want := func(what, dirs string) {
		t.Helper()
		if got := w.took(); got != dirs {
			t.Errorf("%s: entered %s, want %s", what, got, dirs)
		}
	}
	want("first", everything)
	r.check(s)
	want("nothing changed", `[]`)
	r.write("a/x/1", "2")
	r.write("b/unnoticed", "1")
	w.changed = map[string]bool{"a/x": false}
	if c, _ := r.save(s, Meta{}); r.git("show", c.Commit+":a/x/1") != "2" {
		t.Error("the change is not in the checkpoint")
	}
	want("one folder", `["a/x"]`)
	w.changed = map[string]bool{"a": true}
	r.save(s, Meta{})
	want("all below a folder", `["a" "a/x" "a/y"]`)
	w.doubt = errors.New("events were lost")
	r.check(s)
	want("doubt", everything)
	w.doubt = nil
	r.write(".gitignore", "node_modules/\n")
	w.changed = map[string]bool{"": false}
	r.check(s)
	want("other rules", `["" "a" "a/x" "a/y" "b" "deep" "tracked_ignored" "tracked_ignored/in" "tracked_ignored/out"]`)
	r.write(".git/info/exclude", "y\n")
	r.check(s)
	if got := w.took(); strings.Contains(got, "a/y") || !strings.Contains(got, "a/x") {
		t.Errorf("other rules from outside: entered %s", got)
	}
	w.full = errors.New("too many folders")
	w.changed = map[string]bool{"b": false}
	if _, rep := r.save(s, Meta{}); rep.Unwatched != "too many folders" {
		t.Errorf("report: %+v", rep)
	}
	w.full = nil
	w.took()
	r.check(s)
	if got := w.took(); !strings.Contains(got, "deep") {
		t.Errorf("after a folder could not be watched: entered %s, want all", got)
	}
}

// What a watcher said must not be lost when the look that asked for it was
// not saved.
func TestChangesAreKeptUntilSaved(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a/1", "1")
	r.write("b/1", "1")
	w := &spy{}
	s := r.open(Options{Watcher: w})
	r.check(s)
	r.write("a/1", "2")
	w.changed = map[string]bool{"a": false}
	if _, err := s.Worktree(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.write("b/1", "2")
	w.changed = map[string]bool{"b": false}
	r.check(s)
}

// Every so often everything is looked at, whatever the watcher says.
func TestWatcherIsNotTrustedForEver(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a/1", "1")
	w := &spy{}
	s := r.open(Options{Watcher: w})
	r.check(s)
	r.write("a/1", "2") // and the watcher does not tell
	w.took()
	n := 0
	for ; w.took() == "[]" && n < 2*maxPartial; n++ {
		r.save(s, Meta{})
	}
	if n-1 != maxPartial {
		t.Errorf("a full scan after %d snapshots, want %d", n-1, maxPartial)
	}
	r.check(s)
}

// Maintain looks everywhere before a save has to, and what it finds is not lost.
func TestMaintainLooksAround(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a/1", "1")
	r.write("b/2", "1\r\n")
	r.git("config", "core.autocrlf", "input")
	w := &spy{}
	s := r.open(Options{Watcher: w})
	r.check(s)
	r.check(s) // the folders are racy no more, or looked at again
	maintain := func() string {
		w.took()
		_, err := s.Maintain(t.Context())
		must(r, err)
		return w.took()
	}
	for range 3 * maxPartial {
		w.took()
		r.save(s, Meta{})
		if got := w.took(); got != "[]" {
			t.Fatalf("a save entered %s", got)
		}
		if s.last.partial == lookAhead {
			if got := maintain(); got != `["" "a" "b"]` || s.last.partial != 0 {
				t.Fatalf("Maintain entered %s, %d since", got, s.last.partial)
			}
		} else if got := maintain(); got != "[]" {
			t.Fatalf("Maintain entered %s after %d", got, s.last.partial)
		}
	}
	for s.last.partial < lookAhead {
		r.save(s, Meta{})
	}
	r.write("b/2", "1\n") // the same blob, other bytes, and the watcher does not tell
	if maintain(); s.last.partial != lookAhead {
		t.Error("what is in no checkpoint became the base of the next one")
	}
	w.changed = map[string]bool{"b": false}
	c := r.check(s)
	r.write("b/2", "else")
	w.changed = map[string]bool{"b": false}
	r.restore(s, c)
	if got := r.read("b/2"); got != "1\n" {
		t.Errorf("restored %q", got)
	}
}

func TestLeftOutIsReportedEveryTime(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("d/plain", "1")
	r.write("d/big", strings.Repeat("x", 2000))
	must(r, syscall.Mkfifo(r.path("d/fifo"), 0o644))
	w := &spy{}
	s := r.open(Options{Watcher: w, SizeCap: 1000, CacheDir: t.TempDir()})
	for i := range 4 {
		_, rep := r.save(s, Meta{})
		if len(rep.Skipped) != 2 || rep.Skipped[0].Path != "d/big" || rep.Skipped[1].Path != "d/fifo" {
			t.Errorf("round %d: skipped %v", i, rep.Skipped)
		}
		if i == 2 {
			must(r, s.Close())
			s = r.open(Options{SizeCap: 1000, CacheDir: s.opts.CacheDir})
		}
	}
}

func TestUnreadableIsLeftOut(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	r := newRepo(t)
	r.write("f", "1")
	r.write("d/x", "1")
	must(r, os.Chmod(r.path("f"), 0))
	must(r, os.Chmod(r.path("d"), 0))
	t.Cleanup(func() { must(r, os.Chmod(r.path("d"), 0o755)) })
	s := r.open(Options{})
	_, rep := r.save(s, Meta{})
	if len(rep.Skipped) != 2 {
		t.Errorf("skipped %v", rep.Skipped)
	}
	must(r, os.Chmod(r.path("f"), 0o644))
	must(r, os.Chmod(r.path("d"), 0o755))
	r.check(s)
}

// A file that changes all the time is saved in some state, the blob is that
// of the bytes stored, and the next quiet save has the last one.
func TestFileThatChangesWhileRead(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("d/f", "start")
	s := r.open(Options{})
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := os.WriteFile(r.path("d/f"), []byte(strings.Repeat(fmt.Sprint(i), 1+i%5000)), 0o600); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 20 {
		r.save(s, Meta{})
	}
	close(stop)
	writer.Wait()
	r.check(s)
	r.git("fsck", "--strict", "--no-dangling")
}

// An edit that keeps size and mtime, and one within the clock's tick.
func TestEditsThatHide(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("d/f", "1111")
	s := r.open(Options{})
	r.check(s)
	for i := range 30 {
		r.write("d/f", fmt.Sprint(1000+i))
		r.check(s)
	}
	r.past(s)
	info, err := os.Stat(r.path("d/f"))
	must(r, err)
	r.write("d/f", "2222")
	must(r, os.Chtimes(r.path("d/f"), info.ModTime(), info.ModTime()))
	r.check(s)
	// A clock that went backwards: everything is from the future now.
	later := time.Now().Add(24 * time.Hour)
	for _, p := range []string{"d/f", "d", ".git/index"} {
		if _, err := os.Stat(r.path(p)); err == nil {
			must(r, os.Chtimes(r.path(p), later, later))
		}
	}
	r.check(s)
	r.write("d/f", "3333")
	must(r, os.Chtimes(r.path("d/f"), later, later))
	r.write("d/g", "new")
	must(r, os.Chtimes(r.path("d"), later, later))
	r.check(s)
}

func TestIndexVersionsAgree(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, f := range []string{"a", "a.b", "a/b", "dir/aa", "dir/ab", "dir/sub/.gitattributes", strings.Repeat("n/", 100) + strings.Repeat("x", 250), "z"} {
		if f != "a/b" {
			r.write(f, f)
		}
	}
	r.git("add", "-A")
	r.git("update-index", "--skip-worktree", "z")
	var last *index
	for _, version := range []string{"2", "4", "3"} {
		r.git("update-index", "--index-version", version)
		data, err := os.ReadFile(r.path(".git/index"))
		must(r, err)
		x, err := parseIndex(data)
		must(r, err)
		if last != nil && len(last.changed(x)) > 0 {
			t.Errorf("version %s differs: %v", version, last.changed(x))
		}
		if len(x.skipped) != 1 || len(x.attrs) != 1 || x.find(x.below(""), []byte("a.b")) == nil || x.find(x.below(""), []byte("a.")) != nil ||
			!x.hasBelow(x.below(""), "dir") || x.hasBelow(x.below(""), "di") || x.below("dir").to-x.below("dir").from != 3 {
			t.Errorf("version %s: %+v", version, x)
		}
		last = x
	}
	g := newGit(r.open(Options{}).repo)
	x, err := g.listIndex(t.Context())
	must(r, err)
	if d := last.changed(x); len(d) > 0 {
		t.Errorf("git's listing differs in %d folders", len(d))
	}
	r.write("dir/sub/new", "1")
	r.git("add", "dir/sub/new")
	data, err := os.ReadFile(r.path(".git/index"))
	must(r, err)
	x, err = parseIndex(data)
	must(r, err)
	if d := last.changed(x); len(d) != 3 || !d[""] || !d["dir"] || !d["dir/sub"] {
		t.Errorf("changed: %v", d)
	}
}

func TestMemoryOfASnapshot(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many files")
	}
	r := newRepo(t)
	const files = 2500
	for i := range files {
		r.write(benchName(i), "x")
	}
	r.commit()
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s := r.open(Options{})
	r.save(s, Meta{})
	s.odb.trees = map[plumbing.Hash][]treeEntry{} // a cache with a bound of its own
	per := (heap() - before) / files
	t.Logf("%d bytes a file", per)
	if per > 500 {
		t.Errorf("%d bytes a file, want under 500", per)
	}
	runtime.KeepAlive(s)
}
