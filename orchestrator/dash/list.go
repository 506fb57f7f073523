package dash

import (
	"fmt"
	"strings"

	"muntin/internal/term"
)

// A layout says where things stand on a drawing, for the mouse.
type layout struct {
	tabs  []span // of the tab bar
	tabY  int
	listY int // the line of the first row shown
	first int // its index
	shown int // how many rows are shown
	page  int // how many lines of a page are
}

type span struct{ from, to int }

// window is the first row to show so that the chosen one is among height rows,
// as near to where it was as can be.
func (f frame) window(rows []row, height int) (first int) {
	at, first := f.chosen(rows), f.places[f.tab].top
	if at < 0 || height <= 0 {
		return 0
	}
	if at < first {
		first = at
	}
	if at >= first+height {
		first = at - height + 1
	}
	return max(min(first, len(rows)-height), 0)
}

// list draws as many rows as fit, and tells of the rest at the right edge.
func (f frame) list(rows []row, width, height int, lay *layout) []string {
	if height <= 0 {
		return nil
	}
	first := f.window(rows, height)
	at := f.chosen(rows)
	shown := min(len(rows)-first, height)
	lay.first, lay.shown = first, shown
	var lines []string
	for i, r := range rows[first : first+shown] {
		mark := "  "
		if first+i == at {
			mark = f.theme.Accent.Render("▌") + " "
		}
		lines = append(lines, mark+term.Truncate(r.text(width-2), width-2))
	}
	return lines
}

// more says where in a list one is, when not all of it is shown.
func (f frame) more(rows []row, height int) string {
	if len(rows) <= height {
		return ""
	}
	return fmt.Sprintf("%d of %d", f.chosen(rows)+1, len(rows))
}

// A column is one of a table. The last one of a table takes what room is left.
type column struct {
	title string
	width int
	right bool
	rank  int // columns of a higher rank go first when there is no room
	text  func(i int) string
}

// fitted leaves out columns until the rest fits in width and flex cells are
// left for the last one.
func fitted(columns []column, width, flex int) []column {
	for {
		need, worst := flex, -1
		for i, c := range columns {
			need += c.width + 2
			if c.rank > 0 && (worst < 0 || c.rank > columns[worst].rank) {
				worst = i
			}
		}
		if need <= width || worst < 0 {
			return columns
		}
		columns = append(append([]column{}, columns[:worst]...), columns[worst+1:]...)
	}
}

func (f frame) tableHead(columns []column, last string) string {
	var b strings.Builder
	for _, c := range columns {
		b.WriteString(cell(c.title, c) + "  ")
	}
	return f.theme.Dim.Render(strings.TrimRight(b.String()+last, " "))
}

func tableRow(columns []column, i int, last string) string {
	var b strings.Builder
	for _, c := range columns {
		b.WriteString(cell(c.text(i), c) + "  ")
	}
	return b.String() + last
}

func cell(s string, c column) string {
	if c.right {
		if w := term.Width(s); w < c.width {
			return strings.Repeat(" ", c.width-w) + s
		}
	}
	return pad(s, c.width)
}
