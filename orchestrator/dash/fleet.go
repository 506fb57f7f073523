package dash

import (
	"fmt"
	"strings"
	"time"

	"muntin/internal/term"
)

const (
	nameMost = 18 // cells of a name in a table
	flexMin  = 18 // cells that what an agent is at should have
)

// fleetColumns are the columns of the table of agents that fit in width.
func (f frame) fleetColumns(width int) []column {
	name, role := 4, 4
	for _, a := range f.Agents {
		name = max(name, min(term.Width(a.Name), nameMost))
		role = max(role, min(term.Width(a.Role), nameMost))
	}
	agent := func(i int) Agent { return f.Agents[i] }
	number := func(n int, text string) string {
		if n == 0 {
			return f.theme.Dim.Render("·")
		}
		return text
	}
	return fitted([]column{
		{"AGENT", name + 2, false, 0, func(i int) string {
			mark, style := f.agentMark(agent(i).State)
			return style.Render(mark) + " " + f.theme.Strong.Render(pad(clean(agent(i).Name), name))
		}},
		{"STATE", 8, false, 0, func(i int) string {
			_, style := f.agentMark(agent(i).State)
			return style.Render(clean(string(agent(i).State)))
		}},
		{"SINCE", 6, true, 0, func(i int) string { return f.theme.Dim.Render(f.since(agent(i))) }},
		{"BY", 10, false, 7, func(i int) string { return f.theme.Dim.Render(clean(agent(i).Source)) }},
		{"ROLE", role, false, 8, func(i int) string { return f.theme.Dim.Render(clean(agent(i).Role)) }},
		{"TURN", 4, true, 1, func(i int) string { return number(agent(i).Turn, fmt.Sprint(agent(i).Turn)) }},
		{"ACTIVITY", sparkCells, false, 4, func(i int) string { return f.theme.Busy.Render(f.spark(agent(i).Activity)) }},
		{"TOKENS", 6, true, 2, func(i int) string { return number(agent(i).Tokens, count(agent(i).Tokens)) }},
		{"COST", 7, true, 3, func(i int) string { return number(int(agent(i).Cost*1e6), money(agent(i).Cost)) }},
		{"CHANGED", 11, true, 5, func(i int) string { return f.changed(agent(i)) }},
		{"MEMORY", 7, true, 6, func(i int) string { return number(int(agent(i).Memory), size(agent(i).Memory)) }},
		{"POINT", 5, true, 9, func(i int) string { return number(agent(i).Checkpoint, fmt.Sprint(agent(i).Checkpoint)) }},
		{"MODEL", 20, false, 10, func(i int) string { return f.theme.Dim.Render(clean(agent(i).Model)) }},
	}, width, flexMin)
}

func (f frame) fleetRows() []row {
	var columns []column
	width := 0
	rows := make([]row, 0, len(f.Agents))
	for i, a := range f.Agents {
		rows = append(rows, row{
			key: a.Name,
			find: func() string {
				return strings.Join([]string{a.Name, a.Role, a.Model, string(a.State), a.Task, a.Note}, " ")
			},
			text: func(w int) string {
				if w != width {
					columns, width = f.fleetColumns(w), w
				}
				return tableRow(columns, i, f.doing(a))
			},
			acts: func() []act {
				return append([]act{{key: "enter", label: "open", open: a.Name}}, f.agentActs(a)...)
			},
		})
	}
	return rows
}

