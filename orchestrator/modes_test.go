package orchestrator

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"muntin/agent/pty"
	"muntin/recipes"
)

// modeWorld is a world with a flow. An agent is "name" or "name:role".
func modeWorld(flow Flow, agents []string, tasks ...Task) *world {
	var names []string
	roles := map[string]string{}
	for _, a := range agents {
		name, role, _ := strings.Cut(a, ":")
		names, roles[name] = append(names, name), role
	}
	w := newWorld(Settings{Run: "r", Flow: flow, Check: "make"}, names, tasks...)
	for name, role := range roles {
		if role != "" {
			w.change(name, func(a *Agent) { a.Role = role })
		}
	}
	w.ready(names...)
	w.readBoard()
	return w
}

// says ends an agent's turn with words.
func (w *world) says(agent, task, text string) {
	w.event(agent, pty.Event{Kind: pty.EventTurnEnd, TurnEnd: &pty.TurnEndInfo{
		Task: task, Reason: pty.TurnDone, Text: text, Checkpoint: &pty.CheckpointInfo{Tree: "tree-" + agent},
	}})
}

func (w *world) asks(v Verdict) {
	w.input(Input{Kind: InputAsked, Request: &Request{ID: v.Task + v.By + v.Text + v.Winner, Verdict: &v}})
}

// finish carries out what is pending; results go by agent and kind, else all is well.
func (w *world) finish(results map[string]Result) {
	for len(w.pending) > 0 {
		e := w.pending[0]
		w.pending = w.pending[1:]
		res, ok := results[e.Agent+" "+string(e.Kind)]
		if !ok {
			res = Result{OK: true, Commit: "commit-" + e.Agent}
		}
		w.do(e, res)
	}
}

// sent lists what agents were told, as "agent kind".
func (w *world) sent() []string {
	var list []string
	for _, e := range w.told {
		list = append(list, e.Agent+" "+string(e.Msg))
	}
	w.told = nil
	return list
}

func race(choose string) Flow {
	f := Flow{Lanes: 2, Choose: choose}
	if choose == recipes.ChooseJudge {
		f.Reader = "judge"
	}
	return f
}

func TestARaceIsWonByTheFirstThatPasses(t *testing.T) {
	t.Parallel()
	w := modeWorld(race(recipes.ChooseChecks), []string{"ada", "bob"}, Task{ID: "a", State: TaskOpen})
	if claim := w.take(t, EffectClaim); claim.Agent != "r" {
		t.Errorf("the claim is %s's, want the run's", claim.Agent)
	} else {
		w.do(claim, Result{OK: true})
	}
	if prepare := w.take(t, EffectPrepare); !prepare.Fresh {
		t.Errorf("it begins on what was there: %+v", prepare)
	} else {
		w.do(prepare, Result{OK: true})
	}
	w.finish(nil)
	if got := w.sent(); !reflect.DeepEqual(got, []string{"ada prompt", "bob prompt"}) {
		t.Fatalf("told %v", got)
	}
	w.says("bob", "a", "done")
	w.finish(nil)
	if got := w.sent(); !reflect.DeepEqual(got, []string{"ada abort"}) || w.task("a").State != TaskDone {
		t.Errorf("told %v, task %s", got, w.task("a").State)
	}
	w.turn("ada", "a", pty.TurnAborted)
	w.finish(nil)
	if len(w.state.Works) > 0 || len(w.state.Courses) > 0 || w.state.Phase != PhaseDone {
		t.Errorf("left over: %+v %+v %s", w.state.Works, w.state.Courses, w.state.Phase)
	}
}

func TestALoserLeavesWhenWhatIsUnderWayHasEnded(t *testing.T) {
	t.Parallel()
	w := modeWorld(race(recipes.ChooseChecks), []string{"ada", "bob"}, Task{ID: "a", State: TaskOpen}, Task{ID: "b", State: TaskOpen})
	w.finish(nil)
	w.says("ada", "a", "")
	w.says("bob", "a", "")
	adas, bobs := w.take(t, EffectCheck), w.take(t, EffectCheck)
	w.do(adas, Result{OK: true})
	w.finish(nil)
	if work := w.state.Works["bob"]; !work.Over || work.Task != "a" {
		t.Fatalf("bob's check still runs: %+v", work)
	}
	w.do(bobs, Result{OK: true})
	w.finish(nil)
	if a, b := w.state.Works["ada"].Task, w.state.Works["bob"].Task; a != "b" || b != "a" && b != "b" || w.task("a").State != TaskDone {
		t.Errorf("ada has %q, bob %q", a, b)
	}
}

func TestLanesThatComeToNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		happens func(w *world)
		state   TaskState
		why     string
	}{
		"one dies, the other wins": {func(w *world) {
			w.exit("ada", 1)
			w.finish(nil)
			w.says("bob", "a", "")
		}, TaskDone, ""},
		"both die": {func(w *world) {
			w.exit("ada", 1)
			w.exit("bob", 1)
		}, TaskBlocked, "ada: it has ended; bob: it has ended"},
		"one fails, the other dies": {func(w *world) {
			w.event("ada", pty.Event{Kind: pty.EventTurnEnd, TurnEnd: &pty.TurnEndInfo{Task: "a", Reason: pty.TurnError, Error: "no model"}})
			w.exit("bob", 1)
		}, TaskBlocked, "ada: the agent's turn ended with an error: no model; bob: it has ended"},
	} {
		w := modeWorld(race(recipes.ChooseJudge), []string{"ada", "bob", "rex:judge"}, Task{ID: "a", State: TaskOpen})
		w.finish(nil)
		tc.happens(w)
		w.finish(nil)
		if got := w.task("a"); got.State != tc.state || got.Reason != tc.why {
			t.Errorf("%s: %s %q", name, got.State, got.Reason)
		}
	}
}

func TestAJudge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers []string
		dies    bool
		winner  string // empty: a person is needed
	}{
		"chooses":                    {[]string{"Winner: `bob`"}, false, "bob"},
		"is asked again":             {[]string{"hm", "winner: ada"}, false, "ada"},
		"names nobody there is":      {[]string{"winner: cid", "winner: eve"}, false, ""},
		"is not clear to the end":    {[]string{"hm", "hm"}, false, ""},
		"dies, and no other is left": {nil, true, ""},
	} {
		w := modeWorld(race(recipes.ChooseJudge), []string{"ada", "bob", "rex:judge"}, Task{ID: "a", State: TaskOpen})
		w.finish(nil)
		w.says("ada", "a", "")
		w.says("bob", "a", "")
		w.finish(map[string]Result{"rex prepare": {OK: true, Output: "the diffs"}})
		last := w.told[len(w.told)-1]
		if last.Agent != "rex" || !strings.Contains(last.Text, "the diffs") || !strings.Contains(last.Text, "winner: <agent>") {
			t.Fatalf("%s: the judge is told %+v", name, last)
		}
		for _, a := range tc.answers {
			w.says("rex", "a", a)
			w.finish(nil)
		}
		if tc.dies {
			w.exit("rex", 1)
			w.finish(nil)
		}
		got := w.task("a")
		if tc.winner == "" {
			if got.State != TaskWaiting || !strings.Contains(got.Reason, "muntin choose a ada|bob") || w.state.Phase != PhaseWaiting {
				t.Errorf("%s: %s %q, phase %s", name, got.State, got.Reason, w.state.Phase)
			}
			w.asks(Verdict{Task: "a", Winner: "bob"})
			w.finish(nil)
		}
		if won := w.state.Facts; got.State != TaskDone || !slices.ContainsFunc(won, func(f Fact) bool { return strings.Contains(f.Text, "wins ^a") }) {
			t.Errorf("%s: %s %q", name, got.State, got.Reason)
		}
	}
}

func reviewWorld(rounds int) *world {
	w := modeWorld(Flow{Reader: "reviewer", Rounds: rounds}, []string{"ada", "rex:reviewer"}, Task{ID: "a", Text: "Do it", State: TaskOpen})
	w.finish(nil)
	w.says("ada", "a", "done")
	w.finish(nil)
	w.sent()
	return w
}

func TestAReviewGoesBackAndForth(t *testing.T) {
	t.Parallel()
	w := reviewWorld(1)
	w.asks(Verdict{Task: "a", By: "rex", Changes: true, Text: "line 3 is wrong"})
	if len(w.pending) > 0 {
		t.Fatalf("it counts before the turn ends: %v", w.pending)
	}
	w.says("rex", "a", "")
	back := w.take(t, EffectSend)
	if back.Agent != "ada" || back.Msg != pty.KindFollowUp || !strings.Contains(back.Text, "line 3 is wrong") {
		t.Fatalf("%+v", back)
	}
	w.do(back, Result{OK: true})
	w.says("ada", "a", "")
	w.finish(nil)
	w.says("rex", "a", "Still.\nverdict: changes")
	w.finish(nil)
	if got := w.task("a"); got.State != TaskWaiting || !strings.Contains(got.Reason, "sent back 1 times") {
		t.Fatalf("%s %q", got.State, got.Reason)
	}
	w.asks(Verdict{Task: "a", Changes: true, Text: "once more"}) // a person may
	w.finish(nil)
	w.says("ada", "a", "")
	w.finish(nil)
	w.says("rex", "a", "verdict: approve")
	w.finish(nil)
	if w.task("a").State != TaskDone || w.state.Phase != PhaseDone {
		t.Errorf("%s, %s", w.task("a").State, w.state.Phase)
	}
}

