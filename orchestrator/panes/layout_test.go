package panes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"muntin/orchestrator"
	"muntin/recipes"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		n, cols, rows int
		layout        recipes.Layout
		want          []int // panes a window
		note          string
	}{
		"tiled":                 {5, 200, 50, recipes.Layout{Style: "tiled"}, []int{6}, ""},
		"main-vertical":         {3, 200, 50, recipes.Layout{Style: "main-vertical"}, []int{4}, ""},
		"even, narrow":          {9, 80, 24, recipes.Layout{Style: "even-horizontal"}, []int{3, 3, 2, 2}, "10 panes do not fit into a window of 80 x 24 cells: they are in 4"},
		"panes":                 {7, 200, 50, recipes.Layout{Panes: 3, Style: "even-vertical"}, []int{1, 3, 3, 1}, ""},
		"panes, auto":           {4, 200, 50, recipes.Layout{Panes: 4, Style: "auto"}, []int{1, 4}, ""},
		"panes, small terminal": {6, 80, 10, recipes.Layout{Panes: 6, Style: "tiled"}, []int{1, 4, 2}, "a window of 80 x 10 cells has room for 4 panes of the 6 asked for"},
		"panes, too small":      {6, 45, 8, recipes.Layout{Panes: 6, Style: "tiled"}, []int{1, 4, 2}, "a window of 45 x 8 cells has room for 4 panes of the 6 asked for"},
		"a string":              {1, 200, 50, recipes.Layout{Style: withSum("c3cd,200x50,0,0{100x50,0,0,0,99x50,101,0,1}")}, []int{2}, ""},
		"a string for others":   {2, 200, 50, recipes.Layout{Style: withSum("c3cd,200x50,0,0{100x50,0,0,0,99x50,101,0,1}")}, []int{3}, "the tmux layout has 2 panes and the run has 3, with the board: they are tiled"},
	} {
		f := fleet(t, tc.n, tc.cols, "")
		f.Layout, f.Rows = tc.layout, tc.rows
		if note := Note(tc.layout, tc.n, tc.cols, tc.rows); note != tc.note {
			t.Errorf("%s: note %q, want %q", name, note, tc.note)
		}
		server := tmuxtest.Server(t)
		if err := New(server).Start(t.Context(), f); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := panesAWindow(t, server, f.Session); !slices.Equal(got, tc.want) {
			t.Errorf("%s: windows of %v panes, want %v", name, got, tc.want)
		}
	}
}

// panesAWindow counts the panes of a session's windows, in their order.
func panesAWindow(t *testing.T, server *tmux.Server, session string) []int {
	t.Helper()
	sn, err := server.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var order []tmux.WindowID
	count := map[tmux.WindowID]int{}
	for _, p := range sn.Panes {
		if p.SessionName != session {
			continue
		}
		if count[p.Window]++; count[p.Window] == 1 {
			order = append(order, p.Window)
		}
	}
	var out []int
	for _, w := range order {
		out = append(out, count[w])
	}
	return out
}

// A pane that is brought back gets its place: the window looks as before.
func TestRestoreKeepsTheLayout(t *testing.T) {
	t.Parallel()
	const text = "0b58,160x40,0,0{80x40,0,0,0,79x40,81,0[79x20,81,0,1,79x19,81,21,2]}"
	for name, layout := range map[string]recipes.Layout{
		"tiled": {Style: "tiled"}, "main-vertical": {Style: "main-vertical"}, "main-horizontal": {Style: "main-horizontal"},
		"even-horizontal": {Style: "even-horizontal"}, "even-vertical": {Style: "even-vertical"},
		"text": {Style: withSum(text)}, "groups": {Panes: 2, Style: "even-vertical"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := tmuxtest.Server(t)
			host := New(server)
			n := 2
			if layout.Panes > 0 {
				n = 4
			}
			f := fleet(t, n, 160, "")
			f.Rows, f.Layout = 40, layout
			if err := host.Start(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			before := boxes(t, server, f)
			for _, a := range []string{"a00", "a01"} {
				if err := server.KillPane(t.Context(), panesOf(t, host, f.Session)[a].Ref); err != nil {
					t.Fatal(err)
				}
				restore(t, host, f, a)
				if layout.Panes > 0 && a == "a00" {
					continue // it is the second of its window now
				}
				if after := boxes(t, server, f); !slices.Equal(after, before) && layout.Panes == 0 {
					t.Errorf("after %s came back:\n%v\nbefore:\n%v", a, after, before)
				}
			}
			if got := panesAWindow(t, server, f.Session); layout.Panes > 0 && !slices.Equal(got, []int{1, 2, 2}) {
				t.Errorf("windows of %v panes", got)
			}
			if err := host.Close(t.Context(), f.Session, []string{"a01", "nobody"}); err != nil {
				t.Fatal(err)
			}
			if _, there := panesOf(t, host, f.Session)["a01"]; there {
				t.Error("a pane that was closed is there")
			}
		})
	}
}

// boxes are the sizes of a fleet's panes by name.
func boxes(t *testing.T, server *tmux.Server, f orchestrator.Fleet) []string {
	t.Helper()
	there := panesOf(t, New(server), f.Session)
	var out []string
	for _, name := range []string{"board", "a00", "a01", "a02", "a03"} {
		if p, ok := there[name]; ok {
			out = append(out, fmt.Sprintf("%s %d:%dx%d", name, p.Index, p.Cols, p.Rows))
		}
	}
	return out
}

// withSum puts the right checksum in front of a layout: layout_checksum of tmux.
func withSum(s string) string {
	_, rest, _ := strings.Cut(s, ",")
	var sum uint16
	for i := range len(rest) {
		sum = sum>>1 | sum<<15
		sum += uint16(rest[i])
	}
	return fmt.Sprintf("%04x,%s", sum, rest)
}
