package recipes

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const head = "muntin: 1\nname: x\n"

const agents = "agents:\n  - name: a\n"

// badRecipes are texts with all the problems they must give, each "line:col: text"
// or the start of it. They are also the seeds of the fuzz test.
var badRecipes = []struct {
	name string
	src  string
	want []string
}{
	{"empty", "", []string{"1:1: the recipe is empty"}},
	{"only a comment", "# nothing\n", []string{"1:1: the recipe is empty"}},
	{"empty mapping", "{}\n", []string{"1:1: the version is missing", "1:1: the recipe has no name", "1:1: a recipe needs at least one agent"}},
	{"a list", "- a\n", []string{"1:1: want keys and values"}},
	{"a word", "demo\n", []string{"1:1: want keys and values"}},
	{"two documents", head + agents + "---\na: b\n", []string{"6:1: a second document"}},
	{"no version", "name: x\n" + agents, []string{`1:1: the version is missing: write "muntin: 1"`}},
	{"future version", "muntin: 2\nname: x\n" + agents, []string{"1:9: recipe version 2: this muntin reads version 1"}},
	{"version as text", "muntin: \"1\"\nname: x\n" + agents, []string{"1:9: want a whole number, got text"}},
	{"no name", "muntin: 1\n" + agents, []string{"1:1: the recipe has no name"}},
	{"bad name", "muntin: 1\nname: My Recipe\n" + agents, []string{`2:7: recipe name "My Recipe"`}},
	{"name is a number", "muntin: 1\nname: 12\n" + agents, []string{"2:7: want text, got the number 12: put it in quotes"}},
	{"unknown key", head + "modle: a/b\n" + agents, []string{`3:1: unknown key "modle": did you mean "model"?`}},
	{"unknown key, far off", head + "frobnicate: 1\n" + agents, []string{`3:1: unknown key "frobnicate": the keys here are muntin, name,`}},
	{"unknown key of an agent", head + agents + "    promt: hi\n", []string{`5:5: unknown key "promt": did you mean "prompt"?`}},
	{"key with hyphen", head + "check-timeout: 5m\n" + agents, []string{`3:1: unknown key "check-timeout": did you mean "check_timeout"?`}},
	{"key twice", head + "name: y\n" + agents, []string{`3:1: duplicate key: mapping key "name" already defined at line 2`}},
	{"key without value", head + "model:\n" + agents, []string{"3:1: model has no value"}},
	{"tab", head + "agents:\n\t- name: a\n", []string{"4:1: a tab: YAML is indented with spaces"}},
	{"open quote", head + "model: \"a\n", []string{"3:8: could not find end character"}},
	{"open list", head + "agents: [{name: a}\n", []string{"3:9: sequence end token"}},
	{"check is a boolean", head + "check: true\n" + agents, []string{"3:8: want text, got the boolean true: put it in quotes"}},
	{"check twice", head + "check: a\nchecks: {task: b}\n" + agents, []string{"3:8: check and checks.task say the same"}},
	{"checks is text", head + "checks: make\n" + agents, []string{"3:9: want keys and values, got text"}},
	{"board of another kind", head + "board: [a]\n" + agents, []string{"3:8: want keys and values, got a list"}},
	{"plan above", head + "board: {plan: ../PLAN.md}\n" + agents, []string{`3:15: board.plan: "../PLAN.md" leaves the repository`}},
	{"todo absolute", head + "board:\n  todo: /etc/passwd\n" + agents, []string{`4:9: board.todo: "/etc/passwd" is not relative`}},
	{"todo hides its way up", head + "board: {todo: a/../../b}\n" + agents, []string{`3:15: board.todo: "a/../../b" leaves the repository`}},
	{"todo in git's folder", head + "board: {todo: .GIT/todo}\n" + agents, []string{`3:15: board.todo: ".GIT/todo" is git's own`}},
	{"todo is a folder", head + "board: {todo: ./}\n" + agents, []string{`3:15: board.todo: want a file`}},
	{"one file for both", head + "board: {plan: ./TODO.md}\n" + agents, []string{`3:15: board.plan and board.todo are the same file`}},
	{"bad duration", head + "check_timeout: 5 minutes\n" + agents, []string{`3:16: want a duration such as 90s, 5m or 1h30m, got "5 minutes"`}},
	{"duration without unit", head + "check_timeout: 300\n" + agents, []string{"3:16: want a duration such as 90s, 5m or 1h30m, got the number 300"}},
	{"negative duration", head + "check_timeout: -5m\n" + agents, []string{"3:16: check_timeout: -5m0s is not between"}},
	{"attempts zero", head + "attempts: 0\n" + agents, []string{"3:11: attempts: 0 is not between 1 and 100"}},
	{"attempts huge", head + "attempts: 99999999999999999999\n" + agents, []string{"3:11: "}},
	{"layout", head + "layout: tilted\n" + agents, []string{`3:9: layout: "tilted" is none of auto, together, windows`}},
	{"model without provider", head + "model: gpt-5\n" + agents, []string{`3:8: model "gpt-5": want provider/id`}},
	{"empty model", head + "model: \"\"\n" + agents, []string{`3:8: model "": want provider/id`}},
	{"no agents", head, []string{"1:1: a recipe needs at least one agent"}},
	{"empty agents", head + "agents: []\n", []string{"3:9: a recipe needs at least one agent"}},
	{"agents as keys", head + "agents:\n  ada: {role: worker}\n", []string{"4:3: agents: want a list of agents, got keys and values"}},
	{"agent is a word", head + "agents: [ada]\n", []string{"3:10: want keys and values, got text", "3:10: the agent has no name"}},
	{"agent without name", head + "agents:\n  - role: worker\n", []string{"4:5: the agent has no name"}},
	{"agent name with spaces", head + "agents:\n  - name: a b\n", []string{`4:11: agent name "a b"`}},
	{"agent name with escape", head + "agents:\n  - name: \"a\\e[0m\"\n", []string{`4:11: agent name "a\x1b[0m"`}},
	{"agent name too long", head + "agents:\n  - name: " + strings.Repeat("a", 33) + "\n", []string{`4:11: agent name "aaa`}},
	{"name too long with count", head + "agents:\n  - name: " + strings.Repeat("a", 31) + "\n    count: 3\n", []string{"4:11: agent name"}},
	{"duplicate agent", head + "agents:\n  - name: a\n  - name: a\n", []string{`5:11: agent name "a" is taken by the agent in line 4`}},
	{"duplicate by count", head + "agents:\n  - name: a-2\n  - name: a\n    count: 3\n", []string{`5:11: agent name "a-2" is taken by the agent in line 4`}},
	{"bad role", head + agents + "    role: Big Boss\n", []string{`5:11: role name "Big Boss"`}},
	{"count zero", head + agents + "    count: 0\n", []string{"5:12: count: 0 is not between 1 and 200"}},
	{"count negative", head + agents + "    count: -3\n", []string{"5:12: count: -3 is not between 1 and 200"}},
	{"count huge", head + agents + "    count: 2000000000\n", []string{"5:12: count: 2000000000 is not between 1 and 200"}},
	{"count as text", head + agents + "    count: many\n", []string{"5:12: want a whole number, got text"}},
	{"too many together", head + "agents:\n  - name: a\n    count: 150\n  - name: b\n    count: 51\n", []string{"4:3: 201 agents are more than the limit of 200"}},
	{"model and command", head + agents + "    model: a/b\n    command: [bash]\n", []string{"6:14: model and command exclude each other"}},
	{"command as text", head + agents + "    command: claude --continue\n", []string{"5:14: command: want a list of words: write [claude, --continue]"}},
	{"command as shell text", head + agents + "    command: bash -c \"a; b\"\n", []string{"5:14: command: want a list of words, such as [bash, -i]"}},
	{"empty command", head + agents + "    command: []\n", []string{"5:14: command: want a program and its arguments"}},
	{"command with a number", head + agents + "    command: [sleep, 5]\n", []string{"5:22: want text, got the number 5: put it in quotes"}},
	{"system for a command", head + agents + "    command: [bash]\n    system: be good\n", []string{"6:13: system is for built-in agents"}},
	{"two prompts", head + agents + "    prompt: a\n    prompt_file: b\n", []string{"6:18: prompt and prompt_file exclude each other"}},
	{"prompt file outside", head + agents + "    prompt_file: ~/p.md\n", []string{`5:18: prompt_file: "~/p.md" is not relative`}},
	{"prompt with escape", head + agents + "    prompt: \"a\\x1b[2J\"\n", []string{"5:13: the text has a control character in it"}},
	{"isolation", head + agents + "    isolation: docker\n", []string{`5:16: isolation: "docker" is none of worktree, shared, none`}},
	{"env with a value", head + agents + "    env: [KEY=secret]\n", []string{`5:11: env: only names, never values: write "KEY"`}},
	{"env no name", head + agents + "    env: [\"A B\"]\n", []string{`5:11: env: "A B" is no variable name`}},
	{"env twice", head + agents + "    env: [A, B, A]\n", []string{"5:17: env: A is named twice"}},
	{"env as text", head + agents + "    env: A\n", []string{"5:10: env: want a list, got text"}},
	{"dir outside", head + agents + "    dir: ../other\n", []string{`5:10: dir: "../other" leaves the repository`}},
	{"dir above", head + agents + "    dir: ..\n", []string{`5:10: dir: ".." leaves the repository`}},
	{"alias", head + "model: &m a/b\n" + agents + "    model: *m\n", []string{"3:8: anchors, aliases", "6:12: anchors, aliases"}},
	{"merge key", head + agents + "    <<: {role: x}\n", []string{"5:5: anchors, aliases"}},
	{"tag", head + "model: !!str a/b\n" + agents, []string{"3:8: tags are not supported"}},
	{"complex key", "? a\n: b\n", []string{"1:1: keys with"}},
	{"not UTF-8", head + "model: \xff\n", []string{"3:1: the text is not UTF-8"}},
	{"deep lists", "a: " + strings.Repeat("[", 50), []string{"1:36: nested too deep"}},
	{"deep entries", strings.Repeat("- ", 50) + "a", []string{"1:65: nested too deep"}},
	{"non-ASCII before the place", head + "agents: [{name: a, prompt: \"äöü 世界\", dir: /x}]\n", []string{`3:43: dir: "/x" is not relative`}},
	{"several at once", "muntin: 1\nname: X\nlayout: no\nagents:\n  - nam: a\n", []string{
		`2:7: recipe name "X"`, `3:9: layout: "no"`, `5:5: unknown key "nam": did you mean "name"?`, "5:5: the agent has no name",
	}},
}