func TestAReviewerThatDies(t *testing.T) {
	t.Parallel()
	w := reviewWorld(1)
	w.exit("rex", 1)
	w.finish(nil)
	if got := w.task("a"); got.State != TaskWaiting || !strings.Contains(got.Reason, "no reviewer is left") {
		t.Fatalf("%s %q", got.State, got.Reason)
	}
	w.asks(Verdict{Task: "a", Approve: true})
	w.finish(nil)
	if w.task("a").State != TaskDone {
		t.Errorf("%s", w.task("a").State)
	}
}

func TestAReviewerThatComesBackReadsOn(t *testing.T) {
	t.Parallel()
	w := reviewWorld(1)
	w.change("rex", restarts)
	w.turn("rex", "a", pty.TurnExited)
	w.exit("rex", 1)
	w.tick(t)
	w.do(w.take(t, EffectRestart), Result{OK: true})
	w.comeBack("rex")
	if send := w.take(t, EffectSend); send.Agent != "rex" || !strings.Contains(send.Text, "Review task ^a") {
		t.Errorf("%+v", send)
	} else {
		w.do(send, Result{OK: true})
	}
	w.says("rex", "a", "verdict: approve")
	w.finish(nil)
	if w.task("a").State != TaskDone {
		t.Errorf("%s", w.task("a").State)
	}
}

func TestAWorkerMayNotJudge(t *testing.T) {
	t.Parallel()
	w := reviewWorld(1)
	w.asks(Verdict{Task: "a", By: "ada", Approve: true})
	w.finish(nil)
	if w.task("a").State != TaskActive {
		t.Errorf("%s", w.task("a").State)
	}
	if err := w.state.Judgeable(Verdict{Task: "a", By: "ada", Approve: true}); err == nil {
		t.Error("it is told that it may")
	}
}

func TestAPersonSettlesATaskThatIsRead(t *testing.T) {
	t.Parallel()
	w := reviewWorld(1)
	w.task("a").State = TaskCancelled
	w.readBoard()
	w.finish(nil)
	if got := w.sent(); !slices.Contains(got, "rex abort") || len(w.state.Works) > 0 || len(w.state.Courses) > 0 {
		t.Errorf("told %v, %+v", got, w.state.Works)
	}
}

func TestALoopGoesOnUntilItsConditionHolds(t *testing.T) {
	t.Parallel()
	for rounds, want := range map[int]TaskState{2: TaskDone, 3: TaskBlocked} {
		w := modeWorld(Flow{Loop: &Looping{Prompt: "Go on.", Until: "test -e x", Max: 3}}, []string{"ada"}, Task{ID: "b", State: TaskOpen})
		w.finish(nil)
		for i := range 3 {
			if last := w.told[len(w.told)-1]; !strings.HasPrefix(last.Text, "Go on.") || i > 0 && !strings.Contains(last.Text, "saw nothing") {
				t.Fatalf("round %d: %q", i+1, last.Text)
			}
			w.says("ada", "loop-ada", "")
			if i == rounds {
				break
			}
			w.finish(map[string]Result{"ada check": {Error: "exit status 1", Output: "saw nothing"}})
		}
		w.finish(nil)
		if got, _ := w.state.Task("loop-ada"); got.State != want {
			t.Errorf("%d failures of 3: %s %q", rounds, got.State, got.Reason)
		}
		if w.task("b").State != TaskOpen {
			t.Error("the board was touched")
		}
	}
}

func pipelineWorld() *world {
	return modeWorld(Flow{Steps: [][]string{{"pam"}, {"ben", "bea"}, {"tim"}}}, []string{"pam", "ben", "bea", "tim"}, Task{ID: "a", Text: "Do it", State: TaskOpen})
}

