package pty

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"muntin/agent/adapter"
)

// A script drives a machine: each step is something that happens, and what the
// machine must ask for about it.
type step struct {
	do   func(m *machine) []effect
	want string
}

func describe(effects []effect) string {
	var out []string
	for _, e := range effects {
		switch {
		case e.event != nil && e.event.Message != nil:
			out = append(out, e.event.Message.ID+"="+string(e.event.Message.State))
		case e.event != nil && e.event.TurnEnd != nil:
			out = append(out, fmt.Sprintf("turn_end%d(%s)", e.event.Turn, e.event.TurnEnd.Reason))
		case e.event != nil:
			name := string(e.event.Kind)
			if e.event.Turn > 0 {
				name += fmt.Sprint(e.event.Turn)
			}
			out = append(out, name)
		case e.deliver != nil:
			out = append(out, "deliver:"+e.deliver.rec.ID)
		case e.finish != nil:
			out = append(out, "finish:"+e.finish.rec.ID)
		case e.await != nil:
			out = append(out, "await:"+e.await.rec.ID)
		case e.checkpoint != "":
			out = append(out, "take:"+string(e.checkpoint))
		case e.hold:
			out = append(out, "hold")
		case e.tend:
			out = append(out, "tend")
		}
	}
	return strings.Join(out, " ")
}

func boot(m *machine) []effect  { return m.boot() }
func ready(m *machine) []effect { return m.ready(adapter.ByProtocol) }
func add(id string, kind MessageKind) func(*machine) []effect {
	return func(m *machine) []effect {
		return m.add(record{Message: Message{ID: id, Kind: kind}, State: StateQueued}, false)
	}
}
func typing(m *machine) []effect { m.main.state = stateTyping; return nil }
func delivered(id string) func(*machine) []effect {
	return func(m *machine) []effect { return m.delivered(id, adapter.ByProtocol) }
}
func accepted(id string) func(*machine) []effect {
	return func(m *machine) []effect { return m.accepted(id, adapter.ByProtocol) }
}
func started(id string) func(*machine) []effect {
	return func(m *machine) []effect { return m.turnStarted(id, adapter.ByProtocol) }
}
func ended(reason TurnReason) func(*machine) []effect {
	return func(m *machine) []effect { return m.turnOver(TurnEndInfo{Reason: reason}) }
}
func taken(m *machine) []effect    { return m.checkpointed(&CheckpointInfo{ID: 1}, "") }
func notTaken(m *machine) []effect { return m.checkpointed(nil, "no room") }
func exited(m *machine) []effect   { return m.exit() }
func lostLink(m *machine) []effect { return m.linkLost() }

