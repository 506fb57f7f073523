package tui

import (
	"strings"

	"muntin/internal/term"
)

// A wrapper breaks prose at words. Text may come in pieces: the last word is
// held back until it is known where it ends. Lines that begin with a blank and
// lines in a code fence go through as they are, for the terminal to wrap: what
// a person copies from them must be what the agent wrote.
type wrapper struct {
	col    int    // cells written in the line
	spaces string // between what is written and word
	word   string
	begun  bool // the line has begun: raw is known
	raw    bool // the line goes through as it is
	fence  bool // within a code fence
	head   string
}

// write takes text and returns what can be written of it for a terminal of
// width cells.
func (w *wrapper) write(text string, width int) string {
	var b strings.Builder
	for _, r := range text {
		w.rune(&b, r, width)
	}
	return b.String()
}

func (w *wrapper) rune(b *strings.Builder, r rune, width int) {
	if r == '\n' {
		w.endLine(b, width)
		return
	}
	if !w.begun {
		w.begun, w.raw, w.head = true, w.fence || r == ' ' || r == '\t', ""
	}
	if len(w.head) < 3 {
		w.head += string(r)
	}
	switch {
	case w.raw:
		b.WriteRune(r)
		w.col++
	case r == ' ' || r == '\t':
		w.flush(b, width)
		w.spaces += string(r)
	default:
		w.word += string(r)
	}
}

// flush writes the word that is held back, on a line of its own if it does not
// fit into this one.
func (w *wrapper) flush(b *strings.Builder, width int) {
	if w.word == "" {
		return
	}
	cells := term.Width(w.word)
	if w.col > 0 && w.col+len(w.spaces)+cells > width {
		b.WriteByte('\n')
		w.col, w.spaces = 0, ""
	}
	b.WriteString(w.spaces + w.word)
	w.col += len(w.spaces) + cells
	w.spaces, w.word = "", ""
}

func (w *wrapper) endLine(b *strings.Builder, width int) {
	w.flush(b, width)
	if w.head == "```" || w.head == "~~~" {
		w.fence = !w.fence
	}
	b.WriteByte('\n')
	w.col, w.spaces, w.begun, w.raw, w.head = 0, "", false, false, ""
}

// rest returns what was held back. The line goes on after it.
func (w *wrapper) rest(width int) string {
	var b strings.Builder
	w.flush(&b, width)
	return b.String()
}