func TestBadRecipes(t *testing.T) {
	t.Parallel()
	for _, tt := range badRecipes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := Parse("bad.yaml", []byte(tt.src))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Parse = %+v, %v, want an *Error", r, err)
			}
			if len(e.Problems) != len(tt.want) {
				t.Fatalf("%d problems, want %d:\n%v", len(e.Problems), len(tt.want), err)
			}
			for i, p := range e.Problems {
				got := fmt.Sprintf("%d:%d: %s", p.Line, p.Col, p.Text)
				if !strings.HasPrefix(got, tt.want[i]) {
					t.Errorf("problem %d is %q, want %q", i+1, got, tt.want[i])
				}
			}
			if strings.Contains(err.Error(), "secret") && !strings.Contains(tt.src, "KEY=secret") {
				t.Errorf("the error repeats a value: %v", err)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	_, err := Parse("dir/x.yaml", []byte(head+agents+"    modle: a/b\n"))
	want := `dir/x.yaml:5:5: unknown key "modle": did you mean "model"?
     5 |     modle: a/b
       |     ^`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	_, err := Parse("big", []byte(head+agents+strings.Repeat("#", MaxSize)))
	if err == nil || !strings.HasPrefix(err.Error(), "big:1:1: the file is larger than") {
		t.Errorf("got %v", err)
	}
}

