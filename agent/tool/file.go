package tool

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

const (
	maxLinks  = 40      // as Linux counts symbolic links before ELOOP
	sniffSize = 8 << 10 // where a NUL byte makes a file binary, as git has it
)

// path turns what a model wrote into an absolute path: a leading @ goes, ~ is
// the home folder, odd spaces become plain ones, the rest is relative to the
// working folder.
func (s *Set) path(p string) (string, error) {
	p = strings.TrimPrefix(strings.Map(plainSpace, p), "@")
	if p == "" {
		return "", errors.New("path is empty")
	}
	if strings.ContainsRune(p, 0) {
		return "", errors.New("path holds a NUL byte")
	}
	if p == "~" || strings.HasPrefix(p, "~/") {
		if s.home != "" {
			p = filepath.Join(s.home, p[1:])
		}
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(s.dir, p)
	}
	return filepath.Clean(p), nil
}

// plainSpace turns the spaces that models copy from web pages into U+0020.
func plainSpace(r rune) rune {
	if r == 0xa0 || r >= 0x2002 && r <= 0x200a || r == 0x202f || r == 0x205f || r == 0x3000 {
		return ' '
	}
	return r
}

// realPath resolves symbolic links, also of a file that does not exist yet: it
// names the file that a write through path would make.
func realPath(path string) (string, error) {
	for range maxLinks {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		target, err := os.Readlink(path)
		if err != nil { // no link: the file, or a folder above it, is missing
			return realParent(path)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", &fs.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
}

func realParent(path string) (string, error) {
	dir := filepath.Dir(path)
	if dir == path {
		return path, nil
	}
	real, err := realPath(dir)
	if err != nil {
		return "", err
	}
	return filepath.Join(real, filepath.Base(path)), nil
}

// openRegular opens a regular file and nothing else. It never waits: a FIFO
// without a writer would block a plain open for ever.
func openRegular(path string, flag int) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, plainError(err)
	}
	if err := checkRegular(info); err != nil { // before the open: opening a device can do things
		return nil, nil, err
	}
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, plainError(err)
	}
	info, err = f.Stat()
	if err == nil {
		err = checkRegular(info)
	}
	if err != nil {
		f.Close()
		return nil, nil, plainError(err)
	}
	return f, info, nil
}

func checkRegular(info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errors.New("it is a folder, not a file")
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("it is a named pipe, not a regular file")
	case mode&fs.ModeSocket != 0:
		return errors.New("it is a socket, not a regular file")
	case mode&fs.ModeDevice != 0:
		return errors.New("it is a device, not a regular file")
	}
	return errors.New("it is not a regular file")
}

// plainError drops the path from an error, because the message around it names
// the path as the model wrote it.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// isBinary reports whether the head of a file has a NUL byte in it.
func isBinary(head []byte) bool {
	return strings.IndexByte(string(head[:min(len(head), sniffSize)]), 0) >= 0
}

// readWhole reads a regular file of at most limit bytes.
func readWhole(f *os.File, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, plainError(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("the file is larger than %s", size(int(limit)))
	}
	return data, nil
}

type sum = [sha256.Size]byte

// seen remembers what this agent knows of the files' content.
type seen struct {
	mu   sync.Mutex // guards sums
	sums map[string]sum
}

func newSeen() *seen { return &seen{sums: map[string]sum{}} }

func (s *seen) set(real string, sum sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums[real] = sum
}

// stale reports whether the agent has seen the file with another content.
func (s *seen) stale(real string, now sum) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.sums[real]
	return ok && known != now
}
