package orchestrator

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muntin/agent/pty"
)

// world plays everything outside the reducer: the board, the agents and the
// effects. Results of effects wait until the test lets them happen.
type world struct {
	state   State
	tasks   []Task
	rev     int64
	pending []Effect
	seq     map[string]int64
	told    []Effect
	now     time.Time
}

func newWorld(settings Settings, agents []string, tasks ...Task) *world {
	w := &world{tasks: tasks, seq: map[string]int64{}, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	var list []Agent
	for _, name := range agents {
		list = append(list, Agent{Name: name, Role: RoleWorker, Isolated: true})
	}
	if settings.Attempts == 0 {
		settings.Attempts = 3
	}
	w.state = NewState(settings, list)
	return w
}

func (w *world) input(in Input) {
	w.now = w.now.Add(time.Millisecond)
	in.Time = w.now
	var effects []Effect
	w.state, effects = Reduce(w.state, in)
	w.pending = append(w.pending, effects...)
}

func (w *world) readBoard() {
	w.rev++
	for i, t := range w.tasks {
		w.tasks[i].Ready = t.State == TaskOpen && !slices.ContainsFunc(t.After, func(id string) bool { return w.task(id).State != TaskDone })
	}
	w.input(Input{Kind: InputBoard, Rev: w.rev, Tasks: slices.Clone(w.tasks)})
}

func (w *world) task(id string) *Task {
	i := slices.IndexFunc(w.tasks, func(t Task) bool { return t.ID == id })
	return &w.tasks[i]
}

func (w *world) event(agent string, e pty.Event) {
	w.seq[agent]++
	e.Seq, e.Time = w.seq[agent], w.now
	w.input(Input{Kind: InputAgent, Agent: agent, Event: &e})
}

func (w *world) ready(agents ...string) {
	for _, a := range agents {
		w.event(a, pty.Event{Kind: pty.EventReady, Ready: &pty.ReadyInfo{Source: "protocol"}})
	}
}

func (w *world) turn(agent, task string, reason pty.TurnReason) {
	w.event(agent, pty.Event{Kind: pty.EventTurnEnd, TurnEnd: &pty.TurnEndInfo{
		Task: task, Reason: reason, Checkpoint: &pty.CheckpointInfo{Tree: "tree-" + task},
	}})
}

// on is what is being done for a task.
func (w *world) on(task string) Work {
	work, _ := w.state.workOn(task)
	return work
}

// take removes the oldest pending effect of a kind.
func (w *world) take(t testing.TB, kind EffectKind) Effect {
	t.Helper()
	i := slices.IndexFunc(w.pending, func(e Effect) bool { return e.Kind == kind })
	if i < 0 {
		t.Fatalf("no effect %s is pending: %v", kind, w.pending)
	}
	e := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	return e
}

// do carries an effect out as the world's rules have it.
func (w *world) do(e Effect, res Result) {
	switch e.Kind {
	case EffectClaim:
		if res.OK {
			w.task(e.Task).State = TaskActive
		}
	case EffectMark:
		is := w.task(e.Task).State // as BoardReader.mark has it
		if is == TaskActive || e.Held && is == TaskWaiting || !e.Held && e.State == TaskActive && is == TaskDone {
			w.task(e.Task).State = e.State
			w.task(e.Task).Reason = e.Why
		}
	case EffectSend:
		w.told = append(w.told, e)
		if e.Msg == pty.KindPrompt || e.Msg == pty.KindFollowUp {
			w.event(e.Agent, pty.Event{Kind: pty.EventTurnStart, TurnStart: &pty.TurnStartInfo{Task: e.Task}})
		}
	}
	if e.Kind == EffectClaim || e.Kind == EffectMark {
		w.readBoard()
	}
	w.input(Input{Kind: InputResult, Key: e.Key, Result: &res})
}

// drive carries out everything with success until nothing is left but turns.
func (w *world) drive() {
	for len(w.pending) > 0 {
		e := w.pending[0]
		w.pending = w.pending[1:]
		w.do(e, Result{OK: true})
	}
}

func TestOneTaskFromBoardToMerge(t *testing.T) {
	w := newWorld(Settings{Branch: "muntin/r/merged"}, []string{"ada"}, Task{ID: "sum", Text: "Add up", State: TaskOpen, Check: "sh sum.sh"})
	w.ready("ada")
	w.readBoard()
	w.do(w.take(t, EffectClaim), Result{OK: true})
	w.do(w.take(t, EffectPrepare), Result{OK: true})
	send := w.take(t, EffectSend)
	if !strings.HasPrefix(send.Text, "Task: ^sum Add up\n") || !strings.Contains(send.Text, "sh sum.sh") {
		t.Errorf("the prompt is %q", send.Text)
	}
	w.do(send, Result{OK: true})
	w.turn("ada", "sum", pty.TurnDone)
	if e := w.take(t, EffectCheck); e.Text != "sh sum.sh" {
		t.Errorf("the check is %q", e.Text)
	} else {
		w.do(e, Result{OK: true})
	}
	if e := w.take(t, EffectMerge); e.Tree != "tree-sum" {
		t.Errorf("merging tree %q, want the one that was checked", e.Tree)
	} else {
		w.do(e, Result{OK: true})
	}
	w.do(w.take(t, EffectMark), Result{OK: true})
	if w.state.Phase != PhaseDone || w.task("sum").State != TaskDone || len(w.pending) > 0 {
		t.Errorf("phase %s, task %s, pending %v", w.state.Phase, w.task("sum").State, w.pending)
	}
}

func TestFailedCheckGoesBackAndBlocksInTheEnd(t *testing.T) {
	w := newWorld(Settings{Attempts: 2, Check: "make test"}, []string{"ada"}, Task{ID: "a", State: TaskOpen})
	w.ready("ada")
	w.readBoard()
	w.drive()
	w.turn("ada", "a", pty.TurnDone)
	w.do(w.take(t, EffectCheck), Result{Error: "exit status 1", Output: "want 3, got 4\n"})
	send := w.take(t, EffectSend)
	if send.Msg != pty.KindFollowUp || !strings.HasPrefix(send.Text, "The check of ^a failed") || !strings.Contains(send.Text, "want 3, got 4") {
		t.Errorf("sent back: %+v", send)
	}
	w.do(send, Result{OK: true})
	w.turn("ada", "a", pty.TurnDone)
	w.do(w.take(t, EffectCheck), Result{Error: "exit status 1"})
	mark := w.take(t, EffectMark)
	if mark.State != TaskBlocked || !strings.Contains(mark.Why, "attempt 2 of 2") {
		t.Errorf("marked: %+v", mark)
	}
	w.do(mark, Result{OK: true})
	if w.state.Phase != PhaseWaiting {
		t.Errorf("phase %s, want waiting for a person", w.state.Phase)
	}
}

func TestConflictGoesBackWithItsFiles(t *testing.T) {
	w := newWorld(Settings{Branch: "muntin/r/merged"}, []string{"ada"}, Task{ID: "a", State: TaskOpen})
	w.ready("ada")
	w.readBoard()
	w.drive()
	w.turn("ada", "a", pty.TurnDone)
	w.do(w.take(t, EffectMerge), Result{Conflicts: []string{"lib/x.go"}})
	if send := w.take(t, EffectSend); !strings.Contains(send.Text, "lib/x.go") || !strings.Contains(send.Text, "git merge muntin/r/merged") {
		t.Errorf("sent back: %q", send.Text)
	}
}

func TestTurnEndBeforeTheSendIsAnswered(t *testing.T) {
	w := newWorld(Settings{Check: "true"}, []string{"ada"}, Task{ID: "a", State: TaskOpen})
	w.ready("ada")
	w.readBoard()
	w.do(w.take(t, EffectClaim), Result{OK: true})
	w.do(w.take(t, EffectPrepare), Result{OK: true})
	send := w.take(t, EffectSend)
	w.turn("ada", "a", pty.TurnDone)
	w.do(send, Result{OK: true})
	if got := w.on("a").Stage; got != StageChecking {
		t.Errorf("stage %s, want checking: the late answer must not take it back", got)
	}
}

func TestPeopleEditTheBoard(t *testing.T) {
	start := func() *world {
		w := newWorld(Settings{}, []string{"ada"}, Task{ID: "a", Text: "old", State: TaskOpen})
		w.ready("ada")
		w.readBoard()
		w.drive()
		return w
	}
	for _, state := range []TaskState{TaskDone, TaskCancelled, TaskOpen} {
		w := start()
		w.task("a").State = state
		w.readBoard()
		if e := w.take(t, EffectSend); e.Msg != pty.KindAbort {
			t.Errorf("%s: sent %s, want an abort", state, e.Msg)
		}
		if len(w.state.Works) > 0 {
			t.Errorf("%s: the work goes on: %v", state, w.state.Works)
		}
	}
	w := start()
	w.task("a").Text = "new"
	w.readBoard()
	if e := w.take(t, EffectSend); e.Msg != pty.KindSteer || !strings.Contains(e.Text, "new") || !strings.Contains(e.Text, "old") {
		t.Errorf("a changed text was sent as %+v", e)
	}
	w.readBoard()
	if len(w.pending) > 0 {
		t.Errorf("the same text was told twice: %v", w.pending)
	}
}

func TestAnOlderReadingOfTheBoardIsIgnored(t *testing.T) {
	w := newWorld(Settings{}, []string{"ada"}, Task{ID: "a", State: TaskOpen})
	w.ready("ada")
	w.readBoard()
	old := slices.Clone(w.state.Tasks)
	w.drive()
	w.input(Input{Kind: InputBoard, Rev: w.rev - 1, Tasks: old})
	if _, ok := w.state.workOn("a"); !ok || len(w.pending) > 0 {
		t.Error("an older reading took the task away")
	}
}

func TestExitGivesTheTaskToAnother(t *testing.T) {
	w := newWorld(Settings{}, []string{"ada", "bob"}, Task{ID: "a", State: TaskOpen})
	w.ready("ada")
	w.readBoard()
	w.drive()
	w.event("ada", pty.Event{Kind: pty.EventExit, Exit: &pty.ExitInfo{Code: 1}})
	w.drive()
	w.ready("bob")
	w.drive()
	if got := w.on("a").Agent; got != "bob" {
		t.Errorf("task a is with %q, want bob", got)
	}
}

func TestALostSupervisorIsNotTakenForAWorkingOne(t *testing.T) {
	w := newWorld(Settings{}, []string{"ada"}, Task{ID: "a", State: TaskOpen})
	w.ready("ada")
	w.readBoard()
	w.drive()
	w.input(Input{Kind: InputLost, Agent: "ada"})
	w.drive()
	a := w.state.Agents["ada"]
	if a.State != pty.AgentUnknown || w.task("a").State != TaskOpen || w.state.Phase != PhaseWaiting {
		t.Errorf("agent %s, task %s, phase %s", a.State, w.task("a").State, w.state.Phase)
	}
	// A new supervisor brings it back, and it gets its task again.
	w.event("ada", pty.Event{Kind: pty.EventStart})
	w.ready("ada")
	w.drive()
	if got := w.on("a").Agent; got != "ada" {
		t.Errorf("task a is with %q", got)
	}
}

func TestAssignmentOrder(t *testing.T) {
	w := newWorld(Settings{}, []string{"ada", "bob"},
		Task{ID: "late", State: TaskOpen},
		Task{ID: "first", State: TaskOpen, Priority: 1},
		Task{ID: "bobs", State: TaskOpen, Names: []string{"bob"}, Priority: 2},
		Task{ID: "other", State: TaskOpen, Names: []string{"reviewer"}},
	)
	w.ready("ada", "bob")
	w.readBoard()
	got := map[string]string{}
	for _, work := range w.state.Works {
		got[work.Task] = work.Agent
	}
	want := map[string]string{"first": "ada", "bobs": "bob"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("given out %v, want %v", got, want)
	}
}

func TestRunCheckRunsAgainAfterNewWork(t *testing.T) {
	w := newWorld(Settings{RunCheck: "make test"}, []string{"ada"}, Task{ID: "a", State: TaskOpen})
	w.ready("ada")
	w.readBoard()
	w.drive()
	w.turn("ada", "a", pty.TurnDone)
	for w.state.RunCheck.Key == "" {
		w.do(w.pending[0], Result{OK: true})
		w.pending = w.pending[1:]
	}
	w.do(w.take(t, EffectRunCheck), Result{Error: "exit status 2"})
	if w.state.Phase != PhaseWaiting {
		t.Fatalf("phase %s after a failed run check", w.state.Phase)
	}
	w.tasks = append(w.tasks, Task{ID: "b", State: TaskOpen})
	w.readBoard()
	w.drive()
	w.turn("ada", "b", pty.TurnDone)
	w.drive()
	if w.state.Phase != PhaseDone || !w.state.RunCheck.Passed {
		t.Errorf("phase %s, run check %+v", w.state.Phase, w.state.RunCheck)
	}
}

// TestRandomRuns lets effects and turns end in any order, with failures, and
// checks what must hold at every step and at the end.
func TestRandomRuns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := []string{"a", "b", "c", "d", "e"}
		var tasks []Task
		for i, name := range ids {
			task := Task{ID: name, State: TaskOpen, Check: "check"}
			if i > 0 && rapid.Bool().Draw(t, "dep") {
				task.After = []string{ids[rapid.IntRange(0, i-1).Draw(t, "on")]}
			}
			tasks = append(tasks, task)
		}
		w := newWorld(Settings{Attempts: 50, RunCheck: "all"}, []string{"x", "y", "z"}, tasks...)
		w.readBoard()
		w.ready("x", "y", "z")
		for range 600 {
			w.check(t)
			if w.state.Phase == PhaseDone {
				break
			}
			w.anything(t)
		}
		for w.state.Phase != PhaseDone && (len(w.pending) > 0 || len(w.state.Works) > 0) {
			w.drive()
			for _, work := range w.state.Works {
				w.turn(work.Agent, work.Task, pty.TurnDone)
			}
		}
		for _, task := range w.tasks {
			if task.State != TaskDone {
				t.Fatalf("task %s ended as %s: %+v", task.ID, task.State, w.state)
			}
		}
	})
}

