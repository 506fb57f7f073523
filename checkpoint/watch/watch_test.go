package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type world struct {
	*Watcher
	t   *testing.T
	dir string
}

func newWorld(t *testing.T, limit int) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Options{Root: dir, Dir: t.TempDir(), Max: limit})
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(filepath.Dir(w.marks)); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return &world{Watcher: w, t: t, dir: dir}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) mkdir(name string) {
	w.t.Helper()
	w.must(os.MkdirAll(w.path(name), 0o755))
}

func (w *world) write(name string) {
	w.t.Helper()
	w.must(os.WriteFile(w.path(name), []byte(name), 0o600))
}

func (w *world) add(dirs ...string) {
	w.t.Helper()
	for _, d := range dirs {
		w.must(w.Add(d))
	}
}

// want compares the folders that changed; a star behind one means all below.
func (w *world) want(want ...string) {
	w.t.Helper()
	dirs, err := w.Changed(w.t.Context())
	w.must(err)
	var got []string
	for d, whole := range dirs {
		if whole {
			d += "*"
		}
		got = append(got, d)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("changed %q, want %q", got, want)
	}
}

func TestChangesAreNamedByTheirFolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.mkdir("d/e")
	w.write("d/old")
	w.add("", "d", "d/e", "d")
	w.want()
	w.write("d/old")
	w.want("d")
	w.must(os.Chmod(w.path("d/old"), 0o755))
	w.want("d")
	w.write("new")
	w.want("", "new*")
	w.must(os.Remove(w.path("d/old")))
	w.want("d", "d/old*")
	w.must(os.Rename(w.path("new"), w.path("d/e/odd\nname")))
	w.want("", "new*", "d/e", "d/e/odd\nname*")
	w.want()
}

// A new folder is for the scan to add, before it reads it.
func TestNewFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.add("")
	w.mkdir("d")
	w.write("d/unseen")
	w.want("", "d*")
	w.add("d")
	w.write("d/seen")
	w.want("d", "d/seen*")
	w.must(os.RemoveAll(w.path("d")))
	w.mkdir("d")
	if _, err := w.Changed(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.add("d") // another folder of the same name
	w.write("d/again")
	w.want("d", "d/again*")
}

func TestRenamedFolderIsDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.mkdir("a/sub")
	w.add("", "a", "a/sub")
	w.must(os.Rename(w.path("a"), w.path("b")))
	if _, err := w.Changed(t.Context()); !errors.Is(err, errDoubt) {
		t.Fatalf("%v, want doubt", err)
	}
	if n := w.Folders(); n != 0 {
		t.Errorf("%d folders are watched after a new start", n)
	}
	w.add("", "b", "b/sub")
	w.write("b/sub/x")
	w.want("b/sub", "b/sub/x*")
}

func TestOverflowIsDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.add("")
	w.mu.Lock() // the reader stands still, as if the machine were busy
	limit, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	n := 0
	if err == nil {
		_, err = fmt.Sscan(string(limit), &n)
	}
	if err != nil || n > 100_000 {
		w.mu.Unlock()
		t.Skipf("limit of queued events: %d, %v", n, err)
	}
	for i := range n/2 + 5000 {
		name := w.path(fmt.Sprint(i % 2))
		if err := os.WriteFile(name, []byte{0}, 0o600); err != nil {
			t.Error(err)
			break
		}
		_ = os.Remove(name)
	}
	w.mu.Unlock()
	if _, err := w.Changed(t.Context()); !errors.Is(err, errDoubt) {
		t.Fatalf("%v, want doubt", err)
	}
	w.add("")
	w.write("x")
	w.want("", "x*")
}

func TestLimitIsRespectedAndTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.mkdir("a")
	w.mkdir("b")
	w.add("", "a")
	err := w.Add("b")
	if err == nil || !strings.Contains(err.Error(), "max_user_watches") {
		t.Errorf("%v, want the limit", err)
	}
	if _, err := w.Changed(t.Context()); err == nil {
		t.Error("an answer from a watcher that does not see everything")
	}
	if w.Off() == nil || w.Add("a") == nil {
		t.Error("it does not say that it gave up")
	}
	for _, err := range []error{syscall.ENOSPC, syscall.EMFILE} {
		if got := explain(err); !errors.Is(got, err) || !strings.Contains(got.Error(), "sysctl") {
			t.Errorf("%v does not say what to do", got)
		}
	}
}

func TestGoneAndUnreadableFoldersAreNoError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.write("file")
	w.add("", "gone", "file/below")
	w.want()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Changed(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.must(w.Close())
	if w.Add("x") == nil {
		t.Error("a closed watcher adds")
	}
	if _, err := w.Changed(t.Context()); err == nil {
		t.Error("a closed watcher answers")
	}
}

func TestFoldersOfKilledWatchersAreCleared(t *testing.T) {
	t.Parallel()
	marks := t.TempDir()
	open := func() *Watcher {
		w, err := New(Options{Root: t.TempDir(), Dir: marks})
		if errors.Is(err, ErrUnsupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	alive := open()
	dead := filepath.Join(marks, marksPrefix+"dead")
	for _, err := range []error{os.Mkdir(dead, 0o700), os.WriteFile(filepath.Join(dead, lockName), nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	next := open()
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a dead watcher is still there: %v", err)
	}
	for _, w := range []*Watcher{alive, next} {
		if _, err := w.Changed(t.Context()); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A symlink in a folder's place leads the watch elsewhere.
func TestSymlinkInAFoldersPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.mkdir("d")
	w.must(os.Symlink("d", w.path("s")))
	w.add("", "s")
	if _, err := w.Changed(t.Context()); !errors.Is(err, errDoubt) {
		t.Errorf("got %v, want doubt", err)
	}
	w.add("", "d")
	w.write("d/new")
	w.want("d", "d/new*")
}
