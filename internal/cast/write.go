package cast

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Copy writes the recording at path, with what was put aside, as one asciicast
// of version 2 (https://docs.asciinema.org/manual/asciicast/v2/) or 3. Version
// 2 has no exit status. The error matches ErrNothing if nothing was recorded.
func Copy(w io.Writer, path string, version int, title string) error {
	c := copier{w: w, version: version, title: title}
	if err := Read(path, c.event); err != nil {
		return fmt.Errorf("copying %s: %w", path, err)
	}
	if !c.begun {
		return ErrNothing
	}
	return nil
}

type copier struct {
	w           io.Writer
	version     int
	title       string
	begun       bool
	begin, last time.Time
}

func (c *copier) event(e Event) error {
	switch {
	case e.Code == Begin && c.begun:
		return nil // of the second file: the first goes on
	case !c.begun:
		c.begun, c.begin, c.last = true, e.Time, e.Time
		if err := c.header(e); err != nil || e.Code == Begin {
			return err
		}
	}
	if e.Code == Other || c.version == 2 && e.Code == Exit {
		return nil
	}
	at := e.Time.Sub(c.last)
	if c.version == 2 {
		at = e.Time.Sub(c.begin)
	}
	c.last = e.Time
	line := strconv.AppendFloat([]byte{'['}, max(at, 0).Seconds(), 'f', 6, 64)
	line = append(line, `, "`...)
	line = append(line, byte(e.Code))
	line = append(line, `", `...)
	data, err := encoded(e.Data)
	if err != nil {
		return err
	}
	_, err = c.w.Write(append(append(line, data...), "]\n"...))
	return err
}

func (c *copier) header(e Event) error {
	var h any = Header{Version: 3, Term: Term{e.Cols, e.Rows}, Timestamp: e.Time.Unix(), Title: c.title}
	if c.version == 2 {
		h = struct {
			Version   int    `json:"version"`
			Width     int    `json:"width"`
			Height    int    `json:"height"`
			Timestamp int64  `json:"timestamp"`
			Title     string `json:"title,omitempty"`
		}{2, e.Cols, e.Rows, e.Time.Unix(), c.title}
	}
	line, err := encoded(h)
	if err != nil {
		return err
	}
	_, err = c.w.Write(append(line, '\n'))
	return err
}

func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
