package recipes

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const start = "muntin: 1\nname: x\n"

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
	{"two documents", start + agents + "---\na: b\n", []string{"6:1: a second document"}},
	{"no version", "name: x\n" + agents, []string{`1:1: the version is missing: write "muntin: 1"`}},
	{"future version", "muntin: 2\nname: x\n" + agents, []string{"1:9: recipe version 2: this muntin reads version 1"}},
	{"version as text", "muntin: \"1\"\nname: x\n" + agents, []string{"1:9: want a whole number, got text"}},
	{"no name", "muntin: 1\n" + agents, []string{"1:1: the recipe has no name"}},
	{"bad name", "muntin: 1\nname: My Recipe\n" + agents, []string{`2:7: recipe name "My Recipe"`}},
	{"name is a number", "muntin: 1\nname: 12\n" + agents, []string{"2:7: want text, got the number 12: put it in quotes"}},
	{"unknown key", start + "modle: a/b\n" + agents, []string{`3:1: unknown key "modle": did you mean "model"?`}},
	{"unknown key, far off", start + "frobnicate: 1\n" + agents, []string{`3:1: unknown key "frobnicate": the keys here are muntin, name,`}},
	{"unknown key of an agent", start + agents + "    promt: hi\n", []string{`5:5: unknown key "promt": did you mean "prompt"?`}},
	{"key with hyphen", start + "check-timeout: 5m\n" + agents, []string{`3:1: unknown key "check-timeout": did you mean "check_timeout"?`}},
	{"key twice", start + "name: y\n" + agents, []string{`3:1: duplicate key: mapping key "name" already defined at line 2`}},
	{"key without value", start + "model:\n" + agents, []string{"3:1: model has no value"}},
	{"tab", start + "agents:\n\t- name: a\n", []string{"4:1: a tab: YAML is indented with spaces"}},
	{"open quote", start + "model: \"a\n", []string{"3:8: could not find end character"}},
	{"open list", start + "agents: [{name: a}\n", []string{"3:9: sequence end token"}},
	{"check is a boolean", start + "check: true\n" + agents, []string{"3:8: want text, got the boolean true: put it in quotes"}},
	{"check twice", start + "check: a\nchecks: {task: b}\n" + agents, []string{"3:8: check and checks.task say the same"}},
	{"checks is text", start + "checks: make\n" + agents, []string{"3:9: want keys and values, got text"}},
	{"board of another kind", start + "board: [a]\n" + agents, []string{"3:8: want keys and values, got a list"}},
	{"plan above", start + "board: {plan: ../PLAN.md}\n" + agents, []string{`3:15: board.plan: "../PLAN.md" leaves the repository`}},
	{"todo absolute", start + "board:\n  todo: /etc/passwd\n" + agents, []string{`4:9: board.todo: "/etc/passwd" is not relative`}},
	{"todo hides its way up", start + "board: {todo: a/../../b}\n" + agents, []string{`3:15: board.todo: "a/../../b" leaves the repository`}},
	{"todo in git's folder", start + "board: {todo: .GIT/todo}\n" + agents, []string{`3:15: board.todo: ".GIT/todo" is git's own`}},
	{"todo is a folder", start + "board: {todo: ./}\n" + agents, []string{`3:15: board.todo: want a file`}},
	{"one file for both", start + "board: {plan: ./TODO.md}\n" + agents, []string{`3:15: board.plan and board.todo are the same file`}},
	{"bad duration", start + "check_timeout: 5 minutes\n" + agents, []string{`3:16: want a duration such as 90s, 5m or 1h30m, got "5 minutes"`}},
	{"duration without unit", start + "check_timeout: 300\n" + agents, []string{"3:16: want a duration such as 90s, 5m or 1h30m, got the number 300"}},
	{"negative duration", start + "check_timeout: -5m\n" + agents, []string{"3:16: check_timeout: -5m0s is not between"}},
	{"attempts zero", start + "attempts: 0\n" + agents, []string{"3:11: attempts: 0 is not between 1 and 100"}},
	{"attempts huge", start + "attempts: 99999999999999999999\n" + agents, []string{"3:11: "}},
	{"layout", start + "layout: tilted\n" + agents, []string{`3:9: layout: "tilted" is none of auto, together, windows`}},
	{"model without provider", start + "model: gpt-5\n" + agents, []string{`3:8: model "gpt-5": want provider/id`}},
	{"empty model", start + "model: \"\"\n" + agents, []string{`3:8: model "": want provider/id`}},
	{"no agents", start, []string{"1:1: a recipe needs at least one agent"}},
	{"empty agents", start + "agents: []\n", []string{"3:9: a recipe needs at least one agent"}},
	{"agents as keys", start + "agents:\n  ada: {role: worker}\n", []string{"4:3: agents: want a list of agents, got keys and values"}},
	{"agent is a word", start + "agents: [ada]\n", []string{"3:10: want keys and values, got text", "3:10: the agent has no name"}},
	{"agent without name", start + "agents:\n  - role: worker\n", []string{"4:5: the agent has no name"}},
	{"agent name with spaces", start + "agents:\n  - name: a b\n", []string{`4:11: agent name "a b"`}},
	{"agent name with escape", start + "agents:\n  - name: \"a\\e[0m\"\n", []string{`4:11: agent name "a\x1b[0m"`}},
	{"agent name too long", start + "agents:\n  - name: " + strings.Repeat("a", 33) + "\n", []string{`4:11: agent name "aaa`}},
	{"name too long with count", start + "agents:\n  - name: " + strings.Repeat("a", 31) + "\n    count: 3\n", []string{"4:11: agent name"}},
	{"duplicate agent", start + "agents:\n  - name: a\n  - name: a\n", []string{`5:11: agent name "a" is taken by the agent in line 4`}},
	{"duplicate by count", start + "agents:\n  - name: a-2\n  - name: a\n    count: 3\n", []string{`5:11: agent name "a-2" is taken by the agent in line 4`}},
	{"bad role", start + agents + "    role: Big Boss\n", []string{`5:11: role name "Big Boss"`}},
	{"count zero", start + agents + "    count: 0\n", []string{"5:12: count: 0 is not between 1 and 200"}},
	{"count negative", start + agents + "    count: -3\n", []string{"5:12: count: -3 is not between 1 and 200"}},
	{"count huge", start + agents + "    count: 2000000000\n", []string{"5:12: count: 2000000000 is not between 1 and 200"}},
	{"count as text", start + agents + "    count: many\n", []string{"5:12: want a whole number, got text"}},
	{"too many together", start + "agents:\n  - name: a\n    count: 150\n  - name: b\n    count: 51\n", []string{"4:3: 201 agents are more than the limit of 200"}},
	{"model and command", start + agents + "    model: a/b\n    command: [bash]\n", []string{"6:14: model and command exclude each other"}},
	{"command as text", start + agents + "    command: claude --continue\n", []string{"5:14: command: want a list of words: write [claude, --continue]"}},
	{"command as shell text", start + agents + "    command: bash -c \"a; b\"\n", []string{"5:14: command: want a list of words, such as [bash, -i]"}},
	{"empty command", start + agents + "    command: []\n", []string{"5:14: command: want a program and its arguments"}},
	{"command with a number", start + agents + "    command: [sleep, 5]\n", []string{"5:22: want text, got the number 5: put it in quotes"}},
	{"system for a command", start + agents + "    command: [bash]\n    system: be good\n", []string{"6:13: system is for built-in agents"}},
	{"two prompts", start + agents + "    prompt: a\n    prompt_file: b\n", []string{"6:18: prompt and prompt_file exclude each other"}},
	{"prompt file outside", start + agents + "    prompt_file: ~/p.md\n", []string{`5:18: prompt_file: "~/p.md" is not relative`}},
	{"prompt with escape", start + agents + "    prompt: \"a\\x1b[2J\"\n", []string{"5:13: the text has a control character in it"}},
	{"isolation", start + agents + "    isolation: docker\n", []string{`5:16: isolation: "docker" is none of worktree, shared, none`}},
	{"env with a value", start + agents + "    env: [KEY=secret]\n", []string{`5:11: env: only names, never values: write "KEY"`}},
	{"env no name", start + agents + "    env: [\"A B\"]\n", []string{`5:11: env: "A B" is no variable name`}},
	{"env twice", start + agents + "    env: [A, B, A]\n", []string{"5:17: env: A is named twice"}},
	{"env as text", start + agents + "    env: A\n", []string{"5:10: env: want a list, got text"}},
	{"dir outside", start + agents + "    dir: ../other\n", []string{`5:10: dir: "../other" leaves the repository`}},
	{"dir above", start + agents + "    dir: ..\n", []string{`5:10: dir: ".." leaves the repository`}},
	{"alias", start + "model: &m a/b\n" + agents + "    model: *m\n", []string{"3:8: anchors, aliases", "6:12: anchors, aliases"}},
	{"merge key", start + agents + "    <<: {role: x}\n", []string{"5:5: anchors, aliases"}},
	{"tag", start + "model: !!str a/b\n" + agents, []string{"3:8: tags are not supported"}},
	{"complex key", "? a\n: b\n", []string{"1:1: keys with"}},
	{"not UTF-8", start + "model: \xff\n", []string{"3:1: the text is not UTF-8"}},
	{"deep lists", "a: " + strings.Repeat("[", 50), []string{"1:36: nested too deep"}},
	{"deep entries", strings.Repeat("- ", 50) + "a", []string{"1:65: nested too deep"}},
	{"non-ASCII before the place", start + "agents: [{name: a, prompt: \"äöü 世界\", dir: /x}]\n", []string{`3:43: dir: "/x" is not relative`}},
	{"mode", start + "mode: rave\n" + agents, []string{`3:7: mode: "rave" is none of workers, race`}},
	{"settings of another mode", start + "race: {agents: 3}\n" + agents, []string{`3:7: race is for "mode: race", the mode here is workers`}},
	{"race of one", start + "mode: race\nrace: {agents: 1}\n" + agents, []string{"4:16: race.agents: 1 is not between 2 and 20"}},
	{"judge without role", start + "mode: race\nrace: {choose: judge}\n" + agents, []string{"4:16: race: a judge chooses, and none is named"}},
	{"judge of an unknown role", start + "mode: race\nrace: {choose: judge, judge: wise}\n" + agents, []string{`4:30: race.judge: no agent has the role "wise"`}},
	{"review without reviewer", start + "mode: review\n" + agents, []string{`3:7: review.role: no agent has the role "reviewer"`}},
	{"loop without end", start + "mode: loop\nloop: {prompt: go}\n" + agents, []string{"4:7: mode loop needs loop.prompt and loop.until"}},
	{"unknown role", start + "roles: {builder: {system: x}}\n" + agents + "    role: bilder\n", []string{`6:11: unknown role "bilder": did you mean "builder"?`}},
	{"role with a name", start + "roles: {a: {name: b}}\n" + agents, []string{`3:13: unknown key "name": `}},
	{"role name", start + "roles: {A B: {system: x}}\n" + agents, []string{`3:9: role name "A B"`}},
	{"roles as a list", start + "roles: [a]\n" + agents, []string{"3:8: roles: want names, each with keys and values, got a list"}},
	{"thinking", start + agents + "    thinking: lots\n", []string{`5:15: thinking: "lots" is none of off, minimal`}},
	{"depends on nobody", start + agents + "    depends_on: [b]\n", []string{`5:17: depends_on: there is no agent "b"`}},
	{"depends on itself", start + agents + "    depends_on: [a]\n", []string{"5:17: depends_on goes in a circle: a → a"}},
	{"depends in a circle", start + "agents:\n  - {name: a, depends_on: [b]}\n  - {name: b, depends_on: [c]}\n  - {name: c, depends_on: [a]}\n", []string{"4:27: depends_on goes in a circle: a → b → c → a"}},
	{"ready for nothing", start + agents + "    ready: {timeout: 5s}\n", []string{"5:12: ready: want a text on the screen or a check"}},
	{"restart", start + agents + "    restart: sometimes\n", []string{`5:14: restart: "sometimes" is none of on-failure, never, always`}},
	{"memory", start + "limits: {memory: lots}\n" + agents, []string{`3:18: limits.memory: want a size such as 512MiB or 2GB, got "lots"`}},
	{"cost below nothing", start + "limits: {cost: -1}\n" + agents, []string{"3:16: limits.cost: -1 is not between 0 and"}},
	{"cost is no number", start + "limits: {cost: .nan}\n" + agents, []string{"3:16: limits.cost: .nan is not between"}},
	{"cost as text", start + "limits: {cost: much}\n" + agents, []string{"3:16: want a number, got text"}},
	{"approve of another kind", start + "board: {approve: nobody}\n" + agents, []string{`3:18: board.approve: "nobody" is none of person, auto`}},
	{"copy from above", start + "worktree: {copy: [../other]}\n" + agents, []string{`3:19: worktree.copy: "../other" leaves the repository`}},
	{"worktree from", start + "worktree: {from: main}\n" + agents, []string{`3:18: worktree.from: "main" is none of head, working`}},
	{"merge style", start + "merge: {style: octopus}\n" + agents, []string{`3:16: merge.style: "octopus" is none of merge, squash, rebase`}},
	{"tmux layout with a wrong sum", start + "layout: b25e,80x24,0,0,0\n" + agents, []string{"3:9: layout: the checksum of this tmux layout is wrong"}},
	{"panes of one window", start + "layout: {panes: 3, style: together}\n" + agents, []string{`3:17: layout: panes is for windows of several panes`}},
	{"unknown event", start + "hooks: [{on: lunch, run: [ls]}]\n" + agents, []string{`3:14: on: "lunch" is none of ready, task-done`}},
	{"hook without program", start + "hooks: [{on: ready}]\n" + agents, []string{"3:9: the hook has no run"}},
	{"hook as shell text", start + "hooks: [{on: ready, run: say hi}]\n" + agents, []string{"3:26: run: want a list of words: write [say, hi]"}},
	{"webhook without address", start + "notify: [{on: [ready], by: webhook}]\n" + agents, []string{"3:10: the notification has no url"}},
	{"notify by pigeon", start + "notify: [{on: [ready], by: pigeon}]\n" + agents, []string{`3:28: by: "pigeon" is none of bell, tmux`}},
	{"extends alone", start + "extends: workers\n" + agents, []string{"3:1: a recipe that is read on its own can extend none"}},
	{"parameter without value", start + "params: {n: {type: int}}\n" + agents, []string{"3:10: parameter n has no value: give one with --set n=…"}},
	{"parameter of no type", start + "params: {n: {type: float}}\n" + agents, []string{`3:20: type: "float" is none of int, string, bool, path, choice`}},
	{"parameter with a bad default", start + "params: {n: {type: int, default: two}}\n" + agents, []string{`3:34: parameter n: want a whole number, got "two"`}},
	{"choice without choices", start + "params: {n: {type: choice, default: a}}\n" + agents, []string{"3:10: parameter n is a choice and has no choices"}},
	{"choice that is none", start + "params: {n: {type: choice, default: c, choices: [a, b]}}\n" + agents, []string{`3:37: parameter n: "c" is none of a, b`}},
	{"parameter with the name of a variable", start + "params: {repo: {default: a}}\n" + agents, []string{`3:10: parameter name "repo": ${repo} is a variable`}},
	{"parameter name", start + "params: {A b: {default: a}}\n" + agents, []string{`3:10: parameter name "A b"`}},
	{"path parameter outside", start + "params: {p: {type: path, default: ../x}}\n" + agents, []string{`3:35: parameter p: "../x" leaves the repository`}},
	{"unknown parameter", start + "params: {count: {default: a}}\n" + agents + "    prompt: do ${cuont}\n", []string{"6:13: ${cuont}: there is no such parameter: did you mean ${count}?"}},
	{"a shell's variable", start + agents + "    prompt: see ${HOME}\n", []string{`5:13: "${" begins the name of a parameter, as in ${n}: write "$${"`}},
	{"open parameter", start + agents + "    prompt: see ${n\n", []string{`5:13: "${" begins the name of a parameter`}},
	{"variable without value", start + "hooks: [{on: ready, run: [say, \"${agent}\"]}]\n" + agents, []string{"3:32: ${agent} has no value here"}},
	{"text for a number", start + "params: {n: {default: \"3\"}}\n" + agents + "    count: ${n}\n", []string{"6:12: count: the parameter n is of the type string, want int"}},
	{"parameter outside the range", start + "params: {n: {type: int, default: 999}}\n" + agents + "    count: ${n}\n", []string{"6:12: count: 999 is not between 1 and 200"}},
	{"NUL", start + agents + "    prompt: \"a\\0agent\\0\"\n", []string{"5:13: the text has a control character in it"}},
	{"endless keys", strings.Repeat("a: 1\n", 10_001), []string{"10001:2: more than 10000 keys"}},
	{"endless list", start + "agents:\n  - name: a\n    env: [" + strings.Repeat("A,", 2001) + "]\n", []string{"5:10: 2001 values are more than the limit of 2000"}},
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
	_, err := Parse("dir/x.yaml", []byte(start+agents+"    modle: a/b\n"))
	want := `dir/x.yaml:5:5: unknown key "modle": did you mean "model"?
     5 |     modle: a/b
       |     ^`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	_, err := Parse("big", []byte(start+agents+strings.Repeat("#", MaxSize)))
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
	f.Add([]byte(everything))
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
		again, err := Parse("again", out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !reflect.DeepEqual(again, r) {
			t.Fatalf("%s\ngot  %+v\nwant %+v", out, again, r)
		}
	})
}

func BenchmarkLoad200(b *testing.B) {
	var s strings.Builder
	s.WriteString(start + "agents:\n")
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
