package dash

import (
	"fmt"
	"strings"
	"time"

	"muntin/internal/term"
)

// The sizes at which the layout changes, in cells.
const (
	wideWidth   = 96 // tasks and story side by side from here
	narrowWidth = 60 // what can be left out is, below this
	tinyWidth   = 30 // below these there is one line
	tinyHeight  = 7
	lowHeight   = 12 // the command line of a key is shown from here
	titleHeight = 18 // sections have titles from here
	logMin      = 5  // lines that the log should have, its title among them
)

// A frame is one drawing.
type frame struct {
	View
	ui
	width, height int
	now           time.Time
	theme         palette
}

// render draws height lines, none wider than width, with styles from the
// terminal's own 16 colours. Clock times are in now's location.
func (f frame) render() (string, layout) {
	var lay layout
	if f.width <= 0 || f.height <= 0 {
		return "", lay
	}
	var lines []string
	switch {
	case f.width < tinyWidth || f.height < tinyHeight:
		lines = f.tiny()
	default:
		lines = f.header()
		lay.tabY = len(lines)
		lines = append(lines, f.tabBar(&lay))
		if f.height >= titleHeight {
			lines = append(lines, "")
		}
		bottom := f.footer()
		top := len(lines)
		lines = append(lines, f.body(f.height-top-len(bottom), &lay)...)
		lay.listY += top
		for len(lines) < f.height-len(bottom) {
			lines = append(lines, "")
		}
		lines = append(lines[:f.height-len(bottom)], bottom...)
	}
	text := strings.Join(f.fit(lines), "\n")
	if f.plain {
		text = ascii(text)
	}
	return text, lay
}

// fit makes the lines exactly the size of the terminal.
func (f frame) fit(lines []string) []string {
	for i, line := range lines {
		if term.Width(line) > f.width {
			lines[i] = term.Truncate(line, f.width)
		}
	}
	for len(lines) < f.height {
		lines = append(lines, "")
	}
	return lines[:f.height]
}

// tiny is the run in one line.
func (f frame) tiny() []string {
	total, by := f.counts()
	mark, style := f.phaseMark()
	line := style.Render(mark) + " " + f.theme.Strong.Render(clean(f.Run)) + fmt.Sprintf(" %d/%d", by[TaskDone], total)
	for _, s := range []TaskState{TaskClaimed, TaskBlocked, TaskWaiting} {
		if by[s] > 0 {
			mark, style := f.taskMark(s)
			line += " " + style.Render(fmt.Sprintf("%s%d", mark, by[s]))
		}
	}
	if n := len(f.Needs); n > 0 {
		line += " " + f.theme.Warn.Render(fmt.Sprintf("!%d", n))
	}
	if f.leave && f.height == 1 {
		return []string{f.question()}
	}
	if f.leave {
		return []string{line, f.question()}
	}
	return []string{line}
}

// header is what the run is, how it stands, and how far it has come.
func (f frame) header() []string {
	left := f.theme.Title.Render("muntin") + "  " + f.theme.Strong.Render(clean(f.Run))
	var about []string
	for _, s := range []string{f.Repo, f.Branch, f.Recipe} {
		if s != "" {
			about = append(about, clean(s))
		}
	}
	if f.width >= narrowWidth && len(about) > 0 {
		left += "  " + f.theme.Dim.Render(strings.Join(about, " · "))
	}
	mark, style := f.phaseMark()
	phase := string(f.Phase)
	if phase == "" {
		phase = "starting"
	}
	right := style.Render(mark + " " + clean(phase))
	if !f.Started.IsZero() {
		when := "started " + f.clock(f.Started, "15:04")
		if f.working() {
			when = age(f.now.Sub(f.Started))
		}
		right += " " + f.theme.Dim.Render(when)
	}
	lines := []string{sides(left, right, f.width), f.progress()}
	return append(lines, f.problems()...)
}

// tabBar names the tabs, shorter where there is less room.
func (f frame) tabBar(lay *layout) string {
	gap, long := 0, 0
	for _, try := range [][2]int{{3, 0}, {2, 0}, {2, 1}, {1, 1}, {1, 2}} {
		gap, long = try[0], try[1]
		total := -gap
		for t := range tabCount {
			total += gap + term.Width(f.tabLabel(t, long))
		}
		if total <= f.width {
			break
		}
	}
	var b strings.Builder
	x := 0
	for t := range tabCount {
		text := f.tabLabel(t, long)
		if t > 0 {
			b.WriteString(strings.Repeat(" ", gap))
			x += gap
		}
		lay.tabs = append(lay.tabs, span{x, x + term.Width(text)})
		x += term.Width(text)
		style := f.theme.Dim
		switch {
		case t == f.tab:
			style = f.theme.Here
		case t == TabNeeds && len(f.Needs) > 0:
			style = f.theme.Warn
		}
		b.WriteString(style.Render(text))
	}
	return b.String()
}

