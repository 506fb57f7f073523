// Package live draws on a terminal's main screen: text that stays, which scrolls
// away into the terminal's own history, and below it a small region that changes.
//
// Only the region is ever drawn again, and each drawing is one write between the
// marks of a synchronised update (https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036),
// which terminals that do not know them leave alone. So copy mode, search and
// capture of tmux see the text as it is, once.
//
// Lines must not hold control characters but SGR sequences and OSC 8 links, and
// those of the region must not be wider than the screen.
package live

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A Line is a line of the text that stays.
type Line struct {
	Text  string
	Wraps bool // it is full and goes on in the next one: the terminal shall wrap it, so that a copy has one line
}

// A Region is what changes: its lines, and where in them the cursor stands.
type Region struct {
	Lines  []string
	X, Y   int
	Hidden bool // no cursor is shown
}

// A Screen is the terminal. It is not safe for several goroutines.
type Screen struct {
	w      io.Writer
	width  int
	region Region // as it stands on the terminal
	drawn  bool   // it stands there
	stale  bool   // all of it must be drawn again
}

// What a terminal is told at the start and at the end: bracketed paste, and keys
// such as Shift+Enter told apart (XTMODKEYS of xterm and tmux, and the keyboard
// protocol of kitty).
const (
	enter = "\x1b[?2004h\x1b[>4;2m\x1b[>1u"
	leave = "\x1b[<u\x1b[>4m\x1b[?2004l\x1b[?25h"
)

// New makes the screen of a terminal that is width cells wide. Nothing is written.
func New(w io.Writer, width int) *Screen { return &Screen{w: w, width: width} }

// Start tells the terminal how keys shall come.
func (s *Screen) Start() error { return s.write(enter) }

// Stop takes the region away, leaves the cursor where it began, and gives the
// terminal back as it was. Draw and Start may follow.
func (s *Screen) Stop() error {
	var b strings.Builder
	s.top(&b)
	if s.drawn {
		b.WriteString("\x1b[J")
	}
	s.drawn, s.region = false, Region{}
	return s.write(b.String() + leave)
}

// Raw writes a sequence that neither moves the cursor nor shows anything.
func (s *Screen) Raw(seq string) error { return s.write(seq) }

// Resize says that the screen is width cells wide now. Terminals have wrapped the
// region's lines anew when it has become narrower; the next Draw goes to where the
// region begins then.
func (s *Screen) Resize(width int) {
	if width == s.width {
		return
	}
	if s.drawn && width < s.width && width > 0 {
		rows := 0
		for _, l := range s.region.Lines[:s.region.Y] {
			rows += max((ansi.StringWidth(l)+width-1)/width, 1)
		}
		s.region.Y = rows + s.region.X/width
		s.region.X %= width
	}
	s.width, s.stale = width, true
}

// Draw puts lines below the text that stays and shows the region below them.
func (s *Screen) Draw(above []Line, r Region) error {
	if len(r.Lines) == 0 {
		r.Lines = []string{""}
	}
	r.Y = min(max(r.Y, 0), len(r.Lines)-1)
	r.X = max(min(r.X, s.width-1), 0)
	var b strings.Builder
	switch {
	case len(above) > 0 || !s.drawn || s.stale:
		s.top(&b)
		b.WriteString("\x1b[J")
		for _, l := range above {
			b.WriteString(l.Text)
			if !l.Wraps {
				b.WriteString("\r\n")
			}
		}
		b.WriteString(strings.Join(r.Lines, "\r\n"))
		moveTo(&b, len(r.Lines)-1, r.Y, r.X)
	case !s.changed(&b, r):
		return nil
	}
	s.region, s.drawn, s.stale = r, true, false
	cursor := "\x1b[?25h"
	if r.Hidden {
		cursor = ""
	}
	return s.write("\x1b[?2026h\x1b[?25l" + b.String() + cursor + "\x1b[?2026l")
}

// changed draws the lines of the region that differ, and reports whether anything
// did.
func (s *Screen) changed(b *strings.Builder, r Region) bool {
	old := s.region
	at := old.Y
	differs := len(old.Lines) != len(r.Lines)
	for i, l := range r.Lines {
		if i < len(old.Lines) && old.Lines[i] == l {
			continue
		}
		differs = true
		if i >= len(old.Lines) { // below the region: there may be no row yet
			moveTo(b, at, i-1, 0)
			b.WriteString("\r\n")
		} else {
			moveTo(b, at, i, 0)
		}
		b.WriteString("\x1b[K" + l)
		at = i
	}
	if len(old.Lines) > len(r.Lines) {
		moveTo(b, at, len(r.Lines), 0)
		b.WriteString("\x1b[J")
		at = len(r.Lines)
	}
	if !differs && old.X == r.X && old.Y == r.Y && old.Hidden == r.Hidden {
		return false
	}
	moveTo(b, at, r.Y, r.X)
	return true
}

// top goes to the beginning of the region.
func (s *Screen) top(b *strings.Builder) {
	if s.drawn {
		moveTo(b, s.region.Y, 0, 0)
		return
	}
	b.WriteByte('\r')
}

// moveTo goes from a row of the region to another one, to column x.
func moveTo(b *strings.Builder, from, to, x int) {
	b.WriteByte('\r')
	switch {
	case to < from:
		b.WriteString("\x1b[" + strconv.Itoa(from-to) + "A")
	case to > from:
		b.WriteString("\x1b[" + strconv.Itoa(to-from) + "B")
	}
	if x > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(x) + "C")
	}
}

func (s *Screen) write(text string) error {
	if _, err := io.WriteString(s.w, text); err != nil {
		return fmt.Errorf("writing to the terminal: %w", err)
	}
	return nil
}
