package recipes

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// everything has every key of the format in it.
const everything = `muntin: 1
name: everything
description: all keys
params:
  n: {type: int, default: 2, description: how many}
  who: {default: you}
  kind: {type: choice, choices: [a, b], default: a}
  where: {type: path, default: sub}
  quick: {type: bool, default: true}
  test: {default: make test}
model: openai/gpt-5
mode: review
review: {role: reader, rounds: 3}
max_parallel: 4
reserve: true
roles:
  builder:
    thinking: high
    tools: [read, edit]
    system: You build for ${who}.
    limits: {turns: 10, cost: 1.5, memory: 2GB}
    restarts: 5
  reader:
    adapter: claude
    approval: edits
    tools: []
agents:
  - name: one
    count: ${n}
    role: builder
    prompt: |
      I am ${agent}, number ${index} of ${run} in ${repo}.
      $${literal} and $$5 and ${kind}.
    dir: ${where}/x
    limits: {turns: 3, processes: 20}
    env: [KEY]
  - name: rita
    role: reader
    command: [claude, --add-dir, "${repo}"]
    isolation: none
    depends_on: [one]
    ready: {text: "> ", check: test -f ready, timeout: 90s}
    restart: never
limits: {tokens: 1000000, cost: 20, time: 2h, memory: 512MiB, processes: 100}
board: {plan: docs/PLAN.md, todo: docs/TODO.md, approve: auto}
checks: {task: "${test}", run: 'echo ${HOME} $${n}'}
attempts: 5
check_timeout: 90s
stall: {after: 0s, nudges: 0}
worktree:
  from: working
  copy: [.env]
  link: [node_modules]
  setup: [npm ci, 'echo "${PATH}"']
  teardown: [make clean]
  ports: 10
merge: {style: squash}
layout: {panes: 4, style: tiled}
hooks:
  - {on: run-done, run: [say, "${run} is done"]}
notify:
  - {on: [needs-person, run-done], by: bell}
  - {on: [limited], by: command, run: [mail, me]}
  - {on: [limited], by: webhook, url: "https://example.com/x"}
`

