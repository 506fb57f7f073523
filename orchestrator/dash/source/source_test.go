package source

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/internal/state"
	"muntin/orchestrator"
	"muntin/orchestrator/dash"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	flag.Parse()
	if what := os.Getenv("SOURCE_TEST_CHILD"); what != "" {
		os.Exit(benchChild(what))
	}
	if dir := os.Getenv("SOURCE_TEST_RUN"); dir != "" {
		os.Exit(child(dir))
	}
	goleak.VerifyTestMain(m)
}

// recorded is a run as its journal left it, with a person asked for an approval.
func recorded(dir string) (orchestrator.Run, orchestrator.State, error) {
	run := orchestrator.Run{Info: orchestrator.Info{
		Name: "demo", From: "demo", Repo: "/proj", Root: dir, Branch: "muntin/demo/merged",
		Plan: filepath.Join(dir, "PLAN.md"), Todo: filepath.Join(dir, "TODO.md"), Created: moment().Add(-90 * time.Second),
	}, Dir: state.RunDir{Name: "demo", Path: dir}}
	st, err := orchestrator.Now(run)
	return run, st, err
}

// moment is when the recorded run is looked at.
func moment() time.Time { return time.Date(2026, 11, 30, 20, 42, 10, 0, time.UTC) }

// child shows the recorded run until its pane is gone.
func child(dir string) int {
	run, st, err := recorded(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	recipe, err := run.Recipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s := New(Options{Run: run, Recipe: recipe, Now: moment})
	views := make(chan dash.View, 1)
	views <- s.View(st, nil)
	err = dash.Run(context.Background(), dash.Options{In: os.Stdin, Out: os.Stdout, Views: views, Env: os.Environ(), Now: moment})
	if err != nil && !errors.Is(err, dash.ErrQuit) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// The screens of a recorded run in a real tmux, at the sizes that terminals have.
func TestGoldenScreens(t *testing.T) {
	t.Parallel()
	server := tmuxtest.Server(t)
	dir, err := filepath.Abs("testdata/run")
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i, size := range [][2]int{{60, 15}, {80, 24}, {120, 40}, {200, 50}, {300, 100}} {
		name := fmt.Sprintf("%dx%d", size[0], size[1])
		_, _, pane, err := server.NewSession(t.Context(), tmux.SessionSpec{
			Name: "golden-" + name, Cols: size[0], Rows: size[1] + 1, Dir: dir, Argv: []string{exe, "-test.run=^$"}, // one row is the status line's
			Env: map[string]string{"SOURCE_TEST_RUN": dir, "TZ": "UTC", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"},
		})
		if err != nil {
			t.Fatal(err)
		}
		tabs := []struct{ key, name, until string }{{"1", "fleet", "TASK"}, {"2", "board", "▌ ● Parse"}, {"6", "needs", "Needs a person"}, {"7", "story", "▌ 20:41"}}
		if i != 1 {
			tabs = tabs[:1+i%2]
		}
		for _, tab := range tabs {
			if err := server.SendKeys(t.Context(), pane, []byte(tab.key)); err != nil {
				t.Fatal(err)
			}
			golden(t, tab.name+"-"+name+".txt", settled(t, server, pane, tab.until))
		}
	}
}

// settled is a pane's screen when it has shown a text and did not change any more.
func settled(t *testing.T, server *tmux.Server, pane tmux.PaneRef, until string) string {
	t.Helper()
	last, same := "", 0
	tmuxtest.Wait(t, "the screen with "+until, func() bool {
		text, err := server.Capture(t.Context(), pane, tmux.CaptureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if text == last && strings.Contains(text, until) {
			same++
		} else {
			last, same = text, 0
		}
		return same >= 5
	})
	return last
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", name, got)
	}
}
