package tmux_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// tmux takes a name for the beginning of one.
func TestNamesAreExact(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		id, _, _ := session(t, s, "a_b_c")
		for _, name := range []string{"a", "a_b", "a_b_cd", "a_b_?"} {
			if ok, err := s.HasSession(ctx, name); ok || err != nil {
				t.Errorf("HasSession(%q) = %v, %v", name, ok, err)
			}
			if err := s.KillSession(ctx, id, name); err == nil {
				t.Errorf("KillSession with name %q was done", name)
			}
		}
		mustBe(t, "KillSession under another name", s.KillSession(ctx, id, "a_b"), tmux.ErrNoSuchSession)
		mustBe(t, "KillSession of another id", s.KillSession(ctx, "$77", "a_b_c"), tmux.ErrNoSuchSession)
		_, err := s.FindSession(ctx, "a_b")
		mustBe(t, "FindSession", err, tmux.ErrNoSuchSession)
		session(t, s, "a_b") // beside the longer one
		found, err := s.FindSession(ctx, "a_b_c")
		if err != nil || found.ID != id {
			t.Fatal(found, err)
		}
		if err := s.KillSession(ctx, id, "a_b_c"); err != nil {
			t.Error(err)
		}
		if ok, _ := s.HasSession(ctx, "a_b"); !ok {
			t.Error("the wrong session was killed")
		}
	})
}

// tmux answers for the active pane when a target is not there.
func TestMissingTargets(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		_, _, ref := session(t, s, "a", "cat")
		before := pane(t, s, ref)
		none := tmux.PaneRef{Epoch: ref.Epoch, ID: "%77"}
		_, captureErr := s.Capture(ctx, none, tmux.CaptureOptions{})
		_, splitErr := s.Split(ctx, none, "", tmux.PaneSpec{Argv: idle(), Dir: "/"})
		_, lookErr := snapshot(t, s).Pane(none)
		for what, err := range map[string]error{
			"Capture": captureErr, "Split": splitErr, "Pane": lookErr,
			"KillPane": s.KillPane(ctx, none), "SetTitle": s.SetTitle(ctx, none, "x"), "Paste": s.Paste(ctx, none, "x"),
			"SendKeys": s.SendKeys(ctx, none, []byte("x")), "SetPaneMeta": s.SetPaneMeta(ctx, none, map[string]string{"k": "v"}),
		} {
			mustBe(t, what, err, tmux.ErrNoSuchPane)
		}
		mustBe(t, "SelectWindow", s.SelectWindow(ctx, "@77"), tmux.ErrNoSuchWindow)
		mustBe(t, "SelectLayout", s.SelectLayout(ctx, "@77", tmux.Tiled), tmux.ErrNoSuchWindow)
		mustBe(t, "ResizeWindow", s.ResizeWindow(ctx, "@77", 80, 24), tmux.ErrNoSuchWindow)
		_, err := s.NewWindow(ctx, "$77", tmux.WindowSpec{Panes: []tmux.PaneSpec{{Argv: idle(), Dir: "/"}}})
		mustBe(t, "NewWindow", err, tmux.ErrNoSuchSession)
		if after := pane(t, s, ref); after.Title != before.Title || len(after.Meta) != 0 || after.Cols != before.Cols {
			t.Errorf("the active pane was hit: %+v", after)
		}
		if replies, err := s.Do(ctx, tmux.Cmd{"list-buffers"}); err != nil || replies[0] != "" {
			t.Errorf("buffers %q, %v", replies, err)
		}
	})
}

func TestMetaOfTwoClients(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	_, _, ref := session(t, s, "a")
	other, err := s.Reopen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set := func(s *tmux.Server, meta map[string]string) {
		t.Helper()
		if err := s.SetPaneMeta(t.Context(), ref, meta); err != nil {
			t.Fatal(err)
		}
	}
	set(s, map[string]string{"agent": "lead", "state": "idle"})
	set(other, map[string]string{"state": "at\twork\n-x;", "place": "é"})
	set(s, map[string]string{"agent": ""})
	for _, c := range []*tmux.Server{s, other} {
		if m := pane(t, c, ref).Meta; len(m) != 2 || m["state"] != "at\twork\n-x;" || m["place"] != "é" {
			t.Errorf("metadata %q", m)
		}
	}
}

