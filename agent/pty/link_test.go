package pty

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	creack "github.com/creack/pty"

	"muntin/agent/adapter"
	"muntin/internal/state"
)

func runAgent(t *testing.T, opt Options) (*pane, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "agent.log")
	opt.Argv, opt.Adapter = []string{self(t)}, linkAdapter()
	opt.Env = append(opt.Env, roleEnv+"=agent", "AGENT_LOG="+log)
	return runPane(t, opt), log
}

func TestLinkTurn(t *testing.T) {
	t.Parallel()
	cp := &fakeCheckpointer{}
	p, log := runAgent(t, Options{Checkpoints: cp})
	m := prompt("work")
	m.Task = "T7"
	info := p.send(m, StateDone)
	if info.State != StateDone || info.Evidence != adapter.ByProtocol {
		t.Errorf("got %+v", info)
	}
	again := p.send(m, StateDone) // the same id: not delivered again
	if again.State != StateDone {
		t.Errorf("the repeated id: %+v", again)
	}
	if info := p.send(prompt("refuse"), StateAccepted); info.State != StateFailed || info.Why != "it does not like it" {
		t.Errorf("refused: %+v", info)
	}
	if got := lines(t, log); len(got) != 2 {
		t.Errorf("the agent took %q", got)
	}
	var end *TurnEndInfo
	lastCheckpoint := 0
	for _, ev := range p.events() {
		switch ev.Kind {
		case EventCheckpoint:
			lastCheckpoint = ev.Checkpoint.ID
		case EventTurnEnd:
			end = ev.TurnEnd
			if end.Checkpoint == nil || end.Checkpoint.ID != lastCheckpoint {
				t.Errorf("the turn's end has checkpoint %+v, written was %d", end.Checkpoint, lastCheckpoint)
			}
		}
	}
	if end == nil || end.Message != m.ID || end.Task != "T7" || end.Text != "did work" || end.Source != adapter.ByProtocol {
		t.Errorf("turn end %+v", end)
	}
	if req := cp.reqs[1]; req.Entry != "e1" || req.Message != m.ID || req.Turn != 1 {
		t.Errorf("checkpoint request %+v", req)
	}
}

func TestLinkSteerAbortFollowUp(t *testing.T) {
	t.Parallel()
	p, _ := runAgent(t, Options{})
	first, second := prompt("wait"), message(KindFollowUp, "wait")
	if info := p.send(first, StateAccepted); info.State != StateAccepted {
		t.Fatalf("%+v", info)
	}
	if info := p.send(second, StateQueued); info.State != StateQueued {
		t.Errorf("the followup of a running turn: %+v", info)
	}
	if info := p.send(message(KindSteer, "this way"), StateDone); info.State != StateDone {
		t.Errorf("steer %+v", info)
	}
	p.event("the second turn", func(ev Event) bool { return ev.Kind == EventTurnStart && ev.TurnStart.Message == second.ID })
	if info := p.send(message(KindAbort, ""), StateDone); info.State != StateDone {
		t.Errorf("abort %+v", info)
	}
	if info := p.send(second, StateDone); info.State != StateFailed || !strings.Contains(info.Why, "aborted") {
		t.Errorf("the aborted one: %+v", info)
	}
	if info := p.send(message(KindAbort, ""), StateDone); info.State != StateDone || info.Why != "no turn was running" {
		t.Errorf("abort of nothing: %+v", info)
	}
}

func TestLinkLost(t *testing.T) {
	t.Parallel()
	p, log := runAgent(t, Options{})
	if info := p.send(prompt("drop"), StateQueued); info.State == "" {
		t.Fatal("no answer")
	}
	// The agent drops the link once for it, comes again, and is given it again.
	n := 0
	p.event("ready again", func(ev Event) bool {
		if ev.Kind == EventReady {
			n++
		}
		return n == 2
	})
	p.cancel()
	p.wait()
	if got := lines(t, log); len(got) != 0 {
		t.Errorf("the agent took %q", got)
	}
}

func TestLinkExitInTurn(t *testing.T) {
	t.Parallel()
	cp := &fakeCheckpointer{fail: true}
	p, _ := runAgent(t, Options{Checkpoints: cp})
	if info := p.send(prompt("exit"), StateDone); info.State != StateFailed {
		t.Errorf("%+v", info)
	}
	if exit := p.wait(); exit.Code != 3 {
		t.Errorf("exit %+v", exit)
	}
	failed, ended := 0, 0
	for _, ev := range p.events() {
		switch ev.Kind {
		case EventCheckpointFailed:
			failed++
		case EventTurnEnd:
			ended++
			if ev.TurnEnd.Reason != TurnExited {
				t.Errorf("%+v", ev.TurnEnd)
			}
		}
	}
	if failed != 2 || ended != 1 {
		t.Errorf("%d failed checkpoints, %d turn ends", failed, ended)
	}
}

// A process is a supervisor in a process of its own.
type process struct {
	cmd    *exec.Cmd
	dir    state.AgentDir
	screen *screen
	done   chan struct{}
}

func startProcess(t *testing.T, o superOptions) *process {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self(t))
	cmd.Env = append(os.Environ(), roleEnv+"=supervisor", "PTY_TEST_OPTIONS="+string(raw))
	ptmx, err := creack.StartWithSize(cmd, &creack.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, dir: o.Dir, screen: newScreen(t, ptmx), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.done
		<-p.screen.done
		p.screen.ptmx.Close()
	})
	return p
}

