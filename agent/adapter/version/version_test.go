package version_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muntin/agent/adapter/version"
)

// program writes a program that counts how often it is asked.
func program(t *testing.T, dir, says string, made time.Time) {
	t.Helper()
	path := filepath.Join(dir, "tool")
	text := "#!/bin/sh\necho x >> " + dir + "/asked\nprintf '%s\\nmore\\n' '" + says + "'\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := os.Chtimes(path, made, made); err != nil {
		t.Fatal(err)
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "tool"), filepath.Join(bin, "tool")); err != nil {
		t.Fatal(err)
	}
	cache := version.Cache{Path: filepath.Join(dir, "cache", "versions.json")}
	env := []string{"PATH=/nowhere:" + bin + ":/bin:/usr/bin"}
	ask := func(want string, asked int) {
		t.Helper()
		got, err := cache.Of(t.Context(), "tool", env)
		log, _ := os.ReadFile(filepath.Join(dir, "asked"))
		if n := strings.Count(string(log), "x"); err != nil || got != want || n != asked {
			t.Errorf("%q, %v, asked %d times; want %q and %d", got, err, n, want, asked)
		}
	}
	long := time.Now().Add(-time.Hour)
	program(t, dir, "tool 1.2.3", long)
	ask("tool 1.2.3", 1)
	ask("tool 1.2.3", 1)
	program(t, dir, "tool 1.2.4", long.Add(time.Minute)) // an update, behind the link
	ask("tool 1.2.4", 2)
	if err := os.WriteFile(cache.Path, []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask("tool 1.2.4", 3)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if got, err := cache.Of(t.Context(), "tool", env); got != "tool 1.2.4" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
	if _, err := cache.Of(t.Context(), "nothing", env); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("what is not there: %v", err)
	}
}
