package term

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress draws how far long work has come on one line of standard error,
// after a moment and not too often. Where that is no terminal it draws nothing.
// It is not safe for several goroutines.
type Progress struct {
	w     io.Writer // nil: nothing is drawn
	theme Theme
	width int
	now   func() time.Time
	next  time.Time
	drawn bool
}

const (
	progressAfter = 300 * time.Millisecond // work that is done before is not shown
	progressEvery = 100 * time.Millisecond
	progressBar   = 24 // cells
)

// NewProgress begins the progress of some work. now is time.Now.
func NewProgress(s Streams, theme Theme, now func() time.Time) *Progress {
	p := &Progress{theme: theme, now: now, next: now().Add(progressAfter)}
	if s.ErrTTY {
		p.w = s.Err
		p.width, _ = s.Size()
	}
	return p
}

// Show draws what is done of a total; a total of 0 is not known.
func (p *Progress) Show(what string, done, total int) {
	if p.w == nil || p.now().Before(p.next) {
		return
	}
	p.next = p.now().Add(progressEvery)
	text := what
	switch {
	case total > 0:
		full := min(progressBar, progressBar*done/total)
		bar := p.theme.Good.Render(strings.Repeat("━", full)) + p.theme.Dim.Render(strings.Repeat("━", progressBar-full))
		text = fmt.Sprintf("%s %s %d/%d", what, bar, done, total)
	case done > 0:
		text = fmt.Sprintf("%s %d", what, done)
	}
	fmt.Fprintf(p.w, "\r%s\x1b[K", Truncate(text, p.width-1))
	p.drawn = true
}

// Done takes the line away.
func (p *Progress) Done() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}
