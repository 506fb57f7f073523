package board

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestEdits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, src, want string
		edit            func(*Board) error
	}{
		{"tick", "- [ ] a ^a\n", "- [x] a ^a\n", func(b *Board) error { return b.SetState("a", Done) }},
		{"tick a ticked one", "- [X] a ^a\n", "- [X] a ^a\n", func(b *Board) error { return b.SetState("a", Done) }},
		{"state of an odd mark", "- [é] a ^a\r\n", "- [!] a ^a\r\n", func(b *Board) error { return b.SetState("a", Blocked) }},
		{"claim", "- [ ] a ^a\n", "- [ ] a @ada ^a\n", func(b *Board) error { return b.SetClaim("a", "ada") }},
		{"claim, id in the middle", "- [ ] a ^a !1  \n", "- [ ] a ^a !1 @ada  \n", func(b *Board) error { return b.SetClaim("a", "ada") }},
		{"claim of a role's task", "- [ ] a @role after:b ^a\n", "- [ ] a @role @ada after:b ^a\n", func(b *Board) error { return b.SetClaim("a", "ada") }},
		{"claim again", "- [/] a @ada ^a\n", "- [/] a @ada ^a\n", func(b *Board) error { return b.SetClaim("a", "ada") }},
		{"claim back from another", "- [/] a @ada @bob ^a\n", "- [/] a @bob @ada ^a\n", func(b *Board) error { return b.SetClaim("a", "ada") }},
		{"release", "- [/] a @role @ada ^a\n", "- [/] a @role ^a\n", func(b *Board) error { return b.ClearClaim("a", "ada") }},
		{"release twice named", "- [/] a  @ada #x @ada ^a\n", "- [/] a #x ^a\n", func(b *Board) error { return b.ClearClaim("a", "ada") }},
		{"release of nothing", "- [/] ask @ada now ^a\n", "- [/] ask @ada now ^a\n", func(b *Board) error { return b.ClearClaim("a", "ada") }},
		{"ids", "- [ ] Do this, now\n- [ ] Do this, now\n- [ ] 漢字  \n- [ ] a ^x", "- [ ] Do this, now ^do-this-now\n- [ ] Do this, now ^do-this-now-2\n- [ ] 漢字 ^task  \n- [ ] a ^x", ensure},
		{"ids of long texts", "- [ ] The quick brown fox jumps over\n- [ ] " + strings.Repeat("x", 50) + "\n", "- [ ] The quick brown fox jumps over ^the-quick-brown-fox\n- [ ] " + strings.Repeat("x", 50) + " ^" + strings.Repeat("x", 24) + "\n", ensure},
		{"no id for odd marks", "- [a] see below\n", "- [a] see below\n", ensure},
		{"id behind a comment", "- [ ] a @b <!-- c -->\r\n", "- [ ] a @b <!-- c --> ^a\r\n", ensure},
		{"reason", "- [ ] a ^a\n- [ ] b\n", "- [ ] a ^a\n  Blocked: no key\n- [ ] b\n", reason("no key")},
		{"reason at the end", "1. [ ] a ^a", "1. [ ] a ^a\n   Blocked: no key", reason("no key")},
		{"reason in a quote, CRLF", "> - [ ] a ^a\r\n>   more\r\n> x\r\n", "> - [ ] a ^a\r\n>   more\r\n> x\r\n>   Blocked: no key\r\n", reason("no key")},
		{"reason below tabs", "-\t[ ] a ^a\n\n\tmore\n", "-\t[ ] a ^a\n \tBlocked: no key\n\n\tmore\n", reason("no key")},
		{"reason on several lines", "- [ ] a ^a\n", "- [ ] a ^a\n  Blocked: one two three\n", reason("one\n\ttwo \x1b three\n")},
		{"another reason", "- [ ] a ^a\n  Blocked: old\n  more\n", "- [ ] a ^a\n  Blocked: new\n  more\n", reason("new")},
		{"no reason", "- [ ] a ^a\n  Blocked: old\n  more\n", "- [ ] a ^a\n  more\n", reason("")},
		{"no reason, at the end", "- [ ] a ^a\n  Blocked: old", "- [ ] a ^a\n", reason("")},
		{"text", "- [ ] old  text  @b ^a\n", "- [ ] new words  @b ^a\n", func(b *Board) error { return b.SetText("a", " new words ") }},
		{"text where there was none", "- [ ] ^a\n", "- [ ] new ^a\n", func(b *Board) error { return b.SetText("a", "new") }},
		{"add to nothing", "", "- [ ] new ^new\n", add(NewTask{Text: "new"})},
		{"add behind prose", "# T\n\nprose", "# T\n\nprose\n\n- [ ] new ^new", add(NewTask{Text: "new"})},
		{"add to a list", "* [ ] a\n  b\n\nprose\n", "* [ ] a\n  b\n* [ ] new ^new\n\nprose\n", add(NewTask{Text: "new"})},
		{"add to a numbered list, CRLF", "9) [ ] a ^a\r\n", "9) [ ] a ^a\r\n10) [ ] new ^new\r\n", add(NewTask{Text: "new"})},
		{"add without final newline", "- [ ] a", "- [ ] a\n- [ ] new ^new", add(NewTask{Text: "new"})},
		{"add with everything", "- [ ] a ^a\n", "- [ ] a ^a\n- [ ] new !2 #x @ada after:a check:\"a \\\"b\\\"\" ^n\n  one\n\n  two\n", add(NewTask{
			ID: "n", Text: "new", Priority: 2, Tags: []string{"x"}, Assignees: []string{"ada"}, After: []string{"a"}, Check: `a "b"`, Body: "one\n\ntwo\n",
		})},
		{"add a first sub-task", "- [ ] a ^a\n  b\n- [ ] c\n", "- [ ] a ^a\n  b\n  - [ ] new ^new\n- [ ] c\n", add(NewTask{Text: "new", Parent: "a"})},
		{"add another sub-task", "- [ ] a ^a\n    * [ ] b\n- [ ] c\n", "- [ ] a ^a\n    * [ ] b\n    * [ ] new ^new\n- [ ] c\n", add(NewTask{Text: "new", Parent: "a"})},
		{"add a sub-task behind a fence", "- [ ] a ^a\n  ```\n  x\n  ```\n", "- [ ] a ^a\n  ```\n  x\n  ```\n  - [ ] new ^new\n", add(NewTask{Text: "new", Parent: "a"})},
		{"add beside a quote", "> - [ ] a\n", "> - [ ] a\n- [ ] new ^new\n", add(NewTask{Text: "new"})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := parse(t, tt.src)
			if err := tt.edit(b); err != nil {
				t.Fatal(err)
			}
			if got := string(b.Bytes()); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if again := parse(t, tt.want); strings.Join(outline(b), "\n") != strings.Join(outline(again), "\n") {
				t.Errorf("the board has %q, its text %q", outline(b), outline(again))
			}
		})
	}
}

