package pty

import (
	"context"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func enters(m *machine) []effect     { return m.personEnters() }
func notChanged(m *machine) []effect { return m.checkpointed(nil, "") }

// Before each turn the state is kept, whoever begins it, and nothing is said of
// the turn until it is.
func TestMachineKeepsBefore(t *testing.T) {
	t.Parallel()
	up := []step{{boot, "take:start"}, {taken, "checkpoint"}, {ready, "ready"}}
	turn := []step{{ended(TurnDone), "take:turn"}, {taken, "checkpoint1 turn_end1(done)"}}
	tests := []struct {
		name  string
		steps []step
	}{
		{"a person's turn, seen by their Enter", slices.Concat(up, []step{
			{enters, "take:between"}, {enters, ""}, {started(""), ""}, {taken, "checkpoint turn_start1"}}, turn)},
		{"an Enter that is answered late", slices.Concat(up, []step{
			{enters, "take:between"}, {notChanged, ""}, {started(""), "turn_start1"}}, turn)},
		{"a turn that nobody saw coming", slices.Concat(up, []step{
			{started(""), "take:between"}, {add("a", KindPrompt), "a=queued"}, {ended(TurnDone), ""},
			{taken, "checkpoint turn_start1 take:turn"}, {taken, "checkpoint1 turn_end1(done) deliver:a"}})},
		{"a message behind an Enter", slices.Concat(up, []step{
			{enters, "take:between"}, {add("a", KindPrompt), "a=queued"}, {notChanged, "deliver:a"}})},
		{"a message", slices.Concat(up, []step{
			{add("a", KindPrompt), "a=queued take:between"}, {notTaken, "checkpoint_failed deliver:a"},
			{started("a"), "a=delivered a=accepted turn_start1"}})},
		{"a person who is faster than a message", slices.Concat(up, []step{
			{add("a", KindPrompt), "a=queued take:between"}, {notChanged, "deliver:a"}, {started(""), "take:between"},
			{notChanged, "turn_start1"}, {ended(TurnDone), "take:turn"}, {taken, "checkpoint1 turn_end1(done) deliver:a"}})},
		{"the next turn asks again", slices.Concat(up, []step{
			{enters, "take:between"}, {notChanged, ""}, {started(""), "turn_start1"}}, turn,
			[]step{{started(""), "take:between"}, {notChanged, "turn_start2"}})},
		{"the end of the agent in such a turn", slices.Concat(up, []step{
			{started(""), "take:between"}, {exited, ""}, {notChanged, "turn_start1 take:turn"},
			{taken, "checkpoint1 turn_end1(exited)"}})},
		{"the end of the agent after an Enter", slices.Concat(up, []step{{enters, "take:between"}, {exited, ""}, {notChanged, ""}, {enters, ""}})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(false, 0, time.Now)
			m.checks = true
			for i, s := range test.steps {
				if got := describe(s.do(m)); got != s.want {
					t.Fatalf("step %d: got %q, want %q", i+1, got, s.want)
				}
			}
			if !m.settled() && test.name != "a message behind an Enter" {
				t.Error("something is under way still")
			}
		})
	}
}

// What was changed before a person begins a turn in the pane gets a checkpoint
// of its own, in a shell and in the built-in agent alike.
func TestCheckpointBeforePersonsTurn(t *testing.T) {
	t.Parallel()
	argv := bash(t)
	cp := &fakeCheckpointer{diff: true}
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...), Checkpoints: cp})
	p.ready()
	if _, err := p.screen.ptmx.WriteString("echo his\r"); err != nil {
		t.Fatal(err)
	}
	p.event("the turn's end", func(ev Event) bool { return ev.Kind == EventTurnEnd })
	var kinds []string
	for _, ev := range p.events() {
		switch ev.Kind {
		case EventCheckpoint:
			kinds = append(kinds, ev.Checkpoint.Cause)
		case EventTurnStart, EventTurnEnd:
			kinds = append(kinds, string(ev.Kind))
		}
	}
	if want := []string{"start", "between", "turn_start", "turn", "turn_end"}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}

	linked := &fakeCheckpointer{diff: true}
	log := filepath.Join(t.TempDir(), "agent.log")
	p = runPane(t, Options{Argv: []string{self(t)}, Adapter: linkAdapter(), Checkpoints: linked, Env: []string{roleEnv + "=agent", "AGENT_LOG=" + log}})
	p.ready()
	if _, err := p.screen.ptmx.WriteString("\r"); err != nil {
		t.Fatal(err)
	}
	ev := p.event("the checkpoint", func(ev Event) bool { return ev.Kind == EventCheckpoint && ev.Checkpoint.Cause == string(CauseBetween) })
	if ev.Turn != 0 {
		t.Errorf("%+v", ev)
	}
}

// The store is looked after between two turns, when it is time; the next
// message waits, a person does not.
func TestMachineTends(t *testing.T) {
	t.Parallel()
	m := newMachine(false, 0, time.Now)
	m.checks, m.tends = true, true
	boot(m)
	m.saved = tendEvery - 2 // and the first
	taken(m)
	ready(m)
	for i, s := range []step{
		{add("a", KindPrompt), "a=queued take:between"}, {notChanged, "deliver:a"}, {started("a"), "a=delivered a=accepted turn_start1"},
		{add("b", KindPrompt), "b=queued"}, {ended(TurnDone), "take:turn"},
		{taken, "checkpoint1 turn_end1(done) a=done finish:a tend"},
		{func(m *machine) []effect { return m.poke() }, ""},
		{started(""), "take:between"}, {notChanged, "turn_start2"},
		{func(m *machine) []effect { return m.tended(true) }, ""},
		{ended(TurnDone), "take:turn"}, {taken, "checkpoint2 turn_end2(done) tend"},
		{func(m *machine) []effect { return m.tended(false) }, "take:between"}, {notChanged, "deliver:b"},
	} {
		if got := describe(s.do(m)); got != s.want {
			t.Fatalf("step %d: got %q, want %q", i+1, got, s.want)
		}
	}
}

// A tendingCheckpointer tells whether it is looked after in a turn.
type tendingCheckpointer struct {
	fakeCheckpointer
	tended atomic.Int32
	inTurn func() bool
	wrong  atomic.Bool
}

func (c *tendingCheckpointer) Maintain(context.Context) error {
	c.tended.Add(1)
	c.wrong.Store(c.wrong.Load() || c.inTurn())
	return nil
}

func TestMaintain(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	cp := &tendingCheckpointer{inTurn: func() bool {
		events := eventsOf(t, dir)
		return events[len(events)-1].Turn != 0 && events[len(events)-1].Kind != EventTurnEnd && events[len(events)-1].Kind != EventMessage
	}}
	p, _ := runAgent(t, Options{Checkpoints: cp, Dir: dir})
	var last Message
	for range 2*tendEvery + 1 {
		last = prompt("work")
		p.send(last, StateQueued)
	}
	if info := p.send(last, StateDone); info.State != StateDone {
		t.Errorf("%+v", info)
	}
	if n := cp.tended.Load(); n != 2 || cp.wrong.Load() {
		t.Errorf("looked after %d times for %d checkpoints, in a turn: %v", n, 2*tendEvery+2, cp.wrong.Load())
	}
}
