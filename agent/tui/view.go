package tui

import (
	"fmt"
	"strings"
	"time"

	"muntin/agent/tui/editor"
	"muntin/agent/tui/live"
	"muntin/internal/term"
)

// Limits of the region's parts, in lines.
const (
	maxEditor = 12
	maxQueue  = 4
)

// view is the region: what streams in, what runs, what waits, the editor or a
// question, and the status line. It is never taller than the screen.
func (m *model) view() live.Region {
	bottom, x, y := m.input()
	bottom = append(bottom, m.statusLine())
	middle := m.waiting()
	if m.atWork() {
		middle = append(middle, m.workLine())
	}
	room := m.height - 1 - len(bottom)
	middle = middle[:min(len(middle), max(room-1, 0))]
	top := m.running()
	if spare := room - len(middle); len(top) > spare {
		top = top[len(top)-max(spare, 0):]
	}
	lines := append(append(top, middle...), bottom...)
	y += len(top) + len(middle)
	if over := len(lines) - (m.height - 1); over > 0 && m.height > 1 { // a very low screen
		lines, y = lines[over:], max(y-over, 0)
	}
	for i, l := range lines {
		lines[i] = term.Truncate(l, m.width)
	}
	return live.Region{Lines: lines, X: x, Y: y, Hidden: m.dialog != nil && len(m.dialog.q.items) > 0}
}

// running is what streams in, and the calls that run.
func (m *model) running() []string {
	var lines []string
	gap := func() {
		if !m.blank && !m.inTools && len(lines) == 0 {
			lines = append(lines, "")
		}
	}
	if m.answer != nil {
		for _, l := range m.answer.Tail() {
			lines = append(lines, l.Text)
		}
	}
	if m.thought != nil && m.thinking && m.thought.rest != "" {
		t := model{width: m.width, theme: m.theme, blank: true}
		t.faintLines(m.thought.rest)
		for _, l := range t.out {
			lines = append(lines, l.Text)
		}
	}
	if m.thought != nil && !m.thinking {
		lines = append(lines, m.theme.Dim.Italic(true).Render("thinking …"))
	}
	for _, t := range m.tools {
		gap()
		lines = append(lines, t.region(m)...)
	}
	return lines
}

// waiting are the messages that nothing has taken yet.
func (m *model) waiting() []string {
	var lines []string
	for _, s := range m.steering {
		lines = append(lines, m.theme.Dim.Render("↳ steering: "+firstLine(s.text)))
	}
	for _, q := range m.queue {
		lines = append(lines, m.theme.Dim.Render("↳ next: "+firstLine(q)))
	}
	if extra := len(lines) - maxQueue; extra > 0 {
		lines = append(lines[:maxQueue], m.theme.Dim.Render(fmt.Sprintf("  … %d more", extra)))
	}
	if len(lines) > 0 {
		lines = append(lines, m.theme.Dim.Render("  Alt+Up takes them back"))
	}
	return lines
}

func firstLine(text string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if rest != "" {
		first += " …"
	}
	return term.CleanLine(first)
}

func (m *model) workLine() string {
	doing := m.doing
	if doing == "" {
		doing = "working"
	}
	if !m.working && m.doing == "" {
		doing = "running"
	}
	took := ""
	if m.working || m.doing != "" {
		took = "  " + m.now().Sub(m.since).Truncate(time.Second).String()
	}
	return m.theme.Busy.Render("◌ "+doing) + m.theme.Dim.Render(took+" · Esc aborts")
}

// input is the editor with its completions, or the question; x and y are the
// cursor's.
func (m *model) input() (lines []string, x, y int) {
	if !m.blank || m.answer != nil || m.thought != nil || m.atWork() {
		lines = append(lines, "")
	}
	if m.dialog != nil {
		asked, x, y := m.dialog.view(m.theme, m.width, max(m.height-5, 3))
		y += len(lines)
		return append(lines, asked...), x, y
	}
	indent := term.Width(promptMark)
	v := m.edit.View(max(m.width-indent, 4))
	shown, at := window(v, max(min(maxEditor, m.height-4), 1))
	for i, l := range shown {
		mark := strings.Repeat(" ", indent)
		if i == 0 {
			mark = m.theme.Command.Render(promptMark)
		}
		lines = append(lines, mark+l)
	}
	y = len(lines) - len(shown) + at
	if m.popup != nil {
		lines = append(lines, m.popup.view(m.theme, m.width)...)
	}
	return lines, v.X + indent, y
}

// window is the part of the editor around the cursor, and the cursor's line in it.
func window(v editor.View, height int) (lines []string, y int) {
	from := max(min(v.Y-height/2, len(v.Lines)-height), 0)
	return v.Lines[from:min(from+height, len(v.Lines))], v.Y - from
}

// statusLine tells the model, the context, the cost, and where the work is; of what
// does not fit, the end is left out first.
func (m *model) statusLine() string {
	f := m.facts
	name := f.model
	if name == "" {
		name = m.opts.Model
	}
	parts := []string{term.CleanLine(name)}
	if m.width < 60 {
		parts[0] = parts[0][strings.LastIndexByte(parts[0], '/')+1:]
	}
	if f.thinking != "" {
		parts[0] += ":" + f.thinking
	}
	switch {
	case f.window > 0:
		parts = append(parts, fmt.Sprintf("%d%% of %s", 100*f.used/f.window, count(f.window)))
	case f.used > 0:
		parts = append(parts, count(f.used)+" tokens")
	}
	if f.cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", f.cost))
	}
	if n := len(m.queue) + len(m.steering); n > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", n))
	}
	for _, p := range append([]string{f.branch, f.task, f.name}, m.statuses...) {
		if p != "" {
			parts = append(parts, term.CleanLine(p))
		}
	}
	line := ""
	for _, p := range parts {
		next := p
		if line != "" {
			next = line + " · " + p
		}
		if term.Width(next) > m.width-1 && line != "" {
			continue
		}
		line = next
	}
	return m.theme.Dim.Render(term.Truncate(line, m.width-1))
}
