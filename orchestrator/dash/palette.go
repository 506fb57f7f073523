package dash

import (
	"strings"

	"charm.land/lipgloss/v2"

	"muntin/internal/term"
)

// A paint is a style made ready once: a drawing has hundreds of styled pieces,
// each of one line.
type paint struct {
	open, end string
	style     *lipgloss.Style // that it was made of
}

func newPaint(s lipgloss.Style) paint {
	const mark = "x"
	open, end, _ := strings.Cut(s.Render(mark), mark)
	return paint{open, end, &s}
}

// Render styles a piece of one line.
func (p paint) Render(s string) string {
	if s == "" {
		return ""
	}
	return p.open + s + p.end
}

// A palette is the theme made ready.
type palette struct {
	Title, Strong, Dim, Good, Bad, Warn, Busy, Accent, Command, Border paint

	Here paint // the present tab
}

func newPalette(t term.Theme) palette {
	return palette{
		Title: newPaint(t.Title), Strong: newPaint(t.Strong), Dim: newPaint(t.Dim), Good: newPaint(t.Good), Bad: newPaint(t.Bad),
		Warn: newPaint(t.Warn), Busy: newPaint(t.Busy), Accent: newPaint(t.Accent), Command: newPaint(t.Command),
		Border: newPaint(lipgloss.NewStyle().Foreground(t.Border)), Here: newPaint(t.Title.Underline(true).UnderlineSpaces(true)),
	}
}
