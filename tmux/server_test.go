package tmux_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"muntin/internal/proc"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := tmuxtest.Dir(t)
	_, err := tmux.Open(t.Context(), tmux.Options{Bin: "no-such-tmux", Socket: filepath.Join(dir, "s")})
	mustBe(t, "no binary", err, tmux.ErrNoTmux)

	old := filepath.Join(dir, "tmux-old")
	script := "#!/bin/sh\n[ \"$1\" = -V ] && echo 'tmux 3.1c' && exit\necho 'no server running on x' >&2\nexit 1\n"
	if err := os.WriteFile(old, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = tmux.Open(t.Context(), tmux.Options{Bin: old, Socket: filepath.Join(dir, "s")})
	mustBe(t, "old binary", err, tmux.ErrTooOld)

	_, err = tmux.Open(t.Context(), tmux.Options{Socket: filepath.Join(dir, strings.Repeat("x", 100))})
	if err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("long socket path: %v", err)
	}
	_, err = tmux.Open(t.Context(), tmux.Options{Bin: tmuxtest.Bins(t)[0], Socket: filepath.Join(dir, "s"), Dir: filepath.Join(dir, "gone")})
	if err == nil || errors.Is(err, tmux.ErrNoTmux) {
		t.Errorf("missing folder: %v", err)
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	if sn := snapshot(t, s); len(sn.Panes) != 0 || sn.Epoch != (tmux.Epoch{}) {
		t.Errorf("snapshot %+v of no server", sn)
	}
	_, err := s.Do(t.Context(), tmux.Cmd{"list-sessions"})
	mustBe(t, "Do", err, tmux.ErrNoServer)
	if err := s.KillServer(t.Context()); err != nil {
		t.Error(err)
	}
	if ok, err := s.HasSession(t.Context(), "a"); ok || err != nil {
		t.Error(ok, err)
	}
	if _, err := os.Stat(s.Socket()); err == nil {
		t.Error("a server was started")
	}
}

