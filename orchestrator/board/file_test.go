package board

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"muntin/internal/durable"
)

func newFile(t *testing.T, text string) File {
	t.Helper()
	dir := t.TempDir()
	f := File{Path: filepath.Join(dir, "TODO.md"), LockPath: filepath.Join(dir, "state", "todo.lock")}
	if text != "" {
		if err := os.WriteFile(f.Path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func content(t *testing.T, f File) string {
	t.Helper()
	b, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFileUpdate(t *testing.T) {
	t.Parallel()
	f := newFile(t, "- [ ] a ^a\n")
	b, changed, err := f.Update(t.Context(), func(b *Board) error { return b.SetState("a", Done) })
	if err != nil || !changed || string(b.Bytes()) != "- [x] a ^a\n" || content(t, f) != "- [x] a ^a\n" {
		t.Errorf("changed %v, %v, %q", changed, err, content(t, f))
	}
	info, err := os.Stat(f.Path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	_, changed, err = f.Update(t.Context(), func(b *Board) error { return b.SetState("a", Done) })
	if after, _ := os.Stat(f.Path); err != nil || changed || !os.SameFile(info, after) {
		t.Errorf("without a change: changed %v, %v", changed, err)
	}
	no := errors.New("no")
	_, changed, err = f.Update(t.Context(), func(b *Board) error {
		if err := b.SetState("a", Open); err != nil {
			return err
		}
		return no
	})
	if !errors.Is(err, no) || changed || content(t, f) != "- [x] a ^a\n" {
		t.Errorf("after an error: changed %v, %v, %q", changed, err, content(t, f))
	}
}

func TestFileMissing(t *testing.T) {
	t.Parallel()
	f := newFile(t, "")
	if _, err := f.Read(); !errors.Is(err, ErrNoFile) || !strings.Contains(err.Error(), f.Path) {
		t.Errorf("Read: %v", err)
	}
	if _, _, err := f.Update(t.Context(), func(*Board) error { return nil }); !errors.Is(err, ErrNoFile) {
		t.Errorf("Update: %v", err)
	}
	for range 2 {
		if err := f.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Update(t.Context(), add(NewTask{Text: "new"})); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := content(t, f), "# To do\n\n- [ ] new ^new\n- [ ] new ^new-2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFileSymbolicLink(t *testing.T) {
	t.Parallel()
	f := newFile(t, "- [ ] a ^a\n")
	link := File{Path: filepath.Join(filepath.Dir(f.Path), "link.md"), LockPath: f.LockPath}
	if err := os.Symlink("TODO.md", link.Path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := link.Update(t.Context(), func(b *Board) error { return b.SetState("a", Done) }); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link.Path); err != nil || info.Mode()&os.ModeSymlink == 0 || content(t, f) != "- [x] a ^a\n" {
		t.Errorf("the link became %v, its target %q", info.Mode(), content(t, f))
	}
}

// TestFileForeignWriter: an editor that knows no lock saves between reading and
// writing; both changes must be there afterwards.
func TestFileForeignWriter(t *testing.T) {
	t.Parallel()
	f := newFile(t, "- [ ] a ^a\n")
	calls := 0
	_, changed, err := f.Update(t.Context(), func(b *Board) error {
		if calls++; calls == 1 {
			if err := os.WriteFile(f.Path, []byte("# Mine\n- [ ] a ^a\n"), 0o640); err != nil {
				return err
			}
		}
		return b.SetState("a", Done)
	})
	if err != nil || !changed || calls != 2 || content(t, f) != "# Mine\n- [x] a ^a\n" {
		t.Errorf("%d calls, changed %v, %v, %q", calls, changed, err, content(t, f))
	}
	_, _, err = f.Update(t.Context(), func(b *Board) error {
		if err := os.WriteFile(f.Path, append([]byte("x\n"), b.Bytes()...), 0o640); err != nil {
			return err
		}
		return b.SetState("a", Open)
	})
	if err == nil || !strings.Contains(err.Error(), "all the time") {
		t.Errorf("against a writer without end: %v", err)
	}
}

func TestFileLocked(t *testing.T) {
	t.Parallel()
	f := newFile(t, "- [ ] a ^a\n")
	if err := f.Create(t.Context()); err != nil { // makes the lock's folder
		t.Fatal(err)
	}
	held, err := durable.Lock(t.Context(), f.LockPath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := held.Unlock(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.Update(ctx, func(*Board) error { return nil }); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("got %v", err)
	}
}

// TestFileManyWriters: no task of many concurrent writers is lost, and one
// task is claimed once.
func TestFileManyWriters(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 5
	f := newFile(t, "- [ ] prize ^prize\n")
	taken := errors.New("taken")
	var mu sync.Mutex
	won := 0
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			name := fmt.Sprint("agent-", i)
			for n := range each {
				if _, _, err := f.Update(t.Context(), add(NewTask{Text: fmt.Sprint("task ", i, n)})); err != nil {
					t.Error(err)
				}
			}
			_, _, err := f.Update(t.Context(), func(b *Board) error {
				if p, _ := b.Task("prize"); p.State != Open {
					return taken
				}
				return errors.Join(b.SetState("prize", Claimed), b.SetClaim("prize", name))
			})
			if err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			} else if !errors.Is(err, taken) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Tasks()) != writers*each+1 || won != 1 || len(b.Problems) > 0 {
		t.Errorf("%d tasks, claimed %d times, problems %v", len(b.Tasks()), won, b.Problems)
	}
	if p, _ := b.Task("prize"); p.Claim == "" || len(p.Assignees) != 1 {
		t.Errorf("the prize: %+v", p)
	}
}
