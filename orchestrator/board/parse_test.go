package board

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func parse(t testing.TB, src string) *Board {
	t.Helper()
	b, err := Parse([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// outline is each task as "line mark text < parent's line".
func outline(b *Board) []string {
	var out []string
	for _, t := range b.Tasks() {
		s := fmt.Sprintf("%d [%s] %s", t.Line, t.Mark, t.Text)
		if t.parent >= 0 {
			s += fmt.Sprintf(" < %d", b.tasks[t.parent].Line)
		}
		out = append(out, s)
	}
	return out
}

// TestTaskItems has the cases of GitHub's rendering: what is a box there is a task here.
func TestTaskItems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		src  string
		want []string
	}{
		{"none", "# Title\n\nprose [ ] here\n", nil},
		{"empty", "", nil},
		{"bullets", "- [ ] a\n* [x] b\n+ [X] c\n", []string{"1 [ ] a", "2 [x] b", "3 [X] c"}},
		{"marks", "- [ ] a\n- [/] b\n- [x] c\n- [!] d\n- [-] e\n- [?] f\n", []string{"1 [ ] a", "2 [/] b", "3 [x] c", "4 [!] d", "5 [-] e", "6 [?] f"}},
		{"ordered", "1. [ ] a\n2) [ ] b\n10. [x] c\n", []string{"1 [ ] a", "2 [ ] b", "3 [x] c"}},
		{"nested", "- [ ] a\n  - [ ] b\n    1. [ ] c\n- [ ] d\n", []string{"1 [ ] a", "2 [ ] b < 1", "3 [ ] c < 2", "4 [ ] d"}},
		{"nested below plain items", "- group\n  - [ ] a\n  - [ ] b\n", []string{"2 [ ] a", "3 [ ] b"}},
		{"two lists on a line", "- - [ ] a\n", []string{"1 [ ] a"}},
		{"tabs", "-\t[ ] a\n\t-\t[x] b\n", []string{"1 [ ] a", "2 [x] b < 1"}},
		{"wide gap", "-    [ ] a\n", []string{"1 [ ] a"}},
		{"code by indentation", "-      [ ] a\n\nx\n\n\t- [ ] b\n", nil},
		{"list after blank lines", "- [ ] a\n\n\n- [ ] b\n\n  more\n\n- [ ] c\n", []string{"1 [ ] a", "4 [ ] b", "8 [ ] c"}},
		{"CRLF", "# T\r\n\r\n- [ ] a\r\n  - [x] b ^b\r\n", []string{"3 [ ] a", "4 [x] b < 3"}},
		{"BOM", "\ufeff- [ ] a\n", []string{"1 [ ] a"}},
		{"no final newline", "- [ ] a", []string{"1 [ ] a"}},
		{"fence", "```\n- [ ] no\n```\n- [ ] a\n~~~md\n- [ ] no\n~~~\n", []string{"4 [ ] a"}},
		{"fence in an item", "- [ ] a\n  ```\n  - [ ] no\n  ```\n  - [ ] b\n", []string{"1 [ ] a", "5 [ ] b < 1"}},
		{"open fence", "- [ ] a\n\n```\n- [ ] no\n", []string{"1 [ ] a"}},
		{"HTML comment", "<!--\n- [ ] no\n\n- [ ] no\n-->\n\n- [ ] a\n", []string{"7 [ ] a"}},
		{"HTML block", "<div>\n- [ ] no\n</div>\n\n- [ ] a\n", []string{"5 [ ] a"}},
		{"details as on GitHub", "<details>\n\n- [ ] a\n\n</details>\n", []string{"3 [ ] a"}},
		{"quote", "> - [ ] a\n>   - [ ] b\n\n- > - [ ] c\n", []string{"1 [ ] a", "2 [ ] b < 1", "4 [ ] c"}},
		{"front matter", "---\nlist:\n  - [ ] no\n---\n- [ ] a\n", []string{"5 [ ] a"}},
		{"a rule is no front matter", "---\n- [ ] a\n", []string{"2 [ ] a"}},
		{"not at the start", "- a [ ] b\n- **[ ]** c\n", nil},
		{"no space behind the box", "- [ ]a\n- [x](url)\n- [ ]: u\n", nil},
		{"empty box", "- [ ]\n- [ ] \n- [] a\n- [  ] b\n", nil},
		{"box on the second line", "- a\n  [ ] b\n", nil},
		{"box below an empty marker", "-\n  [ ] a\n", []string{"2 [ ] a"}},
		{"heading", "- # [ ] no\n- [ ] a\n  ===\n", []string{"2 [ ] a"}},
		{"interrupts a paragraph", "prose\n2. [ ] no\n- [ ] a\n", []string{"3 [ ] a"}},
		{"non-ASCII", "- [ ] Größe ändern 漢字 🎉 ^größe\n- [é] odd\n", []string{"1 [ ] Größe ändern 漢字 🎉 ^größe", "2 [é] odd"}},
		{"not UTF-8", "- [ ] a\xff\xfe b\n", []string{"1 [ ] a\xff\xfe b"}},
		{"lazy continuation", "- [ ] a\nlazy\n- [ ] b\n", []string{"1 [ ] a", "3 [ ] b"}},
		{"table and links", "| a |\n|---|\n| - [ ] no |\n\n[a]: b\n- [ ] c\n", []string{"6 [ ] c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := outline(parse(t, tt.src)); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line string
		want Task
		bad  string // of the first problem
	}{
		{line: "Parse it @alice ^parse", want: Task{Text: "Parse it", Assignees: []string{"alice"}, ID: "parse"}},
		{line: "a ^i after:x,y after:z !2 #one #zwei-ö @p @q", want: Task{
			Text: "a", ID: "i", After: []string{"x", "y", "z"}, Priority: 2, Tags: []string{"one", "zwei-ö"}, Assignees: []string{"p", "q"},
		}, bad: "after:x: there is no task ^x"},
		{line: `a check:"go test ./..." ^i`, want: Task{Text: "a", ID: "i", Check: "go test ./..."}},
		{line: `a check:"sh -c \"a \\ b\" ^no" ^i`, want: Task{Text: "a", ID: "i", Check: `sh -c "a \ b" ^no`}},
		{line: "a check:\"`x` @no\" ^i", want: Task{Text: "a", ID: "i", Check: "`x` @no"}},
		{line: "ask @bob about #6 first ^i", want: Task{Text: "ask @bob about #6 first", ID: "i"}},
		{line: "fix crash #12 ^i", want: Task{Text: "fix crash #12", ID: "i"}},
		{line: "run `a @b ^c`", want: Task{Text: "run `a @b ^c`"}},
		{line: "run ``a ` @b`` @d", want: Task{Text: "run ``a ` @b``", Assignees: []string{"d"}}},
		{line: "an open ` quote @d", want: Task{Text: "an open ` quote", Assignees: []string{"d"}}},
		{line: `escaped \@bob \^id`, want: Task{Text: `escaped \@bob \^id`}},
		{line: "a ^i <!-- @no ^no -->", want: Task{Text: "a", ID: "i"}},
		{line: "a <!-- x --> b ^i", want: Task{Text: "a <!-- x --> b", ID: "i"}},
		{line: "^i", want: Task{ID: "i"}},
		{line: "see http://a.b/c:d and std::vector main.go:12", want: Task{Text: "see http://a.b/c:d and std::vector main.go:12"}},
		{line: "open localhost:8080", want: Task{Text: "open localhost:8080"}},
		{line: "a @bob due:friday ^i", want: Task{Text: "a", Assignees: []string{"bob"}, ID: "i", Unknown: []string{"due:friday"}}, bad: "unknown token due:friday"},
		{line: "a !7 ^i", want: Task{Text: "a !7", ID: "i"}, bad: "priority !7: want !1, !2 or !3"},
		{line: "a ^Bad_Id", want: Task{Text: "a ^Bad_Id"}, bad: `task name "Bad_Id"`},
		{line: "a @Alice", want: Task{Text: "a @Alice"}, bad: `agent or role name "Alice"`},
		{line: "a after:x, y", want: Task{Text: "a after:x, y"}, bad: "after:x,: task name is empty"},
		{line: "a check:make", want: Task{Text: "a check:make"}, bad: "check: want check:\"command\""},
		{line: `a check:"open`, want: Task{Text: `a check:"open`}, bad: "check: want check:\"command\""},
		{line: "a depends:x", want: Task{Text: "a depends:x"}, bad: "depends:x is read as text"},
		{line: "!1 fix it", want: Task{Text: "!1 fix it"}, bad: "!1 is read as text"},
		{line: "a after:x now", want: Task{Text: "a after:x now"}, bad: "after:x is read as text"},
		{line: "a ^one ^two", want: Task{Text: "a", ID: "two"}, bad: "a second id: ^two counts, ^one does not"},
	}
	for _, tt := range tests {
		b := parse(t, "- [ ] "+tt.line+"\n")
		got := b.Tasks()[0]
		got = Task{
			ID: got.ID, Text: got.Text, Assignees: got.Assignees, After: got.After, Check: got.Check,
			Priority: got.Priority, Tags: got.Tags, Unknown: got.Unknown,
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", tt.line, got, tt.want)
		}
		problem := ""
		if len(b.Problems) > 0 {
			problem = b.Problems[0].Text
		}
		if (tt.bad == "") != (problem == "") || !strings.HasPrefix(problem, tt.bad) {
			t.Errorf("%s: problem %q, want %q", tt.line, problem, tt.bad)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		src  string
		want []string
	}{
		{"clean", "- [ ] a ^a\n- [x] b after:a ^b\n", nil},
		{"unknown mark", "- [>] äö ^a\n- [ ] b after:a ^b\n", []string{"1:4: unknown mark [>]"}},
		{"a letter may be no task", "- [a] see [b] after:x c\n", []string{"1:4: unknown mark [a]"}},
		{"column in characters", "- [ ] äöü 漢字 @X\n", []string{`1:14: agent or role name "X": want a letter or digit, then at most 31 of a-z, 0-9 and '-'`}},
		{"column behind a BOM", "\ufeff- [ ] a !9\n", []string{"1:9: priority !9: want !1, !2 or !3"}},
		{"double id", "- [ ] a ^x\n- [ ] b ^x\n- [ ] c ^x\n", []string{"2:9: id ^x is used twice: first in line 1", "3:9: id ^x is used twice: first in line 1"}},
		{"unknown dependency", "- [ ] a @b after:nope,a ^a\n", []string{
			"1:12: after:nope: there is no task ^nope", "1:12: these tasks wait for each other: ^a → ^a",
		}},
		{"cancelled dependency", "- [-] a ^a\n- [ ] b after:a\n- [x] c after:a\n", []string{"2:9: after:a: that task is cancelled, so this one never starts"}},
		{"cycle", "- [ ] a after:c ^a\n- [ ] b after:a ^b\n- [ ] c after:b ^c\n- [ ] d after:a ^d\n", []string{
			"1:9: these tasks wait for each other: ^a → ^c → ^b → ^a",
		}},
		{"sub-task waits for its parent", "- [ ] a ^a\n  - [ ] b after:a ^b\n", []string{"1:4: these tasks wait for each other: ^a → ^b → ^a"}},
		{"parent waits for its sub-task", "- [ ] a after:b ^a\n  - [ ] b ^b\n  - [ ] c ^c\n", nil},
		{"through a parent", "- [ ] a after:c ^a\n  - [ ] b ^b\n- [ ] c after:b ^c\n", []string{"2:6: these tasks wait for each other: ^c → ^b → ^c"}},
		{"sub-tasks in order", "- [ ] a ^a\n  - [ ] b ^b\n  - [ ] c after:b ^c\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range parse(t, tt.src).Problems {
				got = append(got, p.String())
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestBodyAndReason(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, src, body, reason string
	}{
		{"none", "- [ ] a\n\nprose\n", "", ""},
		{"one line", "- [ ] a\n  b\n", "b", ""},
		{"deeper than needed", "- [ ] a\n      b\n        c\n", "b\n  c", ""},
		{"paragraphs", "- [ ] a\n\n  b\n\n  c\n\nprose\n", "b\n\nc", ""},
		{"lazy line", "- [ ] a\nb\n", "b", ""},
		{"plain list", "- [ ] a\n  - b\n    - c\n", "- b\n  - c", ""},
		{"around sub-tasks", "- [ ] a\n  one\n  - [ ] b\n    not\n  - [ ] c\n\n  two\n", "one\n\ntwo", ""},
		{"fence to its end", "- [ ] a\n  ```sh\n  x\n\n  y\n  ```\n- [ ] b\n", "```sh\nx\n\ny\n```", ""},
		{"rule", "- [ ] a\n  ***\n- [ ] b\n", "***", ""},
		{"tabs", "-\t[ ] a\n\n\tb\n\t\tc\n", "b\n\tc", ""},
		{"CRLF", "- [ ] a\r\n  b\r\n\r\n  c\r\n", "b\n\nc", ""},
		{"quote", "> - [ ] a\n>   b\n>\n>   c\n", "b\n\nc", ""},
		{"until the next heading", "- [ ] a\n  b\n# c\n", "b", ""},
		{"until a setext heading", "- [ ] a\n  b\n\nc\n===\n", "b", ""},
		{"until an HTML block", "- [ ] a\n  b\n\n<div>\n", "b", ""},
		{"until another list", "- [ ] a\n  b\n* c\n", "b", ""},
		{"reason", "- [!] a\n  Blocked: no key\n\n  b\n", "b", "no key"},
		{"reason below text", "- [!] a\n  b\n  Blocked: no key\n  c\n", "b\nc", "no key"},
		{"no reason in a fence", "- [!] a\n  ```\n  Blocked: x\n  ```\n", "```\nBlocked: x\n```", ""},
		{"reason of a sub-task", "- [ ] a\n  - [!] b\n    Blocked: x\n", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := parse(t, tt.src).Tasks()[0]
			if got.Body != tt.body || got.Reason != tt.reason {
				t.Errorf("body %q, reason %q; want %q, %q", got.Body, got.Reason, tt.body, tt.reason)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want string }{
		{"UTF-16", "\xff\xfe-\x00", "UTF-16"},
		{"large", strings.Repeat("x", MaxSize+1), "limit"},
		{"deep lists", "ok\n" + strings.Repeat("- ", 100_000) + "a", "line 2 is nested"},
		{"deep quotes", strings.Repeat(">", 100_000), "line 1 is nested"},
	}
	for _, tt := range tests {
		if _, err := Parse([]byte(tt.src)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	parse(t, strings.Repeat("=", 100_000)+"\n"+strings.Repeat("-", maxDepth)+"\n")
}

func TestPlanStatus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		src  string
		want Status
		bad  string
	}{
		{"# Plan\n", PlanNone, ""},
		{"", PlanNone, ""},
		{"---\nstatus: draft\n---\n# Plan\n", PlanDraft, ""},
		{"\ufeff---\r\nstatus: \"approved\" # yes\r\nother: [1]\r\n---\r\n", PlanApproved, ""},
		{"---\nstatus: done\n...\n", PlanDone, ""},
		{"---\nother: x\n---\n", PlanNone, ""},
		{"---\n---\n", PlanNone, ""},
		{"---\nstatus: draft\n", PlanNone, ""}, // never closed: no front matter
		{"text\n---\nstatus: draft\n---\n", PlanNone, ""},
		{"---\nstatus: aproved\n---\n", PlanNone, `"aproved" is none of draft, approved and done`},
		{"---\nstatus: [\n---\n", PlanNone, "front matter"},
		{"---\nstatus: draft\n" + strings.Repeat("# long\n", 10_000) + "---\n", PlanNone, "more than 65536"},
	}
	for _, tt := range tests {
		got, err := PlanStatus([]byte(tt.src))
		if got != tt.want || (err == nil) != (tt.bad == "") || err != nil && !strings.Contains(err.Error(), tt.bad) {
			t.Errorf("%q: %q, %v", tt.src, got, err)
		}
	}
}

func TestSetPlanStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ src, want string }{
		{"# Plan\n", "---\nstatus: approved\n---\n\n# Plan\n"},
		{"", "---\nstatus: approved\n---\n"},
		{"---\na: 1\nstatus: draft # yet\nb: 2\n---\n# Plan\n", "---\na: 1\nstatus: approved\nb: 2\n---\n# Plan\n"},
		{"\ufeff---\r\na: 1\r\n---\r\ntext\r\n", "\ufeff---\r\na: 1\r\nstatus: approved\r\n---\r\ntext\r\n"},
		{"---\n---\n", "---\nstatus: approved\n---\n"},
		{"---\nstatus: approved\n...\nx", "---\nstatus: approved\n...\nx"},
	} {
		got, err := SetPlanStatus([]byte(tt.src), PlanApproved)
		if err != nil || string(got) != tt.want {
			t.Errorf("%q: %q, %v", tt.src, got, err)
		}
	}
	for _, src := range []string{"---\nstatus: nonsense\n---\n", "---\nx: {status: draft,\n  y: 1}\n\"status\": draft\n---\n"} {
		if got, err := SetPlanStatus([]byte(src), PlanApproved); err == nil {
			t.Errorf("%q: %q", src, got)
		}
	}
}
