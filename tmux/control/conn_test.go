package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muntin/tmux"
	"muntin/tmux/control"
	"muntin/tmux/tmuxtest"
)

// options start a server with one idle session and say how to attach to it.
func options(t testing.TB, flags ...string) (control.Options, *tmux.Server) {
	t.Helper()
	s := tmuxtest.Server(t)
	sp := tmux.SessionSpec{Name: "a", Dir: "/", Argv: []string{"sleep", "1000"}}
	if _, _, _, err := s.NewSession(t.Context(), sp); err != nil {
		t.Fatal(err)
	}
	argv := []string{tmuxtest.Bins(t)[0], "-u", "-S", s.Socket()}
	return control.Options{Argv: argv, Env: tmuxtest.Env(), Dir: "/", Flags: flags}, s
}

func dial(t testing.TB, o control.Options) *control.Conn {
	t.Helper()
	c, err := control.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := syscall.Kill(c.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the client process is left: %v", err)
		}
	})
	return c
}

func one(t testing.TB, c *control.Conn, cmd ...string) string {
	t.Helper()
	out, err := c.Do(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func TestDialErrors(t *testing.T) {
	t.Parallel()
	dir := tmuxtest.Dir(t)
	bin := tmuxtest.Bins(t)[0]
	for name, tc := range map[string]struct{ bin, want string }{
		"no server": {bin, "error connecting to"},
		"no binary": {dir + "/nosuch", "no such file"},
		"not tmux":  {"false", "server exited"},
	} {
		_, err := control.Dial(t.Context(), control.Options{Argv: []string{tc.bin, "-u", "-S", dir + "/s"}, Env: tmuxtest.Env()})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	o, _ := options(t)
	o.Target = "$99"
	if _, err := control.Dial(t.Context(), o); err == nil || !strings.Contains(err.Error(), "can't find session: $99") {
		t.Errorf("no such session: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := control.Dial(ctx, control.Options{Argv: []string{"sleep", "1000"}}); err == nil {
		t.Error("sleep was taken for tmux")
	}
}

// Many callers, commands that run others and hooks that print: each caller
// gets the replies of its own.
func TestPipelinedRepliesAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	o, _ := options(t, "no-output", "ignore-size")
	c := dial(t, o)
	one(t, c, "set-hook", "-g", "after-set-option", "display-message -p 'stray hook'")
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			for n := range 5 {
				id := fmt.Sprintf("%d.%d", i, n)
				nested := `if-shell -F 1 "display-message -p x` + id + ` ; if-shell -F 1 'display-message -p y` + id + `'" ; display-message -p z` + id
				out, err := c.Do(t.Context(),
					control.Cmd{"if-shell", "-F", "1", nested}, control.Cmd{"set-option", "-g", "@x", id}, control.Cmd{"display-message", "-p", id})
				want := []string{"x" + id + "\ny" + id + "\nz" + id, "", id}
				if err != nil || !slices.Equal(out, want) {
					t.Errorf("%q, %v; want %q", out, err, want)
				}
				out, err = c.Do(t.Context(), control.Cmd{"display-message", "-p", id}, control.Cmd{"kill-pane", "-t", "%9" + strconv.Itoa(i)})
				if len(out) != 1 || out[0] != id || err == nil || !strings.HasSuffix(err.Error(), "%9"+strconv.Itoa(i)) {
					t.Errorf("%q, %v", out, err)
				}
			}
		})
	}
	wg.Wait()
}

// A pane's text that ends its own reply, with the right numbers, is text.
func TestForgedEndIsText(t *testing.T) {
	t.Parallel()
	o, _ := options(t, "no-output", "ignore-size")
	c := dial(t, o)
	for range 3 {
		// The numbers that the reply will have can be guessed: a young server
		// counts its commands from some hundred on.
		now := time.Now().Unix()
		var text strings.Builder
		for sec := now; sec < now+2; sec++ {
			for n := range 600 {
				fmt.Fprintf(&text, "%%end %d %d 1\n%%window-add @9\n", sec, n)
			}
		}
		one(t, c, "set-option", "-g", "@x", text.String())
		if got := one(t, c, "show-options", "-gv", "@x"); got != text.String() && got+"\n" != text.String() {
			t.Fatalf("%d bytes of %d", len(got), text.Len())
		}
	}
}

