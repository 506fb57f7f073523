package dash

import (
	"fmt"
	"strings"

	"muntin/internal/markdown"
	"muntin/internal/term"
)

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

func (f frame) taskMark(s TaskState) (string, paint) {
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

// boardRows are the tasks as the tree they are on the board.
func (f frame) boardRows() []row {
	rows := make([]row, 0, len(f.Tasks))
	for i, t := range f.Tasks {
		key := t.ID
		if key == "" {
			key = fmt.Sprintf("#%d %s", i, t.Text)
		}
		rows = append(rows, row{
			key:  key,
			find: func() string { return strings.Join([]string{t.ID, t.Text, string(t.State), t.Agent, t.Note}, " ") },
			text: func(width int) string { return f.boardRow(t, width) },
			acts: func() []act { return f.taskActs(t) },
		})
	}
	return rows
}

func (f frame) boardRow(t Task, width int) string {
	mark, style := f.taskMark(t.State)
	text := clean(t.Text)
	if t.settled() {
		text = f.theme.Dim.Render(text)
	}
	left := strings.Repeat("  ", min(t.Depth, 8)) + style.Render(mark) + " " + text
	if t.noted() {
		left += "  " + f.noteStyle(t).Render(clean(t.Note))
	}
	return sides(left, f.holder(t, width/3), width)
}

func (f frame) noteStyle(t Task) paint {
	switch t.State {
	case TaskBlocked:
		return f.theme.Bad
	case TaskWaiting:
		return f.theme.Warn
	default:
		return f.theme.Dim
	}
}

// taskActs are what can be done with a task.
func (f frame) taskActs(t Task) []act {
	if t.ID == "" {
		return nil // it gets an id with the first command that changes the board
	}
	var acts []act
	if t.settled() {
		acts = append(acts, act{key: "space", label: "reopen", argv: []string{"todo", "reopen", t.ID}})
	} else {
		acts = append(acts, act{key: "space", label: "tick", argv: []string{"todo", "done", t.ID}})
	}
	switch t.State {
	case TaskOpen:
		acts = append(acts, act{key: "c", label: "give to", argv: []string{"todo", "claim", t.ID, "--as", textMark}, ask: "who takes " + t.ID})
	case TaskClaimed:
		acts = append(acts, act{key: "c", label: "take back", argv: []string{"todo", "release", t.ID}, sure: true})
	case TaskBlocked, TaskWaiting:
		acts = append(acts, act{key: "o", label: "reopen", argv: []string{"todo", "reopen", t.ID}})
	case TaskDone, TaskCancelled:
	}
	if !t.settled() {
		acts = append(acts,
			act{key: "b", label: "block", argv: []string{"todo", "block", t.ID, textMark}, ask: "why " + t.ID + " is blocked"},
			act{key: "x", label: "cancel", argv: []string{"todo", "cancel", t.ID}, sure: true})
	}
	acts = append(acts, act{key: "e", label: "edit", argv: []string{"todo", "edit", t.ID, textMark}, ask: "text of " + t.ID})
	if a, ok := f.View.find(t.Agent); ok {
		acts = append(acts, act{key: "enter", label: "agent", open: a.Name})
	}
	return append(acts, act{key: "i", label: "add below", argv: []string{"todo", "add", textMark, "--in", t.ID}, ask: "new task in " + t.ID},
		act{key: "l", label: "log", argv: []string{"todo", "log", t.ID}, page: true})
}

// boardActs are what can be done with the board.
func (f frame) boardActs() []act {
	return []act{
		{key: "n", label: "new", argv: []string{"todo", "add", textMark}, ask: "new task"},
		{key: "p", label: "plan", plan: true},
	}
}

// planLines are PLAN.md as people read it.
func (f frame) planLines(width int) []string {
	if strings.TrimSpace(f.Plan) == "" {
		return []string{f.theme.Dim.Render("there is no plan")}
	}
	var lines []string
	for _, l := range markdown.Render(term.Clean(f.Plan), max(width, markdown.MinWidth)) {
		lines = append(lines, l.Text)
	}
	return lines
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
