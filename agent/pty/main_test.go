package pty

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	creack "github.com/creack/pty"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"muntin/agent/adapter"
	"muntin/internal/id"
	"muntin/internal/state"
)

// roleEnv makes the test binary play a part in place of running tests.
const roleEnv = "PTY_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "agent":
		exitOn(playAgent())
	case "raw":
		exitOn(playRaw())
	case "bytes":
		exitOn(playBytes())
	case "tui":
		exitOn(playTUI())
	case "supervisor":
		exitOn(playSupervisor())
	default:
		exitOn(errors.New("unknown role"))
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// playAgent is the built-in agent on its link. What it accepts it writes into
// the file AGENT_LOG, one line a message, each id once in its life.
func playAgent() error {
	ctx := context.Background()
	seen := map[string]bool{}
	for {
		c, err := Dial(ctx, os.Getenv("MUNTIN_SOCKET"))
		if err != nil {
			return err
		}
		link, err := c.Attach(ctx)
		c.Close()
		if err != nil {
			return err
		}
		if err := link.Report(Report{Kind: ReportReady}); err != nil {
			return err
		}
		again, err := serveLink(link, seen)
		link.Close()
		if err != nil || !again {
			return err
		}
	}
}

func serveLink(link *Link, seen map[string]bool) (again bool, err error) {
	running := "" // a turn that waits for a steer or an abort
	say := func(r Report) {
		err = errors.Join(err, link.Report(r))
	}
	for m := range link.Messages() {
		if seen[m.ID] || m.Text == "ignore" && os.Getenv("AGENT_IGNORE") != "" {
			continue
		}
		if m.Text == "drop" { // loses the link before it accepts, once
			seen["drop"] = true
			return true, nil
		}
		seen[m.ID] = true
		if err := appendLine(os.Getenv("AGENT_LOG"), m.ID+" "+m.Text); err != nil {
			return false, err
		}
		if m.Text == "refuse" {
			say(Report{Kind: ReportRefused, Message: m.ID, Why: "it does not like it"})
			continue
		}
		say(Report{Kind: ReportAccepted, Message: m.ID})
		switch {
		case m.Kind == KindAbort:
			say(Report{Kind: ReportTurnEnd, Message: running, TurnEnd: &TurnEndInfo{Reason: TurnAborted}})
			running = ""
		case m.Kind == KindSteer && running != "":
			say(Report{Kind: ReportTurnEnd, Message: running, TurnEnd: &TurnEndInfo{Reason: TurnDone, Text: m.Text}})
			running = ""
		case m.Text == "exit":
			say(Report{Kind: ReportTurnStart, Message: m.ID})
			os.Exit(3)
		default:
			say(Report{Kind: ReportTurnStart, Message: m.ID})
			if m.Text == "wait" {
				running = m.ID
				continue
			}
			say(Report{Kind: ReportTool, Tool: &ToolInfo{Name: "bash", Summary: "true"}})
			say(Report{Kind: ReportTurnEnd, Message: m.ID, TurnEnd: &TurnEndInfo{Reason: TurnDone, Text: "did " + m.Text, Entry: "e1"}})
		}
		if err != nil {
			return false, err
		}
	}
	return false, err
}

// playRaw reads its terminal byte by byte in raw mode, into the file RAW_LOG,
// and says "got" for each carriage return. RAW_PASTE asks for bracketed paste.
func playRaw() error {
	old, err := term.MakeRaw(0)
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(0, old) }()
	f, err := os.OpenFile(os.Getenv("RAW_LOG"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if os.Getenv("RAW_PASTE") != "" {
		fmt.Print("\x1b[?2004h")
	}
	fmt.Print("ready\r\n")
	buf := make([]byte, 64<<10)
	for {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return err
		}
		if _, err := f.Write(buf[:n]); err != nil {
			return err
		}
		for range bytes.Count(buf[:n], []byte("\r")) {
			fmt.Print("got\r\n")
		}
		if bytes.IndexByte(buf[:n], 4) >= 0 { // Ctrl-D
			return nil
		}
	}
}

