package tui

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// A liveUI is a front end that draws on a real terminal, whose screen is followed.
type liveUI struct {
	*ui
	master *os.File
	mu     sync.Mutex
	screen *vt.Emulator
	raw    strings.Builder
	news   chan struct{}
}

func runLive(t *testing.T, change func(*setup)) *liveUI {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Cols: 80, Rows: 70}); err != nil {
		t.Fatal(err)
	}
	l := &liveUI{master: master, screen: vt.NewEmulator(80, 70), news: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			l.mu.Lock()
			l.raw.Write(buf[:n])
			_, _ = l.screen.Write(buf[:n])
			l.mu.Unlock()
			select {
			case l.news <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() { tty.Close(); master.Close(); <-done })
	l.ui = run(t, func(s *setup) {
		s.opts.In, s.opts.Out, s.opts.Tty, s.opts.Live, s.opts.Terminal, s.opts.Echo = tty, tty, tty, true, true, true
		s.opts.Env = append(os.Environ(), "TERM=xterm-256color")
		s.opts.Dir = s.dir
		s.opts.Size = func() (int, int) {
			rows, cols, err := pty.Getsize(tty)
			if err != nil {
				return 80, 24
			}
			return cols, rows
		}
		change(s)
	})
	return l
}

func (l *liveUI) keys(text string) {
	l.t.Helper()
	if _, err := l.master.WriteString(text); err != nil {
		l.t.Fatal(err)
	}
}

func (l *liveUI) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.screen.String()
}

func (l *liveUI) sees(texts ...string) {
	l.t.Helper()
	deadline := time.After(patience)
	for {
		rest, missing := l.text(), ""
		for _, want := range texts {
			i := strings.Index(rest, want)
			if i < 0 {
				missing = want
				break
			}
			rest = rest[i+len(want):]
		}
		if missing == "" {
			return
		}
		select {
		case <-l.news:
		case <-deadline:
			l.t.Fatalf("%q is not on the screen:\n%s", missing, l.text())
		}
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	l := runLive(t, func(s *setup) {
		s.opts.Host.Editor = []string{"sh", "-c", "printf 'hello there\\n' > \"$1\"", "editor"}
	})
	l.sees("worker  scripted/test", "❯", "scripted/test")
	l.keys("work\r")
	l.sees("❯ work", "let me see", "I will write", "● write  lib/x.sh (2 lines)", "✓ ", "❯")
	l.keys("wait\r")
	l.until("the command's start", l.exists("up"))
	l.keys("steer it\r")
	l.sees("↳ steering: steer it", "Alt+Up")
	l.keys("later\x1b\r") // Alt+Enter
	l.sees("↳ next: later")
	l.keys("\x1bp") // no key of ours
	l.keys("\x1b[1;3A")
	l.sees("❯ steer it", "later")
	l.keys("\x03") // clears the editor
	l.keys("\x1b") // aborts
	l.sees("■ aborted")
	l.keys("\x1b[200~hel")
	l.keys("lo\x1b[201~") // a paste that comes in two reads
	l.sees("❯ hello")
	l.keys("\r")
	l.sees("hello yourself", "✓ ")
	l.keys("\x07") // the external editor
	l.sees("❯ hello there")
	l.keys("\r")
	l.sees("hello yourself", "hello yourself")
	l.keys("\x04")
	if err := l.ended(); err != nil {
		t.Fatal(err)
	}
	written := func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.raw.String()
	}
	l.until("giving the terminal back", func() bool { return strings.HasSuffix(written(), "\x1b[<u\x1b[>4m\x1b[?2004l\x1b[?25h") })
	raw := written()
	if strings.Contains(raw, "\x1b[?1049h") {
		t.Error("the alternate screen was used")
	}
	var states []string
	for _, part := range strings.Split(raw, "\x1b]7501;state=")[1:] {
		st, _, _ := strings.Cut(part, ":app=muntin")
		states = append(states, st)
	}
	if got := strings.Join(states, " "); got != "idle working done working idle working done working done" {
		t.Errorf("states %s", got)
	}
}

// The link's messages are shown, and a question is answered on the screen.
func TestLiveLinkAndDialog(t *testing.T) {
	t.Parallel()
	l := runLive(t, func(s *setup) { s.link = newLink() })
	l.link.messages <- Incoming{ID: "p1", Kind: KindPrompt, Text: "hello", From: "planner"}
	l.sees("❯ hello  (planner)", "hello yourself", "✓ ")
	l.told("ready", "accepted p1", "start p1", "end p1 done")
	l.keys("/thinking\r")
	l.sees("How much shall the model think?", "▸ off")
	l.keys("hig\r")
	l.sees("scripted/test:high")
	l.stops <- os.Interrupt
	l.sees("Press Ctrl-C again")
	l.keys("\x03")
	if err := l.ended(); err != nil {
		t.Fatal(err)
	}
}
