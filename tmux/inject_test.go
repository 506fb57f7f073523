package tmux_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// vectors are strings that run a command, or become another one, wherever
// text is taken for a format, for tmux syntax or for a shell's.
func vectors(canary string) map[string]string {
	return map[string]string{
		"job":          "#(touch " + canary + ")",
		"nested job":   "#{E:#{l:#(touch " + canary + ")}}",
		"style job":    "#[fg=red]#(touch " + canary + ")##(touch " + canary + ")",
		"substitution": "$(touch " + canary + ")`touch " + canary + "`",
		"shell list":   "; touch " + canary + " & touch " + canary,
		"tmux list":    ` ; run-shell "touch ` + canary + `"`,
		"double quote": `" ; run-shell "touch ` + canary + `" ; display-message "`,
		"single quote": `' ; run-shell 'touch ` + canary + `' ; display-message '`,
		"new line":     "\nrun-shell 'touch " + canary + "'\n",
		"braces":       `} ; run-shell "touch ` + canary + `" ; {`,
		"backslash":    `\" ; run-shell \"touch ` + canary + `\" ; \`,
		"dash":         "-F#(touch " + canary + ")",
		"semicolon":    "ends in;",
		"raw byte":     "\xff\" ; run-shell \"touch " + canary + "\"",
		"control":      "a\x01\x1b[31mb\x7f\u0085\tc\\d\\e\\$HOME \\001",
		"words":        "~ $HOME %if #{pid} %H Enter #",
	}
}

// Every command that takes text from outside gets every vector. A terminal is
// attached all the while, so that status line and borders are drawn.
func TestNothingIsExecuted(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		canary := filepath.Join(tmuxtest.Dir(t), "canary")
		id, _, _ := session(t, s, "main")
		outer, terminal := attach(t, s, id)
		for name, text := range vectors(canary) {
			drive(t, s, id, name, text)
			driveClient(t, s, name, text, func() {
				waitText(t, outer, terminal, "choose me")
				if err := outer.SendKeys(t.Context(), terminal, []byte("k")); err != nil {
					t.Error(err)
				}
			})
		}
		// A job of our own shows that jobs run here: what is drawn before it
		// would have run too.
		control := canary + ".control"
		if _, err := s.Do(t.Context(), tmux.Cmd{"set-option", "-g", "status-right", "#{P:#{pane_title}}#(touch " + control + ")"}); err != nil {
			t.Fatal(err)
		}
		tmuxtest.Wait(t, "the status line runs its job", func() bool { _, err := os.Stat(control); return err == nil })
		if _, err := os.Stat(canary); err == nil {
			t.Error("a vector was executed")
		}
	})
}

// drive sends one vector through every command and compares what comes back.
func drive(t *testing.T, s *tmux.Server, id tmux.SessionID, name, text string) {
	t.Helper()
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), strings.ReplaceAll(text, "/", "|"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "got")
	shown := printer(text, file, dir)
	shown.Title, shown.Meta = text, map[string]string{"text": text}
	out, err := s.NewWindows(ctx, id, tmux.WindowSpec{Name: text, Panes: []tmux.PaneSpec{
		shown,
		{Argv: []string{"cat"}, Dir: dir, Title: text},
	}})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	first, second := out.Panes[0], out.Panes[1]
	p := pane(t, s, first)
	if p.Meta["text"] != text || p.Path != dir {
		t.Errorf("%s: metadata %q, path %q, want %q", name, p.Meta["text"], p.Path, text)
	}
	if want := strings.ReplaceAll(tmux.Escape(text), "##", "#"); strings.ReplaceAll(p.Title, "##[", "#[") != strings.ReplaceAll(want, "##[", "#[") {
		t.Errorf("%s: title %q, want %q", name, p.Title, want)
	}
	if want := strings.ReplaceAll(tmux.Escape(text), "##", "#"); strings.ReplaceAll(p.WindowName, "##[", "#[") != want {
		t.Errorf("%s: window name %q, want %q", name, p.WindowName, want)
	}
	waitFile(t, file, printed(text, dir))
	third, err := s.Split(ctx, second, tmux.MainVertical, printer(text, file+".split", dir))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	waitFile(t, file+".split", printed(text, dir))
	steps := map[string]error{
		"Respawn":        s.Respawn(ctx, third, printer(text, file+".again", dir)),
		"SetSessionMeta": s.SetSessionMeta(ctx, id, map[string]string{"text": text}),
		"RenameWindow":   s.RenameWindow(ctx, out.Windows[0], text),
		"SetBorders":     s.SetBorders(ctx, out.Windows[0], tmux.BorderBottom, "text", "other"),
		"SetBuffer":      s.SetBuffer(ctx, "text", text),
		"SetHook":        s.SetHook(ctx, out.Windows[0], "pane-died", tmux.Cmd{"set-buffer", "-b", "hooked", "--", text}),
		"SetTitle":       s.SetTitle(ctx, second, text),
		"SetPaneMeta":    s.SetPaneMeta(ctx, second, map[string]string{"other": text}),
		"Paste":          s.Paste(ctx, second, text),
		"SendKeys":       s.SendKeys(ctx, second, []byte(text)),
		"ResizeOK":       s.ResizeWindow(ctx, out.Windows[0], 120, 40),
	}
	for what, err := range steps {
		if err != nil {
			t.Errorf("%s: %s: %v", name, what, err)
		}
	}
	waitFile(t, file+".again", printed(text, dir))
	if p := pane(t, s, second); p.Meta["other"] != text || p.SessionMeta["text"] != text {
		t.Errorf("%s: metadata %q, of the session %q, want %q", name, p.Meta["other"], p.SessionMeta["text"], text)
	}
	if err := syscall.Kill(pane(t, s, third).PID, syscall.SIGKILL); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, buffer := range []string{"text", "hooked"} {
		tmuxtest.Wait(t, "buffer "+buffer+" holds "+name, func() bool {
			snapshot(t, s) // it makes tmux 3.3a see an end that it has missed
			got, err := s.Buffer(ctx, buffer)
			return err == nil && got == text
		})
	}
	refused(t, s, name, text)
	if err := errors.Join(s.KillPane(ctx, first), s.Kill(ctx, 0, third), s.KillWindow(ctx, out.Windows[0])); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// printer writes what it is given, and where it is, to a file.
func printer(text, file, dir string) tmux.PaneSpec {
	return tmux.PaneSpec{
		Argv: []string{"sh", "-c", `printf '<%s>\n' "$1" "$V" "$PWD" >"$2" && exec sleep 1000`, text, text, file}, Dir: dir,
		Env: map[string]string{"V": text},
	}
}

func printed(text, dir string) string { return "<" + text + ">\n<" + text + ">\n<" + dir + ">\n" }

// driveClient sends one vector through the commands that need a terminal.
// choose picks the menu's item.
func driveClient(t *testing.T, s *tmux.Server, name, text string, choose func()) {
	t.Helper()
	ctx, c := t.Context(), client(t, s).Name
	dir := filepath.Join(t.TempDir(), strings.ReplaceAll(text, "/", "|"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "got")
	spec := printer(text, file, dir)
	spec.Argv[2] = strings.TrimSuffix(spec.Argv[2], " && exec sleep 1000")
	if err := s.Popup(ctx, c, tmux.PopupSpec{Argv: spec.Argv, Dir: dir, Env: spec.Env, Title: text}); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	waitFile(t, file, printed(text, dir))
	done := make(chan error, 1)
	go func() {
		done <- s.Menu(ctx, c, text,
			tmux.MenuItem{Name: text, Cmds: []tmux.Cmd{{"set-buffer", "-b", "wrong", "--", text}}},
			tmux.MenuItem{Name: "choose me", Key: 'k', Cmds: []tmux.Cmd{{"set-buffer", "-b", "chosen", "--", text}, tmux.SignalCmd("chosen")}})
	}()
	choose()
	if err := errors.Join(<-done, waitChannel(t, s, "chosen")); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if got, err := s.Buffer(ctx, "chosen"); err != nil || got != text {
		t.Errorf("%s: the menu's command held %q, %v, want %q", name, got, err, text)
	}
}

// refused are the places where such text is no name, id, layout or key.
func refused(t *testing.T, s *tmux.Server, name, text string) {
	t.Helper()
	ctx := t.Context()
	dir := t.TempDir()
	_, _, _, newErr := s.NewSession(ctx, tmux.SessionSpec{Name: text, Dir: dir, Argv: idle()})
	_, findErr := s.FindSession(ctx, text)
	_, captureErr := s.Capture(ctx, tmux.PaneRef{Epoch: s.Epoch(), ID: tmux.PaneID(text)}, tmux.CaptureOptions{})
	_, windowErr := s.NewWindow(ctx, tmux.SessionID(text), tmux.WindowSpec{Panes: []tmux.PaneSpec{{Argv: idle(), Dir: dir}}})
	_, optErr := tmux.Open(ctx, tmux.Options{Socket: strings.ReplaceAll(text, "/", "|")})
	steps := map[string]error{
		"NewSession": newErr, "FindSession": findErr, "Capture": captureErr, "NewWindow": windowErr, "Open": optErr,
		"KillSession": s.KillSession(ctx, "$0", text),
		"SetHook":     s.SetHook(ctx, tmux.SessionID("$0"), text, tmux.SignalCmd("x")), "UnsetHook": s.UnsetHook(ctx, tmux.WindowID(text), "x"),
		"Cmd":       s.SetHook(ctx, tmux.SessionID("$0"), "client-attached", tmux.Cmd{text}),
		"SetBuffer": s.SetBuffer(ctx, text, "x"), "DeleteBuffer": s.DeleteBuffer(ctx, text), "Signal": s.Signal(ctx, text),
		"WaitFor": s.WaitFor(ctx, text), "SwitchClient": s.SwitchClient(ctx, text, "$0"), "DetachClient": s.DetachClient(ctx, text),
		"DetachAll": s.DetachAll(ctx, tmux.SessionID(text)), "Popup": s.Popup(ctx, text, tmux.PopupSpec{Argv: idle(), Dir: "/"}),
		"Menu": s.Menu(ctx, text, "x", tmux.MenuItem{}), "SetBorders": s.SetBorders(ctx, "@0", tmux.BorderTop, text),
		"BorderPosition": s.SetBorders(ctx, "@0", tmux.BorderPosition(text)), "KillWindow": s.KillWindow(ctx, tmux.WindowID(text)),
		"SetSessionMeta": s.SetSessionMeta(ctx, "$0", map[string]string{text: "x"}),
		"SelectLayout":   s.SelectLayout(ctx, "@0", tmux.Layout(text)),
		"SelectWindow":   s.SelectWindow(ctx, tmux.WindowID(text)),
		"SetPaneMeta":    s.SetPaneMeta(ctx, tmux.PaneRef{Epoch: s.Epoch(), ID: "%0"}, map[string]string{text: "x"}),
	}
	for what, err := range steps {
		if err == nil {
			t.Errorf("%s: %s took it", name, what)
		}
	}
	if ok, err := s.HasSession(ctx, text); ok || err != nil {
		t.Errorf("%s: HasSession: %v, %v", name, ok, err)
	}
}

// attach shows a session on a terminal: a pane of a second server.
func attach(t *testing.T, s *tmux.Server, id tmux.SessionID) (outer *tmux.Server, ref tmux.PaneRef) {
	t.Helper()
	outer = tmuxtest.Server(t)
	argv := append([]string{"env", "-u", "TMUX", "-u", "TMUX_PANE"}, s.AttachArgv(id)...)
	_, _, ref = session(t, outer, "outer", argv...)
	tmuxtest.Wait(t, "the terminal is attached", func() bool {
		replies, err := s.Do(t.Context(), tmux.Cmd{"list-clients", "-F", "#{client_tty}"})
		return err == nil && replies[0] != ""
	})
	return outer, ref
}

// FuzzQuote sends any bytes through tmux's parser and back.
func FuzzQuote(f *testing.F) {
	for _, text := range vectors("/tmp/x") {
		f.Add(text)
	}
	f.Add("\\\"$~#{}\x01\x7f\x80\xff\u0085\n\r\t;")
	s := tmuxtest.Server(f)
	_, _, _, err := s.NewSession(f.Context(), tmux.SessionSpec{Name: "fuzz", Dir: f.TempDir(), Argv: idle()})
	if err != nil {
		f.Fatal(err)
	}
	saved := filepath.Join(f.TempDir(), "saved")
	f.Fuzz(func(t *testing.T, text string) {
		want := "<" + text + ">"
		_, err := s.Do(t.Context(), tmux.Cmd{"set-buffer", "-b", "x", "--", want}, tmux.Cmd{"save-buffer", "-b", "x", saved})
		if strings.Contains(text, "\x00") {
			if err == nil {
				t.Error("a NUL byte was taken")
			}
			return
		}
		got, readErr := os.ReadFile(saved)
		if err != nil || readErr != nil || string(got) != want {
			t.Errorf("%q came back as %q, %v, %v", want, got, err, readErr)
		}
	})
}
