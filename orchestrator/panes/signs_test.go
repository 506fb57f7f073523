package panes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/recipes"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// borders lists the panes' names with what their borders say.
func borders(t *testing.T, s *tmux.Server) string {
	t.Helper()
	replies, err := s.Do(t.Context(), tmux.Cmd{"list-panes", "-a", "-F", "#{@muntin_name}:" + tmux.BorderFormat + "|#{@muntin_window}|#{@muntin}"})
	if err != nil {
		t.Fatal(err)
	}
	return replies[0]
}

func TestSigns(t *testing.T) {
	t.Parallel()
	server := tmuxtest.Server(t)
	host := New(server)
	f := fleet(t, 2, 200, recipes.LayoutAuto)
	if err := host.Start(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	signs := host.NewSigns(f.Session)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); signs.Run(ctx) }()
	defer func() { stop(); <-done }()

	trap := filepath.Join(t.TempDir(), "trap")
	bad := "#(touch " + trap + ") #[fg=red]#{pane_id}"
	signs.Update("run "+tmux.Escape(bad), map[string]Sign{
		"a00": {State: "working", Mark: "●", Style: "fg=colour4", Task: bad, Since: "12:00"},
		"a01": {State: "waiting", Mark: "?", Style: "fg=colour3"},
		"new": {State: "starting"}, // its pane is still to come
	})
	has := func(want string) func() bool {
		return func() bool { return strings.Contains(borders(t, server), want) }
	}
	tmuxtest.Wait(t, "the first sign", has("working#[default] #[dim]12:00#[nodim] ^##(touch"))
	if got := borders(t, server); !strings.Contains(got, "#[fg=colour3]waiting#[default]") || !strings.Contains(got, "|1 waiting 1 working|run ##(touch") {
		t.Errorf("borders:\n%s", got)
	}
	signs.Update("run", map[string]Sign{"a00": {State: "idle"}, "a01": {State: "idle"}})
	tmuxtest.Wait(t, "the second sign", has("idle#[default]"))
	if got := borders(t, server); strings.Contains(got, "touch") || strings.Contains(got, "waiting") {
		t.Errorf("borders keep what was:\n%s", got)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("a task's text was run")
	}
}

// A sign that did not change is not set again: it would make tmux draw anew.
func TestSignsAreSetOnce(t *testing.T) {
	t.Parallel()
	server := tmuxtest.Server(t)
	host := New(server)
	f := fleet(t, 1, 200, recipes.LayoutAuto)
	if err := host.Start(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	signs := host.NewSigns(f.Session)
	agents := map[string]Sign{"a00": {State: "idle"}}
	signs.Update("run", agents)
	if err := signs.set(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Do(t.Context(), tmux.Cmd{"set-option", "-t", f.Session, "@muntin", "changed by hand"}); err != nil {
		t.Fatal(err)
	}
	<-signs.wake
	signs.Update("run", map[string]Sign{"a00": {State: "idle"}})
	select {
	case <-signs.wake:
		t.Error("the same signs are set again")
	default:
	}
	if err := signs.set(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := borders(t, server); !strings.Contains(got, "changed by hand") {
		t.Errorf("it was set again:\n%s", got)
	}
	if err := host.Stop(t.Context(), f.Session); err != nil {
		t.Fatal(err)
	}
	signs.Update("other", agents)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	signs.Run(ctx) // a server that is gone is no trouble
}
