package panes

import (
	"fmt"
	"testing"

	"muntin/orchestrator"
	"muntin/recipes"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

func fleet(t *testing.T, n, cols int, layout recipes.Layout) orchestrator.Fleet {
	dir := t.TempDir()
	f := orchestrator.Fleet{
		Session: "muntin-test-run", Label: "a #{label} of #(touch x) words", Cols: cols, Rows: 50, Layout: layout,
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
		layout  recipes.Layout
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
