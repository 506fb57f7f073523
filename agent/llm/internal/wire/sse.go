// Package wire is what the dialects share on the way to a provider: one HTTP
// request whose answer is a stream of server-sent events, deadlines for its
// silences, and classified errors that hold no key.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// An SSEvent is one server-sent event. Data is valid until the next read.
type SSEvent struct {
	Name string // the event field; "" when there was none
	Data []byte // the data lines, joined by LF
}

// DefaultEventLimit is the size that one event may have, in bytes.
const DefaultEventLimit = 16 << 20

// ErrTooLarge is wrapped in the error for an event beyond the limit.
var ErrTooLarge = errors.New("event too large")

// A Reader reads server-sent events as the WHATWG HTML standard has them
// (section 9.2.6), with one leniency: an event that the end of the stream cut off
// before its blank line is still given out. Fields other than event and data are
// ignored, and so are comments.
type Reader struct {
	src    io.Reader
	limit  int
	buf    []byte // buf[pos:] is not yet parsed
	pos    int
	err    error // of src, given out after buf
	first  bool  // nothing was parsed yet: a byte order mark may come
	skipLF bool  // the last line ended with CR; a LF right after belongs to it

	name string
	data []byte
	has  bool // a data field was seen
}

// NewReader reads events from src. limit is the size of one event in bytes; 0
// means DefaultEventLimit.
func NewReader(src io.Reader, limit int) *Reader {
	if limit <= 0 {
		limit = DefaultEventLimit
	}
	return &Reader{src: src, limit: limit, first: true}
}

// Next gives the next event that has data. At the end of the stream it returns
// io.EOF, or the error of the source.
func (r *Reader) Next() (SSEvent, error) {
	r.name, r.data, r.has = "", r.data[:0], false
	for {
		line, err := r.line()
		if err != nil {
			if r.has && errors.Is(err, io.EOF) {
				return SSEvent{Name: r.name, Data: r.data}, nil
			}
			return SSEvent{}, err
		}
		if len(line) == 0 {
			if r.has {
				return SSEvent{Name: r.name, Data: r.data}, nil
			}
			r.name = ""
			continue
		}
		if len(r.data)+len(line) > r.limit {
			return SSEvent{}, r.tooLarge()
		}
		r.field(line)
	}
}

func (r *Reader) tooLarge() error {
	r.err, r.buf, r.pos = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, r.limit), nil, 0
	return r.err
}

func (r *Reader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		r.name = string(value)
	case "data":
		if r.has {
			r.data = append(r.data, '\n')
		}
		r.data = append(r.data, value...)
		r.has = true
	}
}

// line gives the next line without its end, which is CRLF, LF or CR. The bytes
// are valid until the next call.
func (r *Reader) line() ([]byte, error) {
	scanned := 0
	for {
		if r.skipLF && r.pos < len(r.buf) {
			r.skipLF = false
			if r.buf[r.pos] == '\n' {
				r.pos++
			}
		}
		rest := r.buf[r.pos:]
		if i := lineEnd(rest, scanned); i >= 0 {
			r.pos += i + 1
			r.skipLF = rest[i] == '\r'
			return r.withoutBOM(rest[:i]), nil
		}
		scanned = len(rest)
		if scanned > r.limit+len("data: ") {
			return nil, r.tooLarge()
		}
		if r.err != nil {
			if scanned > 0 && errors.Is(r.err, io.EOF) { // the last line has no end
				r.pos = len(r.buf)
				return r.withoutBOM(rest), nil
			}
			return nil, r.err
		}
		r.fill()
	}
}

// lineEnd gives the first LF or CR at or after from, or -1.
func lineEnd(b []byte, from int) int {
	b = b[from:]
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return from + cr
	}
	if lf < 0 {
		return -1
	}
	return from + lf
}

func (r *Reader) withoutBOM(line []byte) []byte {
	if r.first {
		r.first = false
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}

// fill reads more, behind what is not yet parsed.
func (r *Reader) fill() {
	const size = 4096
	if r.pos > 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[r.pos:])]
		r.pos = 0
	}
	if cap(r.buf)-len(r.buf) < size {
		grown := make([]byte, len(r.buf), 2*cap(r.buf)+size)
		copy(grown, r.buf)
		r.buf = grown
	}
	n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf = r.buf[:len(r.buf)+n]
	r.err = err
}
