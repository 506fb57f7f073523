package simulate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muntin/orchestrator"
	"muntin/recipes"
)

func options(t failer, recipe string, tasks int, seed uint64) Options {
	t.Helper()
	r, err := recipes.Parse("test", []byte("muntin: 1\nname: sim\n"+recipe))
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		State: orchestrator.InitialState(orchestrator.Run{Info: orchestrator.Info{Name: "sim"}}, r.Resolved()),
		Tasks: Board(tasks, seed, 0.4), Seed: seed,
		Turn: time.Minute, Spread: 0.5, Check: 5 * time.Second, Tokens: 1000, Cost: 0.01,
	}
}

type failer interface {
	Helper()
	Fatal(args ...any)
}

// recipesOf are a recipe for each mode.
func recipesOf() map[string]string {
	return map[string]string{
		"workers":  "check: x\nagents: [{name: a, count: 4}]\n",
		"checks":   "mode: race\ncheck: x\nrace: {agents: 2}\nagents: [{name: a, count: 5}]\n",
		"judge":    "mode: race\ncheck: x\nrace: {agents: 3, choose: judge, judge: judge}\nagents: [{name: a, count: 4}, {name: j, role: judge}]\n",
		"person":   "mode: race\ncheck: x\nrace: {agents: 2, choose: person}\nagents: [{name: a, count: 3}]\n",
		"review":   "mode: review\ncheck: x\nagents: [{name: a, count: 3}, {name: r, count: 2, role: reviewer}]\n",
		"loop":     "mode: loop\nloop: {prompt: go on, until: x, max: 5}\nagents: [{name: a, count: 2}]\n",
		"pipeline": "mode: pipeline\ncheck: x\nagents: [{name: p}, {name: b, count: 2, depends_on: [p]}, {name: t, depends_on: [b]}]\n",
	}
}

func TestEveryModeEndsWithAllDone(t *testing.T) {
	t.Parallel()
	for name, recipe := range recipesOf() {
		o := options(t, recipe, 30, 7)
		o.Person = time.Hour
		report, err := Run(t.Context(), o)
		if err != nil || report.Phase != orchestrator.PhaseDone {
			t.Errorf("%s: %v %+v", name, err, report)
		}
		if report.Tasks["done"] == 0 || report.Busy <= 0 || report.Tokens == 0 {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	t.Parallel()
	for name, recipe := range recipesOf() {
		o := options(t, recipe, 40, 3)
		o.Fail, o.Crash, o.Limit, o.Conflict, o.Changes, o.Unclear = 0.3, 0.1, 0.05, 0.1, 0.3, 0.1
		var texts []string
		for range 2 {
			report, err := Run(t.Context(), o)
			text, _ := json.Marshal(report)
			texts = append(texts, fmt.Sprint(string(text), err))
		}
		if texts[0] != texts[1] {
			t.Errorf("%s:\n%s\n%s", name, texts[0], texts[1])
		}
		o.Seed++
		if report, _ := Run(t.Context(), o); report.Steps == 0 {
			t.Errorf("%s: another seed: %+v", name, report)
		}
	}
}

// TestNoModeHangsOrBreaks plays all that can go wrong, in all modes: Run fails when
// a state is not as it must be, and when the run stops while something can be done.
func TestNoModeHangsOrBreaks(t *testing.T) {
	t.Parallel()
	modes := recipesOf()
	names := []string{"workers", "checks", "judge", "person", "review", "loop", "pipeline"}
	rapid.Check(t, func(t *rapid.T) {
		recipe := modes[rapid.SampledFrom(names).Draw(t, "mode")]
		for _, extra := range []string{"max_parallel: 2\n", "limits: {turns: 20}\n", "reserve: true\n", "attempts: 1\n"} {
			if rapid.Bool().Draw(t, strings.TrimSpace(extra)) {
				recipe += extra
			}
		}
		o := options(t, recipe, rapid.IntRange(0, 25).Draw(t, "tasks"), rapid.Uint64().Draw(t, "seed"))
		chance := func(name string) float64 { return float64(rapid.IntRange(0, 10).Draw(t, name)) / 12 }
		o.Fail, o.Crash, o.Limit, o.Conflict = chance("fail"), chance("crash"), chance("limit"), chance("conflict")
		o.Changes, o.Unclear, o.Slow = chance("changes"), chance("unclear"), chance("slow")
		if rapid.Bool().Draw(t, "person") {
			o.Person = time.Hour
		}
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAReplayDecidesAlike reads back what happened, as a resumed run does from its
// journal: every step has to decide the same.
func TestAReplayDecidesAlike(t *testing.T) {
	t.Parallel()
	for name, recipe := range recipesOf() {
		o := options(t, recipe, 15, 11)
		o.Fail, o.Crash, o.Limit, o.Conflict, o.Changes, o.Unclear, o.Person = 0.3, 0.15, 0.05, 0.1, 0.3, 0.2, time.Hour
		state, step := o.State, 0
		o.Seen = func(in orchestrator.Input, effects []orchestrator.Effect) {
			step++
			line, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			var read orchestrator.Input
			if err := json.Unmarshal(line, &read); err != nil {
				t.Fatal(err)
			}
			var again []orchestrator.Effect
			state, again = orchestrator.Reduce(state, read)
			a, _ := json.Marshal(effects)
			b, _ := json.Marshal(again)
			if string(a) != string(b) {
				t.Fatalf("%s: step %d was\n%s\nand is\n%s", name, step, a, b)
			}
		}
		if _, err := Run(t.Context(), o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABudgetIsOverrunByNoMoreThanTheTurnsUnderWay(t *testing.T) {
	t.Parallel()
	o := options(t, "limits: {turns: 10}\nagents: [{name: a, count: 4}]\n", 50, 1)
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	turns := 0
	for _, a := range report.Agents {
		turns += a.Turns
	}
	if turns < 10 || turns > 13 || report.Phase != orchestrator.PhaseWaiting {
		t.Errorf("%d turns, phase %s", turns, report.Phase)
	}
}

func BenchmarkHundredAgentsThousandTasks(b *testing.B) {
	for b.Loop() {
		o := options(b, "check: x\nagents: [{name: a, count: 100}]\n", 1000, 1)
		o.Fail, o.Crash = 0.1, 0.01
		if _, err := Run(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}
