package term

import (
	"image/color"

	"charm.land/lipgloss/v2"
)

// A Theme is the small set of styles that all of muntin's output is made of,
// so that a state has one colour everywhere. It uses the terminal's own 16
// colours: they fit light and dark backgrounds without asking the terminal.
type Theme struct {
	Title   lipgloss.Style
	Strong  lipgloss.Style
	Dim     lipgloss.Style
	Good    lipgloss.Style
	Bad     lipgloss.Style
	Warn    lipgloss.Style
	Busy    lipgloss.Style
	Accent  lipgloss.Style
	Command lipgloss.Style
	Border  color.Color
}

// DefaultTheme returns the theme.
func DefaultTheme() Theme {
	base := lipgloss.NewStyle()
	return Theme{
		Title:   base.Bold(true).Foreground(lipgloss.Cyan),
		Strong:  base.Bold(true),
		Dim:     base.Faint(true),
		Good:    base.Foreground(lipgloss.Green),
		Bad:     base.Foreground(lipgloss.Red),
		Warn:    base.Foreground(lipgloss.Yellow),
		Busy:    base.Foreground(lipgloss.Blue),
		Accent:  base.Foreground(lipgloss.Magenta),
		Command: base.Foreground(lipgloss.Cyan),
		Border:  lipgloss.BrightBlack,
	}
}

// Paint styles one line. Tabs stay tabs, which a style by itself would make
// spaces.
func Paint(style lipgloss.Style, line string) string {
	return style.TabWidth(lipgloss.NoTabConversion).Render(line)
}
