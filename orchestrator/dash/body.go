package dash

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"muntin/internal/term"
)

// body fills height lines with tasks, agents and the log.
func (f frame) body(height int) []string {
	if f.width >= wideWidth && f.height >= wideHeight {
		return f.wide(height)
	}
	return f.stacked(height)
}

// wide has the tasks at the left of the agents, and the log below both.
func (f frame) wide(height int) []string {
	const gap = 3
	left := (f.width - gap) * 11 / 20
	right := f.width - gap - left
	// The log keeps a third; what it does not fill goes to the columns.
	logWant := min(max(height/3, logMin), len(f.Log)+1)
	if len(f.Log) == 0 {
		logWant = 0
	}
	room := height - logWant
	if logWant > 0 {
		room-- // a blank line above the log
	}
	tasks := append([]string{f.title("Tasks", f.taskNote(), left)}, f.taskRows(left, room-1)...)
	agents := append([]string{f.title("Agents", f.agentNote(), right)}, f.agentRows(right, room-1)...)
	var lines []string
	for i := range max(len(tasks), len(agents)) {
		lines = append(lines, strings.TrimRight(pad(at(tasks, i), left)+strings.Repeat(" ", gap)+at(agents, i), " "))
	}
	return append(lines, f.logSection(height-len(lines))...)
}

// stacked has agents, tasks and the log below each other. Small screens have
// no titles and no log.
func (f frame) stacked(height int) []string {
	titles := f.height >= titleHeight
	head := 0
	if titles {
		head = 2 // title and the blank line below the section
	}
	agentRoom := min(len(f.Agents), max((height-2*head)/3, 1))
	logRoom := 0
	if titles && len(f.Log) > 0 {
		logRoom = min(len(f.Log)+1, max(logMin, height/4))
	}
	taskRoom := height - logRoom - agentRoom - 2*head
	if missing := len(f.Tasks) - taskRoom; missing > 0 && logRoom > logLeast {
		give := min(missing, logRoom-logLeast)
		logRoom, taskRoom = logRoom-give, taskRoom+give
	}
	if logRoom == 0 && titles {
		taskRoom++ // no section below, so no blank line
	}
	var lines []string
	add := func(name, note string, rows []string) {
		if len(rows) == 0 {
			return
		}
		if titles {
			lines = append(lines, f.title(name, note, f.width))
		}
		lines = append(lines, rows...)
		if titles {
			lines = append(lines, "")
		}
	}
	add("Agents", f.agentNote(), f.agentLines(f.width, agentRoom))
	add("Tasks", f.taskNote(), f.taskRows(f.width, taskRoom))
	if logRoom == 0 {
		return lines[:min(len(lines), height)]
	}
	lines = lines[:min(len(lines), height-logRoom)]
	return append(lines, f.log(f.width, height-len(lines))...)
}

// logSection is the log with a blank line above it.
func (f frame) logSection(height int) []string {
	if height < 3 || len(f.Log) == 0 {
		return nil
	}
	return append([]string{""}, f.log(f.width, height-1)...)
}

// log shows the last lines that fit.
func (f frame) log(width, height int) []string {
	lines := []string{f.title("Log", "", width)}
	rows := f.Log[max(len(f.Log)-(height-1), 0):]
	for _, l := range rows {
		mark, style := "·", f.theme.Dim
		switch l.Level {
		case LevelGood:
			mark, style = "✓", f.theme.Good
		case LevelWarn:
			mark, style = "!", f.theme.Warn
		case LevelBad:
			mark, style = "✗", f.theme.Bad
		case LevelInfo:
		}
		text := f.theme.Dim.Render(l.Time.In(f.now.Location()).Format("15:04:05")) + " " + style.Render(mark) + " " + clean(l.Text)
		lines = append(lines, term.Truncate(text, width))
	}
	return lines
}

