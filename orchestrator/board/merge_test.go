package board

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, base, mine, theirs, want string
		agent                          bool // theirs is an agent's
		conflicts                      int
	}{
		{name: "different tasks", base: "- [ ] a ^a\n- [ ] b ^b\n", mine: "- [x] a ^a\n- [ ] b ^b\n", theirs: "- [ ] a ^a\n- [/] b @bob ^b\n",
			want: "- [x] a ^a\n- [/] b @bob ^b\n"},
		{name: "text and state of one task", base: "- [ ] a ^a\n", mine: "- [ ] better words ^a\n", theirs: "- [/] a @bob ^a\n",
			want: "- [/] better words @bob ^a\n"},
		{name: "a person's state beats an agent's", base: "- [ ] a ^a\n", mine: "- [-] a ^a\n", theirs: "- [/] a @bob ^a\n",
			want: "- [-] a @bob ^a\n", agent: true},
		{name: "two persons' states", base: "- [ ] a ^a\n", mine: "- [x] a ^a\n", theirs: "- [-] a ^a\n",
			want: "- [?] a ^a\n  Blocked: one says done, another cancelled\n", conflicts: 1},
		{name: "two persons' texts", base: "- [ ] a ^a\n", mine: "- [ ] one ^a\n", theirs: "- [ ] two ^a\n",
			want: "- [?] one ^a\n  Blocked: the text was changed at the same time to: two\n", conflicts: 1},
		{name: "tokens are a set", base: "- [ ] a #x @ann after:q ^a\n", mine: "- [ ] a @ann after:q !1 ^a\n", theirs: "- [ ] a #x @ann #new after:r ^a\n",
			want: "- [ ] a @ann !1 #new after:r ^a\n"},
		{name: "a check changed on one side", base: "- [ ] a check:\"x\" #t ^a\n", mine: "- [x] a check:\"x\" #t ^a\n", theirs: "- [ ] a check:\"y z\" #t ^a\n",
			want: "- [x] a check:\"y z\" #t ^a\n"},
		{name: "both add", base: "- [ ] a ^a\n", mine: "- [ ] a ^a\n- [ ] b ^b\n", theirs: "- [ ] a ^a\n- [ ] c ^c\n",
			want: "- [ ] a ^a\n- [ ] b ^b\n- [ ] c ^c\n"},
		{name: "removed and not touched", base: "- [ ] a ^a\n- [ ] b ^b\n", mine: "- [ ] b ^b\n", theirs: "- [ ] a ^a\n- [x] b ^b\n",
			want: "- [x] b ^b\n"},
		{name: "removed by a person, claimed by an agent", base: "- [ ] a ^a\n- [ ] b ^b\n", mine: "- [ ] b ^b\n", theirs: "- [/] a @bob ^a\n- [ ] b ^b\n",
			want: "- [ ] b ^b\n", agent: true},
		{name: "removed here, details added there", base: "- [ ] a ^a\n- [ ] b ^b\n", mine: "- [ ] b ^b\n", theirs: "- [ ] a ^a\n  see the log\n- [ ] b ^b\n",
			want: "- [ ] a ^a\n  see the log\n- [ ] b ^b\n"},
		{name: "two removed, one of them changed", base: "- [ ] a ^a\n- [ ] b ^b\n- [ ] c ^c\n", mine: "- [ ] c ^c\n", theirs: "- [ ] a ^a\n  see the log\n- [ ] b ^b\n- [ ] c ^c\n",
			want: "- [ ] a ^a\n  see the log\n- [ ] c ^c\n"},
		{name: "moved and ticked", base: "- [ ] a ^a\n- [ ] b ^b\n- [ ] c ^c\n", mine: "- [ ] b ^b\n- [ ] c ^c\n- [ ] a ^a\n", theirs: "- [x] a ^a\n- [ ] b ^b\n- [ ] c ^c\n",
			want: "- [ ] b ^b\n- [ ] c ^c\n- [x] a ^a\n"},
		{name: "moved by both", base: "- [ ] a ^a\n- [ ] b ^b\n- [ ] c ^c\n- [ ] d ^d\n", mine: "- [ ] b ^b\n- [ ] a ^a\n- [ ] c ^c\n- [ ] d ^d\n", theirs: "- [ ] b ^b\n- [ ] c ^c\n- [ ] d ^d\n- [ ] a ^a\n",
			want: "- [ ] b ^b\n- [ ] c ^c\n- [ ] d ^d\n- [ ] a ^a\n"},
		{name: "ids given meanwhile", base: "- [ ] write it\n- [ ] read it\n", mine: "- [x] write it\n- [ ] read it\n", theirs: "- [ ] write it ^write-it\n- [/] read it @bob ^read-it\n",
			want: "- [x] write it ^write-it\n- [/] read it @bob ^read-it\n"},
		{name: "ids given meanwhile, other words", base: "- [ ] write it\n- [ ] read it\n", mine: "- [ ] write all of it\n- [ ] read it\n", theirs: "- [/] write it @bob ^write-it\n- [ ] read it ^read-it\n",
			want: "- [/] write all of it @bob ^write-it\n- [ ] read it ^read-it\n"},
		{name: "prose", base: "# T\n\none\ntwo\nthree\n", mine: "# T\n\nONE\ntwo\nthree\n", theirs: "# T\n\none\ntwo\nTHREE\nfour\n",
			want: "# T\n\nONE\ntwo\nTHREE\nfour\n"},
		{name: "one line of prose twice", base: "one\n", mine: "uno\n", theirs: "ein\n", want: "uno\nein\n", conflicts: 1},
		{name: "prose and a task", base: "intro\n\n- [ ] a ^a\n", mine: "Intro.\n\n- [ ] a ^a\n", theirs: "intro\n\n- [x] a ^a\n",
			want: "Intro.\n\n- [x] a ^a\n"},
		{name: "other line ends", base: "- [ ] a ^a\n- [ ] b ^b\n", mine: "- [x] a ^a\r\n- [ ] b ^b\r\n", theirs: "- [ ] a ^a\n- [x] b ^b\n",
			want: "- [x] a ^a\r\n- [x] b ^b\r\n"},
		{name: "no line end at the end", base: "- [ ] a ^a", mine: "- [ ] a ^a\n- [ ] b ^b", theirs: "- [x] a ^a",
			want: "- [x] a ^a\n- [ ] b ^b"},
		{name: "two tasks with one new id", base: "", mine: "- [ ] one ^a\n", theirs: "- [ ] two ^a\n", want: "- [ ] one ^a\n- [ ] two ^two\n"},
		{name: "nested", base: "- [ ] a ^a\n  - [ ] b ^b\n", mine: "- [ ] a ^a\n  - [x] b ^b\n  - [ ] c ^c\n", theirs: "- [ ] a ^a\n  - [ ] b ^b\n    why\n",
			want: "- [ ] a ^a\n  - [x] b ^b\n    why\n  - [ ] c ^c\n"},
	} {
		by := Person
		if c.agent {
			by = Agent
		}
		got, err := Merge([]byte(c.base), Side{[]byte(c.mine), Person}, Side{[]byte(c.theirs), by})
		if err != nil || string(got.Text) != c.want || len(got.Conflicts) != c.conflicts {
			t.Errorf("%s: %v, %v\ngot\n%s\nwant\n%s", c.name, err, got.Conflicts, got.Text, c.want)
		}
	}
}

