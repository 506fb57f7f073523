// Package cast writes and reads terminal recordings in the asciicast v3 format:
// https://docs.asciinema.org/manual/asciicast/v3/.
package cast

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// A Header is the first line of a recording.
type Header struct {
	Version   int    `json:"version"`
	Term      Term   `json:"term"`
	Timestamp int64  `json:"timestamp,omitempty"` // seconds since 1970
	Title     string `json:"title,omitempty"`
}

// A Term is the terminal that was recorded.
type Term struct {
	Cols int    `json:"cols"`
	Rows int    `json:"rows"`
	Type string `json:"type,omitempty"`
}

// An Event is one line after the header. At is the time since the start; in the
// file it is the time since the event before, in seconds.
type Event struct {
	At   time.Duration
	Code string // "o": output, "x": exit status, "m": marker
	Data string
}

// A Writer writes one recording.
type Writer struct {
	w    io.Writer
	last time.Duration
	tail []byte // the begin of a character whose end has not come yet
}

// NewWriter writes the header to w.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Version = 3
	return &Writer{w: w}, writeLine(w, h)
}

// Output records bytes that the program wrote at the time at since the start.
// Characters that are cut at the end of p are kept for the next call.
func (w *Writer) Output(at time.Duration, p []byte) error {
	p = append(w.tail, p...)
	n := whole(p)
	w.tail = append([]byte(nil), p[n:]...)
	if n == 0 {
		return nil
	}
	return w.event(at, "o", string(p[:n]))
}

// Exit records the end of the program with its exit status.
func (w *Writer) Exit(at time.Duration, status int) error {
	return w.event(at, "x", fmt.Sprint(status))
}

func (w *Writer) event(at time.Duration, code, data string) error {
	interval := (at - w.last).Round(time.Microsecond)
	w.last += interval
	return writeLine(w.w, []any{json.Number(fmt.Sprintf("%.6f", interval.Seconds())), code, data})
}

func writeLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing a recording: %w", err)
	}
	return nil
}

// whole is the length of p without an unfinished UTF-8 sequence at its end.
func whole(p []byte) int {
	for i := len(p) - 1; i >= 0 && i >= len(p)-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if utf8.FullRune(p[i:]) {
				return len(p)
			}
			return i
		}
	}
	return len(p)
}

// Read reads a whole recording.
func Read(r io.Reader) (Header, []Event, error) {
	var h Header
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	var events []Event
	at := time.Duration(0)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if h.Version == 0 {
			if err := json.Unmarshal([]byte(text), &h); err != nil {
				return h, nil, fmt.Errorf("reading line %d of a recording: %w", n, err)
			}
			if h.Version != 3 || h.Term.Cols <= 0 || h.Term.Rows <= 0 {
				return h, nil, fmt.Errorf("reading a recording: not an asciicast v3 with a size")
			}
			continue
		}
		interval, event, err := parse(text)
		if err != nil {
			return h, nil, fmt.Errorf("reading line %d of a recording: %w", n, err)
		}
		at += interval
		event.At = at
		events = append(events, event)
	}
	if err := lines.Err(); err != nil {
		return h, nil, fmt.Errorf("reading a recording: %w", err)
	}
	if h.Version == 0 {
		return h, nil, fmt.Errorf("reading a recording: it is empty")
	}
	return h, events, nil
}

func parse(line string) (time.Duration, Event, error) {
	var fields [3]json.RawMessage
	var seconds float64
	var e Event
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		return 0, e, err
	}
	for i, target := range []any{&seconds, &e.Code, &e.Data} {
		if err := json.Unmarshal(fields[i], target); err != nil {
			return 0, e, err
		}
	}
	if seconds < 0 {
		return 0, e, fmt.Errorf("an interval below zero: %g", seconds)
	}
	return time.Duration(seconds * float64(time.Second)), e, nil
}
