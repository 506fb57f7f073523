package pty

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	creack "github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"muntin/agent/adapter"
)

func TestShellTurn(t *testing.T) {
	t.Parallel()
	argv := bash(t)
	cp := &fakeCheckpointer{}
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...), Checkpoints: cp})
	var states []MessageState
	m := prompt("echo hello-$((6*7)); echo two\necho three")
	m.Task = "T1"
	p.ready()
	info, err := Deliver(testContext(t), p.dir, Delivery{
		Message: m, Until: StateDone, OnState: func(i MessageInfo) { states = append(states, i.State) },
	})
	if err != nil {
		t.Fatalf("%v\n%q", err, p.screen.String())
	}
	if info.State != StateDone || info.Evidence != "screen" {
		t.Errorf("got %+v", info)
	}
	if want := []MessageState{StateQueued, stateTyping, StateDelivered, StateAccepted, StateDone}; !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
	for _, want := range []string{"hello-42", "two", "three"} {
		p.screen.waitFor(t, want)
	}
	info = p.send(prompt("exit 7"), StateDone)
	if info.State != StateFailed {
		t.Errorf("the prompt that ended the shell: %+v", info)
	}
	if exit := p.wait(); exit.Code != 7 || p.err != nil {
		t.Errorf("exit %+v, %v", exit, p.err)
	}
	var kinds []string
	for _, ev := range p.events() {
		if ev.Kind != EventMessage {
			kinds = append(kinds, string(ev.Kind))
		}
		if ev.Kind == EventTurnEnd && ev.TurnEnd.Checkpoint == nil {
			t.Errorf("no checkpoint in %+v", ev.TurnEnd)
		}
	}
	got := strings.Join(kinds, " ")
	want := "start checkpoint ready turn_start checkpoint turn_end turn_start checkpoint turn_end exit"
	if got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
	if len(cp.reqs) != 3 || cp.reqs[0].Cause != CauseStart || cp.reqs[1].Turn != 1 || cp.reqs[1].Message != m.ID {
		t.Errorf("checkpoints %+v", cp.reqs)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	sh := func(script string) []string { return []string{"/bin/sh", "-c", script} }
	tests := []struct {
		name   string
		argv   []string
		want   ExitInfo
		failed bool
	}{
		{"zero", sh("exit 0"), ExitInfo{}, false},
		{"code", sh("exit 7"), ExitInfo{Code: 7}, false},
		{"signal", sh("kill -9 $$"), ExitInfo{Code: 137, Signal: "SIGKILL"}, false},
		{"stopped by itself", sh("kill -STOP $$; exit 5"), ExitInfo{Code: 5}, false},
		{"not there", []string{"/nonexistent/program"}, ExitInfo{Code: 127}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := runPane(t, Options{Argv: test.argv, Adapter: quickFor(test.argv...)})
			if got := p.wait(); got != test.want || (p.err != nil) != test.failed {
				t.Errorf("got %+v, %v; want %+v", got, p.err, test.want)
			}
			events := p.events()
			last := events[len(events)-1]
			if last.Kind != EventExit || *last.Exit != test.want || (last.Error != "") != test.failed {
				t.Errorf("the last event is %+v", last)
			}
			if _, err := os.Stat(p.dir.Socket); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket is still there: %v", err)
			}
		})
	}
}

// Whatever a program prints before it exits at once is on the pane and in the
// recording.
func TestDrain(t *testing.T) {
	t.Parallel()
	argv := []string{"/bin/sh", "-c", `i=0; while [ $i -lt 4096 ]; do printf '%063d\n' $i; i=$((i+1)); done; echo the-last-line`}
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...)})
	if exit := p.wait(); exit.Code != 0 {
		t.Fatalf("%+v", exit)
	}
	text := strings.ReplaceAll(p.screen.String(), "\x1b[5n", "")
	if got := strings.Count(text, "\n"); got != 4097 || !strings.HasSuffix(text, "the-last-line\r\n") {
		t.Errorf("%d lines on the pane, the end is %q", got, text[max(len(text)-100, 0):])
	}
	if got := castText(t, p.dir.Screen()); got != text {
		t.Errorf("the recording has %d bytes, the pane %d", len(got), len(text))
	}
	rows := lines(t, p.dir.Screen())
	if !strings.HasPrefix(rows[0], `{"version":3,"term":{"cols":100,"rows":30}`) || !strings.HasSuffix(rows[len(rows)-1], `, "x", "0"]`) {
		t.Errorf("first %s, last %s", rows[0], rows[len(rows)-1])
	}
}

