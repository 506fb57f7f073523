package pty

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// maxText is the longest text of a message, in bytes.
	maxText = 1 << 20
	// maxFrame is the longest line on the socket, in bytes: a text of maxText
	// whose every byte is escaped, and what is around it.
	maxFrame = 6*maxText + 64<<10
)

var errFrameTooLong = fmt.Errorf("frame longer than %d bytes", maxFrame)

// A frameReader takes frames off a stream.
type frameReader struct{ r *bufio.Reader }

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 4<<10)}
}

// next returns the next frame. After an error other than a syntaxError the
// stream is of no more use; io.EOF is its clean end.
func (d *frameReader) next() (Frame, error) {
	line, err := d.line()
	if err != nil {
		return Frame{}, err
	}
	return decode(line)
}

func (d *frameReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := d.r.ReadSlice('\n')
		if len(line)+len(part) > maxFrame {
			return nil, errFrameTooLong
		}
		if err == nil && line == nil {
			return part, nil // not kept beyond the next call
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// A syntaxError is a line that is no frame; the next one may be.
type syntaxError struct{ err error }

func (e syntaxError) Error() string { return "not a frame: " + e.err.Error() }
func (e syntaxError) Unwrap() error { return e.err }

// decode reads one line. Fields that it does not know are left alone, so that
// a newer version may add some.
func decode(line []byte) (Frame, error) {
	var f Frame
	if err := json.Unmarshal(bytes.TrimRight(line, "\r\n"), &f); err != nil {
		return Frame{}, syntaxError{err}
	}
	return f, nil
}
