// Package cast reads the recordings of panes: asciicast v3 files
// (https://docs.asciinema.org/manual/asciicast/v3/), with the times of their
// events on the clock, and makes screens of them.
package cast

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muntin/internal/durable"
)

// Again begins the label of the marker at which a recording goes on after a
// pause; the time, in RFC 3339, stands behind it.
const Again = "started again at "

// A Header is the first line of a recording.
type Header struct {
	Version   int               `json:"version"`
	Term      Term              `json:"term"`
	Timestamp int64             `json:"timestamp,omitempty"` // unix seconds
	Title     string            `json:"title,omitempty"`
	Env       map[string]string `json:"env,omitempty"`

	Offset int64      `json:"muntin_offset,omitempty"` // of the file's first output
	Time   *time.Time `json:"muntin_time,omitempty"`   // what the first interval counts from, finer than Timestamp
}

// Term is a terminal's size in cells.
type Term struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// Begin is what the first interval counts from.
func (h Header) Begin() time.Time {
	if h.Time != nil {
		return *h.Time
	}
	return time.Unix(h.Timestamp, 0)
}

// A Code says what an event is.
type Code byte

// The codes of events.
const (
	Begin  Code = 0   // not in the format: a header was read
	Output Code = 'o' // the pane printed Data
	Resize Code = 'r' // Data is COLSxROWS
	Marker Code = 'm' // Data is a label
	Exit   Code = 'x' // Data is the exit status
	Other  Code = '?' // anything else, as input
)

// An Event is a line of a recording.
type Event struct {
	Time   time.Time
	Code   Code
	Data   string
	Offset int64 // of the output: that of Data, or what comes next
	Cols   int   // the size that holds from here on
	Rows   int
}

// Aside is where a recording that became too long is put.
func Aside(path string) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + ".1" + ext
}

// Read calls fn for each event of a recording, of what was put aside first. A
// line that is torn or no part of one is left out. A missing recording has no
// events and is no error. An error of fn ends the reading and is returned.
func Read(path string, fn func(Event) error) error {
	for _, p := range []string{Aside(path), path} {
		if err := ReadFile(p, fn); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ReadFile is Read for one file, which must exist.
func ReadFile(path string, fn func(Event) error) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	var d Decoder
	_, err := durable.Lines(path, 0, func(line []byte, _ int64) error {
		e, ok := d.Line(line)
		if !ok {
			return nil
		}
		return fn(e)
	})
	return err
}

// A Decoder reads the lines of one recording in their order. The zero value is
// at its beginning.
type Decoder struct {
	now        time.Time
	offset     int64
	cols, rows int
}

// Line reads one line; ok is false for one that is no part of a recording.
func (d *Decoder) Line(line []byte) (e Event, ok bool) {
	if bytes.HasPrefix(line, []byte("{")) {
		var h Header
		if json.Unmarshal(line, &h) != nil {
			return e, false
		}
		d.now, d.offset = h.Begin(), h.Offset
		d.size(h.Term.Cols, h.Term.Rows)
		return d.event(Begin, ""), true
	}
	var parts []json.RawMessage
	var after float64
	var code, data string
	if json.Unmarshal(line, &parts) != nil || len(parts) != 3 || json.Unmarshal(parts[0], &after) != nil ||
		json.Unmarshal(parts[1], &code) != nil || json.Unmarshal(parts[2], &data) != nil || len(code) != 1 {
		return e, false
	}
	if after > 0 && after < 1e9 { // also where it is no number
		d.now = d.now.Add(time.Duration(after * float64(time.Second)))
	}
	switch c := Code(code[0]); c {
	case Output:
		e = d.event(c, data)
		d.offset += int64(len(data))
		return e, true
	case Resize:
		cols, rows, _ := strings.Cut(data, "x")
		w, _ := strconv.Atoi(cols)
		h, _ := strconv.Atoi(rows)
		d.size(w, h)
		return d.event(c, data), true
	case Marker:
		if at, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(data, Again)); err == nil {
			d.now = at
		}
		return d.event(c, data), true
	case Exit:
		return d.event(c, data), true
	case Begin, Other:
	}
	return d.event(Other, data), true
}

// maxSize bounds a terminal's size, as the supervisor does.
const maxSize = 1000

func (d *Decoder) size(cols, rows int) {
	if cols > 0 && rows > 0 {
		d.cols, d.rows = min(cols, maxSize), min(rows, maxSize)
	}
}

func (d *Decoder) event(c Code, data string) Event {
	return Event{Time: d.now, Code: c, Data: data, Offset: d.offset, Cols: d.cols, Rows: d.rows}
}
