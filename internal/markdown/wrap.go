package markdown

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A style is attributes, and one of the terminal's own 16 colours in its upper half;
// they fit light and dark backgrounds without asking the terminal.
type style uint16

const (
	bold style = 1 << iota
	dim
	italic
	underline
	strike
)

// The colours, from 1.
const (
	red style = (iota + 2) << colorShift
	green
	yellow
	blue
	magenta
	cyan
)

const (
	colorShift = 8
	attributes = 1<<colorShift - 1
)

// The styles of parts of a text.
const (
	faint        = dim
	codeStyle    = yellow
	linkStyle    = underline | blue
	markStyle    = cyan
	keywordStyle = magenta
	textStyle    = green
	numberStyle  = cyan
)

func headingStyle(level int) style {
	if level == 1 {
		return bold | underline | cyan
	}
	return bold | cyan
}

// with adds another style, whose colour counts.
func (s style) with(t style) style {
	if t > attributes {
		s &= attributes
	}
	return s | t
}

// paint is the text in the style.
func (s style) paint(text string) string {
	if s == 0 || text == "" {
		return text
	}
	codes := []string{}
	for i, code := range []string{"1", "2", "3", "4", "9"} {
		if s&(1<<i) != 0 {
			codes = append(codes, code)
		}
	}
	if color := int(s >> colorShift); color != 0 {
		codes = append(codes, strconv.Itoa(29+color))
	}
	return "\x1b[" + strings.Join(codes, ";") + "m" + text + "\x1b[m"
}

// A piece is text of one style, which leads to link.
type piece struct {
	text  string
	style style
	link  string
}

// A prefix stands before a line.
type prefix struct {
	text  string
	cells int
}

func (p prefix) add(blanks int) prefix {
	return prefix{p.text + strings.Repeat(" ", blanks), p.cells + blanks}
}

// wrapped breaks pieces at words into lines, the first of which begins with first
// and the others with hang.
func (s *Stream) wrapped(pieces []piece, first, hang prefix) []Line {
	room := s.width - max(first.cells, hang.cells)
	if room < MinWidth/2 { // too narrow for what stands before
		first, hang, room = prefix{}, prefix{}, s.width
	}
	var out []Line
	for i, l := range layout(pieces, room) {
		before := hang.text
		if i == 0 {
			before = first.text
		}
		out = append(out, Line{Text: strings.TrimRight(before+render(l), " ")})
	}
	return out
}

// verbatim breaks pieces where the line is full and nowhere else.
func (s *Stream) verbatim(pieces []piece, bar prefix) []Line {
	room := s.width - bar.cells
	if room < MinWidth/2 {
		bar, room = prefix{}, s.width
	}
	lines := [][]piece{nil}
	cells := 0
	for _, p := range pieces {
		for text := p.text; text != ""; {
			head, n := fitting(text, room-cells)
			if head == "" && cells > 0 {
				lines, cells = append(lines, nil), 0
				continue
			}
			if head == "" { // wider than a line
				head, _ = cluster(text)
			}
			last := len(lines) - 1
			lines[last] = append(lines[last], piece{head, p.style, p.link})
			cells += n
			text = text[len(head):]
		}
	}
	var out []Line
	for i, l := range lines {
		out = append(out, Line{Text: bar.text + render(l), Wraps: i < len(lines)-1 && bar.cells == 0})
	}
	return out
}

// layout breaks pieces at words into lines of at most room cells. It always gives
// one line.
func layout(pieces []piece, room int) [][]piece {
	w := breaker{room: max(room, 1), lines: [][]piece{nil}}
	for _, p := range pieces {
		for text := p.text; text != ""; {
			blanks := len(text) - len(strings.TrimLeft(text, " \t"))
			if blanks > 0 {
				w.flush()
				w.space = piece{strings.Repeat(" ", blanks), p.style, p.link}
				text = text[blanks:]
				continue
			}
			end := strings.IndexAny(text, " \t")
			if end < 0 {
				end = len(text)
			}
			w.word = append(w.word, piece{text[:end], p.style, p.link})
			w.wordCells += width(text[:end])
			text = text[end:]
		}
	}
	w.flush()
	return w.lines
}

type breaker struct {
	room      int
	lines     [][]piece
	cells     int // of the last line
	space     piece
	word      []piece
	wordCells int
}

func (w *breaker) put(p piece) {
	last := len(w.lines) - 1
	w.lines[last] = append(w.lines[last], p)
	w.cells += width(p.text)
}

func (w *breaker) next() { w.lines, w.cells = append(w.lines, nil), 0 }

// flush puts the word that is complete.
func (w *breaker) flush() {
	if len(w.word) == 0 {
		return
	}
	blanks := len(w.space.text)
	switch {
	case w.cells == 0 && len(w.lines) > 1, w.cells == 0 && blanks >= w.room: // blanks at a break go
	case w.cells+blanks+min(w.wordCells, w.room) > w.room:
		w.next()
	case blanks > 0:
		w.put(w.space)
	}
	for _, p := range w.word {
		for text := p.text; text != ""; {
			head, _ := fitting(text, w.room-w.cells)
			if head == "" && w.cells > 0 {
				w.next()
				continue
			}
			if head == "" {
				head, _ = cluster(text)
			}
			w.put(piece{head, p.style, p.link})
			text = text[len(head):]
		}
	}
	w.space, w.word, w.wordCells = piece{}, w.word[:0], 0
}

// fitting is the longest beginning of a text that takes at most room cells.
func fitting(text string, room int) (head string, cells int) {
	at := 0
	for at < len(text) {
		c, n := cluster(text[at:])
		if cells+n > room {
			break
		}
		at += len(c)
		cells += n
	}
	return text[:at], cells
}

// cluster is the first character of a text as a person sees it.
func cluster(text string) (string, int) {
	if c := text[0]; c >= ' ' && c < 0x7f && (len(text) == 1 || text[1] < 0x80) {
		return text[:1], 1
	}
	c, n := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
	if c == "" {
		return text[:1], 1
	}
	return c, n
}

func width(text string) int { return ansi.StringWidth(text) }

func cellsOf(line []piece) int {
	n := 0
	for _, p := range line {
		n += width(p.text)
	}
	return n
}

// render joins the pieces of one line.
func render(line []piece) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		p := line[i]
		for i++; i < len(line) && line[i].style == p.style && line[i].link == p.link; i++ {
			p.text += line[i].text
		}
		if p.link != "" {
			b.WriteString(ansi.SetHyperlink(p.link))
		}
		b.WriteString(p.style.paint(p.text))
		if p.link != "" {
			b.WriteString(ansi.ResetHyperlink())
		}
	}
	return b.String()
}

// expand makes blanks of tabs.
func expand(text string) string {
	if !strings.ContainsRune(text, '\t') {
		return text
	}
	var b strings.Builder
	cells := 0
	for part := range strings.SplitAfterSeq(text, "\t") {
		body, tab := strings.CutSuffix(part, "\t")
		b.WriteString(body)
		cells += width(body)
		if tab {
			n := 4 - cells%4
			b.WriteString(strings.Repeat(" ", n))
			cells += n
		}
	}
	return b.String()
}

// Wrap breaks plain text at words into lines of at most cells; its own line breaks
// are kept.
func Wrap(text string, cells int) []string {
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		for _, line := range layout([]piece{{text: expand(l)}}, cells) {
			out = append(out, render(line))
		}
	}
	return out
}
