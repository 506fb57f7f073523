package dash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

// child is the test binary as a program with a dashboard, in a pty of the
// parent's. Its environment says what to show.
func child() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	v := sample()
	for i := range v.Agents {
		v.Agents[i].Since = time.Now()
	}
	if os.Getenv("DASH_TEST_CHILD") == "idle" {
		for i := range v.Agents {
			v.Agents[i].State = AgentIdle
		}
	}
	views := make(chan View, 2)
	views <- v
	err := Run(ctx, Options{
		In: os.Stdin, Out: os.Stdout, Views: views, Env: os.Environ(), Owner: true,
		Commands: &childCommands{view: v, views: views, cancel: cancel}, Live: childLive{},
	})
	switch {
	case errors.Is(err, ErrQuit):
		return 3
	case errors.Is(err, context.Canceled):
		return 4
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// childCommands does what it is sent: "close" the views, "cancel" the context,
// or says it in the story.
type childCommands struct {
	view   View
	views  chan View
	cancel context.CancelFunc
}

func (c *childCommands) Run(_ context.Context, argv []string) (string, error) {
	switch said := argv[2]; said {
	case "close":
		close(c.views)
	case "cancel":
		c.cancel()
	case "fail":
		return "muntin: it failed\n", errors.New("exit status 1")
	default:
		c.view.Log = append(c.view.Log, Line{time.Now(), LevelInfo, "said <" + said + ">"})
		c.views <- c.view
	}
	return "", nil
}

func (c *childCommands) Terminal(argv []string) *exec.Cmd {
	return exec.Command("echo", append([]string{"terminal:"}, argv...)...)
}

// childLive shows a screen that says whose it is.
type childLive struct{}

func (childLive) Screen(ctx context.Context, agent string, fn func(Screen)) {
	fn(Screen{Cols: 80, Rows: 24, Lines: []string{strings.Repeat(agent, 4)}})
	<-ctx.Done()
}

func (childLive) Messages(context.Context) ([]Message, error) {
	return []Message{{ID: "1", Agent: "ann", State: "done", Text: "a message"}}, nil
}

// A terminal runs a child and keeps what it writes.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	done chan struct{}

	mu   sync.Mutex // guards the fields below
	text strings.Builder
	more chan struct{} // closed and made anew when there is more text
}

func start(t *testing.T, what string) *terminal {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, cmd: exec.CommandContext(t.Context(), exe), done: make(chan struct{}), more: make(chan struct{})}
	term.cmd.Env = append(os.Environ(), "DASH_TEST_CHILD="+what, "TERM=xterm-256color", "TERM_PROGRAM=tmux")
	term.tty, err = pty.StartWithSize(term.cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	go term.read()
	t.Cleanup(func() {
		_ = term.cmd.Process.Kill()
		_ = term.cmd.Wait()
		_ = term.tty.Close()
		<-term.done
	})
	return term
}

