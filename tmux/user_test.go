package tmux_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// awkward is a configuration that people really have, all at once.
const awkward = `set -g base-index 7
setw -g pane-base-index 3
setw -g automatic-rename on
setw -g allow-rename on
set -g renumber-windows on
set -g default-shell /bin/false
set -g default-command "exit 1"
set -g destroy-unattached on
setw -g remain-on-exit on
set -g status off
set -g default-size 20x5
set -g set-titles on
set -g @muntin_keys "|theirs|"
set-hook -g after-new-session 'display-message -p hooked'
set-hook -g after-new-window 'display-message -p hooked'
set-hook -g after-split-window 'display-message -p hooked'
set-hook -g after-select-layout 'display-message -p hooked'
set-hook -g after-set-option 'display-message -p hooked'
set-hook -g after-list-panes 'display-message -p hooked'
set-hook -g after-set-buffer 'display-message -p hooked'
set-hook -g after-send-keys 'display-message -p hooked'
set-hook -g pane-exited 'display-message -p hooked'
`

// user starts a server with that configuration and a terminal attached to it,
// as a person's own would be.
func user(t *testing.T, bin string) (s, outer *tmux.Server, window tmux.WindowID) {
	t.Helper()
	dir := tmuxtest.Dir(t)
	conf, socket := filepath.Join(dir, "user.conf"), filepath.Join(dir, "s")
	if err := os.WriteFile(conf, []byte(awkward), 0o600); err != nil {
		t.Fatal(err)
	}
	tmuxtest.Open(t, tmux.Options{Bin: bin, Socket: socket}) // reaps it
	outer = tmuxtest.Open(t, tmux.Options{Bin: bin})
	argv := []string{
		"env", "-u", "TMUX", bin, "-u", "-S", socket, "-f", conf, "new-session", "-s", "own", "sleep", "1000", ";",
		"split-window", "-h", "sleep", "1000", ";", "split-window", "-v", "-l", "7", "sleep", "1000",
	}
	session(t, outer, "terminal", argv...)
	tmuxtest.Wait(t, "the person's panes are there", func() bool {
		var err error
		s, err = tmux.Open(t.Context(), tmux.Options{Bin: bin, Socket: socket, Env: tmuxtest.Env()})
		if err != nil || s.Epoch().PID == 0 {
			return false
		}
		sn, err := s.Snapshot(t.Context())
		return err == nil && len(sn.Panes) == 3
	})
	client(t, s)
	return s, outer, snapshot(t, s).Panes[0].Window
}

// look is what a person sees and has set, to be compared byte for byte.
func look(t *testing.T, s *tmux.Server, window tmux.WindowID) string {
	t.Helper()
	replies, err := s.Do(t.Context(),
		tmux.Cmd{"show-options", "-g"}, tmux.Cmd{"show-options", "-gw"}, tmux.Cmd{"show-options", "-s"}, tmux.Cmd{"show-hooks", "-g"},
		tmux.Cmd{"show-environment", "-g"}, tmux.Cmd{"list-keys"}, tmux.Cmd{"list-buffers"},
		tmux.Cmd{"list-panes", "-t", string(window), "-F", "#{pane_id} #{pane_active} #{pane_width}x#{pane_height} #{window_layout} #{window_active} #{window_zoomed_flag} #{window_name} #{pane_title}"},
		tmux.Cmd{"show-options", "-w", "-t", string(window)},
		tmux.Cmd{"list-clients", "-F", "#{client_name} #{client_session} #{client_width}x#{client_height}"})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(replies, "\n----\n")
}

