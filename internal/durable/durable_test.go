package durable

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const helperEnv = "MUNTIN_DURABLE_HELPER"

// TestMain lets the test binary play another process: it takes the lock that
// the environment names, says so, and holds it until its input ends.
func TestMain(m *testing.M) {
	if path := os.Getenv(helperEnv); path != "" {
		if _, err := TryLock(path); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestWriteFileReplacesAndKeepsMode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if err := WriteFile(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "two" {
		t.Errorf("read %q, %v", got, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v: want the mode it had", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWriteFileKeepsTheOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	uid, gid := -1, os.Getgid()
	if os.Getuid() == 0 {
		uid, gid = 12345, 23456
	} else if groups, err := os.Getgroups(); err == nil && len(groups) > 0 {
		gid = groups[len(groups)-1]
	}
	if err := os.Chown(path, uid, gid); err != nil {
		t.Skip("no other owner or group can be set here:", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	was, is := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
	if is.Uid != was.Uid || is.Gid != was.Gid || after.Mode() != before.Mode() {
		t.Errorf("got %d:%d %v, want %d:%d %v", is.Uid, is.Gid, after.Mode(), was.Uid, was.Gid, before.Mode())
	}
}

func TestExchangeGivesWhatWasThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if old, err := Exchange(path, []byte("one"), 0o600); err != nil || old != nil {
		t.Fatalf("a new file: %q, %v", old, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	old, err := Exchange(path, []byte("two"), 0o600)
	if err != nil || string(old) != "one" {
		t.Errorf("got %q, %v", old, err)
	}
	got, err := os.ReadFile(path)
	info, _ := os.Stat(path)
	if err != nil || string(got) != "two" || info.Mode().Perm() != 0o640 {
		t.Errorf("read %q, mode %v, %v", got, info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := Exchange(filepath.Join(path, "x"), nil, 0o600); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// TestExchangeLosesNothing: whatever several writers put there comes out once.
func TestExchangeLosesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 25 {
				old, err := Exchange(path, fmt.Appendf(nil, "%d-%d", w, i), 0o600)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				seen[string(old)]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	last, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen[string(last)]++
	// Before there is a file, two may both find none; after that each text is given out once.
	delete(seen, "")
	for text, n := range seen {
		if n != 1 {
			t.Errorf("%s came out %d times", text, n)
		}
	}
	if len(seen) < 97 {
		t.Errorf("%d of 100 texts came out", len(seen))
	}
}

func TestWriteFileErrorNamesThePath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "no", "f")
	if err := WriteFile(path, nil, 0o600); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
}

func TestLockIsKeptFromOtherProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), helperEnv+"="+path)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	_, err = TryLock(path)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(child.Process.Pid)) {
		t.Errorf("TryLock: %v, want one that names process %d", err, child.Process.Pid)
	}
	if !Locked(path) {
		t.Error("Locked does not see it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, ErrLocked) {
		t.Errorf("Lock: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	in.Close()
	h, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatalf("after the holder was killed: %v", err)
	}
	if err := h.Unlock(); err != nil || Locked(path) || Locked(path+"-none") {
		t.Errorf("%v; or it is still locked", err)
	}
}

type entry struct{ N int }

func TestLogAppendsWholeLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sub", "log.jsonl")
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second writer got %v", err)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := l.Append(entry{i}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(l.Sync(), l.Close()); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	end, err := Lines(path, 0, func(line []byte, _ int64) error {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		seen[e.N] = true
		return nil
	})
	if err != nil || len(seen) != 50 || end != l.Size() {
		t.Errorf("read %d of 50 to %d of %d, %v", len(seen), end, l.Size(), err)
	}
}

func TestLogRecoversFromATornLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, after, torn string }{
		"empty":       {"", "", ""},
		"whole":       {"{\"N\":1}\n", "{\"N\":1}\n", ""},
		"no newline":  {"{\"N\":1}\n{\"N\":2}", "{\"N\":1}\n{\"N\":2}\n", ""},
		"torn":        {"{\"N\":1}\n{\"N\":", "{\"N\":1}\n", "{\"N\":"},
		"torn, first": {"{\"N", "", "{\"N"},
		"torn, long":  {"{}\n" + strings.Repeat("x", 200<<10), "{}\n", strings.Repeat("x", 200<<10)},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(tc.before), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if l.Torn() != len(tc.torn) {
			t.Errorf("%s: torn %d, want %d", name, l.Torn(), len(tc.torn))
		}
		if err := errors.Join(l.Append(entry{9}), l.Close()); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != tc.after+"{\"N\":9}\n" {
			t.Errorf("%s: the log is %q, %v", name, got, err)
		}
		aside, _ := os.ReadFile(path + ".torn")
		if string(bytes.TrimSuffix(aside, []byte("\n"))) != tc.torn {
			t.Errorf("%s: set aside %d bytes", name, len(aside))
		}
	}
}

func TestLogKeepsCharactersAsTheyAre(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	raw := json.RawMessage(`{"a":"<&>"}`)
	if err := errors.Join(l.Append(raw), l.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(raw)+"\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestLinesLeavesAnUnfinishedLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("a\nbb\nc"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	next, err := Lines(path, 2, func(line []byte, _ int64) error {
		got = append(got, string(line))
		return nil
	})
	if err != nil || next != 5 || strings.Join(got, ",") != "bb" {
		t.Errorf("got %q to %d, %v", got, next, err)
	}
	if next, err := Lines(path+"-none", 7, nil); next != 7 || err != nil {
		t.Errorf("a missing file: %d, %v", next, err)
	}
}

func FuzzLogRecovery(f *testing.F) {
	f.Add([]byte("{}\n{\"a\":1"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, before []byte) {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.Append(entry{1}), l.Close()); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		kept := before[:bytes.LastIndexByte(before, '\n')+1]
		if !bytes.HasPrefix(got, kept) || !bytes.HasSuffix(got, []byte("{\"N\":1}\n")) {
			t.Errorf("%q became %q", before, got)
		}
	})
}

func TestPrivateDir(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	open := filepath.Join(base, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil { //nolint:gosec // it must be refused
		t.Fatal(err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(base, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{open, file, link} {
		if err := PrivateDir(dir); err == nil {
			t.Errorf("%s was taken", dir)
		}
	}
	if err := PrivateDir(filepath.Join(base, "new", "one")); err != nil {
		t.Error(err)
	}
}