// playSupervisor is a supervisor process of its own, told by PTY_TEST_OPTIONS.
func playSupervisor() error {
	var o superOptions
	if err := json.Unmarshal([]byte(os.Getenv("PTY_TEST_OPTIONS")), &o); err != nil {
		return err
	}
	opt := Options{
		Run: "r", Agent: "a", Dir: o.Dir, Argv: o.Argv, In: os.Stdin, Out: os.Stdout,
		Adapter: o.Adapter, Hold: time.Millisecond, Grace: o.Grace,
		Env:          append(os.Environ(), append(o.Env, "MUNTIN_SOCKET="+o.Dir.Socket)...),
		Conversation: o.Conversation,
	}
	exit, err := Run(context.Background(), opt)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	exit.Die()
	os.Exit(exit.Code)
	return nil
}

type superOptions struct {
	Dir     state.AgentDir
	Argv    []string
	Env     []string
	Adapter adapter.Adapter
	Grace   time.Duration

	Conversation Conversation
}

// deadline is how long a test waits for anything.
const deadline = 20 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func newDir(t *testing.T) state.AgentDir {
	t.Helper()
	sockets, err := os.MkdirTemp("", "muntin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	return state.AgentDir{Name: "a", Path: filepath.Join(t.TempDir(), "a"), Socket: filepath.Join(sockets, "a.sock")}
}

// A screen collects what a pane's terminal shows.
type screen struct {
	ptmx *os.File
	done chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	grew chan struct{}
	dsr  bool // answer status requests, as a terminal does
}

func newScreen(t *testing.T, ptmx *os.File) *screen {
	t.Helper()
	// A copy that can be closed while it is being read.
	fd, err := unix.FcntlInt(ptmx.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	ptmx.Close()
	ptmx = os.NewFile(uintptr(fd), "ptmx")
	s := &screen{ptmx: ptmx, grew: make(chan struct{}, 1), done: make(chan struct{}), dsr: true}
	go func() {
		defer close(s.done)
		buf := make([]byte, 32<<10)
		for {
			n, err := ptmx.Read(buf)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.text.Write(buf[:n])
			answer := s.dsr && bytes.Contains(buf[:n], []byte("\x1b[5n"))
			s.mu.Unlock()
			if answer {
				_, _ = ptmx.WriteString("\x1b[0n")
			}
			offer(s.grew, struct{}{})
		}
	}()
	return s
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// tail is the end of it, at most n bytes.
func (s *screen) tail(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.text.Bytes()
	return string(b[max(len(b)-n, 0):])
}

func (s *screen) waitFor(t *testing.T, want string) {
	t.Helper()
	limit := time.NewTimer(deadline)
	defer limit.Stop()
	for !strings.Contains(s.String(), want) {
		select {
		case <-s.grew:
		case <-limit.C:
			t.Fatalf("the pane never showed %q, but:\n%q", want, s.String())
		}
	}
}

// A pane is a supervisor under test, with a terminal around it.
type pane struct {
	t      *testing.T
	dir    state.AgentDir
	screen *screen
	tty    *os.File
	cancel context.CancelFunc

	done chan struct{}
	exit ExitInfo
	err  error
}

// runPane runs a supervisor in this process.
func runPane(t *testing.T, opt Options) *pane {
	t.Helper()
	return runIn(t, opt, true)
}

func runIn(t *testing.T, opt Options, inPane bool) *pane {
	t.Helper()
	ptmx, tty, err := creack.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := creack.Setsize(ptmx, &creack.Winsize{Rows: 30, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	if opt.Dir.Path == "" {
		opt.Dir = newDir(t)
	}
	if opt.Run == "" {
		opt.Run, opt.Agent = "r", "a"
	}
	if inPane {
		opt.In, opt.Out = tty, tty
	}
	opt.Env = append(os.Environ(), append(opt.Env, "MUNTIN_SOCKET="+opt.Dir.Socket, "PS1=$ ", "HISTFILE=/dev/null")...)
	if opt.Hold == 0 {
		opt.Hold = time.Millisecond
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &pane{t: t, dir: opt.Dir, screen: newScreen(t, ptmx), tty: tty, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.exit, p.err = Run(ctx, opt)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.done
		tty.Close()
		<-p.screen.done
		p.screen.ptmx.Close()
	})
	return p
}

func (p *pane) wait() ExitInfo {
	p.t.Helper()
	limit := time.NewTimer(deadline)
	defer limit.Stop()
	select {
	case <-p.done:
	case <-limit.C:
		p.t.Fatalf("the supervisor did not end; the pane shows:\n%q", p.screen.String())
	}
	return p.exit
}

// client waits until the supervisor can be dialled.
func (p *pane) client() *Client {
	p.t.Helper()
	return dialWhenUp(p.t, p.dir, p.done)
}

func dialWhenUp(t *testing.T, dir state.AgentDir, ended <-chan struct{}) *Client {
	t.Helper()
	ctx := testContext(t)
	for {
		c, err := Dial(ctx, dir.Socket)
		if err == nil {
			t.Cleanup(func() { c.Close() })
			return c
		}
		if !errors.Is(err, ErrNotRunning) {
			t.Fatal(err)
		}
		select {
		case <-ended:
			t.Fatal("the supervisor ended")
		default:
		}
		if err := wait(ctx, 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// event waits for the first event that fits.
func (p *pane) event(what string, fits func(Event) bool) Event {
	p.t.Helper()
	return waitEvent(p.t, p.client(), what, fits)
}

func waitEvent(t *testing.T, c *Client, what string, fits func(Event) bool) (found Event) {
	t.Helper()
	seen := []string{}
	stop := errors.New("found")
	err := c.Subscribe(testContext(t), 1, func(ev Event) error {
		line, _ := json.Marshal(ev)
		seen = append(seen, string(line))
		if fits(ev) {
			found = ev
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Fatalf("waiting for %s: %v; seen:\n%s", what, err, strings.Join(seen, "\n"))
	}
	return found
}

func (p *pane) ready() {
	p.t.Helper()
	p.event("ready", func(ev Event) bool { return ev.Kind == EventReady })
}

func (p *pane) send(m Message, until MessageState) MessageInfo {
	p.t.Helper()
	p.client()
	info, err := Deliver(testContext(p.t), p.dir, Delivery{Message: m, Until: until})
	if err != nil {
		p.t.Fatalf("sending %q: %v; the pane shows:\n%q", m.Text, err, p.screen.String())
	}
	return info
}

func (p *pane) events() []Event { return eventsOf(p.t, p.dir) }

func eventsOf(t *testing.T, dir state.AgentDir) (events []Event) {
	t.Helper()
	if _, err := ReadEvents(dir, 0, func(ev Event, _ int64) error {
		events = append(events, ev)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i, ev := range events {
		if ev.Seq != int64(i)+1 {
			t.Fatalf("event %d has number %d", i+1, ev.Seq)
		}
	}
	return events
}

func message(kind MessageKind, text string) Message {
	return Message{ID: id.New(time.Now()), Kind: kind, Text: text, From: "user", Time: time.Now()}
}

func prompt(text string) Message { return message(KindPrompt, text) }

// quick makes an adapter's times short.
func quick(a adapter.Adapter) adapter.Adapter {
	if a.Quiet > 0 {
		a.Quiet, a.ReadyQuiet, a.SubmitDelay, a.LongDelay = 500*time.Millisecond, 100*time.Millisecond, 10*time.Millisecond, 0
	}
	return a
}

func quickFor(argv ...string) adapter.Adapter { return quick(adapter.For(argv)) }

func linkAdapter() adapter.Adapter { a, _ := adapter.Lookup(adapter.BuiltIn); return a }

func lines(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		out = append(out, sc.Text())
	}
	return out
}

func bash(t *testing.T) []string {
	t.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("bash is not installed")
	}
	return []string{path, "--norc", "--noprofile", "-i"}
}
