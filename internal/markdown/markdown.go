// Package markdown shows Markdown on a terminal while it is being written: a line
// of the source is turned into lines of the screen as soon as it is whole, and
// those never change afterwards. Only a table is held back until its end, because
// its columns are known then.
//
// It knows what models write of GitHub Flavored Markdown
// (https://github.github.com/gfm/): headings, lists, tasks, tables, quotes, fenced
// and indented code, rules, and emphasis, code and links within a line. The line
// breaks of the source are kept. What it does not know is shown as it stands, so no
// text is ever lost. The source must be clean of control characters but tab and
// line feed.
package markdown

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// MinWidth is the smallest width that is heeded.
const MinWidth = 8

// A Line is one line of the screen.
type Line struct {
	Text  string // with SGR sequences and OSC 8 links, all closed at its end
	Wraps bool   // the line is full and the next one goes on with it: they are one line of the source
}

// A Stream is one text that comes piece by piece.
type Stream struct {
	width int    // cells
	rest  string // the last line, while it is not whole
	fence fence
	table []string // the lines of a table that has not ended
	list  bool     // a list item came before, and nothing that ends it
	blank bool     // an empty line is due before the next one
	began bool
	sharp *language // of the fence, where it is known
	state string    // what ends the comment or the text that the code is in
}

// A fence is the open code fence; one without a mark is none.
type fence struct {
	mark   string
	indent int
	quotes int
}

// New begins a text for a screen of width cells.
func New(width int) *Stream { return &Stream{width: max(width, MinWidth)} }

// Resize changes the width of the lines to come.
func (s *Stream) Resize(width int) { s.width = max(width, MinWidth) }

// Write takes a piece of the text and returns the lines that it completes.
func (s *Stream) Write(text string) []Line {
	var out []Line
	s.rest += text
	for {
		line, rest, whole := strings.Cut(s.rest, "\n")
		if !whole {
			return out
		}
		s.rest = rest
		out = append(out, s.line(line)...)
	}
}

// maxTail is how long a line may be, in bytes, that is shown as Markdown before it
// is whole.
const maxTail = 4000

// Tail is what was taken and not returned yet, as it would be if the text ended
// here; of a very long line only the end, as it stands.
func (s *Stream) Tail() []Line {
	end := *s
	if len(s.rest) > maxTail {
		cut := len(s.rest) - maxTail/2
		for cut < len(s.rest) && !utf8.RuneStart(s.rest[cut]) {
			cut++
		}
		return end.wrapped([]piece{{text: s.rest[cut:]}}, prefix{}, prefix{})
	}
	end.table = slices.Clip(s.table)
	return end.Close()
}

// Close ends the text and returns its last lines.
func (s *Stream) Close() []Line {
	var out []Line
	if s.rest != "" {
		out = s.line(s.rest)
		s.rest = ""
	}
	return append(out, s.flushTable()...)
}

// Render shows a whole text.
func Render(text string, width int) []Line {
	s := New(width)
	return append(s.Write(text), s.Close()...)
}

// line shows one line of the source.
func (s *Stream) line(raw string) []Line {
	raw = strings.TrimRight(raw, " \t\r")
	if s.fence.mark != "" {
		return s.code(raw)
	}
	if isRow(raw) {
		s.table = append(s.table, raw)
		return nil
	}
	out := s.flushTable()
	if raw == "" {
		s.blank = s.began
		return out
	}
	return append(out, s.block(raw)...)
}

// gap puts the empty line that is due before lines that are shown.
func (s *Stream) gap(lines []Line) []Line {
	if len(lines) == 0 {
		return nil
	}
	if s.blank {
		lines = append([]Line{{}}, lines...)
	}
	s.blank, s.began = false, true
	return lines
}

// block shows a line that is in no fence and no table.
func (s *Stream) block(raw string) []Line {
	quotes, text := unquote(raw, maxQuotes)
	bar := prefix{text: quoteBar(quotes), cells: 2 * quotes}
	indent, text := unindent(text)
	if mark := fenceMark(text); mark != "" {
		s.fence = fence{mark: mark, indent: indent, quotes: quotes}
		s.sharp, s.state = languageOf(text[len(mark):]), ""
		return s.gap(s.wrapped([]piece{{text: text, style: faint}}, bar.add(indent), bar.add(indent)))
	}
	if indent >= 4 && !s.list && quotes == 0 {
		return s.gap(s.verbatim([]piece{{text: expand(raw), style: codeStyle}}, prefix{}))
	}
	indent = min(indent, s.width/3)
	switch level := heading(text); {
	case text == "":
		return s.gap([]Line{{Text: strings.TrimRight(bar.text, " ")}})
	case level > 0:
		s.list = false
		title := strings.TrimSpace(strings.TrimRight(text[level:], "#"))
		return s.gap(s.wrapped(inline(title, headingStyle(level)), bar, bar))
	case isRule(text):
		s.list = false
		return s.gap([]Line{{Text: bar.text + faint.paint(strings.Repeat("─", max(min(s.width-bar.cells, 40), 1)))}})
	}
	if mark, rest, ok := item(text); ok {
		s.list = true
		first := bar.add(indent)
		hang := first.add(width(mark))
		first.text += markStyle.paint(mark)
		first.cells = hang.cells
		return s.gap(s.wrapped(inline(rest, 0), first, hang))
	}
	if indent == 0 {
		s.list = false
	}
	return s.gap(s.wrapped(inline(text, 0), bar.add(indent), bar.add(indent)))
}

