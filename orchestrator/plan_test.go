package orchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/agent/pty"
	"muntin/internal/state"
	"muntin/orchestrator/board"
	"muntin/recipes"
)

func planner(w *world, kind pty.EventKind) {
	w.seq["planner"]++
	e := pty.Event{Seq: w.seq["planner"], Kind: kind, Turn: 1}
	if kind == pty.EventTurnEnd {
		e.TurnEnd = &pty.TurnEndInfo{Reason: pty.TurnDone}
	}
	w.input(Input{Kind: InputAgent, Agent: "planner", Event: &e})
}

func kinds(effects []Effect) string {
	var list []string
	for _, e := range effects {
		list = append(list, string(e.Kind)+" "+e.Agent)
	}
	return strings.Join(list, ", ")
}

func TestNothingIsGivenOutBeforeThePlanIsApproved(t *testing.T) {
	t.Parallel()
	for _, approval := range []recipes.Approval{recipes.ApprovePerson, recipes.ApproveAuto} {
		w := newWorld(Settings{Approval: approval}, []string{"ada"}, Task{ID: "a", Text: "a", State: TaskOpen})
		w.state.Order = append(w.state.Order, "planner")
		w.state.Agents["planner"] = Agent{Name: "planner", Role: recipes.RolePlanner, State: pty.AgentStarting}
		w.readBoard()
		w.seq["ada"]++
		w.input(Input{Kind: InputAgent, Agent: "ada", Event: &pty.Event{Seq: 1, Kind: pty.EventReady}})
		w.input(Input{Kind: InputPlan, Plan: &Plan{Status: board.PlanDraft}})
		planner(w, pty.EventTurnStart)
		if len(w.pending) != 0 || w.state.Phase != PhaseRunning {
			t.Fatalf("%s: %s, phase %s", approval, kinds(w.pending), w.state.Phase)
		}
		planner(w, pty.EventTurnEnd)
		if approval == recipes.ApproveAuto {
			if got := kinds(w.pending); got != "approve planner" || w.state.Phase != PhaseRunning {
				t.Fatalf("the planner is done: %s, phase %s", got, w.state.Phase)
			}
			key := w.pending[0].Key
			w.pending = nil
			w.input(Input{Kind: InputResult, Key: key, Result: &Result{OK: true}})
		} else {
			if len(w.pending) != 0 || w.state.Phase != PhaseWaiting {
				t.Fatalf("a person is to approve: %s, phase %s", kinds(w.pending), w.state.Phase)
			}
			w.input(Input{Kind: InputPlan, Plan: &Plan{Status: board.PlanApproved, Diff: "-a\n+b"}})
		}
		if got := kinds(w.pending); got != "claim ada" {
			t.Errorf("%s: approved, then %s", approval, got)
		}
	}
}

func TestPlanFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	layout := state.Layout{State: filepath.Join(dir, "state"), Runtime: dir}
	repo := layout.Repo(state.Repo{Root: dir, Main: dir, GitDir: dir, CommonDir: dir})
	if err := os.MkdirAll(repo.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	p := NewPlanFile(repo, filepath.Join(dir, "PLAN.md"), filepath.Join(dir, "seen.md"))
	if got, err := p.Read(); err != nil || got != (Plan{}) {
		t.Errorf("no file: %+v, %v", got, err)
	}
	if err := p.SetStatus(t.Context(), board.PlanApproved); err == nil || !strings.Contains(err.Error(), "there is no plan") {
		t.Errorf("got %v", err)
	}
	write := func(text string) {
		if err := os.WriteFile(p.File.Path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("# Plan\n\nthe goal\n")
	if got, err := p.Read(); err != nil || got != (Plan{}) {
		t.Errorf("first: %+v, %v", got, err)
	}
	if err := p.SetStatus(t.Context(), board.PlanApproved); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Read(); err != nil || got.Status != board.PlanApproved || got.Diff != "" && !strings.HasPrefix(got.Diff, "---") {
		t.Errorf("approved: %+v, %v", got, err)
	}
	write("---\nstatus: approved\n---\n\n# Plan\n\nthe other goal\n")
	if got, err := p.Read(); err != nil || !strings.Contains(got.Diff, "-the goal\n+the other goal\n") {
		t.Errorf("changed: %+v, %v", got, err)
	}
	if got, err := p.Read(); err != nil || got.Diff != "" {
		t.Errorf("told twice: %+v, %v", got, err)
	}
	write("---\nstatus: nonsense\n---\n")
	if _, err := p.Read(); err == nil {
		t.Error("a wrong status was taken")
	}
}

// An agent's tick is not the last word: its own is put back for the check, that of
// another is put back and told.
func TestAgentsTicksAreTakenBack(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"ada", "bob"} {
		w := newWorld(Settings{}, []string{"ada", "bob"}, Task{ID: "a", Text: "a", State: TaskOpen, Names: []string{"ada"}, Check: "true"})
		w.ready("ada", "bob")
		w.readBoard()
		w.drive()
		w.told = nil
		w.task("a").State, w.task("a").By = TaskDone, who
		w.readBoard()
		w.readBoard() // read once more before it is put back
		back := w.take(t, EffectMark)
		if back.State != TaskActive || back.Task != "a" {
			t.Fatalf("%s: %+v", who, back)
		}
		w.task("a").By = ""
		w.do(back, Result{OK: true})
		if got := kinds(w.pending); (who == "bob") != (got == "send bob") || who == "ada" && got != "" {
			t.Errorf("%s ticked: %s", who, got)
		}
		w.drive()
		w.turn("ada", "a", pty.TurnDone)
		if e := w.take(t, EffectCheck); e.Task != "a" {
			t.Errorf("%s: the check is of %s", who, e.Task)
		}
	}
}
