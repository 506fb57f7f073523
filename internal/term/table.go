package term

import (
	"fmt"
	"io"
	"strings"
)

// A Table prints rows in aligned columns with a dim head. Cells may hold
// styles; they are cleaned by whoever fills them in.
type Table struct {
	head []string
	rows [][]string
}

// NewTable starts a table with the names of its columns.
func NewTable(head ...string) *Table { return &Table{head: head} }

// Row adds a row. Missing cells stay empty.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Write prints the table. The last column is cut at width cells, so that a
// row stays a line; width 0 cuts nothing.
func (t *Table) Write(w io.Writer, theme Theme, width int) error {
	widths := make([]int, len(t.head))
	for i, h := range t.head {
		widths[i] = Width(h)
	}
	for _, row := range t.rows {
		for i := range min(len(row), len(widths)) {
			widths[i] = max(widths[i], Width(row[i]))
		}
	}
	head := make([]string, len(t.head))
	for i, h := range t.head {
		head[i] = theme.Dim.Render(h)
	}
	for _, row := range append([][]string{head}, t.rows...) {
		if _, err := fmt.Fprintln(w, line(row, widths, width)); err != nil {
			return err
		}
	}
	return nil
}

func line(row []string, widths []int, width int) string {
	var b strings.Builder
	for i, cell := range row {
		b.WriteString(cell)
		if i < len(row)-1 && i < len(widths) {
			b.WriteString(strings.Repeat(" ", max(widths[i]-Width(cell), 0)+2))
		}
	}
	s := strings.TrimRight(b.String(), " ")
	if width > 0 {
		s = Truncate(s, width)
	}
	return s
}
