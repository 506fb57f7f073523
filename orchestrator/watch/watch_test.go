package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"
)

const patience = 10 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, opts Options) *Watcher {
	t.Helper()
	if opts.Resync == 0 {
		opts.Resync = -1 // an event must come from the system, not from the tick
	}
	w, err := New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func add(t *testing.T, w *Watcher, path string) {
	t.Helper()
	if err := w.Add(path); err != nil {
		t.Fatal(err)
	}
}

// expect waits for an event of path.
func expect(t *testing.T, w *Watcher, path string) {
	t.Helper()
	select {
	case e := <-w.Events():
		if e.Path != path || e.Resync {
			t.Fatalf("event %+v, want %s", e, path)
		}
	case <-time.After(patience):
		t.Fatalf("no event of %s", path)
	}
}

// settle takes events until want is the content of path, which the event that
// comes after a change must allow to see.
func settle(t *testing.T, w *Watcher, path, want string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case e := <-w.Events():
			if e.Path != path && !e.Resync {
				t.Fatalf("event %+v, want one of %s", e, path)
			}
			if got, err := os.ReadFile(path); err == nil && string(got) == want {
				return
			}
		case <-deadline:
			t.Fatalf("no event that shows %q in %s", want, path)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func save(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".new", text)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "TODO.md")
	w := start(t, Options{})
	add(t, w, path)
	write(t, path, "made")
	settle(t, w, path, "made")
	write(t, path, "written")
	settle(t, w, path, "written")
	for i := range 3 {
		text := fmt.Sprint("saved ", i)
		save(t, path, text)
		settle(t, w, path, text)
	}
	write(t, filepath.Join(filepath.Dir(path), "other"), "not asked for")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect(t, w, path)
	write(t, path, "again")
	settle(t, w, path, "again")
}

func TestFolderComesAndGoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "c", "log")
	w := start(t, Options{})
	add(t, w, path)
	for i := range 5 {
		text := fmt.Sprint("round ", i)
		write(t, path, text)
		settle(t, w, path, text)
		save(t, path, text+" saved")
		settle(t, w, path, text+" saved")
		if i%2 == 0 {
			if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.Rename(filepath.Dir(path), filepath.Join(dir, fmt.Sprint("old", i))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFolderAboveMoves needs the tick: the system says nothing when a folder
// above the watched one gets another name.
func TestFolderAboveMoves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "c", "log")
	w := start(t, Options{Resync: 20 * time.Millisecond})
	add(t, w, path)
	for i := range 3 {
		text := fmt.Sprint("round ", i)
		write(t, path, text)
		settle(t, w, path, text)
		if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, fmt.Sprint("old", i))); err != nil {
			t.Fatal(err)
		}
	}
	write(t, path, "before the tick")
	if err := w.Remove(path); err != nil {
		t.Fatal(err)
	}
	if list := w.fs.WatchList(); len(list) != 0 {
		t.Errorf("still watched: %q", list)
	}
}

// TestFolderReplaced wants events again, not only ticks, from a folder that
// took the name of the watched one.
func TestFolderReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "log")
	write(t, path, "")
	f := newFolders(recorder{})
	if err := f.add(path); err != nil {
		t.Fatal(err)
	}
	before := f.watched[filepath.Dir(f.files[path][0])]
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	write(t, path, "")
	f.rearmAll()
	if after := f.watched[filepath.Dir(f.files[path][0])]; after == nil || os.SameFile(before, after) {
		t.Errorf("the new folder is not watched: %v", f.watched)
	}
}

// A recorder stands for fsnotify where only the bookkeeping is tested.
type recorder struct{}

func (recorder) Add(string) error    { return nil }
func (recorder) Remove(string) error { return nil }

func TestSymbolicLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "real", "one"), "")
	write(t, filepath.Join(dir, "real", "two"), "")
	link := filepath.Join(dir, "linked", "TODO.md")
	write(t, filepath.Join(dir, "x", "keep"), "")
	for from, to := range map[string]string{"linked": "x", "x/TODO.md": "../real/one"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	w := start(t, Options{})
	add(t, w, link)
	write(t, filepath.Join(dir, "real", "one"), "first")
	settle(t, w, link, "first")
	if err := os.Symlink("../real/two", filepath.Join(dir, "x", "new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "x", "new"), link); err != nil {
		t.Fatal(err)
	}
	settle(t, w, link, "")
	write(t, filepath.Join(dir, "real", "two"), "second")
	settle(t, w, link, "second")
}

func TestCoalesce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	w := start(t, Options{Debounce: time.Millisecond})
	add(t, w, a)
	add(t, w, b)
	add(t, w, b)
	for i := range 500 { // nobody receives
		write(t, a, fmt.Sprint(i))
		write(t, b, fmt.Sprint(i))
	}
	seen := map[string]int{}
	deadline := time.After(patience)
	for seen[a] == 0 || seen[b] == 0 {
		select {
		case e := <-w.Events():
			seen[e.Path]++
		case <-deadline:
			t.Fatalf("events %v", seen)
		}
	}
	if seen[a]+seen[b] > 20 {
		t.Errorf("1000 writes gave %v events", seen)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	w := start(t, Options{})
	add(t, w, a)
	add(t, w, b)
	if err := w.Remove(a); err != nil {
		t.Fatal(err)
	}
	write(t, a, "x")
	write(t, b, "x")
	settle(t, w, b, "x")
	if err := w.Remove(b); err != nil {
		t.Fatal(err)
	}
	if list := w.fs.WatchList(); len(list) != 0 {
		t.Errorf("still watched: %q", list)
	}
}

func TestResync(t *testing.T) {
	t.Parallel()
	w := start(t, Options{})
	w.fs.Errors <- fsnotify.ErrEventOverflow
	select {
	case e := <-w.Events():
		if !e.Resync {
			t.Errorf("event %+v after an overflow", e)
		}
	case <-time.After(patience):
		t.Error("no event after an overflow")
	}
	ticking := start(t, Options{Resync: 5 * time.Millisecond})
	for range 2 {
		select {
		case e := <-ticking.Events():
			if !e.Resync {
				t.Errorf("event %+v of the tick", e)
			}
		case <-time.After(patience):
			t.Fatal("no tick")
		}
	}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w, err := New(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a")
	add(t, w, path)
	write(t, path, "nobody receives")
	cancel()
	for range w.Events() { // at most what was on its way, then closed
	}
	if err := w.Add("b"); !errors.Is(err, ErrClosed) {
		t.Errorf("Add after the end: %v", err)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		goos string
		err  error
		want string
	}{
		{"linux", syscall.ENOSPC, "fs.inotify.max_user_watches"},
		{"linux", fmt.Errorf("x: %w", syscall.EMFILE), "fs.inotify.max_user_instances"},
		{"darwin", syscall.EMFILE, "kern.maxfilesperproc"},
		{"darwin", syscall.ENFILE, "kern.maxfiles"},
		{"linux", syscall.ENFILE, "fs.file-max"},
	}
	for _, tt := range tests {
		err := explainFor(tt.goos, tt.err)
		if !errors.Is(err, errors.Unwrap(err)) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, %v: %v", tt.goos, tt.err, err)
		}
	}
	if err := explainFor("linux", syscall.EACCES); err != syscall.EACCES { //nolint:errorlint // it is not wrapped
		t.Errorf("another error became %v", err)
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	const debounce = 10 * time.Millisecond
	q, now, ch := newQueue(), time.Unix(0, 0), make(chan Event)
	if out, _ := q.next(now, ch); out != nil {
		t.Error("an empty queue has an event")
	}
	if _, ok := q.wait(now); ok {
		t.Error("an empty queue waits")
	}
	for i := range 50 { // changes all the time
		q.changed("a", now.Add(time.Duration(i)*debounce/2), debounce)
	}
	if wait, ok := q.wait(now); !ok || wait != maxDelay*debounce {
		t.Errorf("a busy file waits %v", wait)
	}
	if out, e := q.next(now.Add(maxDelay*debounce), ch); out == nil || e.Path != "a" {
		t.Errorf("event %+v", e)
	}
	q.resync = true
	out, e := q.next(now, ch)
	if out == nil || !e.Resync {
		t.Errorf("event %+v, want Resync at once", e)
	}
	q.sent(e)
	if out, e := q.next(now.Add(time.Hour), ch); out != nil {
		t.Errorf("event %+v behind a Resync", e)
	}
}

func BenchmarkSaveToEvent(b *testing.B) {
	path := filepath.Join(b.TempDir(), "TODO.md")
	w, err := New(b.Context(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	if err := w.Add(path); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
			b.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			b.Fatal(err)
		}
		<-w.Events()
	}
}
