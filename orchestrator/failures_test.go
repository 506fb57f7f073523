package orchestrator

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muntin/agent/pty"
)

// change edits an agent of the world before it begins.
func (w *world) change(name string, fn func(*Agent)) {
	a := w.state.Agents[name]
	fn(&a)
	w.state.Agents[name] = a
}

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// tick lets the time come that the state waits for.
func (w *world) tick(t failer) {
	t.Helper()
	if w.state.Wake.IsZero() {
		t.Fatal("it does not want to be woken")
	}
	w.now = w.state.Wake
	heard := w.state.Heard()
	var effects []Effect
	w.state, effects = Reduce(w.state, Input{Kind: InputTime, Time: w.now, Heard: heard})
	w.pending = append(w.pending, effects...)
	if wake := w.state.Wake; !wake.IsZero() && !wake.After(w.now) {
		t.Fatalf("woken at %s it wants to be woken at %s", w.now, wake)
	}
}

// atWork is a world in which ada works on task a.
func atWork(t testing.TB, settings Settings, change func(*Agent)) *world {
	t.Helper()
	w := newWorld(settings, []string{"ada"}, Task{ID: "a", Text: "Do it", State: TaskOpen})
	w.change("ada", change)
	w.ready("ada")
	w.readBoard()
	w.drive()
	if w.on("a").Stage != StageWorking {
		t.Fatalf("it does not work: %+v", w.state.Works)
	}
	return w
}

func restarts(a *Agent) { a.Restart.Policy, a.Restart.Most = RestartOnFailure, 3 }

func (w *world) exit(name string, code int) {
	w.event(name, pty.Event{Kind: pty.EventExit, Exit: &pty.ExitInfo{Code: code}})
}

func (w *world) comeBack(name string) {
	w.event(name, pty.Event{Kind: pty.EventStart})
	w.ready(name)
}

func TestACrashedAgentIsStartedAgainAndGoesOn(t *testing.T) {
	w := atWork(t, Settings{}, restarts)
	w.turn("ada", "a", pty.TurnExited)
	w.exit("ada", 1)
	if len(w.pending) > 0 || w.task("a").State != TaskActive || w.on("a").Stage != StageResting {
		t.Fatalf("pending %v, work %+v", w.pending, w.on("a"))
	}
	if got := w.state.Trouble(w.state.Agents["ada"]); got.Kind != TroubleRestarting || got.NeedsPerson() {
		t.Errorf("trouble %+v", got)
	}
	if wait := w.state.Wake.Sub(w.now); wait != firstBackoff {
		t.Errorf("it is started again in %s", wait)
	}
	w.tick(t)
	w.do(w.take(t, EffectRestart), Result{OK: true})
	w.comeBack("ada")
	send := w.take(t, EffectSend)
	if !strings.Contains(send.Text, "was started again") || !strings.Contains(send.Text, "Task: ^a Do it") {
		t.Errorf("it is told %q", send.Text)
	}
	w.do(send, Result{OK: true})
	w.turn("ada", "a", pty.TurnDone)
	w.drive()
	if w.task("a").State != TaskDone || w.state.Agents["ada"].Restart.Count != 0 {
		t.Errorf("task %s, restarts %+v", w.task("a").State, w.state.Agents["ada"].Restart)
	}
}

func TestAnAgentThatFailsTooOftenIsGivenUp(t *testing.T) {
	w := atWork(t, Settings{}, restarts)
	w.turn("ada", "a", pty.TurnExited)
	for i := range 3 {
		w.exit("ada", 1)
		if wait := w.state.Wake.Sub(w.now); wait != firstBackoff<<i {
			t.Errorf("restart %d comes after %s", i+1, wait)
		}
		w.tick(t)
		w.do(w.take(t, EffectRestart), Result{OK: true})
		w.event("ada", pty.Event{Kind: pty.EventStart})
	}
	w.exit("ada", 1)
	w.drive()
	a := w.state.Agents["ada"]
	if !a.Restart.Gone || w.task("a").State != TaskOpen || w.state.Phase != PhaseWaiting || !w.state.Wake.IsZero() {
		t.Errorf("agent %+v, task %s, phase %s", a, w.task("a").State, w.state.Phase)
	}
	if got := w.state.Trouble(a); got.Kind != TroubleGivenUp || !got.NeedsPerson() {
		t.Errorf("trouble %+v", got)
	}
	// A person brings it back: what failed before is forgotten.
	w.comeBack("ada")
	w.drive()
	if a := w.state.Agents["ada"]; a.Restart.Count != 0 || a.Task != "a" {
		t.Errorf("brought back it is %+v", a)
	}
}

func TestEndsThatAreNoFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		policy  RestartPolicy
		code    int
		restart bool
	}{
		"never, failed":      {RestartNever, 1, false},
		"on failure, well":   {RestartOnFailure, 0, false},
		"on failure, failed": {RestartOnFailure, 1, true},
		"always, well":       {RestartAlways, 0, true},
	} {
		w := atWork(t, Settings{}, func(a *Agent) { a.Restart.Policy, a.Restart.Most = tc.policy, 1 })
		w.exit("ada", tc.code)
		w.drive()
		if got := !w.state.Wake.IsZero(); got != tc.restart {
			t.Errorf("%s: started again: %v", name, got)
		}
		want := TaskActive
		if !tc.restart {
			want = TaskOpen
		}
		if got := w.task("a").State; got != want {
			t.Errorf("%s: the task is %s", name, got)
		}
	}
}

// The prompt was filed and its agent ended: the next supervisor hands it over,
// and no second one is sent.
func TestAPromptThatWaitsInTheInboxIsNotSentAgain(t *testing.T) {
	w := newWorld(Settings{}, []string{"ada"}, Task{ID: "a", State: TaskOpen})
	w.change("ada", restarts)
	w.ready("ada")
	w.readBoard()
	w.do(w.take(t, EffectClaim), Result{OK: true})
	w.do(w.take(t, EffectPrepare), Result{OK: true})
	send := w.take(t, EffectSend)
	w.input(Input{Kind: InputLost, Agent: "ada"})
	w.input(Input{Kind: InputResult, Key: send.Key, Result: &Result{State: string(pty.StateQueued), Gone: true, Error: "gone"}})
	w.tick(t)
	w.do(w.take(t, EffectRestart), Result{OK: true})
	w.comeBack("ada")
	if len(w.pending) > 0 {
		t.Fatalf("sent again: %v", w.pending)
	}
	w.turn("ada", "a", pty.TurnDone)
	w.drive()
	if w.task("a").State != TaskDone {
		t.Errorf("the task is %s", w.task("a").State)
	}
}

func TestAnAgentThatIsGivenUpHasItsPromptTakenBack(t *testing.T) {
	w := newWorld(Settings{}, []string{"ada"}, Task{ID: "a", State: TaskOpen})
	w.ready("ada")
	w.readBoard()
	w.do(w.take(t, EffectClaim), Result{OK: true})
	w.do(w.take(t, EffectPrepare), Result{OK: true})
	w.take(t, EffectSend)
	w.input(Input{Kind: InputLost, Agent: "ada"})
	if e := w.take(t, EffectRecall); e.Agent != "ada" || e.Task != "a" {
		t.Errorf("recalled %+v", e)
	}
}

func TestAFailedStartCounts(t *testing.T) {
	w := atWork(t, Settings{}, restarts)
	w.exit("ada", 1)
	for range 3 {
		w.tick(t)
		w.do(w.take(t, EffectRestart), Result{Error: "no tmux"})
	}
	w.drive()
	if a := w.state.Agents["ada"]; !a.Restart.Gone || !strings.Contains(a.Note, "no tmux") {
		t.Errorf("it is %+v", a)
	}
}

func TestAClaimOfAnAgentThatIsGoneGoesBack(t *testing.T) {
	w := newWorld(Settings{}, []string{"ada"}, Task{ID: "a", State: TaskActive, Claim: "ada"}, Task{ID: "b", State: TaskActive, Claim: "me"})
	w.readBoard()
	if len(w.pending) > 0 {
		t.Fatalf("its agent may still come: %v", w.pending)
	}
	w.exit("ada", 0)
	if len(w.pending) != 1 || w.pending[0].Task != "a" || w.pending[0].State != TaskOpen {
		t.Fatalf("pending %v", w.pending)
	}
	w.readBoard()
	if len(w.pending) != 1 {
		t.Errorf("it is given back twice: %v", w.pending)
	}
	w.drive()
}

func TestMaxParallelAndTurns(t *testing.T) {
	w := newWorld(Settings{MaxParallel: 2}, []string{"x", "y", "z"},
		Task{ID: "a", State: TaskOpen}, Task{ID: "b", State: TaskOpen}, Task{ID: "c", State: TaskOpen})
	w.ready("x", "y", "z")
	w.readBoard()
	w.drive()
	if len(w.state.Works) != 2 {
		t.Fatalf("%d tasks are at work", len(w.state.Works))
	}
	w.turn("x", "a", pty.TurnDone)
	w.drive()
	if got := w.on("c").Agent; got != "z" {
		t.Errorf("the third task is with %q, want the agent that had none", got)
	}
}