func TestMachine(t *testing.T) {
	t.Parallel()
	up := []step{{boot, "take:start"}, {taken, "checkpoint"}, {ready, "ready"}}
	tests := []struct {
		name  string
		link  bool
		steps []step
	}{
		{"a turn", true, append(up[:3:3],
			step{add("a", KindPrompt), "a=queued deliver:a"},
			step{add("b", KindPrompt), "b=queued"},
			step{delivered("a"), "a=delivered"},
			step{accepted("a"), "a=accepted"},
			step{started("a"), "turn_start1"},
			step{ended(TurnDone), "take:turn"},
			step{taken, "checkpoint1 turn_end1(done) a=done finish:a deliver:b"})},
		{"nothing before ready, nothing before the first checkpoint", true, []step{
			{boot, "take:start"}, {add("a", KindPrompt), "a=queued"}, {ready, "ready"}, {taken, "checkpoint deliver:a"}}},
		{"a failed checkpoint stops nothing", true, []step{
			{boot, "take:start"}, {ready, "ready"}, {add("a", KindPrompt), "a=queued"}, {notTaken, "checkpoint_failed deliver:a"},
			{accepted("a"), "a=delivered a=accepted"}, {started("a"), "turn_start1"},
			{ended(TurnError), "take:turn"}, {notTaken, "checkpoint_failed1 turn_end1(error) a=failed finish:a"}}},
		{"a steer goes in, and one that comes with the turn's end waits for its checkpoint", true, append(up[:3:3],
			step{add("a", KindPrompt), "a=queued deliver:a"}, step{started("a"), "a=delivered a=accepted turn_start1"},
			step{add("s", KindSteer), "s=queued deliver:s"}, step{accepted("s"), "s=delivered s=accepted"},
			step{add("u", KindSteer), "u=queued deliver:u"}, step{ended(TurnDone), "take:turn"},
			step{add("v", KindSteer), "v=queued"},
			step{accepted("u"), ""}, step{started("u"), ""},
			step{taken, "checkpoint1 turn_end1(done) a=done finish:a s=done finish:s u=delivered u=accepted turn_start2 deliver:v"},
			step{accepted("v"), "v=delivered v=accepted"},
			step{ended(TurnDone), "take:turn"},
			step{taken, "checkpoint2 turn_end2(done) u=done finish:u v=done finish:v"})},
		{"an abort", true, append(up[:3:3],
			step{add("x", KindAbort), "x=queued x=done finish:x"},
			step{add("a", KindPrompt), "a=queued deliver:a"}, step{started("a"), "a=delivered a=accepted turn_start1"},
			step{add("y", KindAbort), "y=queued deliver:y"}, step{accepted("y"), "y=delivered y=accepted"},
			step{ended(TurnAborted), "take:turn"},
			step{taken, "checkpoint1 turn_end1(aborted) a=failed finish:a y=done finish:y"})},
		{"a lost link gives back what was not accepted", true, append(up[:3:3],
			step{add("a", KindPrompt), "a=queued deliver:a"}, step{delivered("a"), "a=delivered"},
			step{lostLink, ""}, step{add("b", KindPrompt), "b=queued"}, step{ready, "ready deliver:a"},
			step{accepted("a"), "a=delivered a=accepted"})},
		{"an exit in the turn", true, append(up[:3:3],
			step{add("a", KindPrompt), "a=queued deliver:a"}, step{started("a"), "a=delivered a=accepted turn_start1"},
			step{add("b", KindPrompt), "b=queued"}, step{exited, "take:turn"},
			step{taken, "checkpoint1 turn_end1(exited) a=failed finish:a"})},
		{"an exit keeps what the agent did not accept", true, append(up[:3:3],
			step{add("a", KindPrompt), "a=queued deliver:a"}, step{delivered("a"), "a=delivered"}, step{exited, ""})},
		{"an exit ends what was typed", false, append(up[:3:3],
			step{add("a", KindPrompt), "a=queued deliver:a"}, step{delivered("a"), "a=delivered"},
			step{exited, "turn_start1 take:turn"}, step{taken, "checkpoint1 turn_end1(exited) a=failed finish:a"})},
		{"a steer that is typed when its turn is just over begins one", false, append(up[:3:3],
			step{started(""), "turn_start1"}, step{add("s", KindSteer), "s=queued deliver:s"}, step{add("a", KindPrompt), "a=queued"},
			step{ended(TurnDone), "take:turn"}, step{taken, "checkpoint1 turn_end1(done)"},
			step{delivered("s"), "s=delivered await:s"}, step{accepted("s"), "s=accepted"}, step{started("s"), "turn_start2"},
			step{ended(TurnDone), "take:turn"}, step{taken, "checkpoint2 turn_end2(done) s=done finish:s deliver:a"})},
		{"and so does one that is typed while the checkpoint is taken", false, append(up[:3:3],
			step{started(""), "turn_start1"}, step{add("s", KindSteer), "s=queued deliver:s"},
			step{ended(TurnDone), "take:turn"}, step{delivered("s"), "s=delivered"},
			step{taken, "checkpoint1 turn_end1(done) await:s"}, step{started("s"), "s=accepted turn_start2"})},
		{"a steer nobody saw taken ends with its turn", false, append(up[:3:3],
			step{started(""), "turn_start1"}, step{add("s", KindSteer), "s=queued deliver:s"}, step{delivered("s"), "s=delivered"},
			step{ended(TurnDone), "take:turn"}, step{taken, "checkpoint1 turn_end1(done) s=done finish:s"})},
		{"a person's turn", false, append(up[:3:3],
			step{started(""), "turn_start1"}, step{add("a", KindPrompt), "a=queued"},
			step{ended(TurnDone), "take:turn"}, step{taken, "checkpoint1 turn_end1(done) deliver:a"})},
		{"a person is faster than a message that is being typed", false, append(up[:3:3],
			step{add("a", KindPrompt), "a=queued deliver:a"}, step{typing, ""}, step{started(""), "turn_start1"},
			step{delivered("a"), "a=delivered"}, step{accepted("a"), "a=accepted"}, step{add("b", KindPrompt), "b=queued"},
			step{ended(TurnDone), "take:turn"}, step{taken, "checkpoint1 turn_end1(done) a=done finish:a deliver:b"})},
		{"and than one that was typed", false, append(up[:3:3],
			step{add("a", KindPrompt), "a=queued deliver:a"}, step{typing, ""}, step{delivered("a"), "a=delivered"},
			step{started(""), "turn_start1"}, step{ended(TurnDone), "take:turn"},
			step{taken, "checkpoint1 turn_end1(done) a=done finish:a"})},
		{"and such a turn ends before it is typed", false, append(up[:3:3],
			step{add("a", KindPrompt), "a=queued deliver:a"}, step{typing, ""}, step{started(""), "turn_start1"},
			step{ended(TurnDone), "take:turn"}, step{taken, "checkpoint1 turn_end1(done)"}, step{add("b", KindPrompt), "b=queued"},
			step{delivered("a"), "a=delivered await:a"}, step{started("a"), "a=accepted turn_start2"})},
		{"what is unknown changes nothing", true, append(up[:3:3],
			step{delivered("z"), ""}, step{accepted("z"), ""}, step{ended(TurnDone), ""}, step{ready, ""})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(test.link, 0, time.Now)
			for i, s := range test.steps {
				if got := describe(s.do(m)); got != s.want {
					t.Fatalf("step %d: got %q, want %q", i+1, got, s.want)
				}
			}
		})
	}
}

