package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"muntin/internal/durable"
)

// A store is where a session's lines are.
type store interface {
	io.ReaderAt
	size() int64 // where the next line will start
	append(line json.RawMessage) error
	sync() error
	close() error
}

// fileStore is a file with this process as its one writer.
type fileStore struct {
	*os.File // to read from; the log has its own to write to
	log      *durable.Log
}

func openFile(path string) (*fileStore, error) {
	log, err := durable.OpenLog(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &fileStore{File: f, log: log}, nil
}

func (s *fileStore) size() int64 { return s.log.Size() }

// append refuses to write into a file that somebody else writes to, who then
// holds no lock: Pi takes none. Two writers would tear the conversation apart.
func (s *fileStore) append(line json.RawMessage) error {
	info, err := s.Stat()
	if err != nil {
		return err
	}
	if info.Size() != s.log.Size() {
		return fmt.Errorf("%w: it has %d bytes, and not the %d that were written here", ErrForeignWriter, info.Size(), s.log.Size())
	}
	return s.log.Append(line)
}

func (s *fileStore) sync() error  { return s.log.Sync() }
func (s *fileStore) close() error { return errors.Join(s.log.Sync(), s.log.Close(), s.File.Close()) }

// readStore is a file that is only read. It ends where it ended when it was opened.
type readStore struct {
	*os.File
	end int64
}

func openRead(path string) (*readStore, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &readStore{File: f, end: info.Size()}, nil
}

func (s *readStore) size() int64                  { return s.end }
func (s *readStore) append(json.RawMessage) error { return ErrReadOnly }
func (s *readStore) sync() error                  { return nil }
func (s *readStore) close() error                 { return s.File.Close() }

// memStore is a session without a file.
type memStore struct{ data []byte }

func (s *memStore) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(s.data)) {
		return 0, io.EOF
	}
	n := copy(p, s.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (s *memStore) size() int64 { return int64(len(s.data)) }

func (s *memStore) append(line json.RawMessage) error {
	s.data = append(append(s.data, line...), '\n')
	return nil
}

func (s *memStore) sync() error  { return nil }
func (s *memStore) close() error { return nil }
