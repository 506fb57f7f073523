package tmux

import (
	"encoding/json"
	"fmt"
	"strings"

	ident "muntin/internal/id"
)

// A Layout is one of tmux's layouts, or a layout string as #{window_layout}
// prints it.
type Layout string

// The layouts of tmux(1).
const (
	Tiled          Layout = "tiled"
	EvenHorizontal Layout = "even-horizontal"
	EvenVertical   Layout = "even-vertical"
	MainHorizontal Layout = "main-horizontal"
	MainVertical   Layout = "main-vertical"
)

// A Size is a number of character cells.
type Size struct{ Cols, Rows int }

func (l Layout) check() error {
	switch l {
	case "", Tiled, EvenHorizontal, EvenVertical, MainHorizontal, MainVertical:
		return nil
	}
	if isLayoutString(string(l)) {
		return nil
	}
	return fmt.Errorf("tmux layout %q: not a layout", string(l))
}

// isLayoutString tells a layout string from anything else: a checksum and
// cells, or from tmux 3.8 on a JSON object.
func isLayoutString(s string) bool {
	if strings.HasPrefix(s, "{") {
		return json.Valid([]byte(s))
	}
	sum, cells, ok := strings.Cut(s, ",")
	return ok && len(sum) == 4 && cells != "" && strings.Trim(sum, ident.Digits+"abcdef") == "" &&
		strings.Trim(cells, ident.Digits+"x,{}[]") == ""
}

// grid is the shape of n panes: how many share the width and the height.
func (l Layout) grid(n int) (cols, rows int) {
	switch l {
	case EvenHorizontal:
		return n, 1
	case EvenVertical:
		return 1, n
	case MainHorizontal:
		return max(n-1, 1), min(n, 2)
	case MainVertical:
		return min(n, 2), max(n-1, 1)
	}
	cols, rows = 1, 1
	for rows*cols < n {
		rows++
		if rows*cols < n {
			cols++
		}
	}
	return cols, rows
}

// Capacity is the number of panes, at least one, that fit into a window with
// at least least each. It counts one cell a border, and one row more a pane
// where borders carry titles.
func (l Layout) Capacity(window, least Size) int {
	least = Size{max(least.Cols, 1), max(least.Rows, 1)}
	n := 1
	for {
		c, r := l.grid(n + 1)
		if c*least.Cols+c-1 > window.Cols || r*(least.Rows+1) > window.Rows {
			return n
		}
		n++
	}
}

// Spread says how many windows of that size panes need, and how many each
// holds: as few windows as can be, filled evenly, the fuller ones first.
func (l Layout) Spread(panes int, window, least Size) []int {
	if panes < 1 {
		return nil
	}
	room := l.Capacity(window, least)
	counts := make([]int, (panes+room-1)/room)
	for i := range panes {
		counts[i%len(counts)]++
	}
	return counts
}

// least is the smallest pane that is of use in the window.
func (w WindowSpec) least() Size {
	least := Size{w.MinCols, w.MinRows}
	if least.Cols == 0 {
		least.Cols = defaultMinCols
	}
	if least.Rows == 0 {
		least.Rows = defaultMinRows
	}
	return least
}

// spill cuts panes that do not fit into windows that do. Panes keep their order.
func (w WindowSpec) spill(size Size) []WindowSpec {
	var out []WindowSpec
	rest := w.Panes
	for _, n := range w.Layout.Spread(len(w.Panes), size, w.least()) {
		part := w
		part.Panes, rest = rest[:n], rest[n:]
		if len(out) > 0 && w.Name != "" {
			part.Name = fmt.Sprintf("%s-%d", w.Name, len(out)+1)
		}
		out = append(out, part)
	}
	return out
}