func TestMachineHolds(t *testing.T) {
	t.Parallel()
	m := newMachine(false, 4, time.Now)
	typing := true
	m.guard = func() error {
		if typing {
			return errTyping
		}
		return nil
	}
	m.boot()
	taken(m)
	ready(m)
	for i, s := range []step{
		{add("a", KindPrompt), "a=queued a=held hold"},
		{func(m *machine) []effect { return m.poke() }, "hold"},
		{func(m *machine) []effect { typing = false; return m.poke() }, "deliver:a"},
		{func(m *machine) []effect { return m.blocked("a", errTyping) }, "hold"},
		{func(m *machine) []effect { return m.poke() }, "deliver:a"},
		{started("a"), "a=delivered a=accepted turn_start5"},
	} {
		if got := describe(s.do(m)); got != s.want {
			t.Fatalf("step %d: got %q, want %q", i+1, got, s.want)
		}
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	ad := adapter.Adapter{Quiet: time.Second, ReadyQuiet: time.Second, ReadyOutput: true, ReadyPaste: true}
	type look struct {
		at    int // milliseconds
		s     sight
		v     verdict
		after time.Duration
		out   bool
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	tests := []struct {
		name  string
		mode  watchMode
		looks []look
	}{
		{"ready", watchReady, []look{
			{0, sight{own: true}, nothing, 0, true},
			{900, sight{own: true, output: 5, still: ms(10)}, nothing, 0, true},
			{1500, sight{own: true, output: 5, still: ms(400), pasting: true}, nothing, ms(600), false},
			{2500, sight{output: 5, still: ms(1400), pasting: true}, nothing, pollForeground, false},
			{2750, sight{own: true, output: 5, still: ms(1650), pasting: true}, isReady, 0, false},
			{9999, sight{own: true, output: 9}, nothing, 0, false},
		}},
		{"a turn", watchAnswer, []look{
			{0, sight{own: true, output: 100, still: ms(300)}, nothing, ms(1000), true},
			{50, sight{own: true, output: 101}, answered, ms(1000), false},
			{1050, sight{own: true, output: 200, still: ms(200)}, nothing, ms(800), false},
			{1850, sight{own: true, output: 200, still: ms(1000)}, over, 0, false},
		}},
		{"no answer", watchAnswer, []look{
			{1000, sight{output: 100, still: ms(5000)}, nothing, pollForeground, true},
			{1250, sight{own: true, output: 100, still: ms(5000)}, silent, 0, false},
		}},
		{"a person's Enter", watchEnter, []look{
			{10, sight{own: true, output: 101}, person, ms(1000), false},
		}},
		{"a person's Enter for nothing", watchEnter, []look{
			{10, sight{own: true, output: 100}, nothing, ms(990), true},
			{1000, sight{own: true, output: 100}, nothing, 0, false},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := watch{on: ad}
			id := "m"
			if test.mode == watchReady {
				id = "" // it was not started with a prompt
			}
			w.begin(test.mode, id, 100, start)
			for i, l := range test.looks {
				l.s.now = start.Add(ms(l.at))
				v, again := w.look(l.s)
				if v != l.v || again.after != l.after || again.output != l.out {
					t.Fatalf("look %d: %v %+v, want %v %v %v", i+1, v, again, l.v, l.after, l.out)
				}
			}
		})
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in       string
		pasting  bool
		alternat bool
	}{
		{"\x1b[?2004h", true, false},
		{"\x1b[?2004h\x1b[?2004l", false, false},
		{"x\x1b[?1049;2004hy", true, true},
		{"\x1b[?1049h\x1b[?2004h\x1bc", false, false},
		{"\x1b[2004h", false, false},
		{"\x1b[?2004$p", false, false},
		{"\x1b[>2004h", false, false},
		{"\x1b[?20\x1b[?2004h", true, false},
		{"\x1b[?20\n04h", true, false},
		{"\x1b[?20\x1804h", false, false},
		{"\x1b[?47h", false, true},
		{"\x1b[?1;2;3;4;5;6;7;8;9;2004h", false, false},
	}
	for _, test := range tests {
		for cut := 0; cut <= len(test.in); cut++ { // wherever it is split
			var m scanner
			m.feed([]byte(test.in[:cut]))
			m.feed([]byte(test.in[cut:]))
			if m.pasting.Load() != test.pasting || m.altScr.Load() != test.alternat {
				t.Errorf("%q split at %d: paste %v, alternate %v", test.in, cut, m.pasting.Load(), m.altScr.Load())
			}
		}
	}
}

func TestPasteBytes(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"a\r\nb\rc\nd\te", "a\nb\nc\nd\te"},
		{"a\x1b[201~b", "ab"},
		{"a\x1b[20\x1b[201~1~b", "a[201~b"},
		{"\x1b[31mred\x07\x7f\u009b201~", "[31mred201~"},
		{"bad \xff byte", "bad \uFFFD byte"},
	}
	for _, test := range tests {
		got, err := pasteBytes(test.in, true, false)
		if err != nil || string(got) != pasteStart+test.want+pasteEnd {
			t.Errorf("%q: %q, %v", test.in, got, err)
		}
	}
	if _, err := pasteBytes(strings.Repeat("é", lineMax/2)+"\nx", false, true); err != nil {
		t.Error(err)
	}
	if _, err := pasteBytes(strings.Repeat("é", lineMax/2+1), false, true); err == nil {
		t.Error("a line that the terminal would cut was taken")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in            string
		person, enter bool
	}{
		{"a", true, false}, {"\r", true, true}, {"\x1b[A", true, false}, {"\x1b", true, false}, {"\x1b[13u", true, true},
		{"\x1b[I", false, false}, {"\x1b[O\x1b[I", false, false}, {"\x1b[12;40R", false, false},
		{"\x1b[?62;22c", false, false}, {"\x1b[<0;3;4M", false, false}, {"\x1b[M !!", false, false},
		{"\x1b]11;rgb:0/0/0\x07", false, false}, {"\x1b]11;rgb:0/0/0\x1b\\", false, false},
		{"\x1bP>|tmux 3.3a\x1b\\", false, false}, {"\x1b[Ix", true, false}, {"\x1b[?6", true, false},
		{"\x1b[200~a\rb\x1b[201~", true, false}, {"\x1b[200~a\rb\x1b[201~\r", true, true},
	}
	for _, test := range tests {
		if got := byPerson([]byte(test.in)); got != test.person {
			t.Errorf("byPerson(%q) = %v", test.in, got)
		}
		if got := pressesEnter([]byte(test.in)); got != test.enter {
			t.Errorf("pressesEnter(%q) = %v", test.in, got)
		}
	}
}

func TestLastWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"short":           "short",
		"0123456789":      "0123456789",
		"a long answer":   "… answer",
		"ends with äöü!!": "…öü!!",
	} {
		if got := lastWords(in, 10); got != want || len(got) > 10 || !utf8.ValidString(got) {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// What becomes of an attempt to hand a message over says nothing any more once
// the message was taken back, and even when it is handed over again.
func TestMachineVoidHanding(t *testing.T) {
	t.Parallel()
	m := newMachine(false, 0, time.Now)
	m.boot()
	taken(m)
	ready(m)
	add("a", KindPrompt)(m)
	first := handing{m.main, m.main.tries}
	if !m.holds(first) {
		t.Error("the first attempt is void at once")
	}
	started("")(m) // a person was faster
	if m.holds(first) {
		t.Error("an attempt counts after the message was taken back")
	}
	ended(TurnDone)(m)
	if got := describe(taken(m)); got != "checkpoint1 turn_end1(done) deliver:a" {
		t.Fatal(got)
	}
	if m.holds(first) || !m.holds(handing{m.main, m.main.tries}) {
		t.Error("an old attempt is taken for the new one")
	}
}