// author draws edits of one side of a merge, and notes what must be in the outcome.
type author struct {
	name    string
	b       *Board
	n       int
	touched map[string]bool // ids
	added   []string        // lines that nobody else has
}

func (a *author) edit(t *rapid.T) {
	var ids []string
	for _, task := range a.b.tasks {
		if task.ID != "" && !strings.HasPrefix(task.ID, a.name) {
			ids = append(ids, task.ID)
		}
	}
	kind := rapid.IntRange(0, 5).Draw(t, "edit")
	if len(ids) == 0 {
		kind = 5
	}
	a.n++
	mark := fmt.Sprintf("%s%d", a.name, a.n)
	switch kind {
	case 0, 1, 2:
		id := rapid.SampledFrom(ids).Draw(t, "id")
		a.touched[id] = true
		var err error
		switch kind {
		case 0:
			err = a.b.SetState(id, rapid.SampledFrom([]State{Claimed, Done, Blocked, Cancelled}).Draw(t, "state"))
		case 1:
			err = a.b.SetText(id, "text "+mark)
		case 2:
			err = a.b.SetClaim(id, a.name)
		}
		if err != nil {
			t.Fatal(err)
		}
	case 3, 4: // a note anywhere: prose, or details of a task
		lines := strings.SplitAfter(string(a.b.Bytes()), "\n")
		at := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
		indent := rapid.SampledFrom([]string{"", "  ", "    "}).Draw(t, "indent")
		text := strings.Join(slices.Insert(lines, at, indent+"note "+mark+"\n"), "")
		next, err := Parse([]byte(text))
		if err != nil || len(next.tasks) != len(a.b.tasks) || next.tasksText() != a.b.tasksText() {
			return // the note changes what is a task: another test's matter
		}
		a.b = next
		a.added = append(a.added, "note "+mark)
	case 5:
		id, err := a.b.AddTask(NewTask{Text: "task " + mark, ID: mark})
		if err != nil {
			t.Fatal(err)
		}
		a.added = append(a.added, "^"+id)
	}
}

