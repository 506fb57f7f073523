package markdown

import (
	"slices"
	"strings"
)

// isRow reports whether a line may be one of a table. Lines that turn out to be
// none are shown as text.
func isRow(raw string) bool { return strings.HasPrefix(strings.TrimLeft(raw, " "), "|") }

// flushTable shows the table that was held back.
func (s *Stream) flushTable() []Line {
	rows := s.table
	if len(rows) == 0 {
		return nil
	}
	s.table = nil
	if len(rows) < 2 || !isDelimiter(rows[1]) {
		return s.asText(rows)
	}
	var cells [][][]piece
	columns := 0
	for i, r := range rows {
		if i == 1 {
			continue
		}
		st := style(0)
		if i == 0 {
			st = bold
		}
		var row [][]piece
		for _, c := range splitRow(r) {
			row = append(row, inline(c, st))
		}
		columns = max(columns, len(row))
		cells = append(cells, row)
	}
	widths := columnWidths(cells, columns, s.width-3*(columns-1))
	if widths == nil {
		return s.asText(rows)
	}
	var out []Line
	for i, row := range cells {
		if i == 0 && !slices.ContainsFunc(row, func(c []piece) bool { return len(c) > 0 }) {
			continue // a head that says nothing
		}
		out = append(out, tableRow(row, widths)...)
		if i == 0 {
			var parts []string
			for _, w := range widths {
				parts = append(parts, strings.Repeat("─", w))
			}
			out = append(out, Line{Text: faint.paint(strings.Join(parts, "─┼─"))})
		}
	}
	return s.gap(out)
}

// asText shows lines that are no table, or one that is too wide for the screen.
func (s *Stream) asText(rows []string) []Line {
	var out []Line
	for _, r := range rows {
		out = append(out, s.wrapped(inline(r, 0), prefix{}, prefix{})...)
	}
	return s.gap(out)
}

func isDelimiter(row string) bool {
	return strings.Contains(row, "-") && strings.Trim(row, "|:- ") == ""
}

// splitRow gives the cells of a row. A | after a backslash or within code does not
// end one.
func splitRow(row string) []string {
	row = strings.TrimSpace(row)
	row = strings.TrimPrefix(row, "|")
	var all []string
	var cell strings.Builder
	code := false
	for i := 0; i < len(row); i++ {
		switch c := row[i]; {
		case c == '\\' && i+1 < len(row) && row[i+1] == '|':
			cell.WriteByte('|')
			i++
		case c == '`':
			code = !code
			cell.WriteByte(c)
		case c == '|' && !(code && strings.IndexByte(row[i:], '`') >= 0):
			all = append(all, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(c)
		}
	}
	if last := strings.TrimSpace(cell.String()); last != "" || len(all) == 0 {
		all = append(all, last)
	}
	return all
}

// columnWidths shares room out among columns; the widest give way first. It is nil
// when there is not enough.
func columnWidths(rows [][][]piece, columns, room int) []int {
	const least = 3
	if columns*least > room {
		return nil
	}
	widths := make([]int, columns)
	total := 0
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], cellsOf(c), 1)
		}
	}
	for i := range widths {
		widths[i] = max(widths[i], 1)
		total += widths[i]
	}
	for total > room {
		widest, next := 0, least
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		for i, w := range widths {
			if i != widest && w < widths[widest] {
				next = max(next, w)
			}
		}
		cut := min(max(widths[widest]-next, 1), total-room, widths[widest]-least)
		if cut <= 0 {
			return nil
		}
		widths[widest] -= cut
		total -= cut
	}
	return widths
}

func tableRow(row [][]piece, widths []int) []Line {
	columns := make([][][]piece, len(widths))
	height := 1
	for i := range widths {
		if i < len(row) {
			columns[i] = layout(row[i], widths[i])
			height = max(height, len(columns[i]))
		}
	}
	var out []Line
	for y := range height {
		var b strings.Builder
		for x, w := range widths {
			if x > 0 {
				b.WriteString(faint.paint(" │ "))
			}
			var line []piece
			if y < len(columns[x]) {
				line = columns[x][y]
			}
			b.WriteString(render(line))
			if pad := w - cellsOf(line); pad > 0 && x < len(widths)-1 {
				b.WriteString(strings.Repeat(" ", pad))
			}
		}
		out = append(out, Line{Text: b.String()})
	}
	return out
}
