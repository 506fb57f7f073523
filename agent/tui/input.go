package tui

import (
	"bufio"
	"io"
	"os"
	"sync"

	"github.com/muesli/cancelreader"
)

// maxLine is the longest line taken from a pipe; a terminal gives less.
const maxLine = 1 << 20

// readLines starts to read lines. stop ends that and waits for it.
func (l *loop) readLines() (stop func()) {
	if l.opts.In == nil {
		return func() {}
	}
	in := newSource(l.opts.In)
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
		in.cancel()
		wg.Wait()
		in.close()
	}
}

// A source is a reader whose reads can be ended.
type source struct {
	io.Reader
	cancel func() // ends a read that waits
	close  func() // gives up what source made for itself, when no read goes on
}

// newSource makes reads cancelable. A reader that is no file is closed if it can
// be; what can be neither must end by itself.
func newSource(in io.Reader) source {
	nothing := func() {}
	if f, ok := in.(*os.File); ok {
		r, err := cancelreader.NewReader(f)
		if err != nil { // a regular file, which never makes one wait
			return source{f, nothing, nothing}
		}
		return source{r, func() { r.Cancel() }, func() { _ = r.Close() }}
	}
	if c, ok := in.(io.Closer); ok {
		return source{in, func() { _ = c.Close() }, nothing}
	}
	return source{in, nothing, nothing}
}
