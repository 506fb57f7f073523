package orchestrator

import (
	"slices"
	"testing"

	"muntin/agent/pty"
)

// step carries out the pending effects of the kinds, in that order, well.
func (w *world) step(t *testing.T, kinds ...EffectKind) {
	t.Helper()
	for _, kind := range kinds {
		w.do(w.take(t, kind), Result{OK: true})
	}
}

func (w *world) ask(id string, l Leave) {
	w.input(Input{Kind: InputAsked, Request: &Request{ID: id, Leave: &l}})
}

func (w *world) fleet(mark string, names ...string) {
	c := FleetChange{Recipe: mark, Settings: w.state.Settings}
	for _, name := range names {
		c.Agents = append(c.Agents, Agent{Name: name, Role: RoleWorker, Isolated: true, Restart: Restart{Policy: RestartOnFailure, Most: 3}})
	}
	w.input(Input{Kind: InputFleet, Fleet: &c})
}

// An agent that is to go ends its task, and gets no other one.
func TestLeavingForGood(t *testing.T) {
	t.Parallel()
	w := newWorld(Settings{}, []string{"ada", "bob"}, Task{ID: "one", State: TaskOpen, Names: []string{"bob"}}, Task{ID: "two", State: TaskOpen, Names: []string{"worker"}})
	w.ready("bob")
	w.readBoard()
	w.step(t, EffectClaim, EffectPrepare, EffectSend)
	w.ask("1", Leave{Remove: []string{"bob"}})
	if !w.state.busy("bob") || w.state.busy("ada") && w.state.Agents["ada"].Leaves != LeavesNot {
		t.Error("bob has a task to end")
	}
	w.turn("bob", "one", pty.TurnDone)
	w.step(t, EffectMerge, EffectMark)
	w.readBoard()
	if w.state.busy("bob") || len(w.state.Works) > 0 {
		t.Errorf("bob has something to end: %+v", w.state.Works)
	}
	w.fleet("m", "ada")
	w.ready("ada")
	if got := w.state.Works["ada"].Task; got != "two" || w.state.Recipe != "m" || !slices.Equal(w.state.Order, []string{"ada"}) {
		t.Errorf("ada has %q, the agents are %v", got, w.state.Order)
	}
}

// A task whose agent is removed goes back to the board, is taken by another, and
// what the agent was is known when it comes again.
func TestRemovedAgentsTask(t *testing.T) {
	t.Parallel()
	w := newWorld(Settings{}, []string{"bob"}, Task{ID: "one", State: TaskOpen})
	w.ready("bob")
	w.readBoard()
	w.step(t, EffectClaim, EffectPrepare)
	w.fleet("m", "cy")
	w.step(t, EffectRecall, EffectMark)
	w.readBoard()
	w.ready("cy")
	if w.state.Works["cy"].Task != "one" || w.state.Left["bob"].Seq != 1 {
		t.Errorf("works %+v, left %+v", w.state.Works, w.state.Left)
	}
	w.fleet("n", "cy", "bob")
	if a := w.state.Agents["bob"]; a.Seq != 1 || a.State != pty.AgentStarting || len(w.state.Left) > 0 || a.Restart.Most != 3 {
		t.Errorf("bob came back as %+v", a)
	}
	// The end that its log has of before starts nothing.
	w.event("bob", pty.Event{Kind: pty.EventExit, Exit: &pty.ExitInfo{Code: 1}})
	w.event("bob", pty.Event{Kind: pty.EventStart})
	w.ready("bob")
	if a := w.state.Agents["bob"]; !a.Restart.At.IsZero() || a.Restart.Count != 0 || a.Leaves != LeavesNot || a.State != pty.AgentIdle {
		t.Errorf("after its start bob is %+v", a)
	}
}

// An agent that is started again for a change goes on with its task.
func TestLeavingToReturn(t *testing.T) {
	t.Parallel()
	w := newWorld(Settings{}, []string{"bob"}, Task{ID: "one", State: TaskOpen}, Task{ID: "two", State: TaskOpen})
	w.fleet("m", "bob")
	w.ready("bob")
	w.readBoard()
	w.step(t, EffectClaim, EffectPrepare, EffectSend)
	w.ask("1", Leave{Restart: []string{"bob"}})
	w.event("bob", pty.Event{Kind: pty.EventExit, Exit: &pty.ExitInfo{Signal: "TERM"}})
	if a := w.state.Agents["bob"]; a.Restart.Gone || !a.Restart.At.IsZero() || w.state.Works["bob"].Task != "one" {
		t.Errorf("bob is started again by others, or has lost its task: %+v", a)
	}
	w.event("bob", pty.Event{Kind: pty.EventStart})
	w.ready("bob")
	if e := w.take(t, EffectSend); e.Task != "one" || e.Msg != pty.KindPrompt {
		t.Errorf("bob is told %+v", e)
	}
	w.ask("1", Leave{Remove: []string{"bob"}}) // the same request again
	if w.state.Agents["bob"].Leaves != LeavesNot {
		t.Error("a request was taken twice")
	}
}

// A task that the board shows with an agent that was removed is given back.
func TestOrphanOfRemovedAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(Settings{}, []string{"ada", "bob"}, Task{ID: "one", State: TaskOpen})
	w.fleet("m", "ada")
	w.tasks[0].State, w.tasks[0].Claim = TaskActive, "bob"
	w.readBoard()
	w.step(t, EffectMark)
	if w.tasks[0].State != TaskOpen {
		t.Errorf("the task is %s", w.tasks[0].State)
	}
}
