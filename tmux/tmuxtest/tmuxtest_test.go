package tmuxtest_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// Server, folder and even a program that ignores its hang-up are gone after
// the test.
func TestServerIsReaped(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	var socket string
	t.Run("user", func(t *testing.T) {
		s := tmuxtest.Server(t)
		socket = s.Socket()
		argv := []string{"sh", "-c", `trap '' HUP TERM; echo $$ >"$1"; while :; do sleep 0.1; done`, "sh", pidFile}
		if _, _, _, err := s.NewSession(t.Context(), tmux.SessionSpec{Name: "a", Dir: "/", Argv: argv}); err != nil {
			t.Fatal(err)
		}
		tmuxtest.Wait(t, "the program runs", func() bool { data, _ := os.ReadFile(pidFile); return len(data) > 0 })
	})
	data, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	tmuxtest.Wait(t, "the program is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	if _, err := os.Stat(filepath.Dir(socket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the server's folder is there: %v", err)
	}
}
