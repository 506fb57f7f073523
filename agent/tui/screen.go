package tui

import (
	"io"
	"strings"
	"sync"

	"charm.land/lipgloss/v2"

	"muntin/agent/harness"
	"muntin/internal/term"
)

// promptMark stands before what a person says.
const promptMark = "❯ "

// screen writes the conversation. Each method makes one write, so that what two
// goroutines say never mixes within a line.
type screen struct {
	out      io.Writer
	theme    term.Theme
	width    func() int
	terminal bool
	echo     bool

	mu      sync.Mutex // guards all below, and the order of what is written
	err     error      // the first error of out
	inLine  bool       // streamed text stands in the last line
	marked  bool       // the prompt mark stands in the last line
	blank   bool       // the last line is empty
	streams stream
}

// write puts out what fn makes. Caller must not hold mu.
func (s *screen) write(fn func(b *strings.Builder)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fn(&b)
	if s.err != nil || b.Len() == 0 {
		return
	}
	_, s.err = io.WriteString(s.out, b.String())
}

func (s *screen) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// fresh makes b begin on an empty line.
func (s *screen) fresh(b *strings.Builder) {
	if s.marked {
		b.WriteString("\r\x1b[K") // the mark moves down, below what comes
	}
	if s.inLine {
		b.WriteByte('\n')
	}
	s.marked, s.inLine = false, false
}

// line writes a whole line, cut at the width, which is cleaned already.
func (s *screen) line(b *strings.Builder, text string) {
	s.fresh(b)
	b.WriteString(term.Truncate(text, max(s.width(), 20)))
	b.WriteByte('\n')
	s.blank = text == ""
}

// gap leaves one empty line, if there is none yet.
func (s *screen) gap(b *strings.Builder) {
	s.fresh(b)
	if !s.blank {
		s.line(b, "")
	}
}

// head is what the pane begins with.
func (s *screen) head(o Options, notices []string) {
	s.write(func(b *strings.Builder) {
		s.line(b, s.theme.Title.Render(term.CleanLine(o.Name))+s.theme.Dim.Render("  "+term.CleanLine(o.Model)+"  "+term.CleanLine(o.Dir)))
		for _, n := range notices {
			s.line(b, s.theme.Warn.Render(term.CleanLine(n)))
		}
	})
}

// prompt shows a message, with who sent it unless that is the person at the pane.
func (s *screen) prompt(m message, how string) {
	s.write(func(b *strings.Builder) {
		s.gap(b)
		notes := []string{}
		if m.from != local && m.from != "" {
			notes = append(notes, m.from)
		}
		if how != "" {
			notes = append(notes, how)
		}
		b.WriteString(s.theme.Command.Render(promptMark))
		s.text(b, m.text, s.theme.Strong)
		if len(notes) > 0 {
			b.WriteString(s.theme.Dim.Render("  (" + strings.Join(notes, ", ") + ")"))
		}
		b.WriteByte('\n')
		s.inLine, s.blank = false, false
	})
}

// text writes foreign text of any length; the terminal wraps it.
func (s *screen) text(b *strings.Builder, text string, style lipgloss.Style) {
	text = term.Clean(strings.ReplaceAll(text, "\r\n", "\n"))
	for i, l := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		if l != "" {
			b.WriteString(paint(style, l))
		}
		s.inLine, s.blank = l != "", l == ""
	}
}

// mark shows that prompts are taken.
func (s *screen) mark() {
	s.write(func(b *strings.Builder) {
		if s.terminal && !s.marked {
			s.gap(b)
			b.WriteString(s.theme.Command.Render(promptMark))
			s.marked, s.blank = true, false
		}
	})
}

// entered says that the person ended a line: the terminal has echoed it, so the
// cursor stands at the beginning of the next one.
func (s *screen) entered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.echo {
		s.marked, s.inLine, s.blank = false, false, false
	}
}

// note is a remark of the program itself.
func (s *screen) note(text string) {
	s.write(func(b *strings.Builder) { s.line(b, s.theme.Dim.Render(text)) })
}

// footer closes a turn.
func (s *screen) footer(o harness.Outcome, err error) {
	s.write(func(b *strings.Builder) {
		s.streams = stream{}
		facts := footerText(o)
		failure := o.Failure(err)
		switch {
		case aborted(failure):
			s.line(b, s.theme.Warn.Render("■ aborted")+s.theme.Dim.Render(" · "+facts))
		case failure != nil:
			s.fresh(b)
			s.text(b, "✗ "+failure.Error(), s.theme.Bad)
			b.WriteByte('\n')
			s.inLine, s.blank = false, false
			s.line(b, s.theme.Dim.Render("  "+facts))
		default:
			s.line(b, s.theme.Good.Render("✓ ")+s.theme.Dim.Render(facts))
		}
	})
}

// leave leaves the cursor on an empty line.
func (s *screen) leave() error {
	s.write(s.fresh)
	return s.failed()
}

// paint styles one line. Tabs stay tabs.
func paint(style lipgloss.Style, line string) string {
	return style.TabWidth(lipgloss.NoTabConversion).Render(line)
}
