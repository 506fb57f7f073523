package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"muntin/internal/durable"
)

// maxHead bounds the first line: a header is short.
const maxHead = 1 << 20

// checkHead looks at the first line before anything is changed. A file that is
// missing or empty, or holds only the torn beginning of a header, is fine.
func checkHead(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not block
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: it is not a regular file", ErrNotSession)
	}
	head, err := bufio.NewReader(io.LimitReader(f, maxHead)).ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		if begin := []byte(`{"type":"session"`); bytes.HasPrefix(begin, head) || bytes.HasPrefix(head, begin) && !json.Valid(head) && len(head) < maxHead {
			return nil
		}
	} else if err != nil {
		return err
	}
	_, err = parseHeader(head)
	return err
}

func parseHeader(line []byte) (Header, error) {
	var h Header
	if err := json.Unmarshal(line, &h); err != nil || h.Type != "session" {
		return Header{}, fmt.Errorf("%w: its first line is no session header", ErrNotSession)
	}
	if h.Version != Version {
		return Header{}, fmt.Errorf("%w that can be used: format version %d, want %d", ErrNotSession, h.Version, Version)
	}
	return h, nil
}

// load reads the file into the tree.
func (s *Session) load() error {
	n := 0
	_, err := durable.Lines(s.path, 0, func(line []byte, _ int64) error {
		n++
		if n == 1 {
			var err error
			s.header, err = parseHeader(line)
			return err
		}
		if why := s.tree.take(line); why != "" {
			s.problems = append(s.problems, Problem{Line: n, Why: why})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if s.log.Torn() > 0 {
		s.problems = append(s.problems, Problem{Line: n + 1, Why: tornText(s.path)})
	}
	return nil
}

// take adds a line to the tree. It returns what is wrong with it, if anything.
func (t *tree) take(line []byte) (why string) {
	if len(bytes.TrimSpace(line)) == 0 {
		return ""
	}
	e, err := parseEntry(line)
	if err != nil {
		return err.Error()
	}
	if t.has(e.ID) {
		return fmt.Sprintf("the id %q is used a second time", e.ID)
	}
	if !t.add(e) {
		return fmt.Sprintf("the parent %q is missing; the entry goes below the one before it", *e.ParentID)
	}
	return ""
}
