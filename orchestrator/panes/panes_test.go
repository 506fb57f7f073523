package panes

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"muntin/orchestrator"
	"muntin/recipes"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

func fleet(t *testing.T, n, cols int, layout string) orchestrator.Fleet {
	dir := t.TempDir()
	f := orchestrator.Fleet{
		Session: "muntin-test-run", Label: "a #{label} of #(touch x) words", Cols: cols, Rows: 50, Layout: recipes.Layout{Style: layout},
		Board: orchestrator.Pane{Name: "board", Argv: []string{"sleep", "1000"}, Dir: dir},
	}
	for i := range n {
		f.Agents = append(f.Agents, orchestrator.Pane{Name: fmt.Sprintf("a%02d", i), Argv: []string{"sleep", "1000"}, Dir: dir})
	}
	return f
}

func TestWindows(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		n, cols int
		layout  string
		want    []int // panes a window
	}{
		"few":             {3, 120, recipes.LayoutAuto, []int{4}},
		"few, narrow":     {3, 80, recipes.LayoutAuto, []int{1, 3}},
		"many":            {10, 200, recipes.LayoutAuto, []int{1, 10}},
		"together":        {10, 80, recipes.LayoutTogether, []int{11}},
		"window an agent": {2, 200, recipes.LayoutWindows, []int{1, 1, 1}},
	} {
		got := windows(fleet(t, tc.n, tc.cols, tc.layout))
		if len(got) != len(tc.want) {
			t.Errorf("%s: %d windows, want %v", name, len(got), tc.want)
			continue
		}
		for i, w := range got {
			if len(w.Panes) != tc.want[i] {
				t.Errorf("%s: window %d has %d panes, want %d", name, i, len(w.Panes), tc.want[i])
			}
		}
	}
}

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	server := tmuxtest.Server(t)
	host := New(server)
	f := fleet(t, 12, 200, recipes.LayoutAuto)
	if err := host.Start(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	snapshot, err := server.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]tmux.Pane{}
	for _, p := range snapshot.Panes {
		names[p.Meta["name"]] = p
	}
	if len(names) != 13 || names["a11"].Dead {
		t.Errorf("%d panes of 13: %v", len(names), names)
	}
	if err := host.Start(t.Context(), f); err == nil {
		t.Error("the same session was started twice")
	}
	if ok, err := server.HasSession(t.Context(), f.Session); !ok || err != nil {
		t.Errorf("the first session was ended by the second start: %v", err)
	}
	for range 2 { // the second time it is not there, which is well
		if err := host.Stop(t.Context(), f.Session); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := server.HasSession(t.Context(), f.Session); ok || err != nil && !isGone(err) {
		t.Errorf("the session is there: %v, %v", ok, err)
	}
}

// A server ends with its last session. A host that has met one starts the next.
func TestStartAfterTheServerHasEnded(t *testing.T) {
	t.Parallel()
	host := New(tmuxtest.Server(t))
	f := fleet(t, 1, 200, recipes.LayoutAuto)
	for range 3 {
		if err := host.Start(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if err := host.Stop(t.Context(), f.Session); err != nil {
			t.Fatal(err)
		}
	}
}

// Ends of agents' programs are told: those before, those by status, by
// signal and with the pane; not the board's.
func TestWatchTellsOfEnds(t *testing.T) {
	t.Parallel()
	server := tmuxtest.Server(t)
	host := New(server)
	f := fleet(t, 4, 200, recipes.LayoutAuto)
	f.Agents[0].Argv = []string{"sh", "-c", "exit 0"}
	if err := host.Start(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	refs := map[string]tmux.Pane{}
	tmuxtest.Wait(t, "the first has ended", func() bool {
		snapshot, err := server.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range snapshot.Panes {
			refs[p.Meta["name"]] = p
		}
		return refs["a00"].Dead
	})
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan string, 16)
	done := make(chan error, 1)
	go func() {
		done <- host.Watch(ctx, f.Session, func(name string) error { told <- name; return nil })
	}()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-told:
			if got != want {
				t.Errorf("told of %s, want %s", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("nothing was told of %s", want)
		}
	}
	next("a00")
	for _, name := range []string{"board", "a01"} {
		if err := syscall.Kill(refs[name].PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	next("a01")
	if err := server.KillPane(t.Context(), refs["a02"].Ref); err != nil {
		t.Fatal(err)
	}
	next("a02")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch: %v", err)
	}
	if server.Connected() {
		t.Error("the connection was left")
	}
}

func TestWatchEndsWithTheServer(t *testing.T) {
	t.Parallel()
	server := tmuxtest.Server(t)
	host := New(server)
	if err := host.Watch(t.Context(), "x", func(string) error { return nil }); !errors.Is(err, tmux.ErrNoServer) {
		t.Errorf("without a server: %v", err)
	}
	f := fleet(t, 1, 200, recipes.LayoutAuto)
	if err := host.Start(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- host.Watch(t.Context(), f.Session, func(string) error { return nil }) }()
	tmuxtest.Wait(t, "it watches", server.Connected)
	if err := server.KillServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
