// Package editor is a multi-line text field without a screen: the text, the cursor,
// undo, the kill ring, pastes that are shown as a mark, and what was sent before.
// The keys are the caller's.
package editor

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// From what size on a paste is shown as a mark.
const (
	foldLines = 10
	foldBytes = 1000
)

// Limits of what is remembered.
const (
	maxUndo  = 500
	maxKills = 20
)

// Pastes that are folded are one character each of the text, from the supplementary
// private use area A, which nobody types.
const (
	firstPaste = '\U000F0000'
	lastPaste  = '\U000FFFFD'
)

// An Editor is a text that is being written. The zero value is empty.
type Editor struct {
	text   string
	at     int      // the cursor, in bytes
	pastes []string // what firstPaste+i stands for
	column int      // where Up and Down want to be, plus one; 0: where the cursor is

	undo, redo []state
	typing     bool // the last change was typing, which the next one may go on with

	kills   []string // the newest at the end
	killing bool     // the last change was a kill, which the next one adds to
	yank    span     // the text that was yanked last, while nothing came between
	turn    int      // the kill that it is, from the end
}

type state struct {
	text string
	at   int
}

type span struct{ from, to int }

// Text is what was written, with the pastes in it.
func (e *Editor) Text() string {
	var b strings.Builder
	for _, r := range e.text {
		if i, ok := e.paste(r); ok {
			b.WriteString(e.pastes[i])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Empty reports whether nothing was written.
func (e *Editor) Empty() bool { return e.text == "" }

// Before is the text in front of the cursor, with a character for each paste.
func (e *Editor) Before() string { return e.text[:e.at] }

// AtStart and AtEnd tell whether the cursor is in the first or the last line.
func (e *Editor) AtStart() bool { return !strings.Contains(e.text[:e.at], "\n") }

// AtEnd tells whether the cursor is in the last line.
func (e *Editor) AtEnd() bool { return !strings.Contains(e.text[e.at:], "\n") }

// Set puts another text in the place of all, as one change, with the cursor at its
// end.
func (e *Editor) Set(text string) {
	e.change(false)
	e.text = e.clean(text)
	e.at = len(e.text)
}

// Reset empties the editor for the next text, without undo.
func (e *Editor) Reset() { *e = Editor{kills: e.kills} }

// Insert types text.
func (e *Editor) Insert(text string) {
	text = e.clean(text)
	if text == "" {
		return
	}
	e.change(!strings.ContainsAny(text, " \n"))
	e.put(text)
}

// Paste inserts text that came at once; a large one is shown as a mark.
func (e *Editor) Paste(text string) {
	text = e.clean(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"))
	if text == "" {
		return
	}
	e.change(false)
	if strings.Count(text, "\n") < foldLines && len(text) <= foldBytes || firstPaste+rune(len(e.pastes)) > lastPaste {
		e.put(text)
		return
	}
	e.pastes = append(slices.Clip(e.pastes), text)
	e.put(string(firstPaste + rune(len(e.pastes)-1)))
}

// Replace puts text in the place of the last n bytes before the cursor.
func (e *Editor) Replace(n int, text string) {
	e.change(false)
	n = min(n, e.at)
	e.text = e.text[:e.at-n] + e.text[e.at:]
	e.at -= n
	e.put(e.clean(text))
}

func (e *Editor) put(text string) {
	e.text = e.text[:e.at] + text + e.text[e.at:]
	e.at += len(text)
}

// clean takes out what no text holds: control characters, and the characters that
// stand for pastes.
func (e *Editor) clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= firstPaste && r <= lastPaste, r == utf8.RuneError:
			return utf8.RuneError
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, text)
}

// paste tells which paste a character stands for.
func (e *Editor) paste(r rune) (int, bool) {
	i := int(r - firstPaste)
	return i, r >= firstPaste && i < len(e.pastes)
}

// mark is what is shown of a paste.
func (e *Editor) mark(i int) string {
	if n := strings.Count(e.pastes[i], "\n"); n >= foldLines {
		return fmt.Sprintf("[paste #%d +%d lines]", i+1, n+1)
	}
	return fmt.Sprintf("[paste #%d %d chars]", i+1, utf8.RuneCountInString(e.pastes[i]))
}

// change notes the state before a change.
func (e *Editor) change(typing bool) {
	if !typing || !e.typing {
		e.undo = append(e.undo, state{e.text, e.at})
		if len(e.undo) > maxUndo {
			e.undo = e.undo[1:]
		}
	}
	e.redo = nil
	e.moved()
	e.typing = typing
}

// moved ends what goes on over several keys.
func (e *Editor) moved() { e.typing, e.killing, e.column, e.yank = false, false, 0, span{} }

// Undo takes the last change back, and reports whether there was one.
func (e *Editor) Undo() bool { return e.step(&e.undo, &e.redo) }

// Redo makes the change again that Undo took back.
func (e *Editor) Redo() bool { return e.step(&e.redo, &e.undo) }

func (e *Editor) step(from, to *[]state) bool {
	n := len(*from)
	if n == 0 {
		return false
	}
	*to = append(*to, state{e.text, e.at})
	s := (*from)[n-1]
	*from = (*from)[:n-1]
	e.text, e.at = s.text, s.at
	e.moved()
	return true
}

// next and prev are the ends of the characters, as a person sees them, after and
// before the cursor.
func (e *Editor) next() int {
	if e.at >= len(e.text) {
		return len(e.text)
	}
	c, _ := ansi.FirstGraphemeCluster(e.text[e.at:], ansi.GraphemeWidth)
	return e.at + max(len(c), 1)
}

func (e *Editor) prev() int {
	start := strings.LastIndexByte(e.text[:e.at], '\n')
	if start == e.at-1 {
		return max(start, 0)
	}
	last := start + 1
	for i := start + 1; i < e.at; {
		c, _ := ansi.FirstGraphemeCluster(e.text[i:], ansi.GraphemeWidth)
		last = i
		i += max(len(c), 1)
	}
	return last
}
