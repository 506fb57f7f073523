package board

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// document draws a Markdown text with tasks in it, of all the shapes that
// people write.
func document(t *rapid.T) string {
	eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
	blocks := rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "# Heading", "prose with @name and #1", "> quote", "```\n- [ ] code\n```", "<!--\n- [ ] hidden\n-->",
			"---", "Heading\n===", "| a | b |\n|---|---|", "    indented code", "<div>\n\n</div>", "[a]: http://b",
		}),
		rapid.Custom(item),
	), 0, 12).Draw(t, "blocks")
	text := strings.Join(blocks, "\n")
	if rapid.Bool().Draw(t, "final newline") {
		text += "\n"
	}
	if rapid.IntRange(0, 9).Draw(t, "bom") == 0 {
		text = "\ufeff" + text
	}
	return strings.ReplaceAll(text, "\n", eol)
}

// item draws one list item, with details now and then.
func item(t *rapid.T) string {
	indent := rapid.SampledFrom([]string{"", "", "", "  ", "    ", "\t", "> "}).Draw(t, "indent")
	marker := rapid.SampledFrom([]string{"- ", "- ", "* ", "+ ", "1. ", "2) ", "-   ", "-\t"}).Draw(t, "marker")
	box := rapid.SampledFrom([]string{"[ ] ", "[ ] ", "[x] ", "[/] ", "[!] ", "[?] ", "[-] ", "[>] ", "", "[ ]\t"}).Draw(t, "box")
	words := rapid.SliceOfN(rapid.SampledFrom([]string{
		"do", "it", "漢字", "`code @x`", "<!-- c -->", "@ada", "@bob", "#tag", "!1", "after:a", "after:b,c", `check:"make it"`,
		"due:now", "^a", "^b", "^c", "^d", "[l](u)", "*em*", `\@x`,
	}), 0, 6).Draw(t, "words")
	line := indent + marker + box + "text " + strings.Join(words, " ")
	details := rapid.SampledFrom([]string{"", "", "", "\nmore", "\n\nmore", "\n```\n- [ ] x\n```", "\nBlocked: why", "\n- plain"}).Draw(t, "details")
	margin := indentOf([]byte(indent + marker))
	return line + strings.ReplaceAll(details, "\n", "\n"+margin)
}

// editAny draws an edit and does it. touched are the first and the last byte
// of the task as it was, or the place where the new one was put.
func editAny(t *rapid.T, b *Board) (what string, touched span, err error) {
	ids := []string{}
	for id := range b.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	kind := rapid.IntRange(0, 6).Draw(t, "edit")
	if len(ids) == 0 || kind == 6 {
		parent := rapid.SampledFrom(append([]string{""}, ids...)).Draw(t, "parent")
		body := rapid.SampledFrom([]string{"", "details", "two\n\nlines"}).Draw(t, "body")
		before := b.Bytes()
		_, err := b.AddTask(NewTask{Text: "added task", Parent: parent, Body: body, Tags: []string{"new"}})
		at := 0
		for at < len(before) && at < len(b.Bytes()) && before[at] == b.Bytes()[at] {
			at++
		}
		return "add to " + parent, span{at, at}, err
	}
	id := rapid.SampledFrom(ids).Draw(t, "id")
	name := rapid.SampledFrom([]string{"ada", "zoe"}).Draw(t, "name")
	task, _ := b.Task(id)
	touched = span{task.pos.lineStart, task.pos.itemEnd}
	switch kind {
	case 0:
		s := rapid.SampledFrom([]State{Open, Claimed, Done, Blocked, Cancelled, Waiting}).Draw(t, "state")
		return "state of " + id, touched, b.SetState(id, s)
	case 1:
		return "claim of " + id, touched, b.SetClaim(id, name)
	case 2:
		return "release of " + id, touched, b.ClearClaim(id, name)
	case 3:
		return "text of " + id, touched, b.SetText(id, "other words")
	case 4:
		r := rapid.SampledFrom([]string{"", "no key", "- [ ] not a task", "<!-- x", "```"}).Draw(t, "reason")
		return "reason of " + id, touched, b.SetReason(id, r)
	}
	_, err = b.EnsureIDs()
	return "ids", span{0, len(b.src)}, err
}

// TestEditsKeepTheRest: whatever is edited, the bytes outside the task stay,
// a refused edit changes nothing, and the text always parses to the board.
func TestEditsKeepTheRest(t *testing.T) {
	t.Parallel()
	refused, done := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		b, err := Parse([]byte(document(t)))
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 5).Draw(t, "edits") {
			before := bytes.Clone(b.Bytes())
			what, touched, err := editAny(t, b)
			after := b.Bytes()
			if err != nil {
				refused++
				if !bytes.Equal(before, after) {
					t.Fatalf("%s was refused (%v), but changed\n%q\nto\n%q", what, err, before, after)
				}
				continue
			}
			done++
			if !bytes.HasPrefix(after, before[:touched.start]) || what != "ids" && !bytes.HasSuffix(after, before[touched.end:]) {
				t.Fatalf("%s changed more than its task:\n%q\n%q", what, before, after)
			}
			again, err := Parse(bytes.Clone(after))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := fmt.Sprint(again.Tasks()), fmt.Sprint(b.Tasks()); got != want {
				t.Fatalf("%s: the board has\n%s\nits text\n%s", what, want, got)
			}
		}
	})
	if refused > done/10 {
		t.Errorf("%d edits were refused, %d done", refused, done)
	}
}

