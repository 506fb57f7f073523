package pty

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// checkText refuses what no agent can be given.
func checkText(m Message) error {
	switch {
	case len(m.Text) > maxText:
		return fmt.Errorf("the text has %d bytes, at most %d can be sent", len(m.Text), maxText)
	case strings.IndexByte(m.Text, 0) >= 0:
		return fmt.Errorf("the text holds a NUL byte")
	case m.Text == "" && m.Kind != KindAbort:
		return fmt.Errorf("the text is empty")
	}
	return nil
}

// pasteBytes makes of a text what is typed for it. Line ends become LF; what
// could act on the terminal or end the paste early is left out: control
// characters but TAB and LF, C1 controls, and the end mark of a paste. A text
// that a terminal in line mode would cut is refused.
func pasteBytes(text string, bracketed, lineMode bool) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(len(text) + len(pasteStart) + len(pasteEnd))
	if bracketed {
		b.WriteString(pasteStart)
	}
	line := 0
	for _, r := range cleanText(text) {
		if r == '\n' {
			line = 0
		} else if line += utf8.RuneLen(r); lineMode && line > lineMax {
			return nil, fmt.Errorf("the program reads whole lines of at most %d bytes, and the text has a longer one", lineMax)
		}
		b.WriteRune(r)
	}
	if bracketed {
		b.WriteString(pasteEnd)
	}
	return b.Bytes(), nil
}

func cleanText(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, pasteEnd, "")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n' // a line's end of old; left out, two lines would become one
		case r == '\t' || r == '\n':
			return r
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, text)
}

// byPerson reports whether bytes from the pane's terminal hold a person's keys,
// and not only what a terminal sends by itself: focus and mouse reports,
// answers to queries. A report that was split counts as keys: that holds a
// message back for a moment, and nothing worse.
func byPerson(b []byte) bool {
	for len(b) > 0 {
		n := report(b)
		if n == 0 {
			return true
		}
		b = b[n:]
	}
	return false
}

// report is the length of a terminal's own report at the start of b, 0 if
// there is none.
func report(b []byte) int {
	if len(b) < 3 || b[0] != 0x1b {
		return 0
	}
	switch b[1] {
	case ']', 'P', '_': // OSC, DCS, APC: answers, up to BEL or ST
		if i := bytes.IndexByte(b, 7); b[1] == ']' && i > 0 {
			return i + 1
		}
		if i := bytes.Index(b, []byte("\x1b\\")); i > 0 {
			return i + 2
		}
		return 0
	case '[':
		return csiReport(b)
	}
	return 0
}

func csiReport(b []byte) int {
	switch b[2] {
	case 'I', 'O': // focus
		return 3
	case 'M': // mouse, X10
		if len(b) >= 6 {
			return 6
		}
		return 0
	}
	end := 2
	for end < len(b) && (b[end] < 0x40 || b[end] > 0x7e) {
		end++
	}
	if end == len(b) {
		return 0
	}
	private := b[2] == '?' || b[2] == '>' || b[2] == '<' || b[2] == '='
	switch final := b[end]; {
	case private, // attributes, modes, mouse (SGR), keyboard flags
		final == 'n', // status
		final == 'R' && bytes.IndexByte(b[:end], ';') > 0, // cursor position
		final == 't' && bytes.IndexByte(b[:end], ';') > 0: // window size
		return end + 1
	}
	return 0
}

// pressesEnter reports whether keys hold an Enter outside a paste.
func pressesEnter(b []byte) bool {
	if i := bytes.Index(b, []byte(pasteStart)); i >= 0 {
		j := bytes.Index(b[i:], []byte(pasteEnd))
		if j < 0 {
			return pressesEnter(b[:i])
		}
		return pressesEnter(b[:i]) || pressesEnter(b[i+j:])
	}
	return bytes.IndexByte(b, '\r') >= 0 || bytes.Contains(b, []byte("\x1b[13u"))
}

// maxLastWords is how much of the agent's last words a turn_end keeps.
const maxLastWords = 4 << 10

// lastWords keeps the end of a text, at most n bytes, between characters: what
// an answer comes to stands there.
func lastWords(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n+len(mark):]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return mark + s
}

// clip cuts a text to at most n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
