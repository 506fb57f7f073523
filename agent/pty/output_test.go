package pty

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muntin/agent/adapter"
)

func newRecorder(t *testing.T, path string, limit int64, secrets ...string) *recorder {
	t.Helper()
	r, err := openRecorder(path, limit, secrets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.close(0) })
	r.resize(80, 24)
	return r
}

// read takes what can be had from the offset on, and tells what is lost.
func (r *recorder) read(t *testing.T, from int64) (text string, lost int64) {
	t.Helper()
	next := from
	take := func(at int64, data string) error {
		if len(text) == 0 {
			lost = at - from
		} else if at != next {
			t.Errorf("a gap of %d bytes at %d", at-next, next)
		}
		text += data
		next = at + int64(len(data))
		return nil
	}
	for {
		data, _, err := r.since(next)
		switch {
		case errors.Is(err, errGone):
			before := next
			if err := r.kept(next, take); err != nil {
				t.Fatal(err)
			}
			if next == before {
				next = r.oldest()
			}
		case err != nil:
			t.Fatal(err)
		case len(data) == 0:
			return text, lost
		default:
			if err := take(next, string(data)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Every offset gives the same output, from memory and from the files, across a
// restart, with secrets and broken characters replaced.
func TestOutputOffsets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "screen.cast")
	r := newRecorder(t, path, 0, "hunter22")
	var want strings.Builder
	put := func(r *recorder, in, out string) {
		r.output([]byte(in))
		want.WriteString(out)
	}
	put(r, "pass hunter22 and \xff\xfe bad\n", "pass ••• and \uFFFD\uFFFD bad\n")
	put(r, "half é"[:6], "half ")
	put(r, "half é"[6:], "é")
	for i := range 3000 {
		line := fmt.Sprintf("%06d the quick brown fox jumps over the lazy dog\n", i)
		put(r, line, line)
	}
	check := func(r *recorder) {
		t.Helper()
		all := want.String()
		if got := r.offset(); got != int64(len(all)) {
			t.Fatalf("offset %d, want %d", got, len(all))
		}
		for _, from := range []int{0, 5, 40, 1000, len(all) / 2, len(all) - recentSize, len(all) - 10, len(all)} {
			if from < len(all) && all[from]&0xc0 == 0x80 {
				continue // in a character
			}
			if got, lost := r.read(t, int64(from)); got != all[from:] || lost != 0 {
				t.Errorf("from %d: %d bytes, %d lost, want %d", from, len(got), lost, len(all)-from)
			}
		}
	}
	check(r)
	if err := r.close(0); err != nil {
		t.Fatal(err)
	}
	again := newRecorder(t, path, 0, "hunter22")
	put(again, "after the restart\n", "after the restart\n")
	check(again)
	if _, _, err := again.since(int64(want.Len()) + 1); err == nil {
		t.Error("an offset behind the end was taken")
	}
}

// What was rotated away is counted, to the byte.
func TestOutputLost(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "screen.cast")
	r := newRecorder(t, path, 100<<10)
	var all strings.Builder
	for i := range 20000 {
		line := fmt.Sprintf("line %06d of the output\n", i)
		all.WriteString(line)
		r.output([]byte(line))
	}
	text, lost := r.read(t, 0)
	if lost == 0 || all.String()[lost:] != text {
		t.Errorf("%d lost, %d read, %d in all", lost, len(text), all.Len())
	}
	if len(text) < 64<<10 {
		t.Errorf("only %d bytes are kept", len(text))
	}
}

// The output can be followed live and from any offset; the end is told.
func TestFollowOutput(t *testing.T) {
	t.Parallel()
	argv := bash(t)
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...)})
	p.ready()
	c := p.client()
	type read struct {
		text string
		lost int64
		err  error
	}
	reads := make(chan read, 2)
	follow := func(from int64) {
		var r read
		r.err = c.Output(testContext(t), from, func(o Output) error {
			r.text += o.Data
			r.lost += o.Lost
			return nil
		})
		reads <- r
	}
	go follow(0)
	p.send(prompt("for i in $(seq 5000); do echo \"number $i of the lines\"; done"), StateDone)
	go follow(0)
	p.send(prompt("exit 0"), StateDone)
	p.wait()
	whole := castText(t, p.dir.Screen())
	for range 2 {
		r := <-reads
		if r.err != nil || r.lost != 0 || r.text != whole {
			t.Errorf("%v; %d bytes, want %d; %d lost", r.err, len(r.text), len(whole), r.lost)
		}
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	argv := bash(t)
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...)})
	p.ready()
	c := p.client()
	show := func(style bool) Screen {
		t.Helper()
		sc, err := c.Screen(testContext(t), style)
		if err != nil {
			t.Fatal(err)
		}
		return sc
	}
	// A query that nobody answers here must block nothing.
	p.send(prompt(`printf '\033[2J\033[H\033[31mred\033[m 漢字\033[6n\033[5;3Hthere\033]2;a title\007'; read -rsn8 -t0.2`), StateDone)
	sc := show(false)
	if sc.Cols != 100 || sc.Rows != 30 || len(sc.Lines) != 30 || sc.Lines[0] != "red 漢字" || !strings.HasPrefix(sc.Lines[4], "  there") || sc.Title != "a title" || sc.Partial {
		t.Errorf("%+v", sc)
	}
	if styled := show(true); !strings.Contains(styled.Lines[0], "\x1b[31mred") {
		t.Errorf("%q", styled.Lines[0])
	}
	p.send(prompt(`printf '\033[?1049h\033[2J\033[Halternate'`), StateDone)
	if sc := show(false); !sc.Alternate || !strings.HasPrefix(sc.Lines[0], "alternate") {
		t.Errorf("%+v", sc)
	}
	p.send(prompt(`printf '\033[?1049l'`), StateDone)
	if sc := show(false); sc.Alternate || sc.Lines[0] != "red 漢字" {
		t.Errorf("%+v", sc)
	}
	if err := c.Resize(testContext(t), 50, 10); err == nil || !strings.Contains(err.Error(), "pane decides") {
		t.Errorf("resizing a pane: %v", err)
	}
}

