package panes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"muntin/agent/pty"
	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// BenchmarkSupervisedDeath is the time from the SIGKILL of an agent's program
// to the event of its supervisor that tells so.
func BenchmarkSupervisedDeath(b *testing.B) {
	server, base := tmuxtest.Server(b), tmuxtest.Dir(b)
	hold := tmux.SessionSpec{Name: "hold", Dir: "/", Argv: []string{"sleep", "1000"}}
	if _, _, _, err := server.NewSession(b.Context(), hold); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		dir := filepath.Join(base, "b"+strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		spec := tmux.SessionSpec{
			Name: "fleet" + strconv.Itoa(i), Dir: base, Argv: []string{os.Args[0], "-test.run=^$"},
			Env: map[string]string{superviseVar: dir, sleepVar: "1"},
		}
		if _, _, _, err := server.NewSession(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
		client := dial(b, filepath.Join(dir, "s"))
		pid := 0
		ended := make(chan time.Time, 1)
		ready := make(chan struct{})
		go func() {
			_ = client.Subscribe(b.Context(), 0, func(e pty.Event) error {
				switch e.Kind {
				case pty.EventStart:
					pid = e.Start.ChildPID
					close(ready)
				case pty.EventExit:
					ended <- time.Now()
					return errors.New("seen")
				}
				return nil
			})
		}()
		<-ready
		b.StartTimer()
		start := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-ended).Sub(start))
		client.Close()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-max")
}

func dial(b *testing.B, socket string) *pty.Client {
	b.Helper()
	var client *pty.Client
	tmuxtest.Wait(b, "the supervisor serves", func() bool {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		c, err := pty.Dial(ctx, socket)
		client = c
		return err == nil
	})
	return client
}