// tasksText is the line of each task.
func (b *Board) tasksText() string {
	var s strings.Builder
	for _, t := range b.tasks {
		s.WriteString(b.content(t) + "\n")
	}
	return s.String()
}

func plainBoard(t *rapid.T) string {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"# Head", "prose", "", "task", "task", "  details", "  sub"}), 1, 12).Draw(t, "lines")
	var s strings.Builder
	last := -1
	for i, l := range lines {
		switch {
		case l == "task":
			fmt.Fprintf(&s, "- [ ] task %d ^t%d\n", i, i)
			last = i
		case l == "  sub" && last >= 0:
			fmt.Fprintf(&s, "  - [ ] sub %d ^t%d\n", i, i)
		case l == "prose" || l == "# Head":
			fmt.Fprintf(&s, "\n%s %d\n\n", l, i)
			last = -1
		case l == "  details" && last >= 0:
			fmt.Fprintf(&s, "  details %d\n", i)
		}
	}
	return s.String()
}

// TestMergeKeepsAll: nothing that one of two writers did is lost, nothing is there
// twice, and the result is a board.
func TestMergeKeepsAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := plainBoard(t)
		authors := [2]*author{}
		for i, name := range []string{"ann", "bob"} {
			b, err := Parse([]byte(base))
			if err != nil {
				t.Fatal(err)
			}
			authors[i] = &author{name: name, b: b, touched: map[string]bool{}}
			for range rapid.IntRange(0, 4).Draw(t, "edits") {
				authors[i].edit(t)
			}
		}
		ann, bob := authors[0], authors[1]
		m, err := Merge([]byte(base), Side{ann.b.Bytes(), Person}, Side{bob.b.Bytes(), Person})
		if err != nil {
			t.Fatal(err)
		}
		story := fmt.Sprintf("base\n%s\nann\n%s\nbob\n%s\nmerged\n%s", base, ann.b.Bytes(), bob.b.Bytes(), m.Text)
		out, err := Parse(m.Text)
		if err != nil {
			t.Fatalf("%v\n%s", err, story)
		}
		before, err := Parse([]byte(base))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range authors {
			for _, line := range a.added {
				if n := strings.Count(string(m.Text)+"\n", line+"\n"); n != 1 {
					t.Fatalf("%q is there %d times\n%s", line, n, story)
				}
			}
		}
		for _, was := range before.tasks {
			now, ok := out.Task(was.ID)
			if !ok || slices.ContainsFunc(out.tasks[now.index+1:], func(u Task) bool { return u.ID == was.ID }) {
				t.Fatalf("^%s is there, and once: not so\n%s", was.ID, story)
			}
			for i, a := range authors {
				mine, _ := a.b.Task(was.ID)
				if !a.touched[was.ID] || authors[1-i].touched[was.ID] {
					continue
				}
				if now.Mark != mine.Mark || now.Text != mine.Text || !slices.Equal(now.Assignees, mine.Assignees) {
					t.Fatalf("%s's edit of ^%s is lost\n%s", a.name, was.ID, story)
				}
			}
		}
		for l := range strings.Lines(base) {
			if s := strings.TrimSpace(l); strings.HasPrefix(s, "prose") || strings.HasPrefix(s, "details") {
				if !strings.Contains(string(m.Text), l) {
					t.Fatalf("%q is gone\n%s", l, story)
				}
			}
		}
		again, err := Merge([]byte(base), Side{ann.b.Bytes(), Person}, Side{m.Text, Person})
		if err != nil || len(m.Conflicts) == 0 && string(again.Text) != string(m.Text) {
			t.Fatalf("merged once more: %v\n%s\n%s", err, again.Text, story)
		}
	})
}

// FuzzMerge: any three texts merge to a board, or are refused.
func FuzzMerge(f *testing.F) {
	f.Add([]byte("- [ ] a ^a\n"), []byte("- [x] a ^a\nx"), []byte("\ufeff- [ ] a ^a\r\n  b"))
	f.Add([]byte("a\n\n- [ ] a\n  - [ ] b\n"), []byte("- [ ] b\n"), []byte("- [ ] a ^b\n- [ ] b ^b\n"))
	f.Add([]byte("> - [ ] a ^a\n"), []byte("```\n- [ ] a ^a\n"), []byte("> - [x] a ^a\n> x\n"))
	f.Fuzz(func(t *testing.T, base, mine, theirs []byte) {
		m, err := Merge(base, Side{mine, Person}, Side{theirs, Agent})
		if err != nil {
			return
		}
		if _, err := Parse(m.Text); err != nil && len(m.Text) <= MaxSize {
			t.Fatalf("%v\n%q\n%q\n%q\n%q", err, base, mine, theirs, m.Text)
		}
	})
}