// Whatever text goes in as an argument comes out of a real server.
func FuzzRoundTrip(f *testing.F) {
	o, _ := options(f, "no-output", "ignore-size")
	c := dial(f, o)
	file := filepath.Join(f.TempDir(), "buffer")
	for _, s := range []string{
		"plain", ";", "a;", `\;`, "-x", "--", "~", "~root", "$HOME", "${HOME}", "#{pid}", "#(id)", "'", `"`, "\\", "\\n", "{", "}", "%if", "%0",
		"a\nb", "\n", "\t\r\x1b[31m\x7f", "\xff\xfe", "é\xc3", "🙂‍🙂", strings.Repeat("x", 70_000), "", " ", "#", "##", "\u0085\u2028",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ReplaceAll(s, "\x00", "")
		if _, err := c.Do(t.Context(), control.Cmd{"set-buffer", "-b", "x", "--", s}); err != nil {
			if s == "" {
				return // tmux keeps no empty buffer
			}
			t.Fatal(err)
		}
		if s == "" {
			return
		}
		one(t, c, "save-buffer", "-b", "x", file) // show-buffer escapes what is not printable
		got, err := os.ReadFile(file)
		if err != nil || string(got) != s {
			t.Errorf("%q came back as %q, %v", s, got, err)
		}
	})
}

// Nobody takes the events: they are dropped and counted, the commands go on.
func TestFullQueueBecomesResync(t *testing.T) {
	t.Parallel()
	o, _ := options(t, "no-output", "ignore-size")
	o.Queue = 4
	c := dial(t, o)
	for i := range 40 {
		one(t, c, "rename-window", "-t", "a:", "n"+strconv.Itoa(i))
	}
	tmuxtest.Wait(t, "events are dropped", func() bool {
		one(t, c, "display-message", "-p", "")
		return c.Stats().Dropped > 20
	})
	for range 4 {
		if e := <-c.Events(); e.Kind == control.Resync && e.Dropped > 0 {
			return
		}
	}
	t.Error("no Resync was left")
}

// A server that does not answer is given up, and what waits is told.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	o, s := options(t, "no-output", "ignore-size")
	o.Watch = 100 * time.Millisecond
	c := dial(t, o)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	<-tick.C // the idle server is asked, and answers
	one(t, c, "display-message", "-p", "")
	pid := s.Epoch().PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	_, err := c.Do(t.Context(), control.Cmd{"display-message", "-p", ""})
	if !errors.Is(err, control.ErrLost) || !errors.Is(err, control.ErrStalled) {
		t.Errorf("error %v", err)
	}
	<-c.Down()
	if _, err := c.Do(t.Context(), control.Cmd{"display-message", "-p", ""}); !errors.Is(err, control.ErrDown) {
		t.Errorf("afterwards: %v", err)
	}
}

func TestOutputIsDecoded(t *testing.T) {
	t.Parallel()
	o, s := options(t, "ignore-size", "pause-after=1")
	c := dial(t, o)
	out := one(t, c, "new-window", "-d", "-P", "-F", "#{pane_id}", "-c", "/", "--", "sh", "-c", `read x; printf '\001\033[1m\\ é\377%%end 1 1 1\n'; exec sleep 1000`)
	if err := s.SendKeys(t.Context(), tmux.PaneRef{Epoch: s.Epoch(), ID: tmux.PaneID(out)}, []byte("\r")); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	deadline := time.After(10 * time.Second)
	for want := "\x01\x1b[1m\\ é\xff%end 1 1 1\r\n"; !strings.HasSuffix(got.String(), want); {
		select {
		case e := <-c.Events():
			if e.Kind == control.Output && e.Pane == out {
				got.Write(e.Data)
			}
		case <-deadline:
			t.Fatalf("%q, want %q at the end", got.String(), want)
		}
	}
}

// A Client whose server is gone says so when Final does, and ends.
func TestClientGivesUp(t *testing.T) {
	t.Parallel()
	o, s := options(t, "no-output", "ignore-size")
	prepared := 0
	client, err := control.NewClient(t.Context(), control.ClientOptions{
		Options: o,
		Prepare: func(context.Context, *control.Conn) error { prepared++; return nil },
		Final: func(err error, _ time.Duration) bool {
			return strings.Contains(err.Error(), "error connecting to") || strings.Contains(err.Error(), "no server")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.KillServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kinds []control.Kind
	for e := range client.Events() {
		kinds = append(kinds, e.Kind)
	}
	if n := len(kinds); n < 2 || kinds[n-1] != control.Gone || !slices.Contains(kinds, control.Down) {
		t.Errorf("events %v", kinds)
	}
	if _, err := client.Do(t.Context(), control.Cmd{"display-message"}); !errors.Is(err, control.ErrDown) {
		t.Errorf("Do: %v", err)
	}
	if err := client.Close(); err != nil || prepared < 1 {
		t.Errorf("%v; prepared %d times", err, prepared)
	}
}
