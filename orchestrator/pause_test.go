package orchestrator

import (
	"strings"
	"testing"
	"time"

	"muntin/agent/pty"
)

func stalls() Settings { return Settings{Stall: Stall{After: 10 * time.Minute, Nudges: 2}} }

func TestASilentAgentIsNudgedAndThenNeedsAPerson(t *testing.T) {
	w := atWork(t, stalls(), restarts)
	for i := range 2 {
		w.tick(t)
		if e := w.take(t, EffectSend); e.Msg != pty.KindSteer || !strings.Contains(e.Text, "Nothing has been heard") {
			t.Errorf("nudge %d is %+v", i+1, e)
		}
	}
	w.event("ada", pty.Event{Kind: pty.EventMessage, Message: &pty.MessageInfo{State: pty.StateQueued}}) // the nudge itself is no sign of life
	w.tick(t)
	mark := w.take(t, EffectMark)
	if mark.State != TaskWaiting || !strings.HasPrefix(mark.Why, "ada has been silent since ") {
		t.Errorf("marked %+v", mark)
	}
	w.do(mark, Result{OK: true})
	if w.state.Phase != PhaseWaiting || !w.state.Wake.IsZero() || w.state.Trouble(w.state.Agents["ada"]).Kind != TroubleStalled {
		t.Errorf("phase %s, wake %s, %+v", w.state.Phase, w.state.Wake, w.state.Agents["ada"].Silence)
	}
	if w.on("a").Agent != "ada" {
		t.Error("the task did not stay with its agent")
	}
	w.event("ada", pty.Event{Kind: pty.EventTool, Tool: &pty.ToolInfo{Name: "bash"}})
	if mark := w.take(t, EffectMark); mark.State != TaskActive {
		t.Errorf("marked %+v", mark)
	} else {
		w.do(mark, Result{OK: true})
	}
	w.turn("ada", "a", pty.TurnDone)
	w.drive()
	if w.task("a").State != TaskDone {
		t.Errorf("the task is %s", w.task("a").State)
	}
}

func TestAToolIsASignOfLife(t *testing.T) {
	w := atWork(t, stalls(), restarts)
	w.now = w.now.Add(9 * time.Minute)
	w.event("ada", pty.Event{Kind: pty.EventTool, Tool: &pty.ToolInfo{Name: "bash"}})
	if wait := w.state.Wake.Sub(w.now); wait < 9*time.Minute {
		t.Errorf("the next look is in %s", wait)
	}
}

// What a person does to a task on the board while the board is being written.
func TestATaskThatIsHeldCanBeTakenAway(t *testing.T) {
	for _, state := range []TaskState{TaskDone, TaskOpen, TaskCancelled} {
		w := atWork(t, Settings{Stall: Stall{After: time.Minute}}, restarts)
		w.tick(t)
		w.do(w.take(t, EffectMark), Result{OK: true})
		w.task("a").State = state
		w.readBoard()
		if w.state.Agents["ada"].Task != "" {
			t.Errorf("%s: the task stays with its agent", state)
		}
	}
	w := atWork(t, Settings{Stall: Stall{After: time.Minute}}, restarts)
	w.tick(t)
	mark := w.take(t, EffectMark)
	w.task("a").State = TaskDone // while the mark is under way, which then changes nothing
	w.readBoard()
	w.input(Input{Kind: InputResult, Key: mark.Key, Result: &Result{OK: true}})
	if w.state.Agents["ada"].Task != "" {
		t.Error("a tick during the writing was not seen")
	}
}

func TestALimitPausesUntilTheNamedTime(t *testing.T) {
	w := atWork(t, Settings{Check: "true"}, restarts)
	at := w.now.Add(5 * time.Hour)
	w.event("ada", pty.Event{Kind: pty.EventLimit, Limit: &pty.LimitInfo{Text: "5-hour limit", RetryAt: &at}})
	w.turn("ada", "a", pty.TurnError)
	if len(w.pending) > 0 || w.task("a").State != TaskActive || !w.state.Wake.Equal(at) {
		t.Fatalf("pending %v, wake %s", w.pending, w.state.Wake)
	}
	if got := w.state.Trouble(w.state.Agents["ada"]); got.Kind != TroubleLimited || w.state.Phase != PhaseRunning {
		t.Errorf("trouble %+v, phase %s", got, w.state.Phase)
	}
	w.tick(t)
	if e := w.take(t, EffectSend); !strings.HasPrefix(e.Text, limitText) {
		t.Errorf("it is told %q", e.Text)
	} else {
		w.do(e, Result{OK: true})
	}
	// Again, with no time named: longer each time, and not for ever.
	for _, want := range []time.Duration{2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
		w.event("ada", pty.Event{Kind: pty.EventLimit, Limit: &pty.LimitInfo{}})
		if got := w.state.Wake.Sub(w.now); got != want {
			t.Errorf("the pause is %s, want %s", got, want)
		}
		w.tick(t)
	}
	w.turn("ada", "a", pty.TurnDone)
	w.drive()
	if w.task("a").State != TaskDone || w.state.Agents["ada"].Pause.Tries != 0 {
		t.Errorf("task %s, pause %+v", w.task("a").State, w.state.Agents["ada"].Pause)
	}
}

func TestAnApprovalNeedsAPersonUntilTheTurnGoesOn(t *testing.T) {
	w := atWork(t, stalls(), restarts)
	w.event("ada", pty.Event{Kind: pty.EventWaiting, Waiting: &pty.WaitingInfo{For: pty.WaitApproval, Text: "rm -rf build?"}})
	if got := w.state.Trouble(w.state.Agents["ada"]); got.Kind != TroubleAsks || got.Why != "rm -rf build?" || w.state.Phase != PhaseWaiting {
		t.Errorf("trouble %+v, phase %s", got, w.state.Phase)
	}
	if len(w.pending) > 0 || !w.state.Wake.IsZero() {
		t.Errorf("pending %v, wake %s: it must be left to a person", w.pending, w.state.Wake)
	}
	w.event("ada", pty.Event{Kind: pty.EventWaiting, Waiting: &pty.WaitingInfo{For: pty.WaitNothing}})
	if w.state.Agents["ada"].Asks != nil || w.state.Phase != PhaseRunning {
		t.Error("it still waits for a person")
	}
}
