package tmux_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

func TestKill(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		dir := t.TempDir()
		file := filepath.Join(dir, "said")
		_, _, polite := session(t, s, "polite", "sh", "-c", `trap 'echo bye >"$1"; exit' TERM; echo ready; while :; do sleep 0.05; done`, "sh", file)
		_, _, deaf := session(t, s, "deaf", "sh", "-c", `trap '' TERM HUP; echo ready; while :; do sleep 0.05; done`)
		_, _, dead := session(t, s, "dead", "true")
		session(t, s, "other")
		waitText(t, s, polite, "ready")
		waitText(t, s, deaf, "ready")
		tmuxtest.Wait(t, "the program has ended", func() bool { return pane(t, s, dead).Dead })
		pid := pane(t, s, deaf).PID
		gone := tmux.PaneRef{Epoch: deaf.Epoch, ID: "%77"}
		if err := s.Kill(ctx, 300*time.Millisecond, polite, deaf, dead, gone); err != nil {
			t.Fatal(err)
		}
		waitFile(t, file, "bye\n")
		tmuxtest.Wait(t, "the deaf program is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
		if sn := snapshot(t, s); len(sn.Panes) != 1 || sn.Panes[0].SessionName != "other" {
			t.Errorf("left: %+v", sn.Panes)
		}
		mustBe(t, "stale", s.Kill(ctx, 0, tmux.PaneRef{ID: "%0"}), tmux.ErrStale)
	})
}

func TestRespawn(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx, dir := t.Context(), t.TempDir()
		id, _, _ := session(t, s, "a")
		out, err := s.NewWindow(ctx, id, tmux.WindowSpec{Panes: []tmux.PaneSpec{
			{Argv: []string{"true"}, Dir: "/", Title: "first", Meta: map[string]string{"agent": "a"}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		ref := out.Panes[0]
		spec := tmux.PaneSpec{
			Argv: []string{"sh", "-c", `echo "$1 $V in $(pwd)"; exec sleep 1000`, "sh", "a;"}, Dir: dir,
			Env: map[string]string{"V": "v#{pid};"}, Meta: map[string]string{"state": "again"},
		}
		for range 2 { // a dead one, and one that runs
			if err := s.Respawn(ctx, ref, spec); err != nil {
				t.Fatal(err)
			}
			waitText(t, s, ref, "a; v#{pid}; in "+dir)
		}
		p := pane(t, s, ref)
		if p.Dead || p.Path != dir || p.Meta["agent"] != "a" || p.Meta["state"] != "again" || p.Title != "first" {
			t.Errorf("%+v", p)
		}
		err = s.Respawn(ctx, ref, tmux.PaneSpec{Argv: []string{"sh", "-c", "sleep 0.2; echo no luck; exit 3"}, Dir: dir})
		if err != nil {
			t.Fatal(err) // it did start
		}
		tmuxtest.Wait(t, "it ends", func() bool { return pane(t, s, ref).Dead })
		var start *tmux.StartError
		if err := s.Failed(ctx, ref); !errors.As(err, &start) || start.Status != 3 || !slices.Contains(start.Lines, "no luck") {
			t.Errorf("failed: %v", err)
		}
		err = s.Respawn(ctx, ref, tmux.PaneSpec{Argv: []string{"/no/such/program", "x"}, Dir: dir})
		if !errors.As(err, &start) {
			t.Errorf("no such program: %v", err)
		}
		if err := s.Respawn(ctx, ref, tmux.PaneSpec{Argv: idle(), Dir: filepath.Join(dir, "gone")}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no such folder: %v", err)
		}
		gone := tmux.PaneRef{Epoch: ref.Epoch, ID: "%77"}
		mustBe(t, "missing pane", s.Respawn(ctx, gone, spec), tmux.ErrNoSuchPane)
	})
}

func TestWindows(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx, dir := t.Context(), t.TempDir()
		id, first, _ := session(t, s, "a")
		panes := slices.Repeat([]tmux.PaneSpec{{Argv: idle(), Dir: dir}}, 9)
		out, err := s.NewWindows(ctx, id, tmux.WindowSpec{Name: "many", Panes: panes, MinCols: 60, MinRows: 20})
		if err != nil || len(out.Panes) != 9 || len(out.Windows) != 3 {
			t.Fatal(out, err)
		}
		for i, ref := range out.Panes {
			if p := pane(t, s, ref); p.Window != out.Windows[i/3] || p.Cols < 60 || p.Rows < 20 || p.Index != i%3 {
				t.Errorf("pane %d: %+v", i, p)
			}
		}
		if p := snapshot(t, s).Panes[0]; p.Window != first || !p.Active {
			t.Errorf("first %+v", p)
		}
		window := out.Windows[0]
		layout, err := s.Layout(ctx, window)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []tmux.Layout{tmux.EvenHorizontal, tmux.EvenVertical, tmux.MainHorizontal, tmux.MainVertical, tmux.Tiled, layout} {
			if err := s.SelectLayout(ctx, window, l); err != nil {
				t.Errorf("%s: %v", l, err)
			}
		}
		if again, err := s.Layout(ctx, window); err != nil || again != layout {
			t.Errorf("layout %s, want %s (%v)", again, layout, err)
		}
		if err := s.RenameWindow(ctx, window, "-x #{pid};"); err != nil {
			t.Error(err)
		}
		if p := pane(t, s, out.Panes[0]); p.WindowName != "-x #{pid};" {
			t.Errorf("name %q", p.WindowName)
		}
		if err := s.KillWindow(ctx, window); err != nil {
			t.Error(err)
		}
		_, layoutErr := s.Layout(ctx, window)
		for what, err := range map[string]error{
			"KillWindow": s.KillWindow(ctx, window), "RenameWindow": s.RenameWindow(ctx, window, "x"), "Layout": layoutErr,
			"SetBorders": s.SetBorders(ctx, window, tmux.BorderTop), "SetHook": s.SetHook(ctx, window, "pane-died", tmux.SignalCmd("x")),
		} {
			mustBe(t, what, err, tmux.ErrNoSuchWindow)
		}
		if n := len(snapshot(t, s).Panes); n != 7 {
			t.Errorf("%d panes", n)
		}
		_, err = s.NewWindows(ctx, "$77", tmux.WindowSpec{Panes: panes})
		mustBe(t, "NewWindows", err, tmux.ErrNoSuchSession)
		mustBe(t, "SetSessionMeta", s.SetSessionMeta(ctx, "$77", map[string]string{"k": "v"}), tmux.ErrNoSuchSession)
		mustBe(t, "DetachAll", s.DetachAll(ctx, "$77"), tmux.ErrNoSuchSession)
		if err := s.SetSessionMeta(ctx, id, map[string]string{"run": "x\n;", "gone": "1"}); err != nil {
			t.Error(err)
		}
		if err := s.SetSessionMeta(ctx, id, map[string]string{"gone": ""}); err != nil {
			t.Error(err)
		}
		if m := snapshot(t, s).Sessions()[0].Meta; len(m) != 1 || m["run"] != "x\n;" {
			t.Errorf("metadata %q", m)
		}
	})
}