func TestAPipeline(t *testing.T) {
	t.Parallel()
	w := pipelineWorld()
	w.finish(nil)
	w.says("pam", "a", "my plan")
	w.do(w.take(t, EffectCommit), Result{OK: true, Commit: "c1"}) // no check between steps
	prepare := w.take(t, EffectPrepare)
	if prepare.Agent != "ben" || prepare.Commit != "c1" {
		t.Fatalf("%+v", prepare)
	}
	w.do(prepare, Result{OK: true})
	w.finish(nil)
	if last := w.told[len(w.told)-1]; !strings.Contains(last.Text, "step 2 of 3") || !strings.Contains(last.Text, "my plan") {
		t.Errorf("ben is told %q", last.Text)
	}
	w.exit("ben", 1) // another agent of the step goes on from the plan
	prepare = w.take(t, EffectPrepare)
	if prepare.Agent != "bea" || prepare.Commit != "c1" {
		t.Fatalf("%+v", prepare)
	}
	w.do(prepare, Result{OK: true})
	w.finish(nil)
	w.says("bea", "a", "")
	w.finish(nil)
	w.says("tim", "a", "")
	w.do(w.take(t, EffectCheck), Result{OK: true})
	w.finish(nil)
	if w.task("a").State != TaskDone || w.state.Phase != PhaseDone {
		t.Errorf("%s, %s", w.task("a").State, w.state.Phase)
	}
}

func TestAPipelineWithoutAgentsForAStep(t *testing.T) {
	t.Parallel()
	w := pipelineWorld()
	w.finish(nil)
	w.exit("ben", 1)
	w.exit("bea", 1)
	w.says("pam", "a", "my plan")
	w.finish(nil)
	if got := w.task("a"); got.State != TaskBlocked || got.Reason != "no agent is left for step 2 of 3" || w.state.Phase != PhaseWaiting {
		t.Errorf("%s %q, phase %s", got.State, got.Reason, w.state.Phase)
	}
}

func TestAgentsComeAfterThoseTheyDependOn(t *testing.T) {
	t.Parallel()
	w := newWorld(Settings{}, []string{"ada", "bob", "ann"}, Task{ID: "a", State: TaskOpen, Names: []string{"ada"}})
	w.change("ada", func(a *Agent) { a.After, a.First = []string{"bob", "ann"}, true })
	w.change("ann", func(a *Agent) { a.Role = recipes.RoleAssistant })
	w.ready("ada", "ann")
	w.readBoard()
	w.ready("bob")
	if len(w.pending) > 0 {
		t.Fatalf("ann has not done anything yet: %v", w.pending)
	}
	w.says("ann", "", "hello")
	first := w.take(t, EffectFirst)
	if len(w.pending) > 0 {
		t.Fatalf("a task before the first prompt: %v", w.pending)
	}
	w.do(first, Result{OK: true})
	if claim := w.take(t, EffectClaim); claim.Agent != "ada" {
		t.Errorf("%+v", claim)
	}
}

func TestPathsAreReserved(t *testing.T) {
	t.Parallel()
	for reserve, want := range map[bool]int{true: 2, false: 3} {
		w := modeWorld(Flow{Reserve: reserve}, []string{"ada", "bob", "cid"},
			Task{ID: "a", State: TaskOpen, Body: "files: lib/x"}, Task{ID: "b", State: TaskOpen, Body: "files: lib"}, Task{ID: "c", State: TaskOpen})
		w.finish(nil)
		if len(w.state.Works) != want {
			t.Errorf("reserve %v: %+v", reserve, w.state.Works)
		}
	}
}

func TestStepsOfARecipe(t *testing.T) {
	t.Parallel()
	r := recipeOf(t, `mode: pipeline
agents:
  - {name: test, depends_on: [build]}
  - {name: build, count: 2, depends_on: [plan]}
  - {name: plan}
  - {name: helper, role: assistant}
  - {name: docs, depends_on: [plan]}
`)
	want := [][]string{{"plan"}, {"build-1", "build-2", "docs"}, {"test"}}
	if got := flowOf(r.Resolved()).Steps; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func FuzzParseVerdict(f *testing.F) {
	for _, s := range []string{"verdict: approve", "* **Verdict:** changes\n", "winner: ada", "x\nwinner:\n", "`winner: b`", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, ok := ParseVerdict(s)
		if said := v.Approve || v.Changes || v.Winner != ""; said != ok {
			t.Errorf("%q: %+v %v", s, v, ok)
		}
		if strings.ContainsAny(v.Winner, " \t\n") || v.Approve && v.Changes {
			t.Errorf("%q: %+v", s, v)
		}
	})
}

func TestParseVerdict(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Verdict{
		"verdict: approve":                        {Approve: true},
		"Good.\n\n**Verdict:** approved\n":        {Approve: true, Text: "Good."},
		"- a\n- b\n`verdict: changes`":            {Changes: true, Text: "- a\n- b"},
		"verdict: approve\nno:\nverdict: changes": {Changes: true, Text: "no:"},
		"> Winner: bob-2.":                        {Winner: "bob-2"},
		"winner: nobody knows":                    {Text: "winner: nobody knows"},
	} {
		if got, _ := ParseVerdict(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
