package recipes

import (
	"reflect"
	"strings"
	"testing"
)

func resolved(t *testing.T, text string) *Recipe {
	t.Helper()
	r, err := Parse("test", []byte("muntin: 1\nname: x\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return r.Resolved()
}

func TestDiff(t *testing.T) {
	t.Parallel()
	from := resolved(t, `
description: before
check: make
limits: {turns: 5}
roles: {worker: {limits: {cost: 2}, thinking: low}}
agents:
  - {name: w, count: 2}
  - {name: r, role: assistant, tools: [read, grep], env: [A]}
`)
	to := resolved(t, `
description: after
check: make test
max_parallel: 3
notify: [{on: [run-done], by: bell}]
roles: {worker: {limits: {cost: 3}, thinking: high}}
agents:
  - {name: w, count: 1}
  - {name: r, role: assistant, tools: [read], ready: {text: hi}}
  - {name: x, model: a/b}
`)
	got := Diff(from, to)
	want := Delta{
		Added: []string{"x"}, Removed: []string{"w-2"},
		Changed: map[string][]Change{
			"w-1": {{"thinking", "low", "high"}, {"limits.cost", "2", "3"}},
			"r":   {{"tools", "[read, grep]", "[read]"}, {"env", "[A]", ""}, {"ready", "", "text: hi timeout: 1m0s"}},
		},
		Settings: []Change{
			{"max_parallel", "0", "3"}, {"limits.turns", "5", "0"}, {"checks.task", "make", `"make test"`},
			{"notify", "", "- on: [run-done] by: bell"}, {"roles.worker.limits.cost", "2", "3"},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !Diff(to, to).Empty() || !Diff(from, from.Resolved()).Empty() || Diff(from, to).Empty() {
		t.Error("a recipe differs from itself, or others do not")
	}
}

// What a run writes down and reads back is the same.
func TestDiffAfterMarshal(t *testing.T) {
	t.Parallel()
	r := resolved(t, `
model: a/b
worktree: {copy: [x], setup: ["echo ${X}"]}
layout: {panes: 2, style: tiled}
hooks: [{on: ready, run: [a, b]}]
agents: [{name: w, count: 2, prompt: "hi ${agent}", tools: []}, {name: c, command: [sh]}]
`)
	text, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again", text)
	if err != nil {
		t.Fatal(err)
	}
	if d := Diff(r, again.Resolved()); !d.Empty() {
		t.Errorf("%+v", d)
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		agents, role string
		n            int
		want         string
	}{
		"more":           {"[{name: w, count: 2}, {name: r, role: assistant}]", "worker", 4, "w-1 w-2 w-3 w-4 r"},
		"fewer":          {"[{name: w, count: 3}, {name: v, count: 2}]", "worker", 2, "w-1 w-2"},
		"one by name":    {"[{name: ada}, {name: bob}]", "worker", 4, "ada bob bob-2 bob-3"},
		"flat":           {"[{name: w-1}, {name: w-2}]", "worker", 3, "w-1 w-2 w-3"},
		"none left":      {"[{name: w}, {name: r, role: assistant}]", "worker", 0, "r"},
		"no role":        {"[{name: w}]", "judge", 2, "no agent has the role judge"},
		"nobody":         {"[{name: w}]", "worker", 0, "a run has 1 to 200 agents"},
		"too many":       {"[{name: w}]", "worker", 201, "a run has 1 to 200 agents"},
		"is depended on": {"[{name: a}, {name: b}, {name: r, role: assistant, depends_on: [b]}]", "worker", 1, "agent r depends on b, which would go"},
	} {
		r, err := Parse("test", []byte("muntin: 1\nname: x\nagents: "+tc.agents+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err = r.Scale(tc.role, tc.n); err != nil {
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", name, err, tc.want)
			}
			continue
		}
		var names []string
		for _, a := range r.Resolve() {
			names = append(names, a.Name)
		}
		if got := strings.Join(names, " "); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