// castText is what the recording's output events hold.
func castText(t *testing.T, path string) string {
	t.Helper()
	var b strings.Builder
	for i, line := range lines(t, path) {
		if i == 0 {
			continue
		}
		var ev []any
		if err := json.Unmarshal([]byte(line), &ev); err != nil || len(ev) != 3 {
			t.Fatalf("line %d: %v: %s", i+1, err, line)
		}
		if ev[1] == "o" {
			b.WriteString(ev[2].(string)) //nolint:forcetypeassert // a test
		}
	}
	return b.String()
}

func TestResizeAndEnvironment(t *testing.T) {
	t.Parallel()
	argv := bash(t)
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...), Env: []string{"TMUX=/tmp/x,1,0", "TMUX_PANE=%1", "KEPT=yes"}})
	p.ready()
	p.send(prompt("stty size; echo \"<${TMUX-none}${TMUX_PANE-none}$KEPT>\""), StateDone)
	p.screen.waitFor(t, "30 100\r\n")
	p.screen.waitFor(t, "<nonenoneyes>")
	if err := creack.Setsize(p.tty, &creack.Winsize{Rows: 11, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	p.send(prompt("stty size"), StateDone)
	p.screen.waitFor(t, "11 77\r\n")
	p.cancel()
	p.wait()
	if !slices.ContainsFunc(lines(t, p.dir.Screen()), func(l string) bool { return strings.Contains(l, `"r", "77x11"`) }) {
		t.Error("the recording does not have the new size")
	}
}

// A stop ends an agent that ignores every polite signal, with all it started.
func TestStop(t *testing.T) {
	t.Parallel()
	argv := []string{"/bin/sh", "-c", `trap '' HUP TERM; (trap '' HUP TERM; while :; do sleep 1; done) & echo other=$!=; while :; do sleep 1; done`}
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...), Grace: 200 * time.Millisecond})
	c := p.client()
	p.screen.waitFor(t, "=\r\n")
	other := strings.Split(p.screen.String(), "=")[1]
	if err := c.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if exit := p.wait(); exit.Signal != "SIGKILL" || exit.Code != 137 {
		t.Errorf("%+v", exit)
	}
	pid, err := strconv.Atoi(other)
	if err != nil {
		t.Fatal(err)
	}
	waitGone(t, pid)
	if _, err := Dial(testContext(t), p.dir.Socket); !errors.Is(err, ErrNotRunning) {
		t.Errorf("dialling a stopped one: %v", err)
	}
}

// A hang-up of the pane, as by tmux kill-pane, ends the agent and leaves a
// whole log.
func TestHangUp(t *testing.T) {
	t.Parallel()
	argv := bash(t)
	o := superOptions{Dir: newDir(t), Argv: argv, Adapter: quickFor(argv...), Grace: time.Second}
	p := startProcess(t, o)
	c := dialWhenUp(t, p.dir, p.done)
	start := waitEvent(t, c, "start", func(ev Event) bool { return ev.Kind == EventStart })
	p.screen.ptmx.Close()
	p.wait(t)
	waitGone(t, start.Start.ChildPID)
	events := eventsOf(t, p.dir)
	if last := events[len(events)-1]; last.Kind != EventExit {
		t.Errorf("the last event is %+v", last)
	}
}

func TestPaneRestored(t *testing.T) {
	t.Parallel()
	argv := []string{"/bin/sh", "-c", "echo up; read x"}
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...)})
	p.screen.waitFor(t, "up")
	if _, err := p.screen.ptmx.WriteString("\r"); err != nil {
		t.Fatal(err)
	}
	p.wait()
	tio, err := unix.IoctlGetTermios(int(p.tty.Fd()), getTermios)
	if err != nil || tio.Lflag&unix.ICANON == 0 || tio.Lflag&unix.ECHO == 0 {
		t.Errorf("the pane's terminal is not as before: %+v, %v", tio, err)
	}
}