// TestIDsInsertOnly: giving ids only inserts, one token a task.
func TestIDsInsertOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := document(t)
		b, err := Parse([]byte(src))
		if err != nil {
			t.Fatal(err)
		}
		ids, err := b.EnsureIDs()
		if err != nil {
			t.Fatalf("%v\n%q", err, src)
		}
		out := string(b.Bytes())
		for _, id := range ids {
			if strings.Count(out, " ^"+id) < 1 {
				t.Fatalf("id %s is not there: %q", id, out)
			}
			task, _ := b.Task(id)
			out = strings.Replace(out, task.Raw, strings.Replace(task.Raw, " ^"+id, "", 1), 1)
		}
		if out != src {
			t.Fatalf("without the ids\n%q\nwas\n%q", out, src)
		}
		if more, err := b.EnsureIDs(); len(more) > 0 || err != nil {
			t.Fatalf("a second time: %q, %v", more, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"- [ ] a @b after:c check:\"d\" !1 #e ^f\n  Blocked: x\n  - [x] g\n", "\ufeff1. [/] a\r\n\r\n\t- [?] b\r\n",
		"> - [ ] a\n> ```\n", "---\nstatus: x\n---\n- [é] b", "<!--\n- [ ] a\n-->\n- - - [ ] b\n===\n", "-\t[ ]\ta\n\t\t[ ] b", "- [ ] a\\\n-\n\n  b",
	} {
		f.Add([]byte(s), "reason", uint8(0))
	}
	f.Fuzz(func(t *testing.T, src []byte, text string, pick uint8) {
		original := bytes.Clone(src)
		b, err := Parse(src)
		if err != nil {
			return
		}
		for _, task := range b.Tasks() {
			p := task.pos
			order := []int{0, p.lineStart, p.box, p.markStart, p.markEnd, p.textStart, p.textEnd, p.contentEnd, p.paraEnd, p.itemEnd, len(src)}
			if !slices.IsSorted(order) || src[p.box] != '[' || task.Line < 1 {
				t.Fatalf("positions %v of %+v in %q", order, task, src)
			}
		}
		for _, p := range b.Problems {
			if p.Line < 1 || p.Col < 1 || p.Line > len(b.lines) {
				t.Fatalf("problem %v in %q", p, src)
			}
		}
		b.Ready()
		if _, err := b.EnsureIDs(); err != nil || len(b.tasks) == 0 {
			return
		}
		task := b.tasks[int(pick)%len(b.tasks)]
		before := bytes.Clone(b.Bytes())
		edits := []func() error{
			func() error { return b.SetState(task.ID, Done) },
			func() error { return b.SetReason(task.ID, text) },
			func() error { return b.SetText(task.ID, text) },
			func() error { return b.SetClaim(task.ID, "ada") },
			func() error { _, err := b.AddTask(NewTask{Text: text, Parent: task.ID}); return err },
		}
		err = edits[int(pick)%len(edits)]()
		after := b.Bytes()
		if task.ID == "" {
			return // an odd mark: nothing but AddTask, at the end, has worked
		}
		if err != nil && !bytes.Equal(before, after) {
			t.Fatalf("a refused edit (%v) changed %q to %q", err, before, after)
		}
		if !bytes.HasPrefix(after, before[:task.pos.lineStart]) || !bytes.HasSuffix(after, before[task.pos.itemEnd:]) {
			t.Fatalf("an edit of line %d changed more: %q to %q", task.Line, before, after)
		}
		if !bytes.Equal(original, src) {
			t.Fatal("the text that was given in changed")
		}
	})
}

func manyTasks(n int) []byte {
	var s bytes.Buffer
	for i := range n {
		fmt.Fprintf(&s, "- [ ] Do the thing number %d as it is written @ada after:t%d ^t%d\n  with a line of details\n", i, max(i-1, 0), i)
	}
	return s.Bytes()
}

func BenchmarkParse10000(b *testing.B) {
	src := manyTasks(10_000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, err := Parse(src); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEdit200(b *testing.B) {
	board, err := Parse(manyTasks(200))
	if err != nil {
		b.Fatal(err)
	}
	states := []State{Done, Open}
	for i := 0; b.Loop(); i++ {
		if err := board.SetState("t100", states[i%2]); err != nil {
			b.Fatal(err)
		}
	}
}
