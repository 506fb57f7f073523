package panes

import (
	"fmt"
	"strings"

	"muntin/orchestrator"
	"muntin/recipes"
	"muntin/tmux"
)

const (
	// togetherMax is how many agents share a window with the board by default.
	togetherMax = 4
	// togetherCols is how wide that window must be for it.
	togetherCols = 100
	// minCols and minRows are the smallest agent's pane that can be worked in.
	minCols, minRows = 50, 10
	// leastCols and leastRows are the smallest pane of a layout that a person chose.
	leastCols, leastRows = 20, 3
	// defaultCols and defaultRows are a window's size where none is given.
	defaultCols, defaultRows = 200, 50
	// maxPanes bounds the panes of a window that a person wants together.
	maxPanes = 64
)

// A placing says in which windows the panes of a fleet are, and how.
type placing struct {
	together bool        // the board has its pane in the agents' window
	single   bool        // each agent has a window of its own
	most     int         // agents' panes of a window; 0: as many as fit
	style    tmux.Layout // of the agents' windows
	size     tmux.Size   // of the windows
	least    tmux.Size   // the smallest pane of use
	note     string      // why it is not what was asked for
}

// Note says why a layout is not what its recipe asks for, with that many agents
// in windows of that size (0: the default); empty: it is.
func Note(l recipes.Layout, agents, cols, rows int) string {
	return place(orchestrator.Fleet{Layout: l, Cols: cols, Rows: rows}, agents).note
}

// place chooses how a fleet with that many agents is laid out.
func place(f orchestrator.Fleet, agents int) placing {
	style, size := f.Layout.Style, tmux.Size{Cols: f.Cols, Rows: f.Rows}
	if size.Cols == 0 {
		size.Cols = defaultCols
	}
	if size.Rows == 0 {
		size.Rows = defaultRows
	}
	if f.Layout.Panes > 0 {
		return grouped(f.Layout, agents, size)
	}
	switch style {
	case recipes.LayoutWindows:
		return placing{single: true, style: tmux.Tiled, size: size}
	case recipes.LayoutTogether:
		return placing{together: true, style: tmux.MainVertical, size: size}
	case recipes.LayoutAuto, "":
		if agents > togetherMax || size.Cols < togetherCols {
			return placing{style: tmux.Tiled, size: size, least: tmux.Size{Cols: minCols, Rows: minRows}}
		}
		return placing{together: true, style: tmux.MainVertical, size: size}
	}
	return chosen(tmux.Layout(style), agents+1, size)
}

// grouped has the agents in windows of up to so many panes.
func grouped(l recipes.Layout, agents int, size tmux.Size) placing {
	p := placing{most: l.Panes, style: tmux.Layout(l.Style), size: size, least: tmux.Size{Cols: leastCols, Rows: leastRows}}
	switch l.Style {
	case recipes.LayoutAuto, recipes.LayoutTogether, recipes.LayoutWindows, "":
		p.style = tmux.Tiled
	}
	n := min(l.Panes, agents)
	if cells := cellsOf(p.style); cells > 0 && cells != n {
		p.note = fmt.Sprintf("the tmux layout has %d panes and the windows have %d: they are tiled", cells, n)
		p.style = tmux.Tiled
	}
	if fit := p.style.Capacity(size, p.least); fit < n {
		p.most = fit
		p.note = fmt.Sprintf("a window of %d x %d cells has room for %d panes of the %d asked for", size.Cols, size.Rows, fit, n)
	}
	return p
}

// chosen has all panes in one window, in a layout of tmux.
func chosen(style tmux.Layout, panes int, size tmux.Size) placing {
	p := placing{together: true, style: style, size: size, least: tmux.Size{Cols: leastCols, Rows: leastRows}}
	if cells := cellsOf(style); cells > 0 && cells != panes {
		p.style = tmux.Tiled
		p.note = fmt.Sprintf("the tmux layout has %d panes and the run has %d, with the board: they are tiled", cells, panes)
	}
	if n := len(p.style.Spread(panes, size, p.least)); n > 1 {
		p.note = fmt.Sprintf("%d panes do not fit into a window of %d x %d cells: they are in %d", panes, size.Cols, size.Rows, n)
		if cellsOf(p.style) > 0 {
			p.style = tmux.Tiled
		}
	}
	return p
}

// cellsOf is how many panes a tmux layout string is for; 0: the layout has a
// name. A cell is "WxH,X,Y" and then, if it is no group of others, its pane's
// number: see layout_append of tmux's layout-custom.c.
func cellsOf(l tmux.Layout) int {
	sum, rest, ok := strings.Cut(string(l), ",")
	if !ok || len(sum) != 4 {
		return 0
	}
	sizes, groups := strings.Count(rest, "x"), strings.Count(rest, "{")+strings.Count(rest, "[")
	return sizes - groups
}

// windows lays a fleet out.
func windows(f orchestrator.Fleet) []tmux.WindowSpec {
	p := place(f, len(f.Agents))
	var board, agents []tmux.PaneSpec
	if f.Board.Name != "" {
		board = append(board, pane(f.Board))
	}
	for _, a := range f.Agents {
		agents = append(agents, pane(a))
	}
	if p.together {
		return []tmux.WindowSpec{{
			Name: "run", Layout: p.styleOf(len(board) + len(agents)), Panes: append(board, agents...), MinCols: p.least.Cols, MinRows: p.least.Rows,
		}}
	}
	var list []tmux.WindowSpec
	if len(board) > 0 {
		list = append(list, tmux.WindowSpec{Name: orchestrator.BoardPane, Panes: board})
	}
	if p.single {
		for _, a := range agents {
			list = append(list, tmux.WindowSpec{Name: a.Title, Panes: []tmux.PaneSpec{a}})
		}
		return list
	}
	for i := 0; len(agents) > 0; i++ {
		n := len(agents)
		if p.most > 0 {
			n = min(n, p.most)
		}
		name := "agents"
		if i > 0 {
			name = fmt.Sprintf("agents-%d", i+1)
		}
		list = append(list, tmux.WindowSpec{Name: name, Layout: p.styleOf(n), Panes: agents[:n], MinCols: p.least.Cols, MinRows: p.least.Rows})
		agents = agents[n:]
	}
	return list
}

// room is how many panes a window may have.
func (p placing) room() int {
	fit := p.style.Capacity(p.size, p.least)
	if p.least == (tmux.Size{}) {
		fit = maxPanes
	}
	if p.most > 0 {
		return min(p.most, fit)
	}
	return fit
}

// styleOf is the layout of a window with n panes: a layout string is for as many
// as it has, and a window with another number is tiled.
func (p placing) styleOf(n int) tmux.Layout {
	if cells := cellsOf(p.style); cells > 0 && cells != n {
		return tmux.Tiled
	}
	return p.style
}
