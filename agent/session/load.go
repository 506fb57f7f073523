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
	h, err := parseHeader(head)
	if err == nil && h.Version < 2 {
		return ErrOldVersion
	}
	return err
}

// ReadHeader reads the first line of a session's file and nothing else. The error
// matches ErrNotSession when it is none.
func ReadHeader(path string) (Header, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Header{}, fmt.Errorf("reading a session's header: %w", err)
	}
	defer f.Close()
	_, h, ok := firstLine(f)
	if !ok {
		return Header{}, fmt.Errorf("reading the header of %s: %w", path, ErrNotSession)
	}
	return h, nil
}

// parseHeader reads the first line. A header without a version is of version 1.
func parseHeader(line []byte) (Header, error) {
	var h Header
	if err := json.Unmarshal(line, &h); err != nil || h.Type != "session" {
		return Header{}, fmt.Errorf("%w: its first line is no session header", ErrNotSession)
	}
	if h.Version == 0 {
		h.Version = 1
	}
	if h.Version < 1 || h.Version > Version {
		return Header{}, fmt.Errorf("%w that can be used: format version %d, want at most %d", ErrNotSession, h.Version, Version)
	}
	return h, nil
}

// load looks at every line once, and keeps where each entry is.
func (s *Session) load() error {
	n := int32(0)
	end, err := durable.Scan(io.NewSectionReader(s.store, 0, s.store.size()), 0, func(line []byte, start int64) error {
		n++
		return s.take(line, node{number: n, off: start, length: int32(len(line))})
	})
	if err != nil {
		return err
	}
	if rest := s.store.size() - end; rest > 0 { // only of a file that is only read: the writer's was mended
		if err := s.takeRest(end, rest, n+1); err != nil {
			return err
		}
	}
	if s.header.Type == "" {
		return fmt.Errorf("%w: it has no whole line", ErrNotSession)
	}
	return nil
}

// takeRest takes a last line that has no newline: it may be whole all the same.
func (s *Session) takeRest(off, length int64, number int32) error {
	line := make([]byte, length)
	if _, err := s.store.ReadAt(line, off); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !json.Valid(line) {
		s.problems = append(s.problems, Problem{Line: int(number), Why: "the line was cut off, or is being written"})
		return nil
	}
	return s.take(line, node{number: number, off: off, length: int32(length)})
}

// take adds a line to the tree. What is wrong with it goes to the problems.
func (s *Session) take(b []byte, n node) error {
	if n.number == 1 {
		var err error
		s.header, err = parseHeader(b)
		s.codec.version = s.header.Version
		return err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	if why := s.tree.take(b, n, s.header.Version < 2); why != "" {
		s.problems = append(s.problems, Problem{Line: int(n.number), Why: why})
	}
	return nil
}

// take returns what is wrong with the line, if anything.
func (t *tree) take(b []byte, n node, old bool) (why string) {
	l, err := glance(b, old)
	if err != nil {
		return err.Error()
	}
	if old { // one row of entries without ids
		l.id, l.parent = oldID(t.len()+1), t.id(int32(t.len())-1)
	}
	if _, known := t.find(l.id); known {
		return fmt.Sprintf("the id %q is used a second time", l.id)
	}
	if !t.add(l, n) {
		return fmt.Sprintf("the parent %q is missing; the entry goes below the one before it", l.parent)
	}
	return ""
}

// read gives the line of the node at i.
func (s *Session) read(i int32) ([]byte, error) {
	n := s.tree.nodes[i]
	b := make([]byte, n.length)
	if _, err := s.store.ReadAt(b, n.off); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

// entry decodes the entry at i. What is wrong with its content is noted, and
// what there is of it is returned.
func (s *Session) entry(i int32) (Entry, bool) {
	n := s.tree.nodes[i]
	b, err := s.read(i)
	var lost []string
	var e Entry
	if err == nil {
		e, lost, err = s.codec.decode(b)
	}
	for _, why := range lost {
		s.note(n, why)
	}
	if err != nil {
		s.note(n, err.Error())
	}
	e.ID, e.ParentID = n.id, pointer(s.tree.id(n.parent))
	return e, err == nil
}

// note keeps a problem, once.
func (s *Session) note(n node, why string) {
	p := Problem{Line: int(n.number), Why: why}
	for _, known := range s.problems {
		if known == p {
			return
		}
	}
	s.problems = append(s.problems, p)
}
