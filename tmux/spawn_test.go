package tmux_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

func TestSpawnTwelve(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		dir, other := t.TempDir(), t.TempDir()
		var panes []tmux.PaneSpec
		for i := range 12 {
			panes = append(panes, tmux.PaneSpec{
				Argv: []string{"sh", "-c", `echo "I am $A-$B"; exec sleep 1000`}, Dir: other, Title: fmt.Sprint("agent ", i),
				Env: map[string]string{"B": fmt.Sprint(i)}, Meta: map[string]string{"agent": fmt.Sprint("a", i)},
			})
		}
		out, err := s.Spawn(t.Context(), tmux.SessionSpec{
			Name: "fleet", Dir: dir, WindowName: "board", Argv: []string{"cat"},
			Env: map[string]string{"A": "all", "B": "none"}, Meta: map[string]string{"run": "demo"},
		}, []tmux.WindowSpec{{Name: "agents", Panes: panes}, {Panes: []tmux.PaneSpec{{Argv: idle()}}}})
		if err != nil {
			t.Fatal(err)
		}
		sn := snapshot(t, s)
		if len(out.Panes) != 13 || len(out.Windows) != 3 || len(sn.Panes) != 14 {
			t.Fatalf("%d panes, %d windows, %d listed", len(out.Panes), len(out.Windows), len(sn.Panes))
		}
		for i, ref := range out.Panes[:12] {
			p := sn.Panes[i+1] // tmux's order is the order asked for
			if p.Ref != ref || p.Dead || p.WindowName != "agents" || p.Path != other || p.Title != fmt.Sprint("agent ", i) ||
				p.Meta["agent"] != fmt.Sprint("a", i) || p.SessionMeta["run"] != "demo" || p.Index != i || p.Cols < 30 || p.Rows < 6 {
				t.Errorf("pane %d: %+v", i, p)
			}
			waitText(t, s, ref, fmt.Sprint("I am all-", i))
		}
		home, last := sn.Panes[0], sn.Panes[13]
		if home.Ref != out.Home || home.WindowName != "board" || !home.Active || home.Cols != 200 || home.Rows != 50 || home.Path != dir {
			t.Errorf("home %+v", home)
		}
		if last.WindowName != "sleep" || last.Window != out.Windows[2] {
			t.Errorf("last %+v", last)
		}
		ses := sn.Sessions()
		if len(ses) != 1 || !ses[0].Ours || ses[0].Name != "fleet" || len(ses[0].Windows) != 3 || ses[0].ID != out.Session {
			t.Errorf("sessions %+v", ses)
		}
	})
}