func (w *world) anything(t *rapid.T) {
	var working []Work
	for _, name := range w.state.Order {
		if work, ok := w.state.Works[name]; ok && work.Stage == StageWorking {
			working = append(working, work)
		}
	}
	if len(working) > 0 && (len(w.pending) == 0 || rapid.Bool().Draw(t, "turn")) {
		work := rapid.SampledFrom(working).Draw(t, "work")
		w.turn(work.Agent, work.Task, pty.TurnDone)
		return
	}
	if len(w.pending) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.pending)-1).Draw(t, "effect")
	e := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	res := Result{OK: true}
	if (e.Kind == EffectCheck || e.Kind == EffectMerge) && rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
		res = Result{Error: "exit status 1", Conflicts: []string{"f"}}
	}
	w.do(e, res)
}

func (w *world) check(t *rapid.T) {
	holders := map[string]string{}
	for _, work := range w.state.Works {
		if other, taken := holders[work.Agent]; taken {
			t.Fatalf("%s has %s and %s", work.Agent, other, work.Task)
		}
		holders[work.Agent] = work.Task
		task := w.task(work.Task)
		for _, dep := range task.After {
			if w.task(dep).State != TaskDone {
				t.Fatalf("%s is given out before %s is done", work.Task, dep)
			}
		}
	}
}

func TestReduceLeavesItsArgumentAlone(t *testing.T) {
	w := newWorld(Settings{}, []string{"ada"}, Task{ID: "a", State: TaskOpen, Ready: true})
	w.ready("ada")
	before := w.state
	again := before.clone()
	Reduce(before, Input{Kind: InputBoard, Rev: 1, Tasks: w.tasks})
	if !reflect.DeepEqual(before, again) {
		t.Error("the state that was given has changed")
	}
}
