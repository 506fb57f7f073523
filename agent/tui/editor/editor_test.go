package editor

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// type keys: a letter types itself, the others are named below.
func press(e *Editor, keys string) {
	for k := range strings.FieldsSeq(keys) {
		switch k {
		case "left":
			e.Left()
		case "right":
			e.Right()
		case "home":
			e.Home()
		case "end":
			e.End()
		case "top":
			e.Top()
		case "bottom":
			e.Bottom()
		case "wleft":
			e.WordLeft()
		case "wright":
			e.WordRight()
		case "back":
			e.Backspace()
		case "del":
			e.Delete()
		case "kend":
			e.KillToEnd()
		case "kstart":
			e.KillToStart()
		case "kwl":
			e.KillWordLeft()
		case "kwr":
			e.KillWordRight()
		case "yank":
			e.Yank()
		case "pop":
			e.YankPop()
		case "undo":
			e.Undo()
		case "redo":
			e.Redo()
		case "up":
			e.Up(20)
		case "down":
			e.Down(20)
		case "nl":
			e.Insert("\n")
		case "sp":
			e.Insert(" ")
		default:
			for _, r := range k {
				e.Insert(string(r))
			}
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"abc left left X":                 "aXbc|1",
		"abc back back":                   "a",
		"abc home del":                    "bc",
		"one sp two wleft X":              "one Xtwo",
		"one sp two home wright X":        "oneX two",
		"one sp two kwl kwl yank":         "one two",
		"one sp two kwl home yank":        "twoone ",
		"ab nl cd kstart kstart":          "ab",
		"ab nl cd up kend":                "abcd",
		"a sp b kwl x home kend yank pop": "b",
		"abc sp d undo undo":              "abc",
		"abc sp d undo undo undo":         "",
		"abc undo redo":                   "abc",
		"abc undo x redo":                 "x",
		"ab nl c up X":                    "aXb\nc",
		"ab nl nl abc up up end X":        "abX\n\nabc",
		"e\u0301 back":                    "",
		"漢字 left back":                    "字",
	} {
		var e Editor
		press(&e, keys)
		want, _, _ = strings.Cut(want, "|")
		if got := e.Text(); got != want {
			t.Errorf("%s: got %q, want %q", keys, got, want)
		}
	}
}

func TestPaste(t *testing.T) {
	t.Parallel()
	var e Editor
	long := strings.Repeat("line\r\n", 119) + "line"
	e.Insert("see ")
	e.Paste(long)
	e.Paste(strings.Repeat("x", 2000))
	e.Insert(" end")
	v := e.View(80)
	if got := strings.Join(v.Lines, "|"); got != "see [paste #1 +120 lines][paste #2 2000 chars] end" {
		t.Errorf("got %q", got)
	}
	if got := e.Text(); got != "see "+strings.ReplaceAll(long, "\r", "")+strings.Repeat("x", 2000)+" end" {
		t.Errorf("the text is %d bytes long", len(got))
	}
	press(&e, "back back back back back")
	if got := e.View(80).Lines[0]; got != "see [paste #1 +120 lines]" {
		t.Errorf("a paste goes as one: %q", got)
	}
	e.Paste("short\x1b[31m\ntext")
	if got := e.View(80).Lines[0]; got != "see [paste #1 +120 lines]short[31m" {
		t.Errorf("got %q", got)
	}
}

func TestView(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"one two three": "one two |three",
		"abcdefghijkl":  "abcdefghij|kl",
		"abcdefghij":    "abcdefghij|",
		"漢字漢字漢字":        "漢字漢字漢|字",
		"a\n\nb":        "a||b",
	} {
		var e Editor
		e.Insert(text)
		v := e.View(10)
		if got := strings.Join(v.Lines, "|"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if v.Y != len(v.Lines)-1 || v.X != ansi.StringWidth(v.Lines[v.Y]) {
			t.Errorf("%q: the cursor is at %d,%d", text, v.X, v.Y)
		}
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h", "history.jsonl")
	for _, text := range []string{"one", "two\nlines", "one"} {
		if err := SaveHistory(t.Context(), path, text); err != nil {
			t.Fatal(err)
		}
	}
	h, err := LoadHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for text, ok := h.Prev("draft"); ok; text, ok = h.Prev("?") {
		got = append(got, text)
	}
	for text, ok := h.Next(); ok; text, ok = h.Next() {
		got = append(got, text)
	}
	if s := strings.Join(got, "|"); s != "one|two\nlines|one|draft" {
		t.Errorf("got %q", s)
	}
	h.Add("three")
	if text, _ := h.Prev(""); text != "three" {
		t.Errorf("got %q", text)
	}
	if h, err := LoadHistory(filepath.Join(t.TempDir(), "none")); err != nil || len(h.texts) != 0 {
		t.Errorf("got %v, %v", h, err)
	}
}

func FuzzEditor(f *testing.F) {
	f.Add("abc def\n漢字", []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, uint8(10))
	f.Fuzz(func(t *testing.T, text string, ops []byte, width uint8) {
		var e Editor
		columns := max(int(width), 2)
		do := []func(){
			e.Left, e.Right, e.WordLeft, e.WordRight, e.Home, e.End, e.Top, e.Bottom, e.Backspace, e.Delete,
			e.KillWordLeft, e.KillWordRight, e.KillToStart, e.KillToEnd, e.Yank, e.YankPop,
			func() { e.Undo() }, func() { e.Redo() }, func() { e.Up(columns) }, func() { e.Down(columns) },
			func() { e.Insert(text) }, func() { e.Paste(strings.Repeat(text+"\n", 12)) }, func() { e.Replace(1, "r") }, func() { e.Set(text) },
		}
		for _, op := range ops[:min(len(ops), 200)] {
			do[int(op)%len(do)]()
			if len(e.text) > 1<<16 {
				return
			}
			if e.at < 0 || e.at > len(e.text) {
				t.Fatalf("the cursor is at %d of %d", e.at, len(e.text))
			}
			v := e.View(columns)
			if v.Y < 0 || v.Y >= len(v.Lines) || v.X < 0 || v.X >= columns && columns > 2 {
				t.Fatalf("the cursor is at %d,%d of %d lines, %d columns", v.X, v.Y, len(v.Lines), columns)
			}
		}
		if strings.ContainsAny(e.Text(), "\x1b\r") {
			t.Fatalf("a control character in %q", e.Text())
		}
	})
}