// However many panes: one tmux process makes them all.
func TestSpawnInOneStep(t *testing.T) {
	t.Parallel()
	dir := tmuxtest.Dir(t)
	log, bin := filepath.Join(dir, "log"), filepath.Join(dir, "tmux")
	script := "#!/bin/sh\ncase $* in *source-file*) ;; *) exec " + tmuxtest.Bins(t)[0] + ` "$@" ;; esac
in=$(cat; echo .)
case $in in *split-window*|*new-window*|*new-session*) echo made >>"` + log + `" ;; esac
printf %s "${in%.}" | ` + tmuxtest.Bins(t)[0] + " \"$@\"\n"
	if err := os.WriteFile(bin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := tmuxtest.Open(t, tmux.Options{Bin: bin})
	many := make([]tmux.PaneSpec, 40)
	for i := range many {
		many[i] = tmux.PaneSpec{Argv: idle(), Title: strings.Repeat("long title ", 20), Meta: map[string]string{"n": fmt.Sprint(i)}}
	}
	out, err := s.Spawn(t.Context(), tmux.SessionSpec{Name: "a", Dir: dir}, []tmux.WindowSpec{{Panes: many}, {Panes: many}})
	if err != nil || len(out.Panes) != 80 {
		t.Fatal(len(out.Panes), err)
	}
	if made, err := os.ReadFile(log); string(made) != "made\n" {
		t.Errorf("%d processes made panes (%v)", strings.Count(string(made), "\n"), err)
	}
	for i, p := range snapshot(t, s).Panes {
		if p.Dead || p.Ref != out.Panes[i] || p.Meta["n"] != fmt.Sprint(i%40) {
			t.Errorf("pane %d: %+v", i, p)
		}
	}
}

// The environment of the first pane is not the session's.
func TestFirstPaneEnvironment(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	show := []string{"sh", "-c", `echo "[$A][$B]"; exec sleep 1000`}
	out, err := s.Spawn(t.Context(), tmux.SessionSpec{Name: "a", Dir: t.TempDir(), Env: map[string]string{"A": "1"}}, []tmux.WindowSpec{
		{Panes: []tmux.PaneSpec{{Argv: show, Env: map[string]string{"A": "2", "B": "3"}}, {Argv: show}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	waitText(t, s, out.Panes[0], "[2][3]")
	waitText(t, s, out.Panes[1], "[1][]")
}

func TestSpawnRefusals(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := tmux.SessionSpec{Name: "a", Dir: dir, Argv: idle()}
	tests := map[string]func(*tmux.SessionSpec, *tmux.PaneSpec){
		"missing folder":      func(sp *tmux.SessionSpec, _ *tmux.PaneSpec) { sp.Dir = filepath.Join(dir, "no") },
		"a file":              func(sp *tmux.SessionSpec, _ *tmux.PaneSpec) { sp.Dir = file },
		"relative folder":     func(sp *tmux.SessionSpec, _ *tmux.PaneSpec) { sp.Dir = "." },
		"pane's folder":       func(_ *tmux.SessionSpec, p *tmux.PaneSpec) { p.Dir = filepath.Join(dir, "no") },
		"no name":             func(sp *tmux.SessionSpec, _ *tmux.PaneSpec) { sp.Name = "" },
		"no command":          func(_ *tmux.SessionSpec, p *tmux.PaneSpec) { p.Argv = nil },
		"assignment":          func(_ *tmux.SessionSpec, p *tmux.PaneSpec) { p.Argv = []string{"A=b"} },
		"NUL":                 func(_ *tmux.SessionSpec, p *tmux.PaneSpec) { p.Argv = []string{"echo", "a\x00b"} },
		"environment name":    func(_ *tmux.SessionSpec, p *tmux.PaneSpec) { p.Env = map[string]string{"A=B": "c"} },
		"metadata key":        func(sp *tmux.SessionSpec, _ *tmux.PaneSpec) { sp.Meta = map[string]string{"A": "c"} },
		"package's own key":   func(_ *tmux.SessionSpec, p *tmux.PaneSpec) { p.Meta = map[string]string{"title": "c"} },
		"size out of reach":   func(sp *tmux.SessionSpec, _ *tmux.PaneSpec) { sp.Cols = 20000 },
		"name with a newline": func(sp *tmux.SessionSpec, _ *tmux.PaneSpec) { sp.Name = "a\nb" },
	}
	for name, spoil := range tests {
		sp, p := good, tmux.PaneSpec{Argv: idle()}
		spoil(&sp, &p)
		if _, err := s.Spawn(t.Context(), sp, []tmux.WindowSpec{{Panes: []tmux.PaneSpec{p}}}); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	if sn := snapshot(t, s); sn.Epoch != (tmux.Epoch{}) {
		t.Error("a server was started")
	}
	session(t, s, "a")
	_, err := s.Spawn(t.Context(), good, nil)
	mustBe(t, "name taken", err, tmux.ErrExists)
	if sn := snapshot(t, s); len(sn.Panes) != 1 {
		t.Errorf("%d panes", len(sn.Panes))
	}
}

func TestArgvArrivesAsGiven(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		args := []string{"a;", ";", ";;", "-x", "--", "#{pid}", "##", "$HOME", "~", "~root", "a b", "", "é", `"q"`, `b\`, "'", "{", "}", "%1", "Enter", "*", "A=b"}
		_, _, ref := session(t, s, "a", append([]string{"sh", "-c", `for a; do printf '<%s>\n' "$a"; done; exec sleep 1000`, "sh"}, args...)...)
		screen := waitText(t, s, ref, "<A=b>")
		want := "<" + strings.Join(args, ">\n<") + ">"
		if strings.TrimSpace(screen) != want {
			t.Errorf("screen:\n%s\nwant:\n%s", screen, want)
		}
	})
}

func TestFailedStart(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		_, window, good := session(t, s, "a")
		bad := tmux.PaneSpec{Argv: []string{"/no/such/program", "x"}, Dir: t.TempDir()}
		// A program that is just ending can look alive once more; then Failed
		// finds it.
		check := func(what string, err error, ref tmux.PaneRef, status int) {
			t.Helper()
			if err == nil {
				tmuxtest.Wait(t, what+" has failed", func() bool { err = s.Failed(ctx, ref); return err != nil })
			}
			var start *tmux.StartError
			if !errors.As(err, &start) || start.Pane != ref || start.Status != status {
				t.Errorf("%s: %v", what, err)
			}
		}
		ref, err := s.Split(ctx, good, "", bad)
		check("Split", err, ref, 1) // tmux's own status where exec fails
		if p := pane(t, s, ref); !p.Dead || p.Status != 1 {
			t.Errorf("%+v", p)
		}
		out, err := s.NewWindow(ctx, pane(t, s, good).Session, tmux.WindowSpec{Panes: []tmux.PaneSpec{bad}})
		check("NewWindow", err, out.Panes[0], 1)
		out, err = s.Spawn(ctx, tmux.SessionSpec{Name: "b", Dir: bad.Dir},
			[]tmux.WindowSpec{{Panes: []tmux.PaneSpec{{Argv: idle()}, {Argv: []string{"/no/such/program"}}}}})
		check("Spawn", err, out.Panes[1], 127) // env's
		if len(out.Panes) != 2 || pane(t, s, out.Panes[0]).Dead {
			t.Errorf("%+v", out)
		}
		lateFailures(t, s, out.Panes[0])
		if err := s.KillPane(ctx, ref); err != nil {
			t.Error(err)
		}
		// A program that ends well has started.
		bad.Argv, bad.CloseOnExit = []string{"true"}, true
		if _, err := s.Split(t.Context(), good, "", bad); err != nil {
			t.Error(err)
		}
		tmuxtest.Wait(t, "the pane has closed", func() bool {
			n := 0
			for _, p := range snapshot(t, s).Panes {
				if p.Window == window {
					n++
				}
			}
			return n == 1
		})
	})
}

// lateFailures are programs that start and fail later.
func lateFailures(t *testing.T, s *tmux.Server, runs tmux.PaneRef) {
	t.Helper()
	_, _, status := session(t, s, "status", "sh", "-c", "echo oops 1>&2; sleep 0.2; exit 7")
	_, _, signal := session(t, s, "signal", "sh", "-c", "sleep 0.2; kill -9 $$")
	tmuxtest.Wait(t, "both have ended", func() bool { return pane(t, s, status).Status == 7 && pane(t, s, signal).Dead })
	var start *tmux.StartError
	err := s.Failed(t.Context(), runs, status)
	if !errors.As(err, &start) || start.Pane != status || start.Status != 7 || strings.Join(start.Lines, "|") != "oops" {
		t.Errorf("status: %v", err)
	}
	err = s.Failed(t.Context(), runs, signal)
	if !errors.As(err, &start) || start.Pane != signal || start.Status != -1 {
		t.Errorf("signal: %v", err)
	}
	if err := s.Failed(t.Context(), runs); err != nil {
		t.Error(err)
	}
}

// Without room a split is refused and a window takes the pane; Spawn reckons
// beforehand.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx, dir := t.Context(), t.TempDir()
		p := tmux.PaneSpec{Argv: idle(), Dir: dir}
		id, window, first, err := s.NewSession(ctx, tmux.SessionSpec{Name: "small", Dir: dir, Argv: idle(), Cols: 10, Rows: 4})
		if err != nil {
			t.Fatal(err)
		}
		made := 1
		for ; made < 30; made++ {
			if _, err = s.Split(ctx, first, "", p); err != nil {
				break
			}
		}
		mustBe(t, "Split", err, tmux.ErrNoSpace)
		if sn := snapshot(t, s); len(sn.Panes) != made {
			t.Errorf("%d panes of %d", len(sn.Panes), made)
		}
		many := make([]tmux.PaneSpec, 60)
		for i := range many {
			many[i] = p
		}
		_, err = s.NewWindow(ctx, id, tmux.WindowSpec{Panes: many})
		mustBe(t, "NewWindow", err, tmux.ErrNoSpace)
		if out, err := s.NewWindow(ctx, id, tmux.WindowSpec{Panes: many[:2]}); err != nil || len(out.Panes) != 2 || out.Windows[0] == window {
			t.Error(out, err)
		}
		if n := len(snapshot(t, s).Sessions()[0].Windows); n != 2 {
			t.Errorf("%d windows, want 2: one that failed was left", n)
		}

		out, err := s.Spawn(ctx, tmux.SessionSpec{Name: "fleet", Dir: dir, Cols: 80, Rows: 24},
			[]tmux.WindowSpec{{Name: "agents", Panes: many[:14]}})
		if err != nil || len(out.Panes) != 14 || len(out.Windows) != 3 {
			t.Fatal(out, err)
		}
		for i, ref := range out.Panes {
			want := []string{"agents", "agents-2", "agents-3"}[i/5]
			if p := pane(t, s, ref); p.WindowName != want || p.Cols < 30 || p.Rows < 6 || p.Index != i%5 {
				t.Errorf("pane %d: %+v", i, p)
			}
		}
	})
}

// What a person looks at and types into does not move.
func TestFocusStays(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		id, window, first := session(t, s, "a")
		p := tmux.PaneSpec{Argv: idle(), Dir: t.TempDir(), Title: "x"}
		second, err := s.Split(ctx, first, tmux.MainVertical, p)
		if err != nil {
			t.Fatal(err)
		}
		focus := func() string {
			t.Helper()
			replies, err := s.Do(ctx, tmux.Cmd{"list-panes", "-s", "-t", string(id), "-F", "#{?#{&&:#{pane_active},#{window_active}},#{pane_id},}"})
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(replies[0])
		}
		out, err := s.NewWindow(ctx, id, tmux.WindowSpec{Panes: []tmux.PaneSpec{p, p}})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			s.SetTitle(ctx, second, "title"), s.SelectLayout(ctx, window, tmux.EvenVertical), s.Paste(ctx, second, "x"),
			s.SetPaneMeta(ctx, out.Panes[1], map[string]string{"k": "v"}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		if got := focus(); got != string(first.ID) {
			t.Errorf("focus is on %s, was on %s", got, first.ID)
		}
		if err := s.SelectWindow(ctx, out.Windows[0]); err != nil || focus() != string(out.Panes[0].ID) {
			t.Errorf("SelectWindow: %v, focus %s", err, focus())
		}
		if err := s.ResizeWindow(ctx, out.Windows[0], 133, 41); err != nil {
			t.Error(err)
		}
		tmuxtest.Wait(t, "the window has its size", func() bool { return pane(t, s, out.Panes[0]).Cols >= 66 && pane(t, s, out.Panes[0]).Cols < 134 })
	})
}
