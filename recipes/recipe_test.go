package recipes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"muntin/recipes/builtin"
)

const full = `# a comment
muntin: 1
name: full
description: |
  everything
  at once
model: openai/gpt-5
board: {plan: docs/PLAN.md, todo: docs/TODO.md}
checks:
  task: make test
  run: "make all"
attempts: 5
check_timeout: 90s
layout: windows
agents:
  - name: ada
    count: 2
    role: worker
    prompt: "hello\nada"
    system: be brief
    isolation: shared
    env: [OPENAI_API_KEY, HTTP_PROXY]
    dir: sub/folder
  - name: claude
    role: reviewer
    command: [claude, --add-dir, "a b", "true"]
    prompt_file: prompts/claude.md
  - name: own
    model: anthropic/claude-x
`

func TestParseFull(t *testing.T) {
	t.Parallel()
	r, err := Parse("full.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := &Recipe{
		Version: 1, Name: "full", Description: "everything\nat once\n", Model: "openai/gpt-5",
		Board:  Board{Plan: "docs/PLAN.md", Todo: "docs/TODO.md"},
		Checks: Checks{Task: "make test", Run: "make all"}, Attempts: 5, CheckTimeout: 90 * time.Second, Layout: Layout{Style: LayoutWindows}, Mode: ModeWorkers,
		Stall: Stall{After: 10 * time.Minute, Nudges: 1}, Worktree: Worktree{From: FromHead}, Merge: Merge{Style: MergeMerge},
		Agents: []Agent{
			{
				Name: "ada", Count: 2, Role: "worker", Prompt: "hello\nada", System: "be brief",
				Isolation: IsolationShared, Env: []string{"OPENAI_API_KEY", "HTTP_PROXY"}, Dir: "sub/folder",
			},
			{Name: "claude", Role: "reviewer", Command: []string{"claude", "--add-dir", "a b", "true"}, PromptFile: "prompts/claude.md"},
			{Name: "own", Model: "anthropic/claude-x"},
		},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	agents := r.Resolve()
	var got []string
	for _, a := range agents {
		got = append(got, fmt.Sprintf("%s %s %s %q", a.Name, a.Role, a.Isolation, a.Model))
	}
	wantAgents := []string{
		`ada-1 worker shared "openai/gpt-5"`, `ada-2 worker shared "openai/gpt-5"`,
		`claude reviewer worktree ""`, `own worker worktree "anthropic/claude-x"`,
	}
	if !reflect.DeepEqual(got, wantAgents) {
		t.Errorf("resolved: %q", got)
	}
	if r.Agents[0].Count != 2 {
		t.Error("Resolve changed the recipe")
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	r, err := Parse("x", []byte("\ufeffmuntin: 1\r\nname: x\r\ncheck: sh tests/run.sh\r\nagents:\r\n- name: a\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Board.Plan != "PLAN.md" || r.Board.Todo != "TODO.md" || r.Attempts != 3 || r.CheckTimeout != 5*time.Minute ||
		r.Layout.Style != LayoutAuto || r.Checks.Task != "sh tests/run.sh" || r.Checks.Run != "" {
		t.Errorf("defaults: %+v", r)
	}
}

// needed are values for the parameters of a recipe that have none.
func needed(t *testing.T, name string) map[string]string {
	t.Helper()
	set := map[string]string{}
	params, err := Params(name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range params {
		if p.Default == nil {
			set[p.Name] = "something"
		}
	}
	return set
}

func TestMarshalRoundTrip(t *testing.T) {
	t.Parallel()
	tricky := &Recipe{
		Version: 1, Name: "tricky", Description: "two\nlines: # not a comment\n\n  indented\n", Attempts: 1, CheckTimeout: time.Second, Worktree: Worktree{From: FromHead}, Merge: Merge{Style: MergeMerge},
		Board: Board{Plan: "- a", Todo: "true"}, Layout: Layout{Style: LayoutAuto}, Mode: ModeWorkers, Checks: Checks{Task: `sh -c "a: b" # x`, Run: "false"},
		Agents: []Agent{{
			Name: "1", Role: "2", Command: []string{"true", "12", "1e3", "", "~", "null", "*a", "&b", "!c", "- d", "{", "'", "\"", "a\tb", "é\n"},
			Prompt: " leading\n  and trailing \n\n", Env: []string{"A"},
		}},
	}
	recipes := []*Recipe{tricky, tricky.Resolved()}
	for _, info := range List(Options{}) {
		r, err := Find(info.Name, Options{Set: needed(t, info.Name)})
		if err != nil {
			t.Fatal(err)
		}
		recipes = append(recipes, r, r.Resolved())
	}
	for _, r := range recipes {
		out, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("run.yaml", out)
		if err != nil {
			t.Errorf("%v\n%s", err, out)
			continue
		}
		if !reflect.DeepEqual(back, r) {
			t.Errorf("%s\ngot  %+v\nwant %+v", out, back, r)
		}
	}
}

func TestBuiltins(t *testing.T) {
	t.Parallel()
	infos := List(Options{})
	var names []string
	for _, i := range infos {
		names = append(names, i.Name)
		r, err := Find(i.Name, Options{Set: needed(t, i.Name)})
		if err != nil {
			t.Errorf("%s: %v", i.Name, err)
			continue
		}
		if r.Name != i.Name || i.Description == "" || strings.Contains(i.Description, "\n") {
			t.Errorf("%s: recipe %q, description %q", i.Name, r.Name, i.Description)
		}
	}
	if want := []string{"bugfix", "demo", "docs", "migrate", "mixed", "pair", "plan", "race", "review", "solo", "watch", "workers"}; !reflect.DeepEqual(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	demo, err := Find("demo", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"ada", "grace", "linus"} {
		a := demo.Resolve()[i]
		if a.Name != want || a.Role != RoleWorker || a.Model != "scripted/demo" {
			t.Errorf("demo agent %+v", a)
		}
	}
	if _, err := builtin.Script("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Script of a missing name: %v", err)
	}
	if _, err := builtin.Recipe("../builtin/demo"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Recipe outside: %v", err)
	}
}

func TestDemoFiles(t *testing.T) {
	t.Parallel()
	if src, err := builtin.Script("demo"); err != nil || len(src) == 0 {
		t.Errorf("the demo's script: %d bytes, %v", len(src), err)
	}
	for _, name := range []string{"PLAN.md", "TODO.md", "tests/run.sh"} {
		if _, err := fs.Stat(builtin.DemoProject(), name); err != nil {
			t.Error(err)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	own := filepath.Join(repo, ".muntin", "recipes", "own.yaml")
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, []byte("muntin: 1\nname: own\nagents: [{name: a}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := Find(own, Options{Root: repo}); err != nil || r.Name != "own" {
		t.Errorf("by path: %v", err)
	}
	tests := []struct{ name, want string }{

		{"dmo", "did you mean demo"},
		{"nothing-like-it", "bugfix, demo, docs, migrate, mixed, own, pair, plan, race, review, solo, watch, workers"},
		{"./missing", "./missing does not exist"},
		{"missing.yml", "missing.yml does not exist"},
	}
	for _, tt := range tests {
		_, err := Find(tt.name, Options{Root: repo})
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Find(%q) = %v, want %q in it", tt.name, err, tt.want)
		}
	}
	if _, err := Find("own", Options{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("without a repository: %v", err)
	}
}

func TestFirstPrompt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := filepath.Join(dir, "repo")
	for path, text := range map[string]string{"repo/prompts/a.md": "hello", "secret": "secret"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	if text, err := (Agent{PromptFile: "prompts/a.md"}).FirstPrompt(root); err != nil || text != "hello" {
		t.Errorf("file: %q, %v", text, err)
	}
	if text, err := (Agent{Prompt: "hi"}).FirstPrompt(root); err != nil || text != "hi" {
		t.Errorf("text: %q, %v", text, err)
	}
	for _, path := range []string{"out", "../secret", "missing"} {
		if text, err := (Agent{Name: "ada", PromptFile: path}).FirstPrompt(root); err == nil || !strings.Contains(err.Error(), "ada") {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
}
