package term

import (
	"fmt"
	"image/color"
	"maps"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
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

// TmuxStyle writes the foreground and attributes of a style as tmux(1), STYLES,
// has them: "fg=colour4,bold". Without colour only the attributes stay.
func TmuxStyle(style lipgloss.Style, colour bool) string {
	var parts []string
	if c, ok := style.GetForeground().(ansi.BasicColor); ok && colour {
		parts = append(parts, fmt.Sprintf("fg=colour%d", int(c)))
	}
	if style.GetBold() {
		parts = append(parts, "bold")
	}
	if style.GetFaint() {
		parts = append(parts, "dim")
	}
	if len(parts) == 0 {
		return "default"
	}
	return strings.Join(parts, ",")
}

// Paint styles one line. Tabs stay tabs, which a style by itself would make
// spaces.
func Paint(style lipgloss.Style, line string) string {
	return style.TabWidth(lipgloss.NoTabConversion).Render(line)
}

// With gives the theme with other colours, by the names of styles: title, dim,
// good, bad, warn, busy, accent, command, border. A colour is one of the
// terminal's own 16, such as red or bright-red, or 0 to 255 or #rrggbb, which the
// output brings down to what the terminal can show.
func (t Theme) With(colours map[string]string) (Theme, error) {
	styles := map[string]*lipgloss.Style{
		"title": &t.Title, "dim": &t.Dim, "good": &t.Good, "bad": &t.Bad, "warn": &t.Warn,
		"busy": &t.Busy, "accent": &t.Accent, "command": &t.Command,
	}
	for _, name := range slices.Sorted(maps.Keys(colours)) {
		c, err := parseColour(colours[name])
		if err != nil {
			return t, fmt.Errorf("the colour of %s: %w", name, err)
		}
		style, ok := styles[name]
		switch {
		case name == "border":
			t.Border = c
		case !ok:
			known := append(slices.Collect(maps.Keys(styles)), "border")
			slices.Sort(known)
			return t, fmt.Errorf("there is no style %q: there are %s", name, strings.Join(known, ", "))
		case name == "dim":
			*style = style.Faint(false).Foreground(c)
		default:
			*style = style.Foreground(c)
		}
	}
	return t, nil
}

func parseColour(text string) (color.Color, error) {
	names := []string{"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"}
	plain, bright := strings.CutPrefix(text, "bright-")
	if i := slices.Index(names, plain); i >= 0 {
		if bright {
			i += len(names)
		}
		return lipgloss.Color(strconv.Itoa(i)), nil
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= 255 {
		return lipgloss.Color(strconv.Itoa(n)), nil
	}
	if hex, ok := strings.CutPrefix(text, "#"); ok && len(hex) == 6 && strings.Trim(strings.ToLower(hex), "0123456789abcdef") == "" {
		return lipgloss.Color(text), nil
	}
	return nil, fmt.Errorf("%q is no colour: want a name such as red or bright-red, 0 to 255, or #rrggbb", text)
}