// TestRandomFailures lets agents crash, fall silent and be limited at any
// moment, and checks what must hold at every step and at the end.
func TestRandomFailures(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		settings := stalls()
		settings.Attempts, settings.Check = 50, "check"
		w := newWorld(settings, []string{"x", "y", "z"},
			Task{ID: "a", State: TaskOpen}, Task{ID: "b", State: TaskOpen}, Task{ID: "c", State: TaskOpen, After: []string{"a"}})
		names := []string{"x", "y", "z"}
		for _, name := range names {
			w.change(name, func(a *Agent) { a.Restart.Policy, a.Restart.Most = RestartOnFailure, 1000 })
		}
		w.readBoard()
		w.ready(names...)
		for range 200 {
			w.fail(t, rapid.SampledFrom(names).Draw(t, "agent"))
			w.check(t)
			w.checkPauses(t)
		}
		for range 200 { // then all goes well
			w.drive()
			if w.state.Phase == PhaseDone {
				return
			}
			w.goWell(t)
		}
		t.Fatalf("it does not come to its end: %+v", w.state)
	})
}

// fail lets one thing happen to an agent or to an effect.
func (w *world) fail(t *rapid.T, name string) {
	a := w.state.Agents[name]
	up := a.State == pty.AgentIdle || a.State == pty.AgentWorking
	switch rapid.SampledFrom([]string{"effect", "effect", "effect", "tick", "exit", "lost", "limit", "ask", "tool", "turn", "start"}).Draw(t, "what") {
	case "effect":
		if len(w.pending) > 0 {
			w.anyEffect(t)
		}
	case "tick":
		if !w.state.Wake.IsZero() {
			w.tick(t)
		}
	case "exit":
		if up {
			if a.State == pty.AgentWorking {
				w.turn(name, a.Task, pty.TurnExited)
			}
			w.exit(name, 1)
		}
	case "lost":
		w.input(Input{Kind: InputLost, Agent: name})
	case "limit":
		if up {
			w.event(name, pty.Event{Kind: pty.EventLimit, Limit: &pty.LimitInfo{}})
		}
	case "ask":
		if a.State == pty.AgentWorking {
			w.event(name, pty.Event{Kind: pty.EventWaiting, Waiting: &pty.WaitingInfo{For: pty.WaitQuestion}})
		}
	case "tool":
		if a.State == pty.AgentWorking {
			w.event(name, pty.Event{Kind: pty.EventTool, Tool: &pty.ToolInfo{Name: "bash"}})
		}
	case "turn":
		if a.State == pty.AgentWorking {
			w.turn(name, a.Task, rapid.SampledFrom([]pty.TurnReason{pty.TurnDone, pty.TurnDone, pty.TurnExited}).Draw(t, "reason"))
		}
	case "start":
		if a.State == pty.AgentStarting && a.Seq > 1 {
			w.comeBack(name)
		}
	}
}

// anyEffect carries out some effect, at an agent that may have ended.
func (w *world) anyEffect(t *rapid.T) {
	i := rapid.IntRange(0, len(w.pending)-1).Draw(t, "effect")
	e := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	a := w.state.Agents[e.Agent]
	if e.Kind == EffectSend && a.State != pty.AgentIdle && a.State != pty.AgentWorking {
		w.input(Input{Kind: InputResult, Key: e.Key, Result: &Result{State: string(pty.StateFailed), Gone: true, Error: "gone"}})
		return
	}
	w.do(e, Result{OK: true})
}

// checkPauses makes sure that nobody is prompted who must not be.
func (w *world) checkPauses(t *rapid.T) {
	for _, task := range w.tasks {
		work, held := w.state.workOn(task.ID)
		if task.State == TaskActive && !held {
			t.Fatalf("the claim of %s is lost", task.ID)
		}
		if held && work.Stage == StageResting && work.Next.Text == "" {
			t.Fatalf("^%s rests for nothing", task.ID)
		}
	}
}

// goWell ends what keeps the agents, and their turns.
func (w *world) goWell(t *rapid.T) {
	for _, name := range w.state.Order {
		a := w.state.Agents[name]
		switch {
		case a.State == pty.AgentStarting:
			w.comeBack(name)
		case a.State == pty.AgentExited:
			w.input(Input{Kind: InputLost, Agent: name}) // an exit that was not told
		case a.State == pty.AgentWorking:
			if a.Pause.on() || a.Asks != nil {
				w.event(name, pty.Event{Kind: pty.EventTool, Tool: &pty.ToolInfo{Name: "bash"}})
			}
			w.turn(name, w.state.Agents[name].Task, pty.TurnDone)
		}
		w.drive()
	}
	if !w.state.Wake.IsZero() {
		w.tick(t)
	}
}
