package pty

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A supervisor that was killed leaves logs that are complete to their last
// line; the next one goes on with whatever else the kill left: half lines, the
// socket, messages that nobody has taken.
func TestStartOverRemains(t *testing.T) {
	t.Parallel()
	dir, log := newDir(t), filepath.Join(t.TempDir(), "agent.log")
	o := superOptions{Dir: dir, Argv: []string{self(t)}, Adapter: linkAdapter(), Env: []string{roleEnv + "=agent", "AGENT_LOG=" + log}}
	first := startProcess(t, o)
	dialWhenUp(t, dir, first.done)
	done, running := prompt("one"), prompt("wait")
	for _, d := range []Delivery{{Message: done, Until: StateDone}, {Message: running, Until: StateAccepted}} {
		if _, err := Deliver(testContext(t), dir, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.wait(t)
	before := eventsOf(t, dir)
	if last := before[len(before)-1]; last.Kind != EventTurnStart && last.Kind != EventMessage {
		t.Errorf("the log ends with %+v", last)
	}
	waiting := prompt("after")
	if err := Enqueue(dir, waiting); err != nil {
		t.Fatal(err)
	}
	for path, torn := range map[string]string{dir.Events(): `{"seq":99,"ki`, dir.Screen(): `[0.1, "o", "half`} {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(torn); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	bad := filepath.Join(dir.Inbox(), prompt("").ID+".json")
	if err := os.WriteFile(bad, []byte(`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir.Socket); err != nil {
		t.Errorf("a killed supervisor leaves its socket: %v", err)
	}

	second := startProcess(t, o)
	dialWhenUp(t, dir, second.done)
	for _, m := range []Message{waiting, prompt("more")} {
		if info, err := Deliver(testContext(t), dir, Delivery{Message: m, Until: StateDone}); err != nil || info.State != StateDone {
			t.Errorf("%s: %+v, %v", m.Text, info, err)
		}
	}
	events := eventsOf(t, dir) // checks that the numbers have no gap
	for i, ev := range before {
		if events[i].Kind != ev.Kind || !events[i].Time.Equal(ev.Time) {
			t.Errorf("event %d has changed: %+v", i+1, events[i])
		}
	}
	for path, part := range map[string]string{dir.Events() + ".torn": `{"seq":99,"ki`, bad + ".bad": `{"id":`} {
		if got, err := os.ReadFile(path); err != nil || !strings.Contains(string(got), part) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if text := castText(t, dir.Screen()); strings.Contains(text, "half") {
		t.Errorf("the recording kept a torn line: %q", text)
	}
	taken := strings.Join(lines(t, log), "\n")
	for _, m := range []Message{done, running, waiting} {
		if n := strings.Count(taken, m.ID); n != 1 {
			t.Errorf("%q was taken %d times", m.Text, n)
		}
	}
}

// Who follows an agent may die at any time, and however it does: the agent goes
// on, and the next one reads on without a gap.
func TestFollowerDies(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "agent.log")
	p := runPane(t, Options{Argv: []string{self(t)}, Adapter: linkAdapter(), Env: []string{roleEnv + "=agent", "AGENT_LOG=" + log}})
	p.client()
	for range 3 {
		conn, err := dial(testContext(t), p.dir.Socket)
		if err != nil {
			t.Fatal(err)
		}
		line, err := encode(Frame{ID: 1, Op: OpSubscribe, From: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(line); err != nil {
			t.Fatal(err)
		}
		conn.Close() // with the events unread
		if info := p.send(prompt("go on"), StateDone); info.State != StateDone {
			t.Errorf("%+v", info)
		}
	}
	seen := int64(0)
	p.event("the third turn", func(ev Event) bool {
		seen++
		return ev.Seq == seen && ev.Kind == EventTurnEnd && ev.Turn == 3
	})
	if st, err := p.client().Status(testContext(t)); err != nil || st.State != AgentIdle || time.Since(st.Since) > deadline {
		t.Errorf("%+v, %v", st, err)
	}
}
