package dash

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"muntin/internal/term"
)

// The least width of the board at which the plan stands beside it, and of the
// plan there.
const (
	planWidth = 110
	planShare = 3 // a third of the width
)

// body fills height lines with the present tab.
func (f frame) body(height int, lay *layout) []string {
	switch {
	case f.help:
		return f.helpLines(height)
	case f.page != nil:
		lay.page = height - 1
		return f.pageLines(height)
	case f.tab == TabAgent:
		return f.agentBody(height)
	}
	rows := f.rows()
	title, note := f.tabTitle()
	room := height
	var lines []string
	if f.height >= titleHeight || f.tab != TabFleet && f.height >= lowHeight {
		if more := f.more(rows, room-1); more != "" {
			note = joined(note, more)
		}
		lines, room = append(lines, f.title(title, note, f.width)), room-1
	}
	width := f.width
	if f.tab == TabBoard && width >= planWidth && f.Plan != "" {
		width -= width/planShare + 3
	}
	if f.tab == TabFleet && len(rows) > 0 {
		lines, room = append(lines, "  "+f.tableHead(f.fleetColumns(width-2), "TASK")), room-1
	}
	lay.listY = len(lines)
	if len(rows) == 0 {
		lines = append(lines, "  "+f.theme.Dim.Render(f.none()))
	}
	list := f.list(rows, width, room, lay)
	if width < f.width {
		list = f.besidePlan(list, width, room)
	}
	lines = append(lines, list...)
	if f.tab == TabFleet {
		lines = append(lines, f.below(height-len(lines))...)
	}
	return lines
}

// besidePlan puts the plan to the right of the board.
func (f frame) besidePlan(list []string, width, room int) []string {
	plan := f.planLines(f.width - width - 3)
	var lines []string
	bar := f.theme.Dim.Render(" │ ")
	for i := range max(len(list), min(len(plan), room)) {
		lines = append(lines, pad(at(list, i), width)+bar+at(plan, i))
	}
	return lines
}

// below are the tasks and the end of the story, in the room that the agents leave.
func (f frame) below(room int) []string {
	const gap = 3
	room-- // a blank line
	if room < 4 {
		return nil
	}
	if f.width >= wideWidth {
		left := (f.width - gap) / 2
		right := f.width - gap - left
		tasks := append([]string{f.title("Tasks", f.taskNote(), left)}, f.taskRows(left, room-1)...)
		story := f.log(right, room)
		lines := []string{""}
		for i := range max(len(tasks), len(story)) {
			lines = append(lines, strings.TrimRight(pad(at(tasks, i), left)+strings.Repeat(" ", gap)+at(story, i), " "))
		}
		return lines
	}
	storyRoom := 0
	if room >= 10 && len(f.Log) > 0 {
		storyRoom = min(len(f.Log)+2, max(room/3, logMin))
	}
	lines := append([]string{"", f.title("Tasks", f.taskNote(), f.width)}, f.taskRows(f.width, room-storyRoom-1)...)
	if storyRoom > 0 {
		lines = append(append(lines, ""), f.log(f.width, room-len(lines))...)
	}
	return lines
}

// log shows the last lines that fit.
func (f frame) log(width, height int) []string {
	lines := []string{f.title("Story", "", width)}
	for _, l := range f.Log[max(len(f.Log)-(height-1), 0):] {
		lines = append(lines, term.Truncate(f.logLine(l), width))
	}
	return lines
}

func (f frame) tabTitle() (title, note string) {
	switch f.tab {
	case TabFleet:
		return "Agents", f.agentNote()
	case TabBoard:
		return "Tasks", f.taskNote()
	case TabOverlap:
		return "Work that will conflict", ""
	case TabMessages:
		return "Messages", f.msgErr
	case TabNeeds:
		return "Needs a person", ""
	case TabStory, TabAgent, tabCount:
	}
	return "Story", ""
}

// none is what is said where a list has no rows.
func (f frame) none() string {
	if f.filter != "" {
		return "nothing matches " + clean(f.filter)
	}
	switch f.tab {
	case TabFleet:
		return "no agents"
	case TabBoard:
		return "no tasks on the board"
	case TabOverlap:
		return "nobody is in anybody's way"
	case TabMessages:
		return "no messages"
	case TabNeeds:
		return "nothing needs you"
	case TabStory, TabAgent, tabCount:
	}
	return "nothing has happened yet"
}

// agentBody is an agent's terminal as it is, below who it is and what it does.
func (f frame) agentBody(height int) []string {
	a, ok := f.shownAgent()
	if !ok {
		return []string{"  " + f.theme.Dim.Render("no agents")}
	}
	mark, style := f.agentMark(a.State)
	left := f.theme.Strong.Render(clean(a.Name)) + "  " + style.Render(mark+" "+clean(string(a.State))) + " " +
		f.theme.Dim.Render(f.since(a)) + "  " + f.doing(a)
	right := joined(a.Role, a.Model, a.Source)
	lines := []string{sides(left, f.theme.Dim.Render(term.Truncate(right, f.width/3)), f.width), f.rule(f.width)}
	room := height - len(lines)
	switch {
	case f.screen.Err != "":
		return append(lines, "  "+f.theme.Dim.Render(clean(f.screen.Err)))
	case f.screen.Lines == nil:
		return append(lines, "  "+f.theme.Dim.Render("its screen is asked for"))
	}
	shown := f.screen.Lines
	for len(shown) > 0 && strings.TrimSpace(ansi.Strip(shown[len(shown)-1])) == "" {
		shown = shown[:len(shown)-1]
	}
	shown = shown[max(len(shown)-room, 0):] // the end is where things happen
	for _, l := range shown {
		lines = append(lines, styled(l, f.width))
	}
	return lines
}

// pageLines shows a page from where it was scrolled to.
func (f frame) pageLines(height int) []string {
	all := f.pageText()
	room := height - 1
	top := max(min(f.page.top, len(all)-room), 0)
	note := ""
	if len(all) > room {
		note = percent(top, len(all)-room)
	}
	lines := []string{f.title(clean(f.page.title), note, f.width)}
	for _, l := range all[top:min(top+room, len(all))] {
		lines = append(lines, term.Truncate(l, f.width))
	}
	return lines
}

func (f frame) pageText() []string {
	if f.page.plan {
		return f.planLines(f.width)
	}
	return f.page.lines
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
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
