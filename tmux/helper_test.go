package tmux_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

func idle() []string { return []string{"sleep", "1000"} }

// session makes a session of one pane that runs argv.
func session(t *testing.T, s *tmux.Server, name string, argv ...string) (tmux.SessionID, tmux.WindowID, tmux.PaneRef) {
	t.Helper()
	if len(argv) == 0 {
		argv = idle()
	}
	id, window, pane, err := s.NewSession(t.Context(), tmux.SessionSpec{Name: name, Dir: t.TempDir(), Argv: argv})
	if err != nil {
		t.Fatal(err)
	}
	return id, window, pane
}

func snapshot(t *testing.T, s *tmux.Server) tmux.Snapshot {
	t.Helper()
	sn, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sn
}

func pane(t *testing.T, s *tmux.Server, ref tmux.PaneRef) tmux.Pane {
	t.Helper()
	p, err := snapshot(t, s).Pane(ref)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// waitText waits until the pane's screen holds text.
func waitText(t *testing.T, s *tmux.Server, ref tmux.PaneRef, text string) string {
	t.Helper()
	var screen string
	defer func() {
		if t.Failed() {
			t.Logf("the pane shows:\n%s", screen)
		}
	}()
	tmuxtest.Wait(t, "the pane shows "+text, func() bool {
		var err error
		if screen, err = s.Capture(t.Context(), ref, tmux.CaptureOptions{Join: true, History: -1}); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(screen, text)
	})
	return screen
}

// waitFile waits until the file holds want.
func waitFile(t *testing.T, path, want string) {
	t.Helper()
	var got string
	defer func() {
		if t.Failed() {
			t.Logf("file holds %d bytes, want %d:\n%q\n%q", len(got), len(want), clip(got), clip(want))
		}
	}()
	tmuxtest.Wait(t, filepath.Base(path)+" is complete", func() bool {
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		got = string(data)
		return got == want
	})
}

func clip(s string) string { return s[:min(len(s), 400)] }

// mustBe fails unless err is of the kind.
func mustBe(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: error %v, want %v", what, err, kind)
	}
}