// TestBomb makes sure that the classic small file that grows without end is refused.
func TestBomb(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c <= 'i'; c++ {
		p := c - 1
		fmt.Fprintf(&b, "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, p, p, p, p, p, p, p, p, p)
	}
	_, err := Parse("bomb", []byte(b.String()))
	if err == nil || len(err.Error()) > 20_000 || !strings.Contains(err.Error(), "more") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	for _, tt := range badRecipes {
		f.Add([]byte(tt.src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := Parse("fuzz", src)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("not an *Error with problems: %v", err)
			}
			lines := strings.Count(string(src), "\n") + strings.Count(string(src), "\r") + 1
			for _, p := range e.Problems {
				if p.Line < 1 || p.Line > lines || p.Col < 1 || p.Text == "" {
					t.Fatalf("a problem without place: %+v", p)
				}
			}
			return
		}
		if n := len(r.Resolve()); n < 1 || n > MaxAgents {
			t.Fatalf("%d agents", n)
		}
		out, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("again", out); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

func BenchmarkLoad200(b *testing.B) {
	var s strings.Builder
	s.WriteString(head + "agents:\n")
	for i := range MaxAgents {
		fmt.Fprintf(&s, "  - name: agent-%d\n    role: worker\n    prompt: say hello\n    env: [A, B]\n    dir: sub/%d\n", i, i)
	}
	src := []byte(s.String())
	for b.Loop() {
		r, err := Parse("x", src)
		if err != nil || len(r.Resolve()) != MaxAgents {
			b.Fatal(err)
		}
	}
}
