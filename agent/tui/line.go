package tui

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/internal/markdown"
	"muntin/internal/term"
)

// promptMark stands before what a person says.
const promptMark = "❯ "

// screen is the plain display: it writes the conversation in lines, which never
// change, and reads prompts as lines, which the terminal itself lets one edit. That
// is what screen readers, dumb terminals and pipes can follow. Each method makes one
// write, so that what two goroutines say never mixes within a line.
type screen struct {
	in       io.Reader
	typing   chan input
	stop     func() // ends the reading
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
	s.held(b)
	if s.inLine {
		b.WriteByte('\n')
	}
	s.marked, s.inLine = false, false
}

// held writes the last word of the streamed text, which waited for its end.
func (s *screen) held(b *strings.Builder) {
	if rest := s.streams.wrap.rest(s.cells()); rest != "" {
		s.put(b, rest, s.streams.style)
	}
	s.streams.wrap = wrapper{}
}

// cells is the width that text is wrapped at.
func (s *screen) cells() int { return max(s.width(), 20) }

// line writes a whole line, cut at the width, which is cleaned already.
func (s *screen) line(b *strings.Builder, text string) {
	s.fresh(b)
	b.WriteString(term.Truncate(text, s.cells()))
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
func (s *screen) head(_ context.Context, o Options, notices []string) {
	s.stop = s.readLines()
	s.write(func(b *strings.Builder) {
		s.line(b, s.theme.Title.Render(term.CleanLine(o.Name))+s.theme.Dim.Render("  "+term.CleanLine(o.Model)+"  "+term.CleanLine(shortDir(o.Dir))))
		for _, n := range notices {
			s.line(b, s.theme.Warn.Render(term.CleanLine(n)))
		}
	})
}

// shortDir is the end of a folder's path: what tells it from others.
func shortDir(dir string) string {
	parent, base := filepath.Split(filepath.Clean(dir))
	if up := filepath.Base(parent); len(parent) > 20 && up != "." {
		return filepath.Join("…", up, base)
	}
	return dir
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
		s.text(b, m.text, s.theme.Strong, term.Width(promptMark))
		if len(notes) > 0 {
			b.WriteString(s.theme.Dim.Render("  (" + strings.Join(notes, ", ") + ")"))
		}
		b.WriteByte('\n')
		s.inLine, s.blank = false, false
	})
}

// text writes a whole foreign text, wrapped at words, from the column col on.
func (s *screen) text(b *strings.Builder, text string, style lipgloss.Style, col int) {
	w := wrapper{col: col}
	wrapped := w.write(clean(text), s.cells())
	s.put(b, wrapped+w.rest(s.cells()), style)
}

// more writes a piece of a foreign text that comes piece by piece.
func (s *screen) more(b *strings.Builder, text string, style lipgloss.Style) {
	s.streams.style = style
	s.put(b, s.streams.wrap.write(clean(text), s.cells()), style)
}

// put writes text that is clean and wrapped.
func (s *screen) put(b *strings.Builder, text string, style lipgloss.Style) {
	if text == "" {
		return
	}
	for i, l := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
			s.blank = !s.inLine
			s.inLine = false
		}
		if l != "" {
			b.WriteString(term.Paint(style, l))
			s.inLine, s.blank = true, false
		}
	}
}

func clean(text string) string { return term.Clean(strings.ReplaceAll(text, "\r\n", "\n")) }

// ready shows that prompts are taken.
func (s *screen) ready() {
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
	s.write(func(b *strings.Builder) {
		for _, l := range strings.Split(ansi.Wrap(text, max(s.cells(), 4), ""), "\n") {
			s.line(b, term.Paint(s.theme.Dim, l))
		}
	})
}

// footer closes a turn.
func (s *screen) footer(o harness.Outcome, err error) {
	s.write(func(b *strings.Builder) {
		s.fresh(b)
		s.streams = stream{}
		facts := footerText(o)
		failure := o.Failure(err)
		switch {
		case aborted(failure):
			s.line(b, s.theme.Warn.Render("■ aborted")+s.theme.Dim.Render(" · "+facts))
		case failure != nil:
			s.fresh(b)
			s.text(b, "✗ "+failure.Error(), s.theme.Bad, 0)
			b.WriteByte('\n')
			s.inLine, s.blank = false, false
			s.line(b, s.theme.Dim.Render("  "+facts))
		default:
			s.line(b, s.theme.Good.Render("✓ ")+s.theme.Dim.Render(facts))
		}
	})
}

// status reports the state, where a terminal is told.
func (s *screen) status(st state, msg string) {
	if s.terminal {
		s.write(func(b *strings.Builder) { b.WriteString(statusSequence(st, msg)) })
	}
}

// leave leaves the cursor on an empty line.
func (s *screen) leave() error {
	if s.stop != nil {
		s.stop()
	}
	s.write(s.fresh)
	return s.failed()
}

func (s *screen) inputs() <-chan input { return s.typing }

// What a terminal shows in its region is not shown here, or when it matters.
func (s *screen) queued([]string) {}
func (s *screen) facts(facts)     {}

// past tells how much was said before: whoever listens to it wants no more.
func (s *screen) past(all []llm.Message) {
	s.note(plural(len(all), "message") + " of this conversation came before; /export writes them as a page")
}

func (s *screen) page(text string) {
	s.write(func(b *strings.Builder) {
		s.gap(b)
		for _, l := range markdown.Render(clean(text), s.cells()) {
			s.fresh(b)
			b.WriteString(l.Text + "\n")
			s.blank = l.Text == ""
		}
	})
}

func (s *screen) giveBack(texts []string) {
	for _, t := range texts {
		s.note("not sent: " + term.CleanLine(t))
	}
}

func (s *screen) statuses([]string) {} // they change, and what is written here does not

func (s *screen) recolour(t term.Theme) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.theme = t
}

// notice writes what an extension says.
func (s *screen) notice(n harness.Notice) {
	head, style := noticeHead(s.theme, n)
	s.write(func(b *strings.Builder) {
		s.fresh(b)
		s.text(b, head+strings.TrimRight(n.Text, "\n"), style, 0)
		s.fresh(b)
	})
}

// ask writes the question; the next line is the answer.
func (s *screen) ask(q *question) {
	if q == nil {
		return
	}
	s.write(func(b *strings.Builder) {
		s.gap(b)
		s.line(b, s.theme.Title.Render(term.CleanLine(q.title)))
		for _, l := range cleanLines(q.body) {
			s.line(b, l)
		}
		for i, it := range q.items {
			detail := ""
			if it.detail != "" {
				detail = "  " + it.detail
			}
			s.line(b, fmt.Sprintf("%3d  %s", i+1, term.CleanLine(it.label))+s.theme.Dim.Render(detail))
		}
		how := "A number chooses, an empty line leaves it."
		if len(q.items) == 0 {
			how = "A line answers, an empty one leaves it."
		}
		s.line(b, s.theme.Dim.Render(how))
	})
}

func (s *screen) copy(text string) {
	if s.terminal {
		s.write(func(b *strings.Builder) { b.WriteString(ansi.SetSystemClipboard(text)) })
	}
}