func TestEverything(t *testing.T) {
	t.Parallel()
	r, err := Parse("everything", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fieldsOf(reflect.TypeFor[Recipe]()) {
		skip := []string{"extends", "check", "race", "loop"} // empty when read, or of other modes
		if !slices.Contains(skip, f.key) && reflect.ValueOf(r).Elem().Field(f.index).IsZero() && f.key != "stall" {
			t.Errorf("the example has no %s", f.key)
		}
	}
	if r.Limits != (Limits{Tokens: 1e6, Cost: 20, Time: 2 * time.Hour, Memory: 512 << 20, Processes: 100}) {
		t.Errorf("limits %+v", r.Limits)
	}
	if r.Checks.Task != "make test" || r.Checks.Run != "echo ${HOME} $${n}" || r.Worktree.Setup[1] != `echo "${PATH}"` {
		t.Errorf("shell lines: %+v, %q", r.Checks, r.Worktree.Setup)
	}
	agents := r.Bind(Vars{Repo: "/r", Run: "night"}).Resolve()
	if len(agents) != 3 {
		t.Fatalf("%d agents", len(agents))
	}
	two := agents[1]
	want := Agent{
		Name: "one-2", Role: "builder", Thinking: "high", Tools: []string{"read", "edit"}, System: "You build for you.",
		Prompt:    "I am one-2, number 2 of night in /r.\n${literal} and $$5 and a.\n",
		Isolation: IsolationWorktree, Dir: "sub/x", Env: []string{"KEY"}, Model: "openai/gpt-5",
		Limits: Limits{Turns: 3, Cost: 1.5, Memory: 2e9, Processes: 20}, Restart: RestartOnFailure, Restarts: 5,
	}
	if !reflect.DeepEqual(two, want) {
		t.Errorf("got  %+v\nwant %+v", two, want)
	}
	rita := agents[2]
	if !reflect.DeepEqual(rita.DependsOn, []string{"one-1", "one-2"}) || rita.Command[2] != "/r" || rita.Tools == nil ||
		rita.Adapter != "claude" || rita.Approval != "edits" || rita.BuiltIn() || *rita.Ready != (Ready{"> ", "test -f ready", 90 * time.Second}) {
		t.Errorf("rita %+v", rita)
	}
	if strings.Contains(r.Agents[1].Command[2], "/r") {
		t.Error("Bind changed the recipe it was called on")
	}
}

func TestEverythingRoundTrip(t *testing.T) {
	t.Parallel()
	r, err := Parse("everything", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []*Recipe{r, r.Resolved(), r.Bind(Vars{"/r", "night"}).Resolved()} {
		out, err := one.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("run.yaml", out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !reflect.DeepEqual(back, one) {
			t.Errorf("%s\ngot  %+v\nwant %+v", out, back, one)
		}
		if !reflect.DeepEqual(back.Resolve(), one.Resolve()) {
			t.Errorf("resolving %s gives other agents", out)
		}
	}
	resolved := r.Bind(Vars{"/r", "night"}).Resolved()
	if !reflect.DeepEqual(resolved.Resolve(), resolved.Agents) {
		t.Error("resolving twice changes something")
	}
}

func TestModeDefaults(t *testing.T) {
	t.Parallel()
	r, err := Parse("x", []byte(start+"mode: race\n"+agents))
	if err != nil || r.Race == nil || *r.Race != (Race{Agents: 3, Choose: ChooseChecks}) {
		t.Errorf("race: %+v, %v", r, err)
	}
	r, err = Parse("x", []byte(start+"mode: loop\nloop: {prompt: go, until: make}\n"+agents))
	if err != nil || *r.Loop != (Loop{Prompt: "go", Until: "make", Max: 20}) {
		t.Errorf("loop: %+v, %v", r, err)
	}
}

func TestRoleLetsAgentSpeakFirst(t *testing.T) {
	t.Parallel()
	src := start + `roles:
  worker: {command: [codex], prompt_file: p.md, env: [A]}
  thinker: {model: a/b, system: think}
agents:
  - name: a
    model: x/y
    prompt: hi
  - name: b
    role: thinker
    command: [sh]
  - name: c
    env: []
`
	r, err := Parse("x", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	got := r.Resolve()
	if got[0].Command != nil || got[0].PromptFile != "" || got[0].Model != "x/y" || !reflect.DeepEqual(got[0].Env, []string{"A"}) {
		t.Errorf("a: %+v", got[0])
	}
	if got[1].Model != "" || got[1].System != "" {
		t.Errorf("b: %+v", got[1])
	}
	if got[2].Command[0] != "codex" || len(got[2].Env) != 0 {
		t.Errorf("c: %+v", got[2])
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"2GB": 2e9, "512MiB": 512 << 20, "1 kb": 1000, "7B": 7, "0B": 0} {
		got, ok := parseSize(text)
		if !ok || got != want {
			t.Errorf("%s = %d, %v, want %d", text, got, ok, want)
		}
		if again, ok := parseSize(formatSize(want)); !ok || again != want {
			t.Errorf("%d is written as %s", want, formatSize(want))
		}
	}
	for _, text := range []string{"", "2", "GB", "-1GB", "1.5GB", "99999999TB", "2 G B", "2GX"} {
		if n, ok := parseSize(text); ok {
			t.Errorf("%q = %d", text, n)
		}
	}
}

func TestTmuxLayoutSum(t *testing.T) {
	t.Parallel()
	// From `tmux display -p '#{window_layout}'` in a window of 80 x 24.
	if !IsLayout("b25d,80x24,0,0,0") || IsLayout("b25e,80x24,0,0,0") || IsLayout("b25d,80x24,0,0,0;rm") {
		t.Error("the checksum of a tmux layout")
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	r, err := Parse("everything", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Commands() {
		got = append(got, c.Where+"="+c.Shell+strings.Join(c.Argv, "|"))
	}
	want := []string{
		"agent rita.command=claude|--add-dir|${repo}", "agent rita.ready.check=test -f ready",
		"checks.task=make test", "checks.run=echo ${HOME} $${n}",
		"worktree.setup=npm ci", `worktree.setup=echo "${PATH}"`, "worktree.teardown=make clean",
		"hooks.run=say|${run} is done", "notify.run=mail|me",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
