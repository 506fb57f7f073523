package tui

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"muntin/agent/tui/editor"
	"muntin/internal/markdown"
	"muntin/internal/term"
)

// A dialog is a question on the screen. With items, what is typed narrows them down.
type dialog struct {
	q     question
	edit  editor.Editor // the filter, or the answer
	found []int         // the items that fit the filter
	at    int           // the chosen one of them
}

func newDialog(q *question) *dialog {
	if q == nil {
		return nil
	}
	d := &dialog{q: *q}
	d.edit.Set(q.text)
	d.filter()
	d.at = min(max(q.at, 0), max(len(d.found)-1, 0))
	return d
}

func (d *dialog) filter() {
	d.found = d.found[:0]
	want := d.edit.Text()
	for i, it := range d.q.items {
		if _, ok := fuzzy(want, it.label); ok {
			d.found = append(d.found, i)
		}
	}
	d.at = min(d.at, max(len(d.found)-1, 0))
}

func (d *dialog) paste(text string) {
	d.edit.Insert(term.CleanLine(text))
	d.filter()
}

// dialogKey handles a key while a question is open.
func (m *model) dialogKey(name, text string) {
	d := m.dialog
	close := func(in input) {
		m.dialog = nil
		m.want(in)
	}
	switch name {
	case "esc", "ctrl+c":
		close(input{kind: inputAnswer, choice: -1})
	case "enter", "kpenter":
		switch {
		case len(d.q.items) == 0:
			close(input{kind: inputAnswer, text: d.edit.Text()})
		case len(d.found) > 0:
			close(input{kind: inputAnswer, choice: d.found[d.at]})
		}
	case "up", "ctrl+p":
		d.at = max(d.at-1, 0)
	case "down", "ctrl+n", "tab":
		d.at = max(min(d.at+1, len(d.found)-1), 0)
	case "pgup":
		d.at = max(d.at-10, 0)
	case "pgdown":
		d.at = max(min(d.at+10, len(d.found)-1), 0)
	case "home":
		d.at = 0
	case "end":
		d.at = max(len(d.found)-1, 0)
	case "backspace", "ctrl+h":
		d.edit.Backspace()
		d.filter()
	case "left":
		d.edit.Left()
	case "right":
		d.edit.Right()
	case "ctrl+u":
		d.edit.Set("")
		d.filter()
	case "ctrl+w":
		d.edit.KillWordLeft()
		d.filter()
	default:
		if text != "" {
			d.edit.Insert(text)
			d.at = 0
			d.filter()
		}
	}
}

// view shows the question in at most height lines; x and y are the cursor's.
func (d *dialog) view(theme term.Theme, width, height int) (lines []string, x, y int) {
	title := theme.Title.Render(term.CleanLine(d.q.title))
	body := d.body(width, max(height/2, 1))
	height -= len(body)
	if len(d.q.items) == 0 {
		v := d.edit.View(max(width-2, 4))
		lines = append(append(lines, title), body...)
		for _, l := range v.Lines {
			lines = append(lines, theme.Command.Render("› ")+l)
		}
		return append(lines, theme.Dim.Render("Enter answers · Esc leaves it")), v.X + 2, v.Y + 1 + len(body)
	}
	if filter := d.edit.Text(); filter != "" {
		title += theme.Dim.Render("  " + term.CleanLine(filter))
	}
	lines = append(append(lines, title), body...)
	rows := max(min(height-2, 12), 1)
	from := max(min(d.at-rows/2, len(d.found)-rows), 0)
	for i, index := range d.found[from:min(from+rows, len(d.found))] {
		it := d.q.items[index]
		detail := ""
		if it.detail != "" {
			detail = "  " + it.detail
		}
		label := term.Truncate(term.CleanLine(it.label), max(width-2-min(term.Width(detail), width/2), 8))
		if from+i == d.at {
			lines = append(lines, theme.Command.Render("▸ ")+theme.Strong.Render(label)+theme.Dim.Render(detail))
			continue
		}
		lines = append(lines, "  "+label+theme.Dim.Render(detail))
	}
	help := fmt.Sprintf("%d of %d · Enter chooses · Esc leaves it", min(d.at+1, len(d.found)), len(d.found))
	if len(d.found) == 0 {
		help = "nothing fits · Esc leaves it"
	}
	return append(lines, theme.Dim.Render(help)), 0, len(lines)
}

// body is the text below the title, in at most height lines.
func (d *dialog) body(width, height int) []string {
	text := strings.TrimSpace(clean(d.q.body))
	if text == "" {
		return nil
	}
	lines := markdown.Wrap(text, max(width, 4))
	if extra := len(lines) - height; extra > 0 {
		lines = append(lines[:height-1:height-1], fmt.Sprintf("… %d more lines", extra+1))
	}
	return lines
}

// A popup shows the completions of what stands before the cursor.
type popup struct {
	items  []completion
	at     int
	length int // bytes before the cursor that the completion replaces
}

// A completion can be put in the place of a word.
type completion struct {
	text   string // that is inserted
	label  string
	detail string
}

// popupRows is how many completions are shown.
const popupRows = 6

func (p *popup) view(theme term.Theme, width int) []string {
	from := max(min(p.at-popupRows/2, len(p.items)-popupRows), 0)
	widest := 0
	shown := p.items[from:min(from+popupRows, len(p.items))]
	for _, c := range shown {
		widest = max(widest, term.Width(c.label))
	}
	widest = min(widest, max(width-4, 8))
	var lines []string
	for i, c := range shown {
		style, mark := lipgloss.NewStyle(), "  "
		if from+i == p.at {
			style, mark = theme.Strong, theme.Command.Render("▸ ")
		}
		label := term.Truncate(term.CleanLine(c.label), widest)
		pad := strings.Repeat(" ", max(widest-term.Width(label), 0))
		lines = append(lines, mark+style.Render(label)+pad+theme.Dim.Render("  "+term.CleanLine(c.detail)))
	}
	return lines
}

// popupKey handles the keys that choose a completion.
func (m *model) popupKey(name string) bool {
	p := m.popup
	switch name {
	case "up", "ctrl+p":
		p.at = (p.at + len(p.items) - 1) % len(p.items)
	case "down", "ctrl+n":
		p.at = (p.at + 1) % len(p.items)
	case "tab":
		m.take(p)
	case "enter", "kpenter":
		whole := m.edit.Before()[max(len(m.edit.Before())-p.length, 0):]
		if strings.TrimSpace(p.items[p.at].text) == whole { // it is written already: send it
			m.popup = nil
			return false
		}
		m.take(p)
		if strings.HasPrefix(p.items[p.at].text, "/") && !strings.Contains(p.items[p.at].label, "[") {
			return false // a command that takes nothing: carry it out
		}
	case "esc":
		m.popup = nil
	default:
		return false
	}
	return true
}

func (m *model) take(p *popup) {
	m.edit.Replace(p.length, p.items[p.at].text)
	m.popup = nil
}