// A person's Enter at a prompt begins a turn that no message names; Ctrl-C and
// Ctrl-Z work as in a bare shell.
func TestPersonsTurn(t *testing.T) {
	t.Parallel()
	argv := bash(t)
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...)})
	p.ready()
	keys := func(s string) {
		if _, err := p.screen.ptmx.WriteString(s); err != nil {
			t.Error(err)
		}
	}
	keys("sh -c 'echo sta\"\"rted; exec sleep 1000'\r")
	p.event("the turn", func(ev Event) bool { return ev.Kind == EventTurnStart && ev.TurnStart.Message == "" })
	p.screen.waitFor(t, "started")
	keys("\x1a") // Ctrl-Z
	p.screen.waitFor(t, "Stopped")
	keys("kill -9 %1; sh -c 'echo sec\"\"ond; exec sleep 1000'\r")
	p.screen.waitFor(t, "second")
	keys("\x03") // Ctrl-C
	keys("echo aga''in\r")
	p.screen.waitFor(t, "again")
	p.event("its end", func(ev Event) bool { return ev.Kind == EventTurnEnd && ev.TurnEnd.Source == adapter.ByScreen })
}

// A command that runs in the foreground keeps the turn open, though it prints
// nothing; an abort ends it.
func TestShellAbort(t *testing.T) {
	t.Parallel()
	argv := bash(t)
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...)})
	p.ready()
	m := prompt("sleep 1000")
	if info := p.send(m, StateAccepted); info.State != StateAccepted {
		t.Fatalf("%+v", info)
	}
	st, err := p.client().Status(testContext(t))
	if err != nil || st.State != AgentWorking || st.Message != m.ID || st.Turn != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	if info := p.send(message(KindAbort, ""), StateDone); info.State != StateDone {
		t.Errorf("abort: %+v", info)
	}
	if info := p.send(m, StateDone); info.State != StateFailed {
		t.Errorf("the aborted one: %+v", info)
	}
}

// Bytes pass both ways as they are: random ones, and what terminals do beyond
// text.
func TestTransparent(t *testing.T) {
	t.Parallel()
	data := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(data)
	special := "\x1b[?1004h\x1b[I\x1b[<0;3;4M\x1b[?2004h\x1b[200~p\x1b[201~\x1b[>1u\x1b[97;5u\x1b]8;id=1;https://example.org\x1b\\link\x1b]8;;\x1b\\" +
		"\x1b]52;c;aGk=\x07\x1b]2;title\x07\x1b]7501;state=idle:app=x\x1b\\\x1b[38;2;1;2;3m\x1b[48:2::4:5:6m\x1bPq#0;2;0;0;0~~-\x1b\\" +
		"\x1b_Gf=24,s=1,v=1;AAAA\x1b\\\x1bPtmux;\x1b\x1b]0;x\x07\x1b\\\x1b]1337;File=inline=1:QQ==\x07\x1b]133;A\x07\x1b[?2026h\x1b[?2026l\x07\x00\xff\x9d\x80"
	data = append(data, special...)
	dir := t.TempDir()
	out, in := filepath.Join(dir, "out"), filepath.Join(dir, "in")
	if err := os.WriteFile(out, data, 0o600); err != nil {
		t.Fatal(err)
	}
	p := runPane(t, Options{
		Argv: []string{self(t)}, Adapter: quickFor("x"), Env: []string{roleEnv + "=bytes", "BYTES_OUT=" + out, "BYTES_IN=" + in},
	})
	p.screen.waitFor(t, special)
	if _, err := p.screen.ptmx.Write(data); err != nil {
		t.Fatal(err)
	}
	p.wait()
	if p.screen.String() != string(data)+"\x1b[5n" {
		t.Errorf("the pane got %d bytes, want %d and the fence", len(p.screen.String()), len(data))
	}
	got, err := os.ReadFile(in)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("the program read %d bytes, want %d; %v", len(got), len(data), err)
	}
}

// playBytes prints the file BYTES_OUT as it is, and then reads as many bytes as
// BYTES_IN is to hold into that.
func playBytes() error {
	old, err := term.MakeRaw(0)
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(0, old) }()
	out, err := os.ReadFile(os.Getenv("BYTES_OUT"))
	if err != nil {
		return err
	}
	if _, err := os.Stdout.Write(out); err != nil {
		return err
	}
	in, err := os.Create(os.Getenv("BYTES_IN"))
	if err != nil {
		return err
	}
	if _, err := io.CopyN(in, os.Stdin, int64(len(out))); err != nil {
		return err
	}
	return in.Close()
}