func (term *terminal) read() {
	defer close(term.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := term.tty.Read(buf)
		term.mu.Lock()
		term.text.Write(buf[:n])
		close(term.more)
		term.more = make(chan struct{})
		term.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// until waits for text that was not there before mark, and returns the new mark.
func (term *terminal) until(mark int, want string) int {
	term.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		term.mu.Lock()
		text, more := term.text.String(), term.more
		term.mu.Unlock()
		if strings.Contains(ansi.Strip(text[mark:]), want) {
			return len(text)
		}
		select {
		case <-more:
		case <-deadline:
			term.t.Fatalf("no %q in:\n%q", want, text[mark:])
		}
	}
}

func (term *terminal) press(keys string) {
	term.t.Helper()
	if _, err := io.WriteString(term.tty, keys); err != nil {
		term.t.Fatal(err)
	}
}

func (term *terminal) exit(want int) {
	term.t.Helper()
	_ = term.cmd.Wait()
	if got := term.cmd.ProcessState.ExitCode(); got != want {
		term.t.Errorf("exit status %d, want %d", got, want)
	}
}

func TestLiveKeys(t *testing.T) {
	t.Parallel()
	term := start(t, "busy")
	mark := term.until(0, "Print the counts as JSON")
	term.press("q")
	mark = term.until(mark, "Leave?")
	term.press("n")
	mark = term.until(mark, "q leave")
	term.press("shello you\r")
	mark = term.until(mark, "said <hello you>")
	term.press("sfail\r")
	mark = term.until(mark, "it failed")
	term.press("\r")
	mark = term.until(mark, "annannannann")
	term.press("\x1b[C")
	mark = term.until(mark, "bobbobbobbob")
	term.press("a") // takes the terminal
	mark = term.until(mark, "terminal: attach bob --run demo")
	term.press("5")
	mark = term.until(mark, "a message")
	term.press("1")
	mark = term.until(mark, "Print the counts as JSON")
	if err := pty.Setsize(term.tty, &pty.Winsize{Rows: 30, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	mark = term.until(mark, "protocol") // only the wide layout has it
	term.press("\x03")
	term.until(mark, "Leave?")
	term.press("y")
	term.exit(3)
}

func TestLiveEnds(t *testing.T) {
	t.Parallel()
	for key, code := range map[string]int{"sclose\r": 0, "scancel\r": 4} {
		term := start(t, "busy")
		term.until(0, "Print the counts as JSON")
		term.press(key)
		term.exit(code)
		<-term.done
		if text := term.text.String(); !strings.Contains(text, "\x1b[?1049l") {
			t.Errorf("key %q: the alternate screen was not left", key)
		}
	}
}

// A working agent's age runs by the second.
func TestLiveTicks(t *testing.T) {
	t.Parallel()
	term := start(t, "busy")
	mark := term.until(0, "Print the counts as JSON")
	for _, second := range []string{"2", "3"} { // "1" may have come with the first drawing
		mark = term.until(mark, second)
	}
}

// At rest the process does not wake up: the renderer's 60 ticks a second are off.
func TestLiveRests(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts context switches in /proc")
	}
	t.Parallel()
	term := start(t, "idle")
	mark := term.until(0, "Print the counts as JSON")
	rested := func() bool {
		before := switches(t, term.cmd.Process.Pid)
		<-time.After(time.Second)
		return switches(t, term.cmd.Process.Pid)-before < 15
	}
	for i := 0; !rested(); i++ { // start-up and a garbage collection may take their time
		if i == 8 {
			t.Fatal("the dashboard wakes up with nothing to do")
		}
	}
	term.press("sup\r") // and it is awake at once when there is something
	term.until(mark, "said <up>")
}

// switches counts how often the process's threads were scheduled.
func switches(t *testing.T, pid int) int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Skip("no thread status in /proc")
	}
	total, found := 0, false
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for line := range strings.Lines(string(b)) {
			n := 0
			if _, err := fmt.Sscanf(line, "voluntary_ctxt_switches: %d", &n); err == nil {
				total, found = total+n, true
			}
		}
	}
	if !found {
		t.Skip("no context switches in /proc")
	}
	return total
}

// Of views that come faster than they can be seen the last one is drawn.
func TestFeedDropsStaleViews(t *testing.T) {
	t.Parallel()
	views := make(chan View)
	var got []string
	quit := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		feed(t.Context(), views, func(msg tea.Msg) {
			switch msg := msg.(type) {
			case View:
				got = append(got, msg.Run)
			case tea.QuitMsg:
				quit = true
			}
		})
	}()
	const n = 200
	for i := range n {
		views <- View{Run: fmt.Sprint(i)}
	}
	close(views)
	<-done
	if len(got) == 0 || got[0] != "0" || got[len(got)-1] != fmt.Sprint(n-1) || !quit {
		t.Errorf("views %q, quit %v", got, quit)
	}
	if len(got) == n {
		t.Error("each view was drawn")
	}
}

func TestPlainRun(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	views := make(chan View, 2)
	views <- sample()
	second := sample()
	second.Phase = PhaseDone
	views <- second
	close(views)
	if err := Run(t.Context(), Options{Out: &b, Views: views}); err != nil {
		t.Fatal(err)
	}
	if out := b.String(); !strings.HasPrefix(out, "run demo: running\n") || !strings.HasSuffix(out, "run demo: done\n") {
		t.Errorf("got:\n%s", out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, Options{Out: &b, Views: make(chan View)}); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}
}
