package orchestrator

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/agent/pty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a Doer that plays agents and git: every effect succeeds at once, and
// a prompt is followed by the turn it asks for. After limit effects it hangs,
// as a machine that is about to lose its power.
type stage struct {
	t      *testing.T
	inputs chan Input
	limit  int
	hung   chan struct{} // closed when limit is reached

	mu    sync.Mutex // guards all below
	tasks []Task
	rev   int64
	seq   map[string]int64
	log   []Input // the agents' event logs
	done  int
	sent  map[string]string // message id → task: what a supervisor would have
}

func newStage(t *testing.T, tasks ...Task) *stage {
	return &stage{t: t, inputs: make(chan Input, 100), tasks: tasks, seq: map[string]int64{}, sent: map[string]string{}, limit: 1 << 30, hung: make(chan struct{})}
}

func (s *stage) Do(ctx context.Context, e Effect) Input {
	s.mu.Lock()
	s.done++
	if s.done == s.limit {
		close(s.hung)
	}
	if s.done >= s.limit {
		s.mu.Unlock()
		<-ctx.Done()
		return Input{}
	}
	defer s.mu.Unlock()
	in := Input{Result: &Result{OK: true}}
	switch e.Kind {
	case EffectClaim, EffectMark:
		i := slices.IndexFunc(s.tasks, func(t Task) bool { return t.ID == e.Task })
		s.tasks[i].State = TaskActive
		if e.Kind == EffectMark {
			s.tasks[i].State = e.State
		}
		in.Rev, in.Tasks = s.read()
	case EffectSend:
		if e.ID == "" {
			s.t.Error("a message without an id")
		}
		if _, again := s.sent[e.ID]; !again {
			s.sent[e.ID] = e.Task
			s.turn(e)
		}
	}
	return in
}

func (s *stage) read() (int64, []Task) {
	s.rev++
	for i, t := range s.tasks {
		s.tasks[i].Ready = t.State == TaskOpen
	}
	return s.rev, slices.Clone(s.tasks)
}

func (s *stage) event(agent string, e pty.Event) {
	s.seq[agent]++
	e.Seq = s.seq[agent]
	in := Input{Kind: InputAgent, Agent: agent, Event: &e}
	s.log = append(s.log, in)
	s.inputs <- in
}

func (s *stage) turn(e Effect) {
	s.event(e.Agent, pty.Event{Kind: pty.EventTurnStart, Turn: 1, TurnStart: &pty.TurnStartInfo{Task: e.Task}})
	s.event(e.Agent, pty.Event{Kind: pty.EventTurnEnd, Turn: 1, TurnEnd: &pty.TurnEndInfo{
		Task: e.Task, Reason: pty.TurnDone, Checkpoint: &pty.CheckpointInfo{Tree: "t"},
	}})
}

// begin makes the agents ready and reads the board.
func (s *stage) begin(agents ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range agents {
		s.event(a, pty.Event{Kind: pty.EventReady})
	}
	rev, tasks := s.read()
	s.inputs <- Input{Kind: InputBoard, Rev: rev, Tasks: tasks}
}

// live runs a loop over the journal until the run is done or the stage hangs,
// and returns the state it left.
func live(t *testing.T, path string, s *stage, start State) State {
	t.Helper()
	journal, st, pending, err := OpenJournal(path, start, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var last State
	loop := &Loop{Journal: journal, State: st, Pending: pending, Doer: s, Inputs: s.inputs, Now: time.Now, OnState: func(st State) {
		last = st
		if st.Phase == PhaseDone {
			cancel()
		}
	}}
	go func() {
		select {
		case <-s.hung:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := loop.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	return last
}

func startState() State {
	return NewState(Settings{Attempts: 3, Check: "check", RunCheck: "all"}, []Agent{
		{Name: "ada", Role: RoleWorker, Isolated: true}, {Name: "bob", Role: RoleWorker, Isolated: true},
	})
}

func openTasks() []Task {
	return []Task{{ID: "a", State: TaskOpen}, {ID: "b", State: TaskOpen}, {ID: "c", State: TaskOpen}}
}

func TestLoopWorksARunToItsEnd(t *testing.T) {
	s := newStage(t, openTasks()...)
	s.begin("ada", "bob")
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	end := live(t, path, s, startState())
	if end.Phase != PhaseDone || len(s.sent) != 3 {
		t.Errorf("phase %s, %d messages", end.Phase, len(s.sent))
	}
	// The state is the journal folded: another reader comes to the same one.
	journal, again, pending, err := OpenJournal(path, startState(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	// A look for conflicts may be under way when the run is done.
	pending = slices.DeleteFunc(pending, func(e Effect) bool { return e.Kind == EffectOverlap && end.Radar.Key == e.Key })
	if len(pending) > 0 || !reflect.DeepEqual(again, end) {
		t.Errorf("pending %v;\nfolded %+v\n  live %+v", pending, again, end)
	}
}

// TestLoopGoesOnAfterACrashAnywhere stops the run at each effect in turn and
// starts it again: it ends as an undisturbed one, and no message is sent twice.
func TestLoopGoesOnAfterACrashAnywhere(t *testing.T) {
	for limit := 1; ; limit++ {
		s := newStage(t, openTasks()...)
		s.limit = limit
		s.begin("ada", "bob")
		path := filepath.Join(t.TempDir(), "journal.jsonl")
		st := live(t, path, s, startState())
		if st.Phase == PhaseDone {
			if limit < 10 {
				t.Fatalf("the run was done after %d effects", limit)
			}
			return
		}
		s.restart()
		end := live(t, path, s, startState())
		if end.Phase != PhaseDone || len(s.sent) != 3 {
			t.Fatalf("after a crash at effect %d: phase %s, messages %v", limit, end.Phase, s.sent)
		}
	}
}

// restart gives the agents' logs and the board again from their beginning, as
// the files would, to the next orchestrator.
func (s *stage) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.hung, s.inputs = 1<<30, make(chan struct{}), make(chan Input, 100)
	for _, in := range s.log {
		s.inputs <- in
	}
	rev, tasks := s.read()
	s.inputs <- Input{Kind: InputBoard, Rev: rev, Tasks: tasks}
}

func TestJournalThatCannotBeReadIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	text := "{\"seq\":1}\nnot json\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := OpenJournal(path, startState(), time.Now); err == nil {
		t.Error("it was taken")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("the file is %q, %v", got, err)
	}
}