// recorder runs a program that writes what it is sent to a file, in raw mode.
func recorder(t *testing.T, s *tmux.Server, bracketed bool) (tmux.PaneRef, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "got")
	mode := ""
	if bracketed {
		mode = `\033[?2004h`
	}
	_, _, ref := session(t, s, "rec", "sh", "-c", `stty raw -echo && printf '`+mode+`ready'; exec cat >"$1"`, "sh", file)
	waitText(t, s, ref, "ready")
	return ref, file
}

func TestPaste(t *testing.T) {
	t.Parallel()
	for _, bracketed := range []bool{false, true} {
		tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
			ref, file := recorder(t, s, bracketed)
			frame := func(text string) string {
				if !bracketed {
					return text
				}
				return "\x1b[200~" + text + "\x1b[201~"
			}
			var want strings.Builder
			for _, text := range []string{
				"-dash", "ends in;", ";", "Enter", "a\nb\n\n", "\ttab", "#{pid} #(id) $HOME ~ %H", `"q" 'q' \`, "é 日本 👩‍👩‍👧",
				strings.Repeat("long line é;\n", 6000),
			} {
				if err := s.Paste(t.Context(), ref, text); err != nil {
					t.Fatal(err)
				}
				want.WriteString(frame(text))
				waitFile(t, file, want.String())
			}
			// What would end the paste early is dropped, as NUL and C1 are.
			if err := s.Paste(t.Context(), ref, "a\x1b[201~\rb\x00\u009bc\xff\r\n"); err != nil {
				t.Fatal(err)
			}
			want.WriteString(frame("a[201~\nbc\n"))
			// Copy mode takes keys; a person's mouse wheel is enough to enter it.
			if _, err := s.Do(t.Context(), tmux.Cmd{"copy-mode", "-t", string(ref.ID)}); err != nil {
				t.Fatal(err)
			}
			if err := s.Paste(t.Context(), ref, "q"); err != nil {
				t.Fatal(err)
			}
			want.WriteString(frame("q"))
			waitFile(t, file, want.String())
			if err := s.Paste(t.Context(), ref, ""); err != nil {
				t.Error(err)
			}
			if replies, err := s.Do(t.Context(), tmux.Cmd{"list-buffers"}); err != nil || replies[0] != "" {
				t.Errorf("buffers %q, %v", replies, err)
			}
		})
	}
}

func TestSendKeys(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ref, file := recorder(t, s, false)
		var keys []byte
		for i := range 1200 {
			keys = append(keys, byte(i))
		}
		if _, err := s.Do(t.Context(), tmux.Cmd{"copy-mode", "-t", string(ref.ID)}); err != nil {
			t.Fatal(err)
		}
		if err := s.SendKeys(t.Context(), ref, keys); err != nil {
			t.Fatal(err)
		}
		if err := s.SendKeys(t.Context(), ref, []byte("\r")); err != nil {
			t.Fatal(err)
		}
		waitFile(t, file, string(keys)+"\r")
	})
}

// A paste into a dead pane brings servers up to 3.3a down.
func TestInputIsRefused(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		_, _, dead := session(t, s, "dead", "true")
		tmuxtest.Wait(t, "the program has ended", func() bool { return pane(t, s, dead).Dead })
		mustBe(t, "Paste", s.Paste(ctx, dead, "x;"), tmux.ErrDeadPane)
		mustBe(t, "SendKeys", s.SendKeys(ctx, dead, []byte("x")), tmux.ErrDeadPane)
		if p := pane(t, s, dead); p.Status != 0 || p.Signal != "" {
			t.Errorf("%+v", p)
		}
		_, _, off := session(t, s, "off", "cat")
		if _, err := s.Do(ctx, tmux.Cmd{"select-pane", "-d", "-t", string(off.ID)}); err != nil {
			t.Fatal(err)
		}
		mustBe(t, "Paste", s.Paste(ctx, off, "x"), tmux.ErrInputOff)
		mustBe(t, "SendKeys", s.SendKeys(ctx, off, []byte("x")), tmux.ErrInputOff)
		_, window, shared := session(t, s, "shared", "cat")
		if _, err := s.Do(ctx, tmux.Cmd{"set-option", "-w", "-t", string(window), "synchronize-panes", "on"}); err != nil {
			t.Fatal(err)
		}
		other, err := s.Split(ctx, shared, "", tmux.PaneSpec{Argv: []string{"cat"}, Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		mustBe(t, "SendKeys", s.SendKeys(ctx, shared, []byte("x")), tmux.ErrSynchronized)
		if err := s.Paste(ctx, shared, "only here"); err != nil { // a paste goes to its pane alone
			t.Error(err)
		}
		waitText(t, s, shared, "only here")
		if text, err := s.Capture(ctx, other, tmux.CaptureOptions{}); err != nil || strings.Contains(text, "only") {
			t.Errorf("the other pane has %q, %v", text, err)
		}
		if replies, err := s.Do(ctx, tmux.Cmd{"list-buffers"}); err != nil || replies[0] != "" {
			t.Errorf("buffers %q, %v", replies, err)
		}
	})
}

func TestCapture(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	long := strings.Repeat("x", 250)
	_, _, ref := session(t, s, "a", "sh", "-c", `i=0; while [ $i -lt 100 ]; do echo "line $i"; i=$((i+1)); done
		printf '\033[31mred\033[m\n%s\nend' "$1"; exec sleep 1000`, "sh", long)
	all := waitText(t, s, ref, "end")
	if !strings.Contains(all, "line 0\n") || !strings.Contains(all, "\n"+long+"\nend") || strings.Contains(all, "\x1b") {
		t.Errorf("history:\n%q", all)
	}
	for _, tt := range []struct {
		o     tmux.CaptureOptions
		has   string
		lacks string
	}{
		{tmux.CaptureOptions{}, "line 99\n", "line 0\n"},
		{tmux.CaptureOptions{}, "\nend", long},
		{tmux.CaptureOptions{History: 10}, "line 50", "line 0\n"},
		{tmux.CaptureOptions{Escapes: true}, "\x1b[31mred", "line 0\n"},
	} {
		got, err := s.Capture(t.Context(), ref, tt.o)
		if err != nil || !strings.Contains(got, tt.has) || strings.Contains(got, tt.lacks) {
			t.Errorf("%+v: %v\n%q", tt.o, err, got)
		}
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	ctx := t.Context()
	first, _, pane1 := session(t, s, "first", "sh", "-c", `echo "$TMUX" >"$1"; exec cat`, "sh", filepath.Join(t.TempDir(), "env"))
	second, _, _ := session(t, s, "second")
	outer, terminal := attach(t, s, first)
	screen := waitText(t, outer, terminal, "detaches")
	if !strings.Contains(screen, "first") {
		t.Errorf("status line:\n%s", screen)
	}
	env := []string{"TMUX=" + s.Epoch().Socket + "," + strconv.Itoa(s.Epoch().PID) + ",0", "TMUX_PANE=" + string(pane1.ID), "PATH=" + os.Getenv("PATH")}
	argv, cmdEnv, err := s.Attach(second, env)
	if err != nil || argv[len(argv)-3] != "switch-client" || len(cmdEnv) != 3 {
		t.Errorf("inside: %q %q %v", argv, cmdEnv, err)
	}
	argv, cmdEnv, err = outer.Attach(second, env)
	if err != nil || argv[len(argv)-3] != "attach-session" || len(cmdEnv) != 1 {
		t.Errorf("inside another: %q %q %v", argv, cmdEnv, err)
	}
	if s.Inside([]string{"TMUX=x"}) || s.Inside(nil) || s.Inside([]string{"TMUX=" + s.Epoch().Socket + ",1,0"}) {
		t.Error("inside a server that is another one")
	}
	replies, err := s.Do(ctx, tmux.Cmd{"list-clients", "-F", "#{client_name}"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SwitchClient(ctx, replies[0], second); err != nil {
		t.Fatal(err)
	}
	waitText(t, outer, terminal, "second")
	mustBe(t, "SwitchClient", s.SwitchClient(ctx, replies[0], "$77"), tmux.ErrNoSuchSession)
}
