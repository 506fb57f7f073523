package tmux_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// events connects and subscribes.
func events(t *testing.T, s *tmux.Server) <-chan tmux.Event {
	t.Helper()
	connect(t, s)
	ch, err := s.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// await takes events until one fits.
func await(t *testing.T, ch <-chan tmux.Event, what string, fits func(tmux.Event) bool) tmux.Event {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	var seen []tmux.EventKind
	for {
		select {
		case e, ok := <-ch:
			if !ok {
				t.Fatalf("waiting for %s: the events ended after %v", what, seen)
			}
			if fits(e) {
				return e
			}
			seen = append(seen, e.Kind)
		case <-deadline.C:
			t.Fatalf("waiting for %s: not told; seen: %v", what, seen)
		}
	}
}

func about(kind tmux.EventKind, id tmux.PaneID) func(tmux.Event) bool {
	return func(e tmux.Event) bool { return e.Kind == kind && e.Pane.Ref.ID == id }
}

func TestEventsNeedAConnection(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	_, err := s.Events(t.Context())
	mustBe(t, "Events", err, tmux.ErrNotConnected)
	mustBe(t, "Connect", s.Connect(t.Context()), tmux.ErrNoServer)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.Socket()); err == nil {
		t.Error("a server was started")
	}
}

func TestPaneLifeAsEvents(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ctx := t.Context()
		session(t, s, "watched")
		ch := events(t, s)
		// Of another session than the one we are attached to.
		other, window, quick := session(t, s, "other", "sh", "-c", "read x; exit 7")
		await(t, ch, "the new pane", about(tmux.EventAdded, quick.ID))
		made, err := s.Split(ctx, quick, tmux.Tiled, tmux.PaneSpec{Argv: idle(), Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		await(t, ch, "the split", about(tmux.EventAdded, made.ID))
		await(t, ch, "the layout", func(e tmux.Event) bool { return e.Kind == tmux.EventLayout && e.Window == window })

		if err := s.SendKeys(ctx, quick, []byte("\r")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		died := await(t, ch, "the death", about(tmux.EventDied, quick.ID))
		if died.Pane.Status != 7 || died.Pane.Signal != "" || died.Pane.Ref.Epoch != s.Epoch() {
			t.Errorf("died with %+v", died.Pane)
		}
		t.Logf("told after %v", time.Since(start))
		if err := syscall.Kill(pane(t, s, made).PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		died = await(t, ch, "the second death", about(tmux.EventDied, made.ID))
		if died.Pane.Status != -1 || s.Version().AtLeast(3, 3) && died.Pane.Signal == "" {
			t.Errorf("killed: %+v", died.Pane)
		}
		if err := s.KillPane(ctx, made); err != nil {
			t.Fatal(err)
		}
		await(t, ch, "the pane to go", about(tmux.EventGone, made.ID))
		if err := s.KillSession(ctx, other, "other"); err != nil {
			t.Fatal(err)
		}
		await(t, ch, "the last pane to go", about(tmux.EventGone, quick.ID))
	})
}

func TestServerGoneIsTheLastEvent(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *tmux.Server){
		"killed": func(t *testing.T, s *tmux.Server) {
			if err := syscall.Kill(s.Epoch().PID, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		},
		"ended": func(t *testing.T, s *tmux.Server) {
			if err := s.KillServer(t.Context()); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
				_, _, ref := session(t, s, "a")
				pid := pane(t, s, ref).PID
				t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
				ch := events(t, s)
				end(t, s)
				e := await(t, ch, "the server's end", func(e tmux.Event) bool { return e.Kind == tmux.EventServerGone })
				if e.Err == nil {
					t.Error("no reason given")
				}
				if e, ok := <-ch; ok {
					t.Errorf("event %+v after the last", e)
				}
				_, err := s.Capture(t.Context(), ref, tmux.CaptureOptions{})
				mustBe(t, "Capture", err, tmux.ErrNoServer)
			})
		})
	}
}

// Ids begin anew with the server. A client that was connected to the one
// before must not touch a pane of the one after, and says so.
func TestIdsOfAnEarlierServerAreNotUsed(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tmuxtest.Dir(t), "s")
	s := tmuxtest.Open(t, tmux.Options{Socket: socket})
	_, _, ref := session(t, s, "a")
	pid := pane(t, s, ref).PID
	t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
	ch := events(t, s)
	if err := syscall.Kill(s.Epoch().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	next := tmuxtest.Open(t, tmux.Options{Socket: socket})
	tmuxtest.Wait(t, "another server has taken the socket", func() bool {
		_, _, again, err := next.NewSession(t.Context(), tmux.SessionSpec{Name: "b", Dir: "/", Argv: idle()})
		if err == nil && again.ID != ref.ID {
			t.Fatalf("the new server's pane is %s and not %s", again.ID, ref.ID)
		}
		return err == nil
	})
	e := await(t, ch, "the end of the first server", func(e tmux.Event) bool { return e.Kind == tmux.EventServerGone })
	if !errors.Is(e.Err, tmux.ErrStale) && !errors.Is(e.Err, tmux.ErrNoServer) {
		t.Errorf("the reason is %v", e.Err)
	}
	mustBe(t, "KillPane", s.KillPane(t.Context(), ref), tmux.ErrStale)
	mustBe(t, "KillPane by the new client", next.KillPane(t.Context(), ref), tmux.ErrStale)
	if sn := snapshot(t, next); len(sn.Panes) != 1 || sn.Panes[0].Dead {
		t.Errorf("the new server's pane was touched: %+v", sn.Panes)
	}
}

// Someone detaches our client, as a person may: it comes back, and says that
// something may have been missed. Until then commands go the other way.
func TestReconnectTellsToResync(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		_, _, ref := session(t, s, "a")
		ch := events(t, s)
		for range 3 {
			person, err := s.Reopen(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := person.Do(t.Context(), tmux.Cmd{"detach-client", "-s", "=a"}); err != nil {
				t.Fatal(err)
			}
			snapshot(t, s) // whichever way it goes
			await(t, ch, "a resync", func(e tmux.Event) bool { return e.Kind == tmux.EventResync })
			tmuxtest.Wait(t, "the connection is back", s.Connected)
			made, err := s.Split(t.Context(), ref, tmux.Tiled, tmux.PaneSpec{Argv: idle(), Dir: "/"})
			if err != nil {
				t.Fatal(err)
			}
			await(t, ch, "the new pane", about(tmux.EventAdded, made.ID))
			if err := s.KillPane(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			await(t, ch, "the pane to go", about(tmux.EventGone, made.ID))
		}
	})
}

// A context that ends takes its channel with it, and a call abandoned leaves
// the connection in order.
func TestAbandonedCallsLeaveTheConnectionWell(t *testing.T) {
	t.Parallel()
	s := tmuxtest.Server(t)
	session(t, s, "a")
	connect(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := s.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, ok := <-ch; ok {
		t.Error("an event, where the end was due")
	}
	if _, err := s.Do(ctx, tmux.Cmd{"set-option", "-g", "@late", "1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("an abandoned call: %v", err)
	}
	for i := range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*10*time.Microsecond)
		_, _ = s.Do(ctx, tmux.Cmd{"display-message", "-p", "lost " + strconv.Itoa(i)}) // by design
		cancel()
		want := "kept " + strconv.Itoa(i)
		if out, err := s.Do(t.Context(), tmux.Cmd{"display-message", "-p", want}); err != nil || out[0] != want {
			t.Fatalf("%q, %v: not the reply to %q", out, err, want)
		}
	}
}