func ensure(b *Board) error { _, err := b.EnsureIDs(); return err }

func reason(s string) func(*Board) error { return func(b *Board) error { return b.SetReason("a", s) } }

func add(n NewTask) func(*Board) error {
	return func(b *Board) error { _, err := b.AddTask(n); return err }
}

func TestEditsRefused(t *testing.T) {
	t.Parallel()
	const src = "- [ ] a ^a\n- [ ] b ^b\n- [ ] c ^b\n"
	tests := []struct {
		name, src, want string
		edit            func(*Board) error
	}{
		{"no such task", src, "no such task: ^z", func(b *Board) error { return b.SetState("z", Done) }},
		{"double id", src, "lines 2 and 3", func(b *Board) error { return b.SetState("b", Done) }},
		{"unknown state", src, "no mark", func(b *Board) error { return b.SetState("a", Unknown) }},
		{"bad name", src, "agent name", func(b *Board) error { return b.SetClaim("a", "A b") }},
		{"empty text", src, "empty", func(b *Board) error { return b.SetText("a", " ") }},
		{"text with a line break", src, "line break", func(b *Board) error { return b.SetText("a", "x\n- [ ] y") }},
		{"text that ends in a token", src, "read as something else", func(b *Board) error { return b.SetText("a", "ask @bob") }},
		{"add with a taken id", src, "taken", add(NewTask{ID: "a", Text: "x"})},
		{"add with a bad id", src, "task name", add(NewTask{ID: "A", Text: "x"})},
		{"add with bad tokens", src, "read as something else", add(NewTask{Text: "x", Assignees: []string{"b c"}})},
		{"add with tasks in its details", src, "read as something else", add(NewTask{Text: "x", Body: "- [ ] y"})},
		{"add to no task", src, "no such task", add(NewTask{Text: "x", Parent: "z"})},
		{"add into an open fence", "# T\n```\n", "open code fence", add(NewTask{Text: "x"})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := parse(t, tt.src)
			err := tt.edit(b)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it\n%s", err, tt.want, b.Bytes())
			}
			if !bytes.Equal(b.Bytes(), []byte(tt.src)) {
				t.Errorf("the board changed: %q", b.Bytes())
			}
		})
	}
	if err := parse(t, src).SetState("z", Done); !errors.Is(err, ErrNoTask) {
		t.Errorf("got %v", err)
	}
}

// TestOthersAreWatched: an edit that would change another task is refused, even
// if the number of tasks stays.
func TestOthersAreWatched(t *testing.T) {
	t.Parallel()
	const src = "- [ ] a ^a\n- [ ] b ^b\n  details\n"
	for _, s := range []splice{
		{span{17, 18}, "B"},       // text
		{span{14, 15}, "x"},       // mark
		{span{22, 22}, "  more "}, // details
		{span{11, 11}, "  "},      // parent
	} {
		b := parse(t, src)
		err := b.apply([]splice{s}, func(next *Board) error { return b.sameOthers(next, func(i int) bool { return i == 0 }) })
		if err == nil || string(b.Bytes()) != src {
			t.Errorf("%+v was not refused: %v, %q", s, err, b.Bytes())
		}
	}
}