func (f frame) taskNote() string {
	_, by := f.counts()
	var parts []string
	for _, c := range []struct {
		state TaskState
		name  string
	}{{TaskClaimed, "in progress"}, {TaskOpen, "open"}, {TaskBlocked, "blocked"}, {TaskWaiting, "waiting"}} {
		if by[c.state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[c.state], c.name))
		}
	}
	return strings.Join(parts, ", ")
}

func (f frame) taskMark(s TaskState) (string, lipgloss.Style) {
	switch s {
	case TaskOpen:
		return "○", f.theme.Dim
	case TaskClaimed:
		return "◐", f.theme.Busy
	case TaskDone:
		return "●", f.theme.Good
	case TaskBlocked:
		return "✗", f.theme.Bad
	case TaskCancelled:
		return "–", f.theme.Dim
	case TaskWaiting:
		return "?", f.theme.Warn
	}
	return "·", f.theme.Dim
}

// taskRows shows the tasks in at most room lines. When they do not all fit,
// notes go first, then settled tasks shrink to one line, then the end is cut.
func (f frame) taskRows(width, room int) []string {
	if room <= 0 {
		return nil
	}
	if len(f.Tasks) == 0 {
		return []string{f.theme.Dim.Render("no tasks on the board")}
	}
	idWidth := 0
	for _, t := range f.Tasks {
		idWidth = max(idWidth, min(term.Width(clean(t.ID)), 16, width/4))
	}
	notes := 0
	for _, t := range f.Tasks {
		if t.noted() {
			notes++
		}
	}
	if len(f.Tasks) > room {
		return f.openTasks(idWidth, width, room)
	}
	var rows []string
	for _, t := range f.Tasks {
		rows = append(rows, f.task(t, idWidth, width))
		if t.noted() && len(f.Tasks)+notes <= room {
			rows = append(rows, f.taskReason(t, idWidth, width))
		}
	}
	return rows
}

// openTasks puts settled tasks into one line and shows as many others as fit.
func (f frame) openTasks(idWidth, width, room int) []string {
	var open []Task
	for _, t := range f.Tasks {
		if !t.settled() {
			open = append(open, t)
		}
	}
	var rows []string
	if settled := len(f.Tasks) - len(open); settled > 0 {
		mark, style := f.taskMark(TaskDone)
		rows = append(rows, style.Render(mark)+f.theme.Dim.Render(fmt.Sprintf(" %d settled", settled)))
	}
	for i, t := range open {
		if len(rows) == room-1 && i < len(open)-1 {
			return append(rows, f.theme.Dim.Render(fmt.Sprintf("… %d more", len(open)-i)))
		}
		if len(rows) == room {
			break
		}
		rows = append(rows, f.task(t, idWidth, width))
	}
	return rows
}

// task is one task's line.
func (f frame) task(t Task, idWidth, width int) string {
	mark, style := f.taskMark(t.State)
	text := clean(t.Text)
	if t.settled() {
		text = f.theme.Dim.Render(text)
	}
	left := style.Render(mark) + " " + f.theme.Accent.Render(pad(clean(t.ID), idWidth)) + "  " + text
	return sides(left, f.holder(t, width/3), width)
}

// taskReason is the line below it.
func (f frame) taskReason(t Task, idWidth, width int) string {
	style := f.theme.Warn
	if t.State == TaskBlocked {
		style = f.theme.Bad
	}
	return term.Truncate(strings.Repeat(" ", idWidth+4)+style.Render(clean(t.Note)), width)
}

// holder tells who has a task, or what it waits for.
func (f frame) holder(t Task, width int) string {
	who := clean(t.Agent)
	if t.Attempt > 1 && t.State != TaskOpen {
		who += fmt.Sprintf(" ×%d", t.Attempt)
	}
	if who == "" && t.State == TaskOpen && len(t.After) > 0 {
		who = "after " + clean(strings.Join(t.After, ", "))
	}
	if t.State == TaskClaimed {
		return term.Truncate(who, width)
	}
	return f.theme.Dim.Render(term.Truncate(who, width))
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