func TestBorders(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		id, window, ref := session(t, s, "a")
		outer, terminal := attach(t, s, id)
		set := func(meta map[string]string) {
			t.Helper()
			if err := s.SetPaneMeta(ctx, ref, meta); err != nil {
				t.Fatal(err)
			}
		}
		set(map[string]string{"state": "busy #[fg=red]#{pid}#(id)"})
		if err := errors.Join(s.SetTitle(ctx, ref, "lead #[x] 1"), s.SetBorders(ctx, window, tmux.BorderTop, "state", "other")); err != nil {
			t.Fatal(err)
		}
		waitText(t, outer, terminal, "lead #[x] 1 busy #[fg=red]#{pid}#(id) ")
		set(map[string]string{"state": "", "other": "waits"})
		waitText(t, outer, terminal, "lead #[x] 1 waits ")
		if err := s.SetBorders(ctx, window, "top;", "state"); err == nil {
			t.Error("a position that is none was taken")
		}
		if err := s.SetBorders(ctx, window, tmux.BorderTop, "a}b"); err == nil {
			t.Error("a key that is none was taken")
		}
	})
}

func TestBuffers(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		session(t, s, "a")
		var all strings.Builder
		for i := 1; i < 256; i++ {
			all.WriteByte(byte(i))
		}
		for i, text := range []string{"-x;", all.String(), "é\n\n", strings.Repeat("long;\n", 20000), "x\n"} {
			if err := s.SetBuffer(ctx, fmt.Sprint("b", i), text); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Buffer(ctx, fmt.Sprint("b", i)); err != nil || got != text {
				t.Errorf("%q came back as %q, %v", clip(text), clip(got), err)
			}
		}
		names, err := s.Buffers(ctx)
		if err != nil || len(names) != 5 {
			t.Error(names, err)
		}
		if err := s.DeleteBuffer(ctx, "b1"); err != nil {
			t.Error(err)
		}
		_, err = s.Buffer(ctx, "b1")
		mustBe(t, "Buffer", err, tmux.ErrNoSuchBuffer)
		mustBe(t, "DeleteBuffer", s.DeleteBuffer(ctx, "b1"), tmux.ErrNoSuchBuffer)
		if s.SetBuffer(ctx, "b9", "") == nil || s.SetBuffer(ctx, "-b", "x") == nil || s.SetBuffer(ctx, "b", "\x00") == nil {
			t.Error("a bad buffer was taken")
		}
	})
}

func TestCaptureRange(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		_, _, ref := session(t, s, "a", "sh", "-c", `i=0; while [ $i -lt 100 ]; do echo "line $i  "; i=$((i+1)); done; exec sleep 1000`)
		waitText(t, s, ref, "line 99")
		// 50 rows, the last one empty: the screen begins with line 51.
		for _, tt := range []struct {
			o    tmux.CaptureOptions
			want string
		}{
			{tmux.CaptureOptions{Range: true, From: 0, To: 1}, "line 51\nline 52"},
			{tmux.CaptureOptions{Range: true, From: -51, To: -50}, "line 0\nline 1"},
			{tmux.CaptureOptions{Range: true, From: -1, To: 0, Join: true}, "line 50\nline 51"},
			{tmux.CaptureOptions{Range: true, From: 0, To: 0, Blanks: true}, "line 51  "},
		} {
			got, err := s.Capture(t.Context(), ref, tt.o)
			if tt.o.Blanks {
				got = got[:min(len(got), len(tt.want))]
			}
			if err != nil || got != tt.want {
				t.Errorf("%+v: %q, %v, want %q", tt.o, got, err, tt.want)
			}
		}
	})
}
