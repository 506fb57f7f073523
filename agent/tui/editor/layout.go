package editor

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A View is the text as it is shown: lines of at most the width, and where the
// cursor is.
type View struct {
	Lines []string
	X, Y  int
}

// row is one line of the screen: the bytes of the text that it shows.
type row struct{ from, to int }

// View lays the text out for a width in cells. A cursor at the end of a full line
// is in the next one.
func (e *Editor) View(width int) View {
	width = max(width, 2)
	var v View
	for _, r := range e.rows(width) {
		v.Lines = append(v.Lines, e.show(r.from, r.to))
		if e.at >= r.from && e.at <= r.to {
			v.Y = len(v.Lines) - 1
			v.X = ansi.StringWidth(e.show(r.from, e.at))
		}
	}
	if v.X >= width {
		v.X = width - 1
	}
	return v
}

// show is a part of a line as a person sees it.
func (e *Editor) show(from, to int) string {
	part := e.text[from:to]
	if !strings.ContainsFunc(part, func(r rune) bool { return r == '\t' || r >= firstPaste }) {
		return part
	}
	var b strings.Builder
	for _, r := range part {
		if i, ok := e.paste(r); ok {
			b.WriteString(e.mark(i))
		} else if r == '\t' {
			b.WriteString("    ")
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// rows breaks the text at words into lines of the screen.
func (e *Editor) rows(width int) []row {
	var rows []row
	for from := 0; ; {
		end := len(e.text)
		if i := strings.IndexByte(e.text[from:], '\n'); i >= 0 {
			end = from + i
		}
		rows = e.breakLine(rows, row{from, end}, width)
		if end == len(e.text) {
			return rows
		}
		from = end + 1
	}
}

func (e *Editor) breakLine(rows []row, line row, width int) []row {
	start, cells, space := line.from, 0, -1 // space: behind the last blank of the row
	for i := line.from; i < line.to; {
		c, _ := ansi.FirstGraphemeCluster(e.text[i:line.to], ansi.GraphemeWidth)
		size := max(len(c), 1)
		n := ansi.StringWidth(e.show(i, i+size))
		if cells+n > width && i > start {
			cut := i
			if space > start {
				cut = space
			}
			rows = append(rows, row{start, cut})
			start, space = cut, -1
			cells = ansi.StringWidth(e.show(start, i))
			if cells+n > width && i > start { // one mark is wider than the rest
				rows = append(rows, row{start, i})
				start, cells = i, 0
			}
		}
		cells += n
		i += size
		if c == " " {
			space = i
		}
	}
	rows = append(rows, row{start, line.to})
	if cells >= width && e.at == line.to { // room for the cursor
		rows = append(rows, row{line.to, line.to})
	}
	return rows
}

// Up goes to the line of the screen above, and reports whether there was one.
func (e *Editor) Up(width int) bool { return e.vertical(width, -1) }

// Down goes to the line of the screen below, and reports whether there was one.
func (e *Editor) Down(width int) bool { return e.vertical(width, 1) }

func (e *Editor) vertical(width, by int) bool {
	width = max(width, 2)
	v := e.View(width)
	rows := e.rows(width)
	y := v.Y + by
	if y < 0 || y >= len(rows) {
		return false
	}
	want := v.X
	if e.column > 0 {
		want = e.column - 1
	}
	r := rows[y]
	at := r.from
	for cells := 0; at < r.to; {
		c, _ := ansi.FirstGraphemeCluster(e.text[at:r.to], ansi.GraphemeWidth)
		size := max(len(c), 1)
		cells += ansi.StringWidth(e.show(at, at+size))
		if cells > want {
			break
		}
		at += size
	}
	if at == r.to && y+1 < len(rows) && rows[y+1].from == r.to && at > r.from { // it would show in the next row
		save := e.at
		e.at = at
		at = e.prev()
		e.at = save
	}
	e.moved()
	e.at, e.column = at, want+1
	return true
}