// Ids restart with the server. A reference to a pane of the old server must
// not reach the pane that has its id now.
func TestRestartMakesReferencesStale(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		_, window, old := session(t, s, "a")
		if err := syscall.Kill(s.Epoch().PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		tmuxtest.Wait(t, "the server is gone", func() bool {
			_, err := s.Snapshot(ctx)
			return errors.Is(err, tmux.ErrNoServer)
		})

		again, err := s.Reopen(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, _, now := session(t, again, "a")
		if now.ID != old.ID || now.Epoch == old.Epoch {
			t.Fatalf("old %+v, new %+v", old, now)
		}
		mustBe(t, "old client, old reference", s.KillPane(ctx, old), tmux.ErrStale)
		mustBe(t, "old client, new reference", s.KillPane(ctx, now), tmux.ErrStale)
		mustBe(t, "old client, window", s.SelectWindow(ctx, window), tmux.ErrStale)
		mustBe(t, "new client, old reference", again.KillPane(ctx, old), tmux.ErrStale)
		mustBe(t, "new client, old reference", again.Paste(ctx, old, "x"), tmux.ErrStale)
		_, err = snapshot(t, again).Pane(old)
		mustBe(t, "lookup", err, tmux.ErrStale)
		if pane(t, again, now).Dead {
			t.Error("the new pane was hit")
		}
		if err := again.KillServer(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A user's own configuration is not read; a server that runs already is used
// as it is, with any indexes and hooks, and never killed.
func TestForeignServer(t *testing.T) {
	t.Parallel()
	dir := tmuxtest.Dir(t)
	conf := "set -g base-index 7\nset -g pane-base-index 3\nset -g automatic-rename on\nset -g renumber-windows on\n" +
		"set-hook -g after-new-window 'display-message -p hooked'\n"
	confPath := filepath.Join(dir, "user.conf")
	if err := os.WriteFile(confPath, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, bin := filepath.Join(dir, "s"), tmuxtest.Bins(t)[0]
	tmuxtest.Open(t, tmux.Options{Socket: socket}) // reaps it
	argv := []string{bin, "-u", "-S", socket, "-f", confPath, "new-session", "-d", "-s", "own", "sleep", "1000"}
	if _, err := proc.Run(t.Context(), proc.Spec{Argv: argv, Env: tmuxtest.Env()}); err != nil {
		t.Fatal(err)
	}
	s := tmuxtest.Open(t, tmux.Options{Socket: socket})
	before, err := s.Do(t.Context(), tmux.Cmd{"show-options", "-g"}, tmux.Cmd{"show-options", "-gw"}, tmux.Cmd{"show-options", "-s"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Spawn(t.Context(), tmux.SessionSpec{Name: "fleet", Dir: dir, Argv: idle()}, []tmux.WindowSpec{
		{Name: "agents", Panes: []tmux.PaneSpec{{Argv: idle(), Meta: map[string]string{"k": "v"}}, {Argv: idle()}, {Argv: idle()}}},
	})
	if err != nil || len(out.Panes) != 3 || len(out.Windows) != 2 {
		t.Fatal(out, err)
	}
	for i, ref := range out.Panes {
		if p := pane(t, s, ref); p.Index != i+3 || p.WindowName != "agents" || !p.Ours {
			t.Errorf("pane %d: %+v", i, p)
		}
	}
	after, err := s.Do(t.Context(), tmux.Cmd{"show-options", "-g"}, tmux.Cmd{"show-options", "-gw"}, tmux.Cmd{"show-options", "-s"})
	if err != nil || strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("global options changed (%v)", err)
	}
	if s.Ours() {
		t.Error("the server counts as ours")
	}
	mustBe(t, "KillServer", s.KillServer(t.Context()), tmux.ErrForeign)
	if ok, err := s.HasSession(t.Context(), "own"); !ok {
		t.Error("the user's session is gone", err)
	}
}

func TestUserConfigurationIsNotRead(t *testing.T) {
	t.Parallel()
	home := tmuxtest.Dir(t)
	canary := filepath.Join(home, "canary")
	for _, path := range []string{".tmux.conf", ".config/tmux/tmux.conf"} {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("run-shell 'touch "+canary+"'\nset -g history-limit 7\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := append(tmuxtest.Env(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "TMUX=/nowhere,1,0")
	s := tmuxtest.Open(t, tmux.Options{Env: env})
	_, _, ref := session(t, s, "a")
	replies, err := s.Do(t.Context(),
		tmux.Cmd{"list-panes", "-t", string(ref.ID), "-F", "#{history_limit} #{E:default-terminal} #{window_name} #{pane_in_mode}"},
		tmux.Cmd{"show-environment", "-g"})
	if err != nil {
		t.Fatal(err)
	}
	if f := strings.Fields(replies[0]); len(f) != 4 || f[0] != "5000" || !strings.HasSuffix(f[1], "-256color") || f[2] != "sleep" || f[3] != "0" {
		t.Errorf("first pane has %q: our configuration did not come first, or has an error", replies[0])
	}
	if strings.Contains(replies[1], "TMUX=/nowhere") {
		t.Error("TMUX was passed on to the server")
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("the user's configuration was read")
	}
	if out, err := s.Do(t.Context(), tmux.Cmd{"source-file", s.Socket() + ".conf"}); err != nil || out[0] != "" {
		t.Errorf("our configuration is not well: %q, %v", out, err)
	}
}

func TestKillServerSparesForeignSessions(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		session(t, s, "a")
		if _, err := s.Do(ctx, tmux.Cmd{"new-session", "-d", "-s", "person", "--", "sleep", "1000"}); err != nil {
			t.Fatal(err)
		}
		mustBe(t, "KillServer", s.KillServer(ctx), tmux.ErrForeign)
		person, err := s.FindSession(ctx, "person")
		if err != nil || person.Ours {
			t.Fatal(person, err)
		}
		if err := s.KillSession(ctx, person.ID, "person"); err != nil {
			t.Fatal(err)
		}
		if err := s.KillServer(ctx); err != nil {
			t.Fatal(err)
		}
		_, err = s.Snapshot(ctx)
		mustBe(t, "Snapshot", err, tmux.ErrNoServer)
	})
}

// Two processes that start the same server at once share it.
func TestConcurrentStart(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tmuxtest.Dir(t), "s")
	clients := make([]*tmux.Server, 4)
	for i := range clients {
		clients[i] = tmuxtest.Open(t, tmux.Options{Socket: socket})
	}
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i, s := range clients {
		wg.Go(func() {
			sp := tmux.SessionSpec{Name: "s" + string(rune('0'+i)), Dir: dir, Argv: idle(), Meta: map[string]string{"n": "x"}}
			if _, _, _, err := s.NewSession(t.Context(), sp); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range clients {
		if sn := snapshot(t, s); len(sn.Sessions()) != len(clients) || sn.Epoch != clients[0].Epoch() || sn.Panes[3].SessionMeta["n"] != "x" {
			t.Errorf("%+v", sn)
		}
	}
}

// A Spawn that is called off leaves nothing.
func TestCancelLeavesNothing(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	session(t, s, "keep")
	dir := t.TempDir()
	for i := range 8 {
		// Each round calls it off a little later, measured in commands.
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			panes := []tmux.PaneSpec{{Argv: idle()}, {Argv: idle()}, {Argv: idle()}}
			_, err := s.Spawn(ctx, tmux.SessionSpec{Name: "gone", Dir: dir}, []tmux.WindowSpec{{Panes: panes}})
			done <- err
		}()
		for range i {
			if _, err := s.HasSession(t.Context(), "gone"); err != nil {
				t.Error(err)
			}
		}
		cancel()
		err := <-done
		found, findErr := s.FindSession(t.Context(), "gone")
		if errors.Is(findErr, tmux.ErrNoSuchSession) {
			continue
		}
		if findErr != nil {
			t.Fatal(findErr)
		}
		// Made and then not verified any more: the caller has its ids.
		if err != nil && !strings.Contains(err.Error(), "starting tmux session") {
			t.Errorf("round %d: the session is there after %v", i, err)
		}
		if err := s.KillSession(t.Context(), found.ID, "gone"); err != nil {
			t.Fatal(err)
		}
	}
}
