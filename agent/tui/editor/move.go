package editor

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Left goes back by one character.
func (e *Editor) Left() { e.moved(); e.at = e.prev() }

// Right goes on by one character.
func (e *Editor) Right() { e.moved(); e.at = e.next() }

// WordLeft goes to the beginning of the word.
func (e *Editor) WordLeft() { e.moved(); e.at = e.wordLeft() }

// WordRight goes behind the end of the word.
func (e *Editor) WordRight() { e.moved(); e.at = e.wordRight() }

// Home goes to the beginning of the line.
func (e *Editor) Home() { e.moved(); e.at = e.lineStart() }

// End goes to the end of the line.
func (e *Editor) End() { e.moved(); e.at = e.lineEnd() }

// Top goes to the beginning of the text.
func (e *Editor) Top() { e.moved(); e.at = 0 }

// Bottom goes to the end of the text.
func (e *Editor) Bottom() { e.moved(); e.at = len(e.text) }

func (e *Editor) lineStart() int { return strings.LastIndexByte(e.text[:e.at], '\n') + 1 }

func (e *Editor) lineEnd() int {
	if i := strings.IndexByte(e.text[e.at:], '\n'); i >= 0 {
		return e.at + i
	}
	return len(e.text)
}

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_'
}

func (e *Editor) wordLeft() int {
	i, inWord := e.at, false
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(e.text[:i])
		if inWord && !isWord(r) {
			break
		}
		inWord = isWord(r)
		i -= n
		if !inWord && r >= firstPaste && r <= lastPaste {
			break
		}
	}
	return i
}

func (e *Editor) wordRight() int {
	i, inWord := e.at, false
	for i < len(e.text) {
		r, n := utf8.DecodeRuneInString(e.text[i:])
		if inWord && !isWord(r) {
			break
		}
		inWord = isWord(r)
		i += n
		if !inWord && r >= firstPaste && r <= lastPaste {
			break
		}
	}
	return i
}

// Backspace takes the character before the cursor away.
func (e *Editor) Backspace() { e.cut(e.prev(), e.at) }

// Delete takes the character after the cursor away.
func (e *Editor) Delete() { e.cut(e.at, e.next()) }

func (e *Editor) cut(from, to int) {
	if from == to {
		return
	}
	e.change(false)
	e.text = e.text[:from] + e.text[to:]
	e.at = from
}

// KillWordLeft cuts to the beginning of the word, for Yank.
func (e *Editor) KillWordLeft() { e.kill(e.wordLeft(), e.at) }

// KillWordRight cuts to the end of the word, for Yank.
func (e *Editor) KillWordRight() { e.kill(e.at, e.wordRight()) }

// KillToStart cuts to the beginning of the line, for Yank; at the beginning it
// joins the line to the one above.
func (e *Editor) KillToStart() {
	from := e.lineStart()
	if from == e.at {
		from = max(from-1, 0)
	}
	e.kill(from, e.at)
}

// KillToEnd cuts to the end of the line, for Yank; at the end it joins the line
// below.
func (e *Editor) KillToEnd() {
	to := e.lineEnd()
	if to == e.at {
		to = min(to+1, len(e.text))
	}
	e.kill(e.at, to)
}

func (e *Editor) kill(from, to int) {
	if from == to {
		return
	}
	more := e.killing
	text := e.text[from:to]
	back := from < e.at
	e.cut(from, to)
	switch n := len(e.kills); {
	case more && n > 0 && back:
		e.kills[n-1] = text + e.kills[n-1]
	case more && n > 0:
		e.kills[n-1] += text
	default:
		e.kills = append(e.kills, text)
		if len(e.kills) > maxKills {
			e.kills = e.kills[1:]
		}
	}
	e.killing = true
}

// Yank inserts what was cut last.
func (e *Editor) Yank() {
	if len(e.kills) == 0 {
		return
	}
	e.change(false)
	e.turn = 1
	e.insertKill()
}

// YankPop puts what was cut before in the place of what Yank has inserted.
func (e *Editor) YankPop() {
	if e.yank == (span{}) {
		return
	}
	s := e.yank
	e.change(false)
	e.text = e.text[:s.from] + e.text[s.to:]
	e.at = s.from
	e.turn = e.turn%len(e.kills) + 1
	e.insertKill()
}

func (e *Editor) insertKill() {
	text := e.kills[len(e.kills)-e.turn]
	text = strings.Map(func(r rune) rune { // of a text that was sent: its pastes are gone
		if _, ok := e.paste(r); !ok && r >= firstPaste && r <= lastPaste {
			return -1
		}
		return r
	}, text)
	from := e.at
	e.put(text)
	e.yank = span{from, e.at}
}
