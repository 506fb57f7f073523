package orchestrator

import (
	"reflect"
	"strings"
	"testing"

	"muntin/recipes"
)

func recipeOf(t *testing.T, text string) *recipes.Recipe {
	t.Helper()
	r, err := recipes.Parse("test", []byte("muntin: 1\nname: x\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckMode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"agents: [{name: a}]\n": "",
		"agents: [{name: a, adapter: claude, command: [claude]}]\n":                          "",
		"mode: pipeline\nagents: [{name: a}]\n":                                              "",
		"mode: race\nagents: [{name: a, isolation: shared}]\n":                               `"isolation: shared": in mode race`,
		"mode: pipeline\nagents: [{name: a}, {name: b, depends_on: [a], isolation: none}]\n": `agent b has "isolation: none"`,
		"mode: review\nagents: [{name: a}, {name: b, role: reviewer, isolation: none}]\n":    "",
		"roles: {r: {adapter: codex}}\nagents: [{name: a, role: r}]\n":                       "",
		"agents: [{name: a, adapter: generic}]\n":                                            "the adapter generic is of no program of its own",
	} {
		err := CheckMode(recipeOf(t, text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestNotCarriedOutKeys makes sure that the list names keys that there are.
func TestNotCarriedOutKeys(t *testing.T) {
	t.Parallel()
	r := recipeOf(t, `max_parallel: 2
limits: {turns: 1, tokens: 1, cost: 1, time: 1h, memory: 1GB, processes: 1}
stall: {after: 1m, nudges: 2}
worktree: {from: working, copy: [a], link: [b], setup: [c], teardown: [d], ports: 1}
merge: {style: squash}
layout: {panes: 2, style: tiled}
hooks: [{on: ready, run: [a]}]
notify: [{on: [ready], by: bell}]
agents:
  - {name: b}
  - name: a
    thinking: high
    adapter: claude
    command: [claude]
    tools: [read]
    approval: ask
    depends_on: [b]
    ready: {text: x}
    restart: never
    restarts: 1
    limits: {turns: 1, tokens: 1, cost: 1, time: 1h, memory: 1GB, processes: 1}
`)
	got := NotCarriedOut(r)
	if n := len(notCarriedOut()); len(got) != n {
		t.Errorf("%d of %d keys: %q", len(got), n, got)
	}
	if got := NotCarriedOut(recipeOf(t, "check: make\nattempts: 2\nlayout: windows\nagents: [{name: a, count: 2, env: [A]}]\n")); got != nil {
		t.Errorf("keys that are carried out: %q", got)
	}
	if got := NotCarriedOut(recipeOf(t, "roles: {worker: {depends_on: [b]}}\nhooks: [{on: ready, run: [a]}]\nagents: [{name: a}, {name: b, role: assistant}]\n")); !reflect.DeepEqual(got, []string{"hooks"}) {
		t.Errorf("%q", got)
	}
}
