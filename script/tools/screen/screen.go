// Package screen shows what a terminal shows after some output, as rows of runs
// of equally styled text.
package screen

import (
	"fmt"
	"image/color"
	"io"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// A Screen is a terminal emulator. It is not safe for concurrent use.
type Screen struct {
	vt      *vt.Emulator
	drained chan struct{}
}

// New starts a terminal of that size. Its answers to queries are written to
// answers; they must be taken, or the emulator stops. Close ends it.
func New(cols, rows int, answers io.Writer) *Screen {
	s := &Screen{vt: vt.NewEmulator(cols, rows), drained: make(chan struct{})}
	go func() {
		defer close(s.drained)
		// An error of the receiver must not stop the draining.
		_, _ = io.Copy(blind{answers}, s.vt)
	}()
	return s
}

type blind struct{ io.Writer }

func (b blind) Write(p []byte) (int, error) {
	_, _ = b.Writer.Write(p)
	return len(p), nil
}

// Write feeds output of a program.
func (s *Screen) Write(p []byte) (int, error) {
	return s.vt.Write(p)
}

// Close ends the emulator.
func (s *Screen) Close() error {
	// vt's own Close writes a flag that the draining goroutine reads.
	if w, ok := s.vt.InputPipe().(io.Closer); ok {
		if err := w.Close(); err != nil {
			return fmt.Errorf("closing the emulator: %w", err)
		}
	}
	<-s.drained
	return nil
}

// Text is the screen's text, a line for each row.
func (s *Screen) Text() string {
	return s.vt.String()
}

// A Style is how a run looks. Colours are "#rrggbb", or empty for the
// terminal's own.
type Style struct {
	Fg, Bg                         string
	Bold, Faint, Italic, Underline bool
}

// A Run is text of one style that begins in column Col and is Width columns wide.
type Run struct {
	Col, Width int
	Text       string
	Style      Style
}

// Rows returns the runs of each row; what shows nothing is left out.
func (s *Screen) Rows() [][]Run {
	rows := make([][]Run, s.vt.Height())
	for y := range rows {
		rows[y] = s.row(y)
	}
	return rows
}

func (s *Screen) row(y int) []Run {
	var runs []Run
	for x := 0; x < s.vt.Width(); {
		cell := s.vt.CellAt(x, y)
		text, width, style := " ", 1, Style{}
		if cell != nil && cell.Content != "" {
			text, width, style = cell.Content, max(cell.Width, 1), styleOf(cell.Style)
		}
		if n := len(runs); n > 0 && runs[n-1].Style == style {
			runs[n-1].Text += text
			runs[n-1].Width += width
		} else {
			runs = append(runs, Run{Col: x, Width: width, Text: text, Style: style})
		}
		x += width
	}
	return visible(runs)
}

func visible(runs []Run) []Run {
	kept := runs[:0]
	for _, r := range runs {
		if r.Style.Bg != "" || r.Style.Underline || strings.TrimSpace(r.Text) != "" {
			kept = append(kept, r)
		}
	}
	return kept
}

func styleOf(s uv.Style) Style {
	st := Style{
		Fg: hex(s.Fg), Bg: hex(s.Bg),
		Bold: s.Attrs&uv.AttrBold != 0, Faint: s.Attrs&uv.AttrFaint != 0,
		Italic: s.Attrs&uv.AttrItalic != 0, Underline: s.Underline != uv.UnderlineNone,
	}
	if s.Attrs&uv.AttrReverse != 0 {
		st.Fg, st.Bg = or(st.Bg, Background), or(st.Fg, Foreground)
	}
	return st
}

// Foreground and Background are the terminal's own colours.
const (
	Foreground = "#d0d7de"
	Background = "#0d1117"
)

// palette has the sixteen named colours, as they look on Background.
func palette(i uint8) string {
	return [16]string{
		"#1c2128", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
		"#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc",
	}[i]
}

func hex(c color.Color) string {
	switch c := c.(type) {
	case nil:
		return ""
	case ansi.BasicColor:
		return palette(uint8(c))
	case ansi.IndexedColor:
		if c < 16 {
			return palette(uint8(c))
		}
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
