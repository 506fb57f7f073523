package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxLine is the longest line that is taken, in bytes: images come in lines.
const maxLine = 64 << 20

// errLong says that a line was longer than maxLine; the next one can be read.
var errLong = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// A lineReader reads lines that end with LF, and with nothing else: a JSON text
// may hold other characters that some take for line ends. A CR before the LF is
// dropped. What follows the last LF is a line too.
type lineReader struct {
	r   *bufio.Reader
	max int
}

func newLineReader(r io.Reader, longest int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: longest}
}

// next gives the next line, which stays the caller's. The error is errLong, with
// which reading can go on, or why there are no more: io.EOF at the end.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	long := false
	for {
		piece, err := l.r.ReadSlice('\n')
		if len(line)+len(piece) > l.max+1 { // the LF does not count
			line, long = nil, true
		}
		if !long {
			line = append(line, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !long):
			return nil, err
		case long:
			return nil, errLong
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) > l.max {
			return nil, errLong
		}
		return bytes.TrimSuffix(line, []byte("\r")), nil
	}
}

// A lineWriter writes one JSON object a line, whole, whoever writes at the same time.
type lineWriter struct {
	mu  sync.Mutex // guards all below, and keeps lines whole
	out io.Writer
	err error  // the first error of out
	off func() // called with it, once; may be nil
}

// onError sets what is called when nobody reads any more.
func (w *lineWriter) onError(off func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = off
}

func (w *lineWriter) write(v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // ends with a newline, the only one in it
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	if err == nil {
		_, err = w.out.Write(b.Bytes())
	}
	if err != nil {
		w.err = fmt.Errorf("writing events: %w", err)
		if w.off != nil {
			w.off()
		}
	}
}

func (w *lineWriter) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
