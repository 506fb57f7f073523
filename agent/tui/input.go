package tui

import (
	"bufio"
	"sync"

	"muntin/internal/term"
)

// maxLine is the longest line taken from a pipe; a terminal gives less.
const maxLine = 1 << 20

// readLines starts to read lines, which become inputs. stop ends that and waits for
// it.
func (s *screen) readLines() (stop func()) {
	if s.in == nil {
		return func() {}
	}
	in := term.NewSource(s.in)
	lines := make(chan input)
	done := make(chan struct{})
	s.typing = lines
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(lines)
		scan := bufio.NewScanner(in)
		scan.Buffer(nil, maxLine)
		for scan.Scan() {
			select {
			case lines <- input{kind: inputLine, text: scan.Text()}:
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