// code shows a line within a fence, or the fence's end.
func (s *Stream) code(raw string) []Line {
	quotes, text := unquote(raw, s.fence.quotes)
	if quotes < s.fence.quotes { // the quote ended, and the fence with it
		s.fence = fence{}
		return s.line(raw)
	}
	bar := prefix{text: quoteBar(quotes), cells: 2 * quotes}.add(min(s.fence.indent, s.width/3))
	if end := strings.TrimSpace(text); strings.HasPrefix(end, s.fence.mark) && strings.Trim(end, s.fence.mark[:1]) == "" {
		s.fence = fence{}
		return s.gap(s.wrapped([]piece{{text: end, style: faint}}, bar, bar))
	}
	for n := s.fence.indent; n > 0 && strings.HasPrefix(text, " "); n-- {
		text = text[1:]
	}
	if text == "" {
		s.began = true
		return []Line{{Text: strings.TrimRight(bar.text, " ")}}
	}
	text = expand(text)
	pieces := []piece{{text: text, style: codeStyle}}
	if s.sharp != nil {
		pieces, s.state = s.sharp.paint(text, s.state)
	}
	return s.gap(s.verbatim(pieces, bar))
}

// maxQuotes is how deep a quote may lie in quotes.
const maxQuotes = 4

// unquote takes the marks of at most n quotes from the front.
func unquote(text string, n int) (quotes int, rest string) {
	for quotes < n {
		t := strings.TrimLeft(text, " ")
		if len(text)-len(t) > 3 || !strings.HasPrefix(t, ">") {
			break
		}
		text = strings.TrimPrefix(t[1:], " ")
		quotes++
	}
	return quotes, text
}

func quoteBar(n int) string { return strings.Repeat(faint.paint("▎")+" ", n) }

// unindent takes blanks from the front and counts their cells.
func unindent(text string) (cells int, rest string) {
	for i := range len(text) {
		switch text[i] {
		case ' ':
			cells++
		case '\t':
			cells += 4 - cells%4
		default:
			return cells, text[i:]
		}
	}
	return cells, ""
}

// fenceMark is the mark of the code fence that a line opens.
func fenceMark(text string) string {
	for _, c := range []byte{'`', '~'} {
		n := 0
		for n < len(text) && text[n] == c {
			n++
		}
		if n >= 3 && !(c == '`' && strings.ContainsRune(text[n:], '`')) {
			return text[:n]
		}
	}
	return ""
}

// heading is the level of the heading that a line is, or 0.
func heading(text string) int {
	n := 0
	for n < len(text) && text[n] == '#' {
		n++
	}
	if n == 0 || n > 6 || n < len(text) && text[n] != ' ' || strings.Trim(text, "# ") == "" {
		return 0
	}
	return n
}

func isRule(text string) bool {
	t := strings.ReplaceAll(text, " ", "")
	return len(t) >= 3 && strings.ContainsRune("-*_", rune(t[0])) && strings.Trim(t, t[:1]) == ""
}

// item is the mark of the list item that a line begins, as it is shown.
func item(text string) (mark, rest string, ok bool) {
	switch {
	case len(text) > 1 && strings.ContainsRune("-*+", rune(text[0])) && text[1] == ' ':
		mark, rest = "• ", strings.TrimLeft(text[2:], " ")
	default:
		n := 0
		for n < len(text) && n < 9 && text[n] >= '0' && text[n] <= '9' {
			n++
		}
		if n == 0 || n+1 >= len(text) || text[n] != '.' && text[n] != ')' || text[n+1] != ' ' {
			return "", "", false
		}
		mark, rest = text[:n+2], strings.TrimLeft(text[n+2:], " ")
	}
	for _, box := range []struct{ in, out string }{{"[ ] ", "☐ "}, {"[x] ", "☑ "}, {"[X] ", "☑ "}} {
		if t, found := strings.CutPrefix(rest, box.in); found {
			return strings.TrimPrefix(mark, "• ") + box.out, t, true
		}
	}
	return mark, rest, true
}
