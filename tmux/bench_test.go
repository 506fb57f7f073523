package tmux_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muntin/internal/proc"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

const benchPanes = 10

// BenchmarkSpawn makes ten panes the way the product does, verified and with
// metadata. Compare with BenchmarkSplitLoop.
func BenchmarkSpawn(b *testing.B) {
	s, dir := tmuxtest.Server(b), b.TempDir()
	hold(b, s, dir)
	for i := 0; b.Loop(); i++ {
		var panes []tmux.PaneSpec
		for n := range benchPanes {
			panes = append(panes, tmux.PaneSpec{
				Argv: []string{"sleep", "1000"}, Title: fmt.Sprint("agent ", n), Meta: map[string]string{"agent": fmt.Sprint(n)},
			})
		}
		name := fmt.Sprint("bench", i)
		out, err := s.Spawn(b.Context(), tmux.SessionSpec{Name: name, Dir: dir}, []tmux.WindowSpec{{Name: "agents", Panes: panes}})
		if err != nil || len(out.Panes) != benchPanes {
			b.Fatal(out, err)
		}
		b.StopTimer()
		if err := s.KillSession(b.Context(), out.Session, name); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkSplitLoop is the floor to compare with: one plain tmux process a
// pane, nothing checked.
func BenchmarkSplitLoop(b *testing.B) {
	s, dir := tmuxtest.Server(b), b.TempDir()
	hold(b, s, dir)
	bin := tmuxtest.Bins(b)[0]
	run := func(args ...string) {
		argv := append([]string{bin, "-u", "-S", s.Socket()}, args...)
		if _, err := proc.Run(b.Context(), proc.Spec{Argv: argv, Env: tmuxtest.Env()}); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprint("bench", i)
		run("new-session", "-d", "-s", name, "-x", "200", "-y", "50", "-c", dir, "--", "sleep", "1000")
		for range benchPanes - 1 {
			run("split-window", "-d", "-t", "="+name+":", "-c", dir, "--", "sleep", "1000", ";", "select-layout", "-t", "="+name+":", "tiled")
		}
		b.StopTimer()
		run("kill-session", "-t", "="+name)
		b.StartTimer()
	}
}

// BenchmarkDo is one command by one tmux process.
func BenchmarkDo(b *testing.B) {
	s, dir := tmuxtest.Server(b), b.TempDir()
	hold(b, s, dir)
	for b.Loop() {
		if _, err := s.Do(b.Context(), tmux.Cmd{"display-message", "-p", "x"}); err != nil {
			b.Fatal(err)
		}
	}
}

// hold starts the server and keeps it.
func hold(b *testing.B, s *tmux.Server, dir string) {
	b.Helper()
	_, _, _, err := s.NewSession(b.Context(), tmux.SessionSpec{Name: "hold", Dir: dir, Argv: []string{"sleep", "1000"}})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPaste2K is 2 KB pasted until the program has read and answered
// them, over the control connection and by one tmux process. The answer is seen
// on a pipe, so that the time is that of the way in.
func BenchmarkPaste2K(b *testing.B) {
	for _, way := range []string{"control", "exec"} {
		b.Run(way, func(b *testing.B) {
			s, dir := tmuxtest.Server(b), b.TempDir()
			ref, read := rawReader(b, s, dir)
			if way == "control" {
				connect(b, s)
			}
			text := strings.Repeat("0123456789abcde\n", 128)
			buf := make([]byte, len(text))
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if err := s.Paste(b.Context(), ref, text); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(read, buf); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			b.ReportMetric(millis(median(took)), "ms-median")
		})
	}
}

// rawReader starts a program that copies what it is sent to a pipe.
func rawReader(b *testing.B, s *tmux.Server, dir string) (tmux.PaneRef, *os.File) {
	b.Helper()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		b.Fatal(err)
	}
	script := `stty raw -echo; exec dd bs=65536 of="$1" 2>/dev/null`
	_, _, ref, err := s.NewSession(b.Context(), tmux.SessionSpec{Name: "read", Dir: dir, Argv: []string{"sh", "-c", script, "sh", fifo}})
	if err != nil {
		b.Fatal(err)
	}
	read, err := os.Open(fifo) // returns when the program writes to it, so it is raw
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { read.Close() })
	return ref, read
}
