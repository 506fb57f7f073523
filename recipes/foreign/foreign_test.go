package foreign

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"muntin/recipes"
)

const inator = `# ~/.config/tmuxinator/web.yml
name: Web App
root: ~/code/web
pre_window: nvm use 20
defaults: &d
  layout: main-vertical
windows:
  - editor:
      <<: *d
      panes:
        - vim
        - guard: bundle exec guard
        -
  - server: bundle exec rails s -p 3000
  - logs: tail -f log/development.log | grep ERROR
  - two:
      root: sub/dir
      synchronize: after
      panes:
        - - cd x
          - make
`

const muxp = `session_name: 4-pane
start_directory: ./app
before_script: ./setup.sh
windows:
  - window_name: dev window
    layout: tiled
    focus: true
    panes:
      - shell_command:
          - cmd: cd logs
          - ls -al
      - top
      - shell_command: python -m http.server
        start_directory: web
        environment: {A: b}
      - blank
`

const agentMD = `---
name: code-reviewer
description: Expert reviewer. Use after changes.
tools: Read, Grep, Glob, Bash, WebFetch
model: sonnet
color: purple
---

You are a senior reviewer.
Cost is ${money}, see {{x}}.
`

const gooseYAML = `version: "1.0.0"
title: "Fix {{ it }}"
description: Fixes it
instructions: You fix {{ language }} code in {{dir}}.
prompt: Fix {{ count }} bugs. {% if x %}y{% endif %}
parameters:
  - {key: language, input_type: string, requirement: required, description: the language}
  - {key: count, input_type: number, requirement: optional, default: 3, description: how many}
  - {key: kind, input_type: select, options: [a, b], default: c}
  - {key: Bad Key, input_type: string}
extensions:
  - {type: builtin, name: developer}
settings: {goose_provider: openai, goose_model: gpt-5, temperature: 0.2, max_turns: 12}
retry:
  max_retries: 5
  checks:
    - {type: shell, command: make test}
  on_failure: git stash
`

func imported(t *testing.T, format Format, files ...File) (*recipes.Recipe, string) {
	t.Helper()
	if got := Detect(files[0]); got != format {
		t.Errorf("%s is taken for %q", files[0].Name, got)
	}
	r, lost, err := Import(format, files)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.Marshal()
	if err != nil {
		t.Fatalf("%v\n%+v", err, r)
	}
	if strings.Contains(string(text), "${money}") && !strings.Contains(string(text), "$${money}") {
		t.Errorf("a text became a template:\n%s", text)
	}
	return r, strings.Join(lost, "\n")
}

// lists makes sure that each of the words is told of.
func lists(t *testing.T, lost string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(lost, w) {
			t.Errorf("%q is not listed in\n%s", w, lost)
		}
	}
}

func summary(r *recipes.Recipe) []string {
	var out []string
	for _, a := range r.Agents {
		out = append(out, fmt.Sprintf("%s %q %s", a.Name, a.Command, a.Dir))
	}
	return out
}

func TestTmuxinator(t *testing.T) {
	t.Parallel()
	r, lost := imported(t, Tmuxinator, File{"web.yml", []byte(inator)})
	want := []string{
		`editor ["vim"] `, `guard ["bundle" "exec" "guard"] `, `editor-2 ["sh"] `, `server ["bundle" "exec" "rails" "s" "-p" "3000"] `,
		`logs ["sh" "-c" "tail -f log/development.log | grep ERROR"] `, `two ["sh" "-c" "cd x\nmake"] sub/dir`,
	}
	if got := summary(r); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if r.Name != "web-app" || r.Layout != (recipes.Layout{Style: "main-vertical", Panes: 3}) {
		t.Errorf("%s, %+v", r.Name, r.Layout)
	}
	lists(t, lost, "web.yml:3: root: ~/code/web", "pre_window", "defaults", "synchronize", "which window each pane is in")
}

func TestTmuxp(t *testing.T) {
	t.Parallel()
	r, lost := imported(t, Tmuxp, File{"p.yaml", []byte(muxp)})
	want := []string{
		`dev-window ["sh" "-c" "cd logs\nls -al"] `, `dev-window-2 ["top"] `,
		`dev-window-3 ["python" "-m" "http.server"] web`, `dev-window-4 ["sh"] `,
	}
	if got := summary(r); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if r.Name != "4-pane" || r.Layout != (recipes.Layout{Style: "tiled"}) {
		t.Errorf("%s, %+v", r.Name, r.Layout)
	}
	lists(t, lost, "before_script", "focus", "environment", "is sh")
}

