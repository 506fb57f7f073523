package tool

import (
	"fmt"
	"strings"

	"muntin/agent"
)

// matches collects what a search shows: the matching lines and the lines around
// them, in order, none twice.
type matches struct {
	limit int
	lines []string
	found int
	more  bool // one more match was seen
	long  bool // a line was cut

	file    string
	context int
	before  []numberedLine // the last lines that are not shown
	shown   int            // the last line of the file that is shown
	after   int            // how many more are to be shown
}

type numberedLine struct {
	n    int
	text string
}

func newMatches(limit int) *matches { return &matches{limit: limit} }

func (m *matches) startFile(name string, context int) {
	m.file, m.context = name, context
	m.before, m.shown, m.after = m.before[:0], 0, 0
}

// line takes the next line of the file. It tells whether to go on.
func (m *matches) line(n int, text []byte, hit bool) bool {
	switch {
	case hit && m.found == m.limit:
		m.more = true
		return false
	case hit:
		m.found++
		for _, b := range m.before {
			m.show(b.n, '-', b.text)
		}
		m.before = m.before[:0]
		m.show(n, ':', m.cut(text))
		m.after = m.context
	case m.after > 0:
		m.after--
		m.show(n, '-', m.cut(text))
	case m.context > 0:
		if len(m.before) == m.context {
			m.before = append(m.before[:0], m.before[1:]...)
		}
		m.before = append(m.before, numberedLine{n, m.cut(text)})
	}
	return true
}

// show adds a line; lines that do not follow each other are kept apart.
func (m *matches) show(n int, mark byte, text string) {
	if m.context > 0 && len(m.lines) > 0 && n != m.shown+1 {
		m.lines = append(m.lines, "--")
	}
	m.shown = n
	m.lines = append(m.lines, fmt.Sprintf("%s%c%d%c %s", m.file, mark, n, mark, text))
}

// cut makes a line short enough to be shown.
func (m *matches) cut(line []byte) string {
	if len(line) <= grepLine {
		return string(line)
	}
	text := strings.ToValidUTF8(string(line[:min(len(line), grepHold)]), "\uFFFD")
	count := 0
	for i := range text {
		if count == grepLine {
			m.long = true
			return text[:i] + "... [truncated]"
		}
		count++
	}
	if len(line) > grepHold {
		m.long = true
		return text + "... [truncated]"
	}
	return text
}

func (m *matches) result() agent.ToolResult {
	l := listing{
		lines: m.lines, found: m.found, more: m.more, limit: m.limit,
		none: "No matches found", what: "matches", advice: ", or refine pattern",
	}
	if m.long {
		l.notes = append(l.notes, fmt.Sprintf("Some lines truncated to %d chars. Use read tool to see full lines", grepLine))
	}
	return l.result()
}
