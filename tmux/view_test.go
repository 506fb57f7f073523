package tmux_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// follow takes frames until what the view shows holds text: the last screen
// and what came after it.
func follow(t *testing.T, v *tmux.View, text string) (shown string, screens int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for !strings.Contains(shown, text) {
		f, err := v.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for %q: %v; shown: %.300q", text, err, shown)
		}
		if f.Screen != nil {
			shown = f.Screen.Text
			screens++
		}
		shown += string(f.Data)
	}
	return shown, screens
}

func view(t *testing.T, s *tmux.Server, ref tmux.PaneRef) *tmux.View {
	t.Helper()
	v, err := s.View(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func TestViewShowsScreenThenOutput(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		_, _, ref := session(t, s, "seen", "sh", "-c", `printf 'before\n'; while read x; do printf '\033[31m<%s>\\ é\033[m\n' "$x"; done`)
		noisy, err := s.Split(ctx, ref, tmux.Tiled, tmux.PaneSpec{Argv: []string{"sh", "-c", "while :; do echo noise; sleep 0.01; done"}, Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		waitText(t, s, ref, "before")
		v := view(t, s, ref)
		if shown, _ := follow(t, v, "before"); strings.Contains(shown, "noise") {
			t.Errorf("another pane is shown: %q", shown)
		}
		for i := range 20 {
			if err := s.SendKeys(ctx, ref, fmt.Appendf(nil, "line %d\r", i)); err != nil {
				t.Fatal(err)
			}
			shown, screens := follow(t, v, fmt.Sprintf("<line %d>\\ é\x1b[m", i))
			if strings.Contains(shown, "noise") || screens > 0 {
				t.Errorf("round %d: %d screens, shown %q", i, screens, shown)
			}
		}
		if err := s.KillPane(ctx, noisy); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Split(ctx, ref, tmux.Tiled, tmux.PaneSpec{Argv: idle(), Dir: "/"}); err != nil { // keeps the session
			t.Fatal(err)
		}
		if err := s.KillPane(ctx, ref); err != nil {
			t.Fatal(err)
		}
		for {
			_, err := v.Next(ctx)
			if err != nil {
				mustBe(t, "Next after the pane's end", err, tmux.ErrNoSuchPane)
				break
			}
		}
	})
}

func TestViewsAreFew(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	_, _, ref := session(t, s, "a")
	_, err := s.View(t.Context(), tmux.PaneRef{Epoch: ref.Epoch, ID: "%99"})
	mustBe(t, "no such pane", err, tmux.ErrNoSuchPane)
	for range 4 {
		view(t, s, ref)
	}
	_, err = s.View(t.Context(), ref)
	mustBe(t, "a fifth view", err, tmux.ErrTooManyViews)
}

// stalledVar has this test binary be the process that TestAStoppedReader stops.
const stalledVar = "MUNTIN_TEST_STALL"

// beStalled connects and views a pane, says so, and waits to be stopped.
func beStalled() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f := strings.Fields(os.Getenv(stalledVar))
	s, err := tmux.Open(ctx, tmux.Options{Bin: f[0], Socket: f[1]})
	if err != nil {
		return err
	}
	if err := s.Connect(ctx); err != nil {
		return err
	}
	v, err := s.View(ctx, tmux.PaneRef{Epoch: s.Epoch(), ID: tmux.PaneID(f[2])})
	if err != nil {
		return err
	}
	if _, err := v.Next(ctx); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, "ready"); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return errors.Join(v.Close(), s.Close())
}

// A process that holds a command client and a view, and is stopped, keeps no
// pane from writing: not others, and not the one it views.
func TestAStoppedReaderStallsNoPane(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		dir := t.TempDir()
		start := filepath.Join(dir, "start")
		// Each waits for the file, writes a megabyte, and says that it could.
		script := `until [ -e "$1" ]; do sleep 0.02; done; yes 0123456789012345678901234567890123456789 | head -c 1000000; : >"$2"; exec sleep 1000`
		var panes []tmux.PaneSpec
		var done []string
		for i := range 3 {
			done = append(done, filepath.Join(dir, fmt.Sprint("done", i)))
			panes = append(panes, tmux.PaneSpec{Argv: []string{"sh", "-c", script, "sh", start, done[i]}})
		}
		out, err := s.Spawn(t.Context(), tmux.SessionSpec{Name: "busy", Dir: "/"}, []tmux.WindowSpec{{Panes: panes}})
		if err != nil {
			t.Fatal(err)
		}
		cmd := helper(t, stalledVar+"="+strings.Join([]string{s.AttachArgv("$0")[0], s.Socket(), string(out.Panes[0].ID)}, " "))
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(start, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range done {
			waitFile(t, path, "")
			tmuxtest.Wait(t, "the pane has written all", func() bool { _, err := os.Stat(path); return err == nil })
		}
	})
}