// agentActs are what can be done with an agent.
func (f frame) agentActs(a Agent) []act {
	run := []string{"--run", f.Run}
	with := func(argv ...string) []string { return append(argv, run...) }
	acts := []act{
		{key: "s", label: "send", argv: with("send", a.Name, textMark), ask: "prompt for " + a.Name},
		{key: "a", label: "attach", argv: with("attach", a.Name), tty: true},
		{key: "d", label: "diff", argv: []string{"diff", a.Name, "--run=" + f.Run}, page: true},
		{key: "l", label: "log", argv: append(with("logs", a.Name), "-n", "400"), page: true},
	}
	if a.State == AgentWorking || a.State == AgentWaiting || a.State == AgentStalled {
		acts = append(acts,
			act{key: "S", label: "steer", argv: append(with("send", a.Name, textMark), "--steer"), ask: "steer " + a.Name},
			act{key: "x", label: "abort", argv: append(with("send", a.Name), "--abort"), sure: true})
	}
	return append(acts,
		act{key: "c", label: "checkpoints", argv: with("checkpoint", "ls", a.Name), page: true},
		act{key: "b", label: "budget", argv: with("budget", a.Name, "--turns", "+10"), sure: true})
}

// doing is what the agent is at.
func (f frame) doing(a Agent) string {
	var parts []string
	if a.Task != "" {
		parts = append(parts, f.theme.Accent.Render(clean(a.Task)))
	}
	if a.Note != "" {
		_, style := f.agentMark(a.State)
		if a.State == AgentWorking || a.State == AgentIdle {
			style = f.theme.Dim
		}
		parts = append(parts, style.Render(clean(a.Note)))
	}
	return strings.Join(parts, " ")
}

// since is the age of a state. Only a working agent's runs by the second; for
// the others the moment it began is said, which stays true without a redraw.
func (f frame) since(a Agent) string {
	switch {
	case a.Since.IsZero():
		return ""
	case a.State == AgentWorking:
		return short(f.now.Sub(a.Since))
	}
	return f.clock(a.Since, "15:04")
}

func (f frame) agentNote() string {
	by := map[AgentState]int{}
	for _, a := range f.Agents {
		by[a.State]++
	}
	var parts []string
	for _, s := range []AgentState{AgentWorking, AgentWaiting, AgentStalled, AgentLimited, AgentFailed} {
		if by[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[s], s))
		}
	}
	return strings.Join(parts, ", ")
}

func (f frame) agentMark(s AgentState) (string, paint) {
	switch s {
	case AgentWorking:
		return "●", f.theme.Busy
	case AgentIdle:
		return "○", f.theme.Dim
	case AgentWaiting, AgentHeld, AgentLimited, AgentStalled:
		return "?", f.theme.Warn
	case AgentFailed, AgentExited:
		return "✗", f.theme.Bad
	case AgentStarting, AgentUnknown:
	}
	return "·", f.theme.Dim
}

// sparkCells is how many columns a sparkline has.
const sparkCells = 8

// spark draws counts as columns, the newest at the right.
func (f frame) spark(counts []int) string {
	if len(counts) > sparkCells {
		counts = counts[len(counts)-sparkCells:]
	}
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	levels := []rune(" ▁▂▃▄▅▆▇█")
	if f.plain {
		levels = []rune(" .:-=+*#%")
	}
	line := make([]rune, 0, sparkCells)
	for _, n := range counts {
		i := 0
		if n > 0 {
			i = 1 + n*(len(levels)-2)/most
		}
		line = append(line, levels[i])
	}
	return strings.Repeat(" ", sparkCells-len(line)) + string(line)
}

func (f frame) changed(a Agent) string {
	if a.Added == 0 && a.Deleted == 0 {
		return f.theme.Dim.Render("·")
	}
	return f.theme.Good.Render("+"+count(a.Added)) + " " + f.theme.Bad.Render("-"+count(a.Deleted))
}

// count is a number in at most five cells.
func count(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d", n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// money is an amount in at most seven cells.
func money(dollars float64) string {
	switch {
	case dollars < 0.01:
		return "<$0.01"
	case dollars < 1000:
		return fmt.Sprintf("$%.2f", dollars)
	}
	return fmt.Sprintf("$%.0f", dollars)
}

// size is an amount of memory in at most seven cells.
func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%d MB", n/1e6)
	}
	return fmt.Sprintf("%d kB", n/1e3)
}

// short is a duration in at most six cells.
func short(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 3600:
		return fmt.Sprintf("%dm", s/60)
	case s < 24*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd", s/86400)
}
