package orchestrator

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"muntin/agent/pty"
	"muntin/recipes"
)

func every() []recipes.Event {
	return []recipes.Event{
		recipes.EventReady, recipes.EventTaskDone, recipes.EventTaskBlocked, recipes.EventNeedsPerson,
		recipes.EventMerged, recipes.EventRunDone, recipes.EventExit, recipes.EventLimited,
	}
}

// told takes the notices out of the pending effects.
func (w *world) notices() []string {
	var list []string
	var rest []Effect
	for _, e := range w.pending {
		if e.Kind == EffectNotice {
			list = append(list, string(e.On)+" "+e.Agent+" "+e.Task)
		} else {
			rest = append(rest, e)
		}
	}
	w.pending = rest
	return list
}

func (w *world) wantNotices(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := w.notices(); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: told of %q, want %q", when, got, want)
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	w := newWorld(Settings{Notices: every()}, []string{"ada", "bob"}, Task{ID: "one", State: TaskOpen, Text: "One"}, Task{ID: "old", State: TaskDone})
	w.readBoard()
	w.ready("ada")
	w.wantNotices(t, "one is ready")
	w.ready("bob")
	w.wantNotices(t, "all are ready", "ready  ")
	w.step(t, EffectClaim, EffectPrepare, EffectSend)
	w.event("ada", pty.Event{Kind: pty.EventWaiting, Waiting: &pty.WaitingInfo{Text: "may I?"}})
	w.wantNotices(t, "it asks", "needs-person ada one")
	w.turn("ada", "one", pty.TurnDone)
	w.step(t, EffectMerge)
	w.wantNotices(t, "merged", "merged ada one")
	w.step(t, EffectMark)
	w.readBoard()
	w.wantNotices(t, "done", "task-done ada one", "run-done  ")
	w.event("bob", pty.Event{Kind: pty.EventExit, Exit: &pty.ExitInfo{Code: 2}})
	w.wantNotices(t, "exit", "exit bob ")
	w.event("bob", pty.Event{Kind: pty.EventStart})
	w.ready("bob")
	w.wantNotices(t, "ready again")
	w.tasks[1].State = TaskBlocked
	w.readBoard()
	w.wantNotices(t, "blocked by a person", "task-blocked  old")
}

// Only what the recipe waits for is told.
func TestNoticesWanted(t *testing.T) {
	t.Parallel()
	r := recipeOf(t, "agents: [{name: a}]\nhooks: [{on: exit, run: [a]}]\nnotify: [{on: [exit, merged], by: bell}]\n")
	if got, want := wantedEvents(r), []recipes.Event{recipes.EventExit, recipes.EventMerged}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	w := newWorld(Settings{Notices: []recipes.Event{recipes.EventMerged}}, []string{"ada"})
	w.ready("ada")
	w.event("ada", pty.Event{Kind: pty.EventExit, Exit: &pty.ExitInfo{Code: 2}})
	w.wantNotices(t, "nothing is wanted")
}

// A notice that was under way when the orchestrator was killed is not told again.
func TestNoticesOnceOnly(t *testing.T) {
	t.Parallel()
	path, start := filepath.Join(t.TempDir(), "journal"), newWorld(Settings{Notices: every()}, []string{"ada"}).state
	j, st, _, err := OpenJournal(path, start, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Kind: InputAgent, Agent: "ada", Time: time.Now(), Event: &pty.Event{Seq: 1, Kind: pty.EventReady}}
	next, effects := Reduce(st, in)
	if len(effects) != 1 || effects[0].On != recipes.EventReady {
		t.Fatalf("effects %+v", effects)
	}
	if _, err := j.step(in, st, next, effects); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, st, pending, err := OpenJournal(path, start, time.Now)
	if err != nil || len(pending) > 0 || !st.Announced {
		t.Errorf("after the restart %+v is under way: %v", pending, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// What could not be told is in the run's story.
func TestNoticeThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(Settings{Notices: every()}, []string{"ada"})
	w.ready("ada")
	e := w.take(t, EffectNotice)
	w.input(Input{Kind: InputResult, Key: e.Key, Result: &Result{OK: true, Notice: "telling of ready: bell: there is no terminal"}})
	if f := w.state.Facts[len(w.state.Facts)-1]; !f.Bad || f.Text != "telling of ready: bell: there is no terminal" {
		t.Errorf("%+v", f)
	}
}