func (p *process) wait(t *testing.T) {
	t.Helper()
	limit := time.NewTimer(deadline)
	defer limit.Stop()
	select {
	case <-p.done:
	case <-limit.C:
		t.Fatalf("the supervisor did not end; it shows\n%q", p.screen.String())
	}
}

func TestKilledSupervisorLink(t *testing.T) {
	t.Parallel()
	dir, log := newDir(t), filepath.Join(t.TempDir(), "agent.log")
	o := superOptions{Dir: dir, Argv: []string{self(t)}, Adapter: linkAdapter(), Env: []string{roleEnv + "=agent", "AGENT_LOG=" + log, "AGENT_IGNORE=1"}}
	first := startProcess(t, o)
	c := dialWhenUp(t, dir, first.done)
	running, ignored, waiting := prompt("wait"), message(KindSteer, "ignore"), prompt("after")
	for _, m := range []Message{running, ignored, waiting} {
		until := StateQueued
		if m.ID == running.ID {
			until = StateAccepted
		}
		if _, err := Deliver(testContext(t), dir, Delivery{Message: m, Until: until}); err != nil {
			t.Fatal(err)
		}
	}
	waitEvent(t, c, "the delivery", func(ev Event) bool {
		return ev.Message != nil && ev.Message.ID == ignored.ID && ev.Message.State == StateDelivered
	})
	start := waitEvent(t, c, "start", func(ev Event) bool { return ev.Kind == EventStart })
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.wait(t)
	waitGone(t, start.Start.ChildPID)

	down := prompt("filed") // no supervisor: it is filed
	if info, err := Deliver(testContext(t), dir, Delivery{Message: down, Until: StateDone}); err != nil || info.State != StateQueued {
		t.Fatalf("%+v, %v", info, err)
	}
	o.Env = o.Env[:2]
	second := startProcess(t, o)
	c = dialWhenUp(t, dir, second.done)
	for _, m := range []Message{waiting, down} {
		if info, err := Deliver(testContext(t), dir, Delivery{Message: m, Until: StateAccepted}); err != nil || !info.State.Reached(StateAccepted) {
			t.Fatalf("%s: %+v, %v", m.Text, info, err)
		}
	}
	info, err := Deliver(testContext(t), dir, Delivery{Message: running, Until: StateDone})
	if err != nil || info.State != StateFailed || info.Why != whyAccepted {
		t.Errorf("the one it was working on: %+v, %v", info, err)
	}
	n := 0
	waitEvent(t, c, "the second delivery", func(ev Event) bool {
		if ev.Message != nil && ev.Message.ID == ignored.ID && ev.Message.State == StateDelivered {
			n++
		}
		return n == 2
	})
	counts := map[string]int{}
	for _, line := range lines(t, log) {
		id, _, _ := strings.Cut(line, " ")
		counts[id]++
	}
	for _, m := range []Message{running, waiting, down} {
		if counts[m.ID] != 1 {
			t.Errorf("%q was taken %d times", m.Text, counts[m.ID])
		}
	}
	turns := map[int]int{}
	for _, ev := range eventsOf(t, dir) {
		switch ev.Kind {
		case EventTurnStart:
			turns[ev.Turn]++
		case EventTurnEnd:
			turns[ev.Turn] += 10
		}
	}
	if turns[1] != 11 || turns[2] != 11 {
		t.Errorf("turns (10 × ends + starts): %v", turns)
	}
}

// waitGone waits until no process has the pid any more.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	ctx := testContext(t)
	for {
		p, err := os.FindProcess(pid)
		if err != nil || p.Signal(syscall.Signal(0)) != nil {
			return
		}
		if err := wait(ctx, 5*time.Millisecond); err != nil {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

func TestKilledSupervisorTyped(t *testing.T) {
	t.Parallel()
	dir, log := newDir(t), filepath.Join(t.TempDir(), "raw.log")
	ad := quick(adapter.For([]string{"x"}))
	ad.ReadyOutput = true
	ad.SubmitDelay = time.Minute // it is killed between the text and the submit key
	o := superOptions{Dir: dir, Argv: []string{self(t)}, Adapter: ad, Env: []string{roleEnv + "=raw", "RAW_LOG=" + log}}
	first := startProcess(t, o)
	dialWhenUp(t, dir, first.done)
	typed := prompt("typed once")
	if _, err := Deliver(testContext(t), dir, Delivery{Message: typed, Until: StateQueued}); err != nil {
		t.Fatal(err)
	}
	waitFile(t, log, typed.Text)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.wait(t)

	o.Adapter.SubmitDelay = time.Millisecond
	second := startProcess(t, o)
	dialWhenUp(t, dir, second.done)
	info, err := Deliver(testContext(t), dir, Delivery{Message: typed, Until: StateDone})
	if err != nil || info.State != StateFailed || info.Why != whyTyped {
		t.Errorf("%+v, %v", info, err)
	}
	other := prompt("another")
	if info, err := Deliver(testContext(t), dir, Delivery{Message: other, Until: StateAccepted}); err != nil || !info.State.Reached(StateAccepted) {
		t.Errorf("%+v, %v", info, err)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), typed.Text+other.Text+"\r"; got != want {
		t.Errorf("typed %q, want %q", got, want)
	}
}

func waitFile(t *testing.T, path, want string) {
	t.Helper()
	ctx := testContext(t)
	for {
		data, _ := os.ReadFile(path)
		if strings.Contains(string(data), want) {
			return
		}
		if err := wait(ctx, 5*time.Millisecond); err != nil {
			t.Fatalf("%s never held %q, but %q", path, want, data)
		}
	}
}
