package panes

import (
	"maps"
	"slices"
	"syscall"
	"testing"

	"muntin/orchestrator"
	"muntin/recipes"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// What is missing comes back: a pane whose program has ended, one that is gone,
// all of a session, a server. What lives is not touched.
func TestRestore(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{recipes.LayoutTogether, recipes.LayoutWindows, recipes.LayoutAuto} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			server := tmuxtest.Server(t)
			host := New(server)
			f := fleet(t, 3, 80, layout)
			if err := host.Start(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			before := panesOf(t, host, f.Session)
			if err := syscall.Kill(before["a00"].PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := server.KillPane(t.Context(), before["a01"].Ref); err != nil {
				t.Fatal(err)
			}
			tmuxtest.Wait(t, "one has ended, one is gone", func() bool {
				alive, err := host.Panes(t.Context(), f.Session)
				if err != nil {
					t.Fatal(err)
				}
				return maps.Equal(alive, map[string]bool{"board": true, "a00": false, "a02": true})
			})
			restore(t, host, f, "a00", "a01")
			after := panesOf(t, host, f.Session)
			if after["a02"].PID != before["a02"].PID || after["board"].PID != before["board"].PID || after["a00"].Ref != before["a00"].Ref {
				t.Errorf("what lived was changed, or the dead pane was not used again:\n%v\n%v", before, after)
			}
			if err := server.KillServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			if alive, err := host.Panes(t.Context(), f.Session); err != nil || len(alive) > 0 {
				t.Errorf("without a server: %v, %v", alive, err)
			}
			if err := host.Restore(t.Context(), f, []string{"a01", "a02"}); err != nil {
				t.Fatal(err)
			}
			again, err := server.Reopen(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			restore(t, New(again), f, "board", "a00")
		})
	}
}

// restore brings back panes and makes sure that they run then.
func restore(t *testing.T, host *Host, f orchestrator.Fleet, names ...string) {
	t.Helper()
	if err := host.Restore(t.Context(), f, names); err != nil {
		t.Fatal(err)
	}
	alive, err := host.Panes(t.Context(), f.Session)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !alive[name] {
			t.Errorf("%s does not run: %v", name, slices.Sorted(maps.Keys(alive)))
		}
	}
}

func panesOf(t *testing.T, host *Host, session string) map[string]tmux.Pane {
	t.Helper()
	there, err := host.find(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	return there
}
