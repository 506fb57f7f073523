// Package tmuxtest gives each test a real tmux server of its own.
package tmuxtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muntin/internal/proc"
	"muntin/tmux"
)

const reapTimeout = 10 * time.Second

// BinVar names the environment variable with the tmux binaries to test with,
// separated by ':' as in PATH. Unset: tmux from PATH.
const BinVar = "TMUX_TEST_BIN"

// Bins are the tmux binaries to test with. The test fails, with what to do, if
// one of them is missing: a test of tmux that was skipped would prove nothing.
func Bins(t testing.TB) []string {
	t.Helper()
	bins := filepath.SplitList(os.Getenv(BinVar))
	if len(bins) == 0 {
		bins = []string{"tmux"}
	}
	for _, bin := range bins {
		if _, err := proc.Run(t.Context(), proc.Spec{Argv: []string{bin, "-V"}, Timeout: reapTimeout}); err != nil {
			hint := "apt-get install tmux"
			if runtime.GOOS == "darwin" {
				hint = "brew install tmux"
			}
			t.Fatalf("tmux is needed for this test: %v (install it: %s; or set %s)", err, hint, BinVar)
		}
	}
	return bins
}

// Server returns a client of a private server, which starts with the first
// session. Whatever runs on it is killed when the test ends, however it ends.
func Server(t testing.TB) *tmux.Server {
	t.Helper()
	return Open(t, tmux.Options{})
}

// Each runs the test once for every binary of Bins.
func Each(t *testing.T, test func(t *testing.T, s *tmux.Server)) {
	t.Helper()
	for _, bin := range Bins(t) {
		res, err := proc.Run(t.Context(), proc.Spec{Argv: []string{bin, "-V"}, Timeout: reapTimeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.ReplaceAll(strings.TrimSpace(string(res.Stdout)), " ", "-"), func(t *testing.T) { test(t, Open(t, tmux.Options{Bin: bin})) })
	}
}

// Open is Server with options. Those left empty get private values; a socket
// given must be one in a folder that belongs to the test.
func Open(t testing.TB, o tmux.Options) *tmux.Server {
	t.Helper()
	if o.Bin == "" {
		o.Bin = Bins(t)[0]
	}
	if o.Socket == "" {
		o.Socket = filepath.Join(Dir(t), "s")
	}
	if o.Env == nil {
		o.Env = Env()
	}
	// Reap before the folder goes; cleanups run last to first.
	t.Cleanup(func() { reap(t, o) })
	s, err := tmux.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("opening a tmux server for the test: %v", err)
	}
	return s
}

// Env is this process's environment without tmux's variables and with a UTF-8
// locale.
func Env() []string {
	var env []string
	for _, kv := range tmux.OutsideEnv(os.Environ()) {
		if !strings.HasPrefix(kv, "LC_") && !strings.HasPrefix(kv, "LANG=") {
			env = append(env, kv)
		}
	}
	return append(env, "LC_ALL=C.UTF-8")
}

// Dir is a folder with a short path, as sockets need one: t.TempDir holds the
// test's name and is too long on macOS. It is removed when the test ends.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "mt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing the test's folder: %v", err)
		}
	})
	return dir
}

// reap kills the server on the socket and the programs in its panes.
func reap(t testing.TB, o tmux.Options) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), reapTimeout)
	defer cancel()
	run := func(args ...string) (string, error) {
		argv := append([]string{o.Bin, "-u", "-S", o.Socket}, args...)
		res, err := proc.Run(ctx, proc.Spec{Argv: argv, Env: o.Env})
		return string(res.Stdout), err
	}
	out, err := run("display-message", "-p", "#{pid}", ";", "list-panes", "-a", "-F", "#{pane_pid}")
	var exit *proc.ExitError
	if errors.As(err, &exit) && out == "" {
		return // no server
	}
	_, _ = run("kill-server") // its end is looked at below
	silent := poll(ctx, func() bool { _, err := run("display-message", "-p", ""); return errors.As(err, &exit) })
	for i, word := range strings.Fields(out) {
		pid, err := strconv.Atoi(word)
		if err != nil || pid <= 1 {
			continue
		}
		if i == 0 && !silent {
			t.Errorf("tmux server %d did not end with kill-server", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if i > 0 {
			// A pane's program leads a session and group of its own. One
			// that ignores SIGHUP is ended here.
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}
}

// poll calls ok until it is true or ctx ends, and reports which.
func poll(ctx context.Context, ok func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// Wait calls ok until it is true, and fails the test if it is not within ten
// seconds. what completes the sentence "waiting until …".
func Wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), reapTimeout)
	defer cancel()
	if !poll(ctx, ok) {
		t.Fatalf("waiting until %s: %v", what, ctx.Err())
	}
}
