package orchestrator

import (
	"testing"
	"time"

	"muntin/agent/pty"
	"muntin/recipes"
)

func (w *world) used(agent, task string, u pty.Usage) {
	w.event(agent, pty.Event{Kind: pty.EventTurnEnd, TurnEnd: &pty.TurnEndInfo{
		Task: task, Reason: pty.TurnDone, Usage: &u, DurationMS: 60_000, Checkpoint: &pty.CheckpointInfo{Tree: "tree"},
		Resources: &pty.Resources{Memory: 1e9, Processes: 4},
	}})
}

func TestBudgetsHoldAgentsAtTheEndOfATurn(t *testing.T) {
	for name, tc := range map[string]struct {
		limit Budget
		text  string
		raise Raise
	}{
		"turns":     {Budget{Turns: 1}, "turns (1)", Raise{"turns", true, 1}},
		"tokens":    {Budget{Tokens: 100}, "tokens (100)", Raise{"tokens", false, 1000}},
		"cost":      {Budget{Cost: 0.5}, "cost ($0.50)", Raise{"cost", true, 1}},
		"time":      {Budget{Time: time.Minute}, "time (1m0s)", Raise{"time", false, 0}},
		"memory":    {Budget{Memory: 1e9}, "memory (1.0 GB)", Raise{"memory", true, 1e9}},
		"processes": {Budget{Processes: 4}, "processes (4)", Raise{"processes", false, 9}},
	} {
		for _, of := range []Scope{{Agent: "ada"}, {Role: RoleWorker}, {}} {
			settings := Settings{Check: "true", Roles: map[string]Budget{}}
			own := Budget{}
			switch {
			case of.Agent != "":
				own = tc.limit
			case of.Role != "":
				settings.Roles[of.Role] = tc.limit
			default:
				settings.Limits = tc.limit
			}
			w := atWork(t, settings, func(a *Agent) { a.Limits = own })
			w.used("ada", "a", pty.Usage{Input: 60, Output: 40, Cost: 0.75})
			w.do(w.take(t, EffectCheck), Result{Error: "exit status 1"})
			mark := w.take(t, EffectMark)
			if want := "budget: " + of.String() + " has reached its limit of " + tc.text; mark.State != TaskWaiting || mark.Why != want {
				t.Errorf("%s of %s: marked %s %q, want %q", name, of, mark.State, mark.Why, want)
			}
			w.do(mark, Result{OK: true})
			if len(w.pending) > 0 || w.state.Phase != PhaseWaiting || w.state.Trouble(w.state.Agents["ada"]).Kind != TroubleBudget {
				t.Errorf("%s of %s: pending %v, phase %s", name, of, w.pending, w.state.Phase)
			}
			req := Request{ID: "r", Budget: &BudgetChange{Of: of, Raises: []Raise{tc.raise}}}
			before := w.state
			w.input(Input{Kind: InputAsked, Request: &req})
			if limits, _ := before.Budget(of); limits != tc.limit {
				t.Errorf("%s of %s: the state before was changed", name, of)
			}
			w.do(w.take(t, EffectMark), Result{OK: true})
			if e := w.take(t, EffectSend); e.Msg != pty.KindFollowUp {
				t.Errorf("%s of %s: raised, it is sent %+v", name, of, e)
			}
			w.input(Input{Kind: InputAsked, Request: &req})
			if limits, _ := w.state.Budget(of); tc.raise.By && limits.Field(name) != tc.limit.Field(name)+tc.raise.To {
				t.Errorf("%s of %s: a request was taken twice: %+v", name, of, limits)
			}
		}
	}
}

func TestLimitsOfARecipe(t *testing.T) {
	t.Parallel()
	recipe, err := recipes.Parse("r.yaml", []byte("muntin: 1\nname: r\nmodel: scripted/demo\nmax_parallel: 2\nstall: {after: 5m, nudges: 3}\n"+
		"limits: {tokens: 1000}\nroles:\n  worker: {limits: {turns: 10, cost: 2}}\n"+
		"agents:\n  - {name: ada, limits: {turns: 4}, restart: never}\n  - {name: bob, restarts: 7}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := InitialState(Run{}, recipe.Resolved())
	ada, bob := s.Agents["ada"], s.Agents["bob"]
	if ada.Limits != (Budget{Turns: 4}) || bob.Limits != (Budget{}) || s.Settings.Roles["worker"] != (Budget{Turns: 10, Cost: 2}) {
		t.Errorf("ada %+v, bob %+v, roles %+v", ada.Limits, bob.Limits, s.Settings.Roles)
	}
	if ada.Restart.Policy != RestartNever || bob.Restart != (Restart{Policy: RestartOnFailure, Most: 7}) {
		t.Errorf("ada %+v, bob %+v", ada.Restart, bob.Restart)
	}
	if s.Settings.MaxParallel != 2 || s.Settings.Stall != (Stall{After: 5 * time.Minute, Nudges: 3}) || s.Settings.Limits.Tokens != 1000 {
		t.Errorf("settings %+v", s.Settings)
	}
}
