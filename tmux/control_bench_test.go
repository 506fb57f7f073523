package tmux_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muntin/internal/proc"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// These benchmarks take two ways of doing the same in turn, so that a noisy
// machine slows both, and report medians and the median of the ratios.

func median(list []time.Duration) time.Duration {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}

func ratio(a, b []time.Duration) float64 {
	list := make([]float64, len(a))
	for i := range a {
		list[i] = float64(a[i]) / float64(b[i])
	}
	slices.Sort(list)
	return list[len(list)/2]
}

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// BenchmarkRoundTrip is one command over the control connection against one
// tmux process.
func BenchmarkRoundTrip(b *testing.B) {
	s := tmuxtest.Server(b)
	hold(b, s, b.TempDir())
	plain, err := s.Reopen(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	connect(b, s)
	do := func(s *tmux.Server) time.Duration {
		start := time.Now()
		if _, err := s.Do(b.Context(), tmux.Cmd{"display-message", "-p", "x"}); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	var control, exec []time.Duration
	for b.Loop() {
		exec = append(exec, do(plain))
		some := make([]time.Duration, 100)
		for i := range some {
			some[i] = do(s)
		}
		control = append(control, median(some))
	}
	b.ReportMetric(millis(median(control)), "control-ms")
	b.ReportMetric(millis(median(exec)), "exec-ms")
	b.ReportMetric(ratio(exec, control), "times")
}

// BenchmarkCreate makes panes over the control connection, all under way at
// once, against one tmux process each. They spread over windows.
func BenchmarkCreate(b *testing.B) {
	for _, n := range []int{50, 200} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s, dir := tmuxtest.Server(b), b.TempDir()
			hold(b, s, dir)
			connect(b, s)
			bin := tmuxtest.Bins(b)[0]
			var control, exec []time.Duration
			for i := 0; b.Loop(); i++ {
				control = append(control, createControl(b, s, fmt.Sprint("c", i), n))
				exec = append(exec, createExec(b, s, []string{bin, "-u", "-S", s.Socket()}, n))
			}
			b.ReportMetric(millis(median(control)), "control-ms")
			b.ReportMetric(millis(median(exec)), "exec-ms")
			b.ReportMetric(ratio(control, exec), "of-exec")
		})
	}
}

// perWindow is how many panes a window gets.
const perWindow = 9

// createControl makes a session of n panes by Spawn: checked, and none refused.
func createControl(b *testing.B, s *tmux.Server, name string, n int) time.Duration {
	b.Helper()
	panes := make([]tmux.PaneSpec, n)
	for i := range panes {
		panes[i] = tmux.PaneSpec{Argv: idle()}
	}
	var windows []tmux.WindowSpec
	for chunk := range slices.Chunk(panes, perWindow) {
		windows = append(windows, tmux.WindowSpec{Panes: chunk})
	}
	start := time.Now()
	out, err := s.Spawn(b.Context(), tmux.SessionSpec{Name: name, Dir: "/"}, windows)
	took := time.Since(start)
	if err != nil || len(out.Panes) != n {
		b.Fatalf("%d panes of %d: %v", len(out.Panes), n, err)
	}
	if err := s.KillSession(b.Context(), out.Session, name); err != nil {
		b.Fatal(err)
	}
	return took
}

func createExec(b *testing.B, s *tmux.Server, argv []string, n int) time.Duration {
	b.Helper()
	run := func(args ...string) {
		b.Helper()
		if _, err := proc.Run(b.Context(), proc.Spec{Argv: append(slices.Clone(argv), args...), Env: tmuxtest.Env()}); err != nil {
			b.Fatal(err)
		}
	}
	start := time.Now()
	for i := range n {
		switch {
		case i == 0:
			run("new-session", "-d", "-s", "exec", "-x", "200", "-y", "50", "-c", "/", "--", "sleep", "1000")
		case i%perWindow == 0:
			run("new-window", "-d", "-a", "-t", "=exec:{end}", "-c", "/", "--", "sleep", "1000")
		default:
			run("split-window", "-d", "-t", "=exec:{end}", "-c", "/", "--", "sleep", "1000", ";", "select-layout", "-t", "=exec:{end}", "tiled")
		}
	}
	took := time.Since(start)
	sn, err := s.Snapshot(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	made := 0
	for _, p := range sn.Panes {
		if p.SessionName == "exec" {
			made++
		}
	}
	if made != n {
		b.Fatalf("%d panes of %d", made, n)
	}
	run("kill-session", "-t", "=exec")
	return took
}

// BenchmarkObserve200 is what it costs to watch 200 idle panes for 20 seconds:
// the CPU time of the server and of this process.
func BenchmarkObserve200(b *testing.B) {
	s := tmuxtest.Server(b)
	panes := make([]tmux.PaneSpec, 200)
	for i := range panes {
		panes[i] = tmux.PaneSpec{Argv: idle()}
	}
	if _, err := s.Spawn(b.Context(), tmux.SessionSpec{Name: "idle", Dir: "/"}, []tmux.WindowSpec{{Panes: panes}}); err != nil {
		b.Fatal(err)
	}
	const window = 20 * time.Second
	measure := func() float64 {
		runtime.GC()
		before, own := serverCPU(b, s.Epoch().PID), ownCPU(b)
		timer := time.NewTimer(window)
		<-timer.C
		used := serverCPU(b, s.Epoch().PID) - before + ownCPU(b) - own
		return used.Seconds() * float64(time.Minute/window)
	}
	for b.Loop() {
		floor := measure()
		connect(b, s)
		events, err := s.Events(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(measure(), "cpu-s/min")
		b.ReportMetric(floor, "unobserved-cpu-s/min")
		if len(events) > 0 {
			b.Errorf("idle panes made %v", <-events)
		}
	}
}

// serverCPU is the CPU time of a process (proc_pid_schedstat: nanoseconds).
func serverCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		b.Skip("no schedstat here: ", err)
	}
	ns, err := strconv.ParseInt(strings.Fields(string(stat))[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(ns)
}

func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDeath is the time from the end of a pane's program to its event.
func BenchmarkDeath(b *testing.B) {
	s := tmuxtest.Server(b)
	hold(b, s, b.TempDir())
	connect(b, s)
	events, err := s.Events(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var kept, closed []time.Duration
	for i := 0; b.Loop(); i++ {
		for _, closes := range []bool{false, true} {
			spec := tmux.WindowSpec{Panes: []tmux.PaneSpec{{Argv: idle(), Dir: "/", CloseOnExit: closes}}}
			sn, err := s.Snapshot(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			out, err := s.NewWindow(b.Context(), sn.Panes[0].Session, spec)
			if err != nil {
				b.Fatal(err)
			}
			until := func(kinds ...tmux.EventKind) tmux.Pane {
				for e := range events {
					if e.Pane.Ref == out.Panes[0] && slices.Contains(kinds, e.Kind) {
						return e.Pane
					}
				}
				b.Fatal("the events ended")
				return tmux.Pane{}
			}
			p := until(tmux.EventAdded)
			start := time.Now()
			if err := syscall.Kill(p.PID, syscall.SIGTERM); err != nil {
				b.Fatal(err)
			}
			until(tmux.EventDied, tmux.EventGone)
			took := time.Since(start)
			if closes {
				closed = append(closed, took)
				continue
			}
			kept = append(kept, took)
			if err := s.KillPane(b.Context(), p.Ref); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(millis(median(kept)), "kept-ms")
	b.ReportMetric(millis(slices.Max(kept)), "kept-max-ms")
	b.ReportMetric(millis(median(closed)), "closed-ms")
}
