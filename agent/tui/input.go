package tui

import (
	"bufio"
	"sync"

	"muntin/internal/term"
)

// maxLine is the longest line taken from a pipe; a terminal gives less.
const maxLine = 1 << 20

// readLines starts to read lines. stop ends that and waits for it.
func (l *loop) readLines() (stop func()) {
	if l.opts.In == nil {
		return func() {}
	}
	in := term.NewSource(l.opts.In)
	lines := make(chan string)
	done := make(chan struct{})
	l.lines = lines
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(lines)
		scan := bufio.NewScanner(in)
		scan.Buffer(nil, maxLine)
		for scan.Scan() {
			select {
			case lines <- scan.Text():
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		in.Cancel()
		wg.Wait()
		in.Close()
	}
}