func TestSubagents(t *testing.T) {
	t.Parallel()
	second := strings.NewReplacer("code-reviewer", "Bug Finder", "model: sonnet", "model: claude-opus-4-5", "tools: Read, Grep, Glob, Bash, WebFetch\n", "").Replace(agentMD)
	r, lost := imported(t, Subagent, File{"agents/code-reviewer.md", []byte(agentMD)}, File{"agents/b.md", []byte(second)})
	first, next := r.Roles[0], r.Roles[1]
	if first.Name != "code-reviewer" || !reflect.DeepEqual(first.Tools, []string{"read", "grep", "find", "bash"}) || first.Model != "" ||
		!strings.HasPrefix(first.System, "You are a senior reviewer.\nCost is ${money}") {
		t.Errorf("%+v", first)
	}
	if next.Name != "bug-finder" || next.Model != "anthropic/claude-opus-4-5" || next.Tools != nil || len(r.Resolve()) != 2 || r.Resolve()[1].System != next.System {
		t.Errorf("%+v", next)
	}
	lists(t, lost, "code-reviewer.md:4: tools: the built-in agent has no WebFetch", "code-reviewer.md:5: model sonnet", "color")
}

func TestGoose(t *testing.T) {
	t.Parallel()
	r, lost := imported(t, Goose, File{"g.yaml", []byte(gooseYAML)})
	lists(t, lost, "extensions", "temperature", "on_failure", "Bad Key", "default of the parameter kind", "{{dir", "{%")
	if r.Mode != recipes.ModeLoop || r.Loop.Until != "make test" || r.Loop.Max != 5 || r.Agents[0].Model != "openai/gpt-5" || r.Agents[0].Limits.Turns != 12 {
		t.Errorf("%+v, %+v", r, r.Loop)
	}
	text, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"You fix ${language} code in {{dir}}.", "Fix ${count} bugs. {% if x %}", "type: int", "choices: [a, b]"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	bomb := "windows:\n  - a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += fmt.Sprintf("  - %c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	tests := []struct {
		format     Format
		name, text string
		want       string
	}{
		{Tmuxinator, "bomb.yml", bomb, "the aliases grow without end"},
		{Tmuxinator, "self.yml", "windows: &a [*a]\n", "self.yml:1:14: the alias *a stands for nothing before it"},
		{Tmuxinator, "none.yml", "name: x\n", "none.yml:1:1: there are no panes"},
		{Tmuxinator, "tab.yml", "name: x\nwindows:\n\t- a: b\n", "tab.yml:3:1: a tab"},
		{Tmuxp, "w.yaml", "session_name: a\nwindows: [x]\n", "w.yaml:2:11: windows: want keys and values, got text"},
		{Subagent, "a.md", "no front matter", "a.md:1:1: want front matter"},
		{Subagent, "b.md", "---\nname: [a]\n---\nx", "b.md:2:7: name: want text, got a list"},
		{Goose, "g.yaml", "title: x\n", "g.yaml:1:1: there are neither instructions nor a prompt"},
	}
	for _, tt := range tests {
		_, _, err := Import(tt.format, []File{{tt.name, []byte(tt.text)}})
		var e *recipes.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	for _, files := range [][]File{nil, {{"a", nil}, {"b", nil}}} {
		if _, _, err := Import(Goose, files); err == nil {
			t.Errorf("%d files were taken", len(files))
		}
	}
	if Detect(File{"x.yaml", []byte("a: b")}) != "" || Detect(File{"x.yaml", []byte("[")}) != "" {
		t.Error("a file of nobody was recognised")
	}
}

// fuzz makes sure that what is imported is a recipe, whatever the file has in it.
func fuzz(f *testing.F, format Format, name string, seeds ...string) {
	f.Helper()
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, _, err := Import(format, []File{{name, text}})
		if err != nil {
			return
		}
		out, err := r.Marshal()
		if err != nil {
			t.Fatalf("%v\n%+v", err, r)
		}
		if len(out) == 0 {
			t.Fatal("nothing was written")
		}
	})
}

func FuzzTmuxinator(f *testing.F) {
	fuzz(f, Tmuxinator, "p.yml", inator, "windows: [a, b: c, {d: [e]}]")
}
func FuzzTmuxp(f *testing.F)    { fuzz(f, Tmuxp, "p.yaml", muxp) }
func FuzzSubagent(f *testing.F) { fuzz(f, Subagent, "a.md", agentMD, "---\nname: x\n---\n") }
func FuzzGoose(f *testing.F)    { fuzz(f, Goose, "g.yaml", gooseYAML) }