// On a person's server everything works, whatever they have set, and nothing
// that they see or have set changes.
func TestUserServer(t *testing.T) {
	t.Parallel()
	for _, bin := range tmuxtest.Bins(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(bin))), func(t *testing.T) {
			t.Parallel()
			s, _, window := user(t, bin)
			ctx, dir := t.Context(), t.TempDir()
			before := look(t, s, window)
			meta := map[string]string{"agent": "a;"}
			out, err := s.Spawn(ctx, tmux.SessionSpec{Name: "fleet", Dir: dir, Argv: idle(), Meta: meta}, []tmux.WindowSpec{
				{Name: "agents", Panes: []tmux.PaneSpec{{Argv: []string{"cat"}, Title: "t", Meta: meta}, {Argv: idle()}, {Argv: idle()}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if s.Ours() {
				t.Error("the server counts as ours")
			}
			for i, ref := range out.Panes {
				if p := pane(t, s, ref); p.Index != i+3 || p.WindowName != "agents" || p.Dead || !p.Ours {
					t.Errorf("pane %d: %+v", i, p)
				}
			}
			if home := pane(t, s, out.Home); home.Cols != 200 || home.SessionMeta["agent"] != "a;" {
				t.Errorf("home %+v", home)
			}
			more, err := s.NewWindows(ctx, out.Session, tmux.WindowSpec{Panes: []tmux.PaneSpec{{Argv: idle(), Dir: dir}, {Argv: idle(), Dir: dir}}})
			if err != nil {
				t.Fatal(err)
			}
			split, err := s.Split(ctx, more.Panes[0], tmux.MainVertical, tmux.PaneSpec{Argv: idle(), Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			cat := out.Panes[0]
			err = errors.Join(
				s.Paste(ctx, cat, "pasted;"), s.SendKeys(ctx, cat, []byte("\rkeys\r")), s.SetTitle(ctx, cat, "title"),
				s.SetPaneMeta(ctx, cat, map[string]string{"state": "x"}), s.SetSessionMeta(ctx, out.Session, map[string]string{"state": "y"}),
				s.SetBorders(ctx, out.Windows[1], tmux.BorderTop, "state"), s.RenameWindow(ctx, out.Windows[1], "renamed"),
				s.SelectLayout(ctx, out.Windows[1], tmux.EvenVertical), s.ResizeWindow(ctx, out.Windows[1], 90, 30),
				s.SelectWindow(ctx, out.Windows[1]), s.SetHook(ctx, out.Windows[1], "pane-died", tmux.SignalCmd("x")),
				s.UnsetHook(ctx, out.Windows[1], "pane-died"), s.Respawn(ctx, split, tmux.PaneSpec{Argv: idle(), Dir: dir}),
				s.Kill(ctx, time.Second, split), s.KillWindow(ctx, more.Windows[0]), s.SetBuffer(ctx, "mine", "x"), s.DeleteBuffer(ctx, "mine"))
			if err != nil {
				t.Error(err)
			}
			waitText(t, s, cat, "keys")
			if p := pane(t, s, cat); p.WindowName != "renamed" || p.Meta["state"] != "x" || p.Meta["agent"] != "a;" {
				t.Errorf("%+v", p)
			}
			mustBe(t, "KillServer", s.KillServer(ctx), tmux.ErrForeign)
			if err := s.KillSession(ctx, out.Session, "fleet"); err != nil {
				t.Error(err)
			}
			if after := look(t, s, window); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// A person's file is read on request only, after ours, and by its exact name.
func TestUserConfiguration(t *testing.T) {
	t.Parallel()
	for _, bin := range tmuxtest.Bins(t) {
		dir := tmuxtest.Dir(t)
		path := filepath.Join(dir, `a*b ["$x'`+"#{pid}.conf")
		if err := os.WriteFile(path, []byte("set -g history-limit 77\nset -g @theirs read\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := tmuxtest.Open(t, tmux.Options{Bin: bin, UserConfig: path})
		_, _, ref := session(t, s, "a")
		replies, err := s.Do(t.Context(), tmux.Cmd{"display-message", "-p", "-t", string(ref.ID), "#{history_limit} #{@theirs} #{@muntin_server}"})
		if err != nil || replies[0] != "77 read 1" || !s.Ours() {
			t.Errorf("%q, %v", replies, err)
		}
	}
}

// Even in a few cells panes start, take input and are read.
func TestTinySizes(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		out, err := s.Spawn(ctx, tmux.SessionSpec{Name: "tiny", Dir: "/", Cols: 2, Rows: 2}, []tmux.WindowSpec{
			{Panes: []tmux.PaneSpec{{Argv: []string{"cat"}}, {Argv: []string{"cat"}}, {Argv: []string{"cat"}}}},
		})
		if err != nil || len(out.Windows) != 3 {
			t.Fatal(out, err)
		}
		if err := s.Paste(ctx, out.Panes[2], "ab"); err != nil {
			t.Error(err)
		}
		waitText(t, s, out.Panes[2], "ab")
		_, err = s.Split(ctx, out.Panes[2], "", tmux.PaneSpec{Argv: idle(), Dir: "/"})
		mustBe(t, "Split", err, tmux.ErrNoSpace)
	})
}