// tabLabel is a tab's name: its long one, its short one, or, where it is not
// the present one, its number only.
func (f frame) tabLabel(t Tab, short int) string {
	text := fmt.Sprint(int(t) + 1)
	if short < 2 || t == f.tab {
		text += " " + tabNames()[t][min(short, 1)]
	}
	if t == TabNeeds && len(f.Needs) > 0 {
		text += fmt.Sprintf(" (%d)", len(f.Needs))
	}
	return text
}

// progress is a bar with the done part and the part at work.
func (f frame) progress() string {
	total, by := f.counts()
	text := fmt.Sprintf("%d of %d done", by[TaskDone], total)
	if total == 0 {
		text = "no tasks"
	}
	cells := f.width - term.Width(text) - 2
	if cells < 4 {
		return text
	}
	done, busy := 0, 0
	if total > 0 {
		done = cells * by[TaskDone] / total
		busy = cells*(by[TaskDone]+by[TaskClaimed])/total - done
	}
	return f.theme.Good.Render(strings.Repeat("━", done)) + f.theme.Busy.Render(strings.Repeat("━", busy)) +
		f.rule(cells-done-busy) + "  " + f.theme.Dim.Render(text)
}

// problems are shown above all else, two at most.
func (f frame) problems() []string {
	const most = 2
	var lines []string
	for i, p := range f.Problems {
		text := "! " + clean(p)
		if i == most-1 && len(f.Problems) > most {
			text = fmt.Sprintf("! and %d more problems, first: %s", len(f.Problems)-i, clean(p))
		}
		lines = append(lines, f.theme.Warn.Render(term.Truncate(text, f.width)))
		if i == most-1 {
			break
		}
	}
	return lines
}

// question asks before the orchestrator's own pane is left.
func (f frame) question() string {
	text := "Leave? The orchestrator of this run stops; its agents go on. [y/n]"
	if f.width < term.Width(text) {
		text = "Stop orchestrating? [y/n]"
	}
	return f.theme.Warn.Render(term.Truncate(text, f.width))
}

func (f frame) phaseMark() (string, paint) {
	switch f.Phase {
	case PhaseDone:
		return "●", f.theme.Good
	case PhaseFailed:
		return "✗", f.theme.Bad
	case PhaseWaiting:
		return "?", f.theme.Warn
	case PhaseRunning:
		return "●", f.theme.Busy
	}
	return "○", f.theme.Dim
}

// rule is a thin line of n cells.
func (f frame) rule(n int) string {
	return f.theme.Border.Render(strings.Repeat("─", max(n, 0)))
}

// title heads a section of that width.
func (f frame) title(name, note string, width int) string {
	left := f.theme.Strong.Render(name) + " "
	if note != "" {
		note = " " + f.theme.Dim.Render(note)
	}
	return left + f.rule(width-term.Width(left)-term.Width(note)) + note
}

// clock is a moment on the wall clock, or its day when that is not today.
func (f frame) clock(t time.Time, layout string) string {
	t = t.In(f.now.Location())
	if y, m, d := t.Date(); !f.sameDay(y, m, d) {
		layout = "Jan 2"
	}
	return t.Format(layout)
}

func (f frame) sameDay(year int, month time.Month, day int) bool {
	y, m, d := f.now.Date()
	return y == year && m == month && d == day
}

// clean makes foreign text fit to be shown on a line. What is far longer than
// any line is cut before it costs anything.
func clean(s string) string {
	const most = 2000 // bytes
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return term.CleanLine(s)
}

// age is a duration in at most two units.
func age(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %02ds", s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%dh %02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd %dh", s/86400, s/3600%24)
}

// sides puts right at the right edge and cuts left where they would meet.
func sides(left, right string, width int) string {
	room := width - term.Width(right) - 2
	if right == "" {
		return term.Truncate(left, width)
	}
	if room < 4 {
		return term.Truncate(left, width)
	}
	return pad(left, room) + "  " + right
}

// pad makes s exactly width cells wide.
func pad(s string, width int) string {
	if term.Width(s) > width {
		s = term.Truncate(s, width)
	}
	return s + strings.Repeat(" ", max(width-term.Width(s), 0))
}