// An agent without a pane has the size that it is given.
func TestResizeWithoutPane(t *testing.T) {
	t.Parallel()
	argv := bash(t)
	p := runIn(t, Options{Argv: argv, Adapter: quickFor(argv...)}, false)
	p.ready()
	c := p.client()
	if err := c.Resize(testContext(t), 61, 17); err != nil {
		t.Fatal(err)
	}
	p.send(prompt("stty size"), StateDone)
	sc, err := c.Screen(testContext(t), false)
	if err != nil || sc.Cols != 61 || sc.Rows != 17 || !strings.Contains(strings.Join(sc.Lines, "\n"), "\n17 61\n") {
		t.Errorf("%+v, %v", sc, err)
	}
	for _, size := range [][2]int{{0, 5}, {5, -1}, {5, 1001}} {
		if err := c.Resize(testContext(t), size[0], size[1]); err == nil {
			t.Errorf("the size %v was taken", size)
		}
	}
}

func TestCancelAndDeadline(t *testing.T) {
	t.Parallel()
	argv := bash(t)
	p := runPane(t, Options{Argv: argv, Adapter: quickFor(argv...)})
	p.ready()
	running, waiting, late := prompt("sleep 1000"), prompt("echo never"), message(KindFollowUp, "echo late")
	p.send(running, StateAccepted)
	p.send(waiting, StateQueued)
	soon := time.Now().Add(200 * time.Millisecond)
	late.Deadline = &soon
	if info := p.send(late, StateDone); info.State != StateFailed || info.Why != whyExpired {
		t.Errorf("the late one: %+v", info)
	}
	ctx := testContext(t)
	if info, err := Cancel(ctx, p.dir, running.ID); !errors.Is(err, ErrNotCancelled) || info.State != StateAccepted {
		t.Errorf("the running one: %+v, %v", info, err)
	}
	if info, err := Cancel(ctx, p.dir, waiting.ID); err != nil || info.State != StateFailed || info.Why != whyCancelled {
		t.Errorf("the waiting one: %+v, %v", info, err)
	}
	if _, err := Cancel(ctx, p.dir, waiting.ID); !errors.Is(err, ErrNotCancelled) {
		t.Errorf("the cancelled one: %v", err)
	}
	for _, id := range []string{prompt("").ID, "../../x", ""} {
		if _, err := Cancel(ctx, p.dir, id); !errors.Is(err, ErrNoMessage) {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := p.client().Cancel(ctx, id); !errors.Is(err, ErrNoMessage) {
			t.Errorf("%q, asked of the supervisor: %v", id, err)
		}
	}
	p.send(message(KindAbort, ""), StateDone)
	p.cancel()
	p.wait()
	if strings.Contains(p.screen.String(), "echo never") || strings.Contains(p.screen.String(), "echo late") {
		t.Errorf("it was typed: %q", p.screen.String())
	}
	list, err := Messages(p.dir)
	if err != nil || len(list) != 4 {
		t.Fatalf("%d messages, %v", len(list), err)
	}
	for _, m := range list {
		want := StateFailed
		if m.Kind == KindAbort {
			want = StateDone
		}
		if m.State != want {
			t.Errorf("%+v", m)
		}
		again, err := m.Again(time.Now())
		if want == StateDone && err == nil {
			t.Error("a message that is done was sent again")
		}
		if want == StateFailed && (err != nil || again.ID == m.ID || again.RetryOf != m.ID || again.Text != m.Text) {
			t.Errorf("%+v, %v", again, err)
		}
	}
}

// Without a supervisor a filed message is cancelled in the inbox, under the
// supervisor's lock, and never delivered.
func TestCancelFiled(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	keep, drop := prompt("keep"), prompt("drop")
	for _, m := range []Message{keep, drop} {
		if err := Enqueue(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := Cancel(testContext(t), dir, drop.ID); err != nil || info.State != StateFailed {
		t.Fatalf("%+v, %v", info, err)
	}
	log := filepath.Join(t.TempDir(), "agent.log")
	p := runPane(t, Options{Dir: dir, Argv: []string{self(t)}, Adapter: linkAdapter(), Env: []string{roleEnv + "=agent", "AGENT_LOG=" + log}})
	p.send(keep, StateDone)
	got, err := os.ReadFile(log)
	if err != nil || string(got) != keep.ID+" keep\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// What a person changed between two turns gets a checkpoint of its own before
// the second begins.
func TestCheckpointBetween(t *testing.T) {
	t.Parallel()
	cp := &fakeCheckpointer{}
	log := filepath.Join(t.TempDir(), "agent.log")
	p := runPane(t, Options{Argv: []string{self(t)}, Adapter: linkAdapter(), Checkpoints: cp, Env: []string{roleEnv + "=agent", "AGENT_LOG=" + log}})
	p.send(prompt("one"), StateDone)
	cp.mu.Lock()
	cp.diff = true
	cp.mu.Unlock()
	second := prompt("two")
	p.send(second, StateDone)
	cp.mu.Lock()
	cp.fail = true
	cp.mu.Unlock()
	p.send(prompt("three"), StateDone) // a failing one stops nothing
	p.cancel()
	p.wait()
	var kinds []string
	for _, ev := range p.events() {
		switch ev.Kind {
		case EventCheckpoint:
			kinds = append(kinds, ev.Checkpoint.Cause)
		case EventTurnStart, EventTurnEnd, EventCheckpointFailed:
			kinds = append(kinds, string(ev.Kind))
		}
	}
	want := "start turn_start turn turn_end between turn_start turn turn_end checkpoint_failed turn_start checkpoint_failed turn_end"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if r := cp.reqs[2]; r.Cause != CauseBetween || r.Message != second.ID || r.Turn != 1 {
		t.Errorf("%+v", r)
	}
}

// A status that the program gives begins and ends turns, with its evidence, and
// tells that it waits for a person.
func TestStatusTurn(t *testing.T) {
	t.Parallel()
	ad := quickFor("x")
	ad.Quiet = time.Minute // its screen says nothing
	ad.ReadyQuiet = time.Minute
	script := `st() { printf '\033]7501;state=%s\007' "$1"; }; st idle
while read -r line; do st working; case "$line" in
ask) st blocked:kind=question; read -r answer; st working; st idle;;
bad) st error:msg=bm8=;;
*) st done; st idle;; esac; done`
	p := runPane(t, Options{Argv: []string{"/bin/sh", "-c", script}, Adapter: ad})
	p.ready()
	if info := p.send(prompt("go"), StateDone); info.State != StateDone || info.Evidence != adapter.ByTerminal {
		t.Errorf("%+v", info)
	}
	if info := p.send(prompt("bad"), StateDone); info.State != StateFailed || !strings.Contains(info.Why, "error: no") {
		t.Errorf("%+v", info)
	}
	ask := prompt("ask")
	p.send(ask, StateAccepted)
	p.event("the question", func(ev Event) bool { return ev.Kind == EventWaiting && ev.Waiting.For == WaitQuestion })
	if st, err := p.client().Status(testContext(t)); err != nil || st.Waiting == nil || st.State != AgentWorking {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := p.screen.ptmx.WriteString("yes\r"); err != nil {
		t.Fatal(err)
	}
	if info := p.send(ask, StateDone); info.State != StateDone {
		t.Errorf("%+v", info)
	}
	p.event("its end", func(ev Event) bool { return ev.Kind == EventWaiting && ev.Waiting.For == WaitNothing })
	p.event("a person's turn", func(ev Event) bool { return ev.Kind == EventReady && ev.Ready.Source == adapter.ByTerminal })
}

// A fakeCheckpointer numbers checkpoints.
type fakeCheckpointer struct {
	mu   sync.Mutex
	reqs []CheckpointRequest
	fail bool
	diff bool // a person changes files between the turns
}

func (f *fakeCheckpointer) Save(_ context.Context, req CheckpointRequest) (CheckpointInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if req.Cause == CauseBetween && !f.diff {
		return CheckpointInfo{}, ErrUnchanged
	}
	f.reqs = append(f.reqs, req)
	if f.fail {
		return CheckpointInfo{}, errors.New("no room")
	}
	return CheckpointInfo{ID: len(f.reqs), Commit: fmt.Sprint("c", len(f.reqs))}, nil
}