// A reader that does not take what a view holds gets a whole screen later.
func TestSlowViewGetsAWholeScreen(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		done := filepath.Join(t.TempDir(), "done")
		script := `read x; yes 0123456789 | head -c 2000000; : >"$1"; echo; echo the end; exec sleep 1000`
		_, _, ref := session(t, s, "busy", "sh", "-c", script, "sh", done)
		v := view(t, s, ref)
		if f, err := v.Next(t.Context()); err != nil || f.Screen == nil {
			t.Fatalf("the first frame: %+v, %v", f, err)
		}
		if err := s.SendKeys(t.Context(), ref, []byte("\r")); err != nil {
			t.Fatal(err)
		}
		tmuxtest.Wait(t, "all is written", func() bool { _, err := os.Stat(done); return err == nil })
		waitText(t, s, ref, "the end")
		if _, screens := follow(t, v, "the end"); screens == 0 {
			t.Errorf("%d screens: the view held everything", screens)
		}
	})
}

func TestPipeBringsAllToTheLastLine(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		_, _, ref := session(t, s, "a", "sh", "-c", `read x; i=0; while [ $i -lt 800 ]; do echo "line $i é#%"; i=$((i+1)); done; echo last`)
		connect(t, s)
		p, err := s.Pipe(ctx, ref)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}()
		_, err = s.Pipe(ctx, ref)
		mustBe(t, "a second pipe", err, tmux.ErrPiped)
		if err := s.SendKeys(ctx, ref, []byte("\r")); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(all), "\r\n", "\n")
		if n := strings.Count(text, "\nline "); n < 799 || !strings.HasSuffix(text, "line 799 é#%\nlast\n") {
			t.Errorf("%d lines, the end is %q", n, text[max(0, len(text)-100):])
		}
		tmuxtest.Wait(t, "the program is seen dead", func() bool { return pane(t, s, ref).Dead })
		_, err = s.Pipe(ctx, ref)
		mustBe(t, "a dead pane", err, tmux.ErrDeadPane)
	})
}

// A user's own pipe stays, and a pipe nobody reads stops nothing.
func TestPipeLeavesAUsersPipeAlone(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	ctx := t.Context()
	log := filepath.Join(t.TempDir(), "log")
	_, _, ref := session(t, s, "a", "sh", "-c", `while read x; do echo "got $x"; done`)
	if _, err := s.Do(ctx, tmux.Cmd{"pipe-pane", "-t", string(ref.ID), "cat >'" + log + "'"}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Pipe(ctx, ref)
	mustBe(t, "Pipe without a connection", err, tmux.ErrNotConnected)
	connect(t, s)
	_, err = s.Pipe(ctx, ref)
	mustBe(t, "Pipe", err, tmux.ErrPiped)
	if err := s.SendKeys(ctx, ref, []byte("one\r")); err != nil {
		t.Fatal(err)
	}
	tmuxtest.Wait(t, "the user's pipe has the line", func() bool {
		data, _ := os.ReadFile(log)
		return strings.Contains(string(data), "got one")
	})
}

func TestPipeCountsWhatNobodyReads(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	ctx := t.Context()
	_, _, ref := session(t, s, "a", "sh", "-c", `read x; yes 0123456789 | head -c 1500000; echo; echo last`)
	connect(t, s)
	p, err := s.Pipe(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SendKeys(ctx, ref, []byte("\r")); err != nil {
		t.Fatal(err)
	}
	tmuxtest.Wait(t, "the program has ended", func() bool { return pane(t, s, ref).Dead })
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	var lost *tmux.LostError
	if _, err := p.Read(make([]byte, 1)); !errors.As(err, &lost) || lost.Bytes < 500_000 {
		t.Errorf("the loss was not told: %v", err)
	}
	all, err := io.ReadAll(p)
	if err != nil || len(all) != 1<<20 || !strings.Contains(string(all[len(all)-20:]), "last") {
		t.Errorf("%d bytes, %v", len(all), err)
	}
}
