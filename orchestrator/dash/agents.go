package dash

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"muntin/internal/term"
)

func (f frame) agentNote() string {
	n := 0
	for _, a := range f.Agents {
		if a.State == AgentWorking {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d working", n)
}

func (f frame) agentMark(s AgentState) (string, lipgloss.Style) {
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

// agentRows shows each agent in two lines and a blank one, in two, or in one,
// whatever fits in room lines.
func (f frame) agentRows(width, room int) []string {
	n := len(f.Agents)
	if n == 0 || 2*n > room {
		return f.agentLines(width, room)
	}
	blank := 3*n-1 <= room
	var rows []string
	for i, a := range f.Agents {
		if i > 0 && blank {
			rows = append(rows, "")
		}
		mark, style := f.agentMark(a.State)
		left := style.Render(mark) + " " + f.theme.Strong.Render(clean(a.Name))
		if about := joined(a.Role, a.Model); about != "" {
			left += "  " + f.theme.Dim.Render(about)
		}
		right := f.agentState(a)
		if a.Source != "" {
			right += f.theme.Dim.Render(" (" + clean(a.Source) + ")")
		}
		rows = append(rows, sides(left, right, width), term.Truncate("  "+f.agentDetail(a), width))
	}
	return rows
}

// agentLines shows each agent in one line, at most room of them.
func (f frame) agentLines(width, room int) []string {
	if room <= 0 {
		return nil
	}
	if len(f.Agents) == 0 {
		return []string{f.theme.Dim.Render("no agents")}
	}
	shown := f.Agents
	if len(shown) > room {
		shown = shown[:room-1]
	}
	nameWidth, stateWidth := 0, 0
	for _, a := range shown {
		nameWidth = max(nameWidth, min(term.Width(clean(a.Name)), width/4))
		stateWidth = max(stateWidth, min(term.Width(f.agentState(a)), width/2))
	}
	var rows []string
	for _, a := range shown {
		mark, style := f.agentMark(a.State)
		row := style.Render(mark) + " " + f.theme.Strong.Render(pad(clean(a.Name), nameWidth)) +
			"  " + pad(f.agentState(a), stateWidth) + "  " + f.agentDetail(a)
		rows = append(rows, term.Truncate(strings.TrimRight(row, " "), width))
	}
	if n := len(f.Agents) - len(shown); n > 0 {
		rows = append(rows, f.theme.Dim.Render(fmt.Sprintf("… %d more", n)))
	}
	return rows
}

// agentState is the state with its age. Only a working agent's age runs by
// the second; for the others the moment it began is said, which stays true
// without a redraw.
func (f frame) agentState(a Agent) string {
	_, style := f.agentMark(a.State)
	text := style.Render(clean(string(a.State)))
	if a.Since.IsZero() || f.width < narrowWidth && a.State != AgentWorking {
		return text
	}
	when := "since " + f.clock(a.Since, "15:04")
	if a.State == AgentWorking {
		when = age(f.now.Sub(a.Since))
	}
	return text + " " + f.theme.Dim.Render(when)
}

// agentDetail is what the agent is at, and how far it has come.
func (f frame) agentDetail(a Agent) string {
	var parts []string
	if a.Task != "" {
		parts = append(parts, f.theme.Accent.Render(clean(a.Task)))
	}
	if a.Turn > 0 {
		parts = append(parts, fmt.Sprintf("turn %d", a.Turn))
	}
	if a.Checkpoint > 0 {
		parts = append(parts, fmt.Sprintf("checkpoint %d", a.Checkpoint))
	}
	if a.Tokens > 0 {
		parts = append(parts, count(a.Tokens)+" tokens")
	}
	if a.Note != "" {
		_, style := f.agentMark(a.State)
		if a.State == AgentWorking || a.State == AgentIdle {
			style = f.theme.Dim
		}
		parts = append(parts, style.Render(clean(a.Note)))
	}
	return strings.Join(parts, f.theme.Dim.Render(" · "))
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

func joined(parts ...string) string {
	var list []string
	for _, p := range parts {
		if p != "" {
			list = append(list, clean(p))
		}
	}
	return strings.Join(list, " · ")
}
