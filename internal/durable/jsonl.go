package durable

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// A Log is an append-only JSONL file with one writer. Append may be called
// from several goroutines.
type Log struct {
	mu   sync.Mutex // guards file and end
	file *os.File
	end  int64
	torn int
}

// OpenLog opens the log at path for appending, making it and its folder if
// needed. It locks the file: a second writer gets an error that matches
// ErrLocked. A last line that a crash cut short is set aside in path+".torn",
// and Torn says how long it was.
func OpenLog(path string) (*Log, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s has a writer already", ErrLocked, path)
		}
		return nil, fmt.Errorf("locking log %s: %w", path, err)
	}
	l := &Log{file: f}
	if err := l.recover(path); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// Torn is the number of bytes of a cut-off last line that OpenLog set aside.
func (l *Log) Torn() int { return l.torn }

// Size is the length of the log in bytes: where the next line will start.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// Append writes v as one line with a single write, so that a reader sees the
// whole line or nothing. It does not sync: see Sync.
func (l *Log) Append(v any) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line) // ends the line, and
	enc.SetEscapeHTML(false)      // leaves what others wrote as they wrote it
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encoding a line of %s: %w", l.file.Name(), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.file.Write(line.Bytes())
	if err != nil {
		if n > 0 { // a full disk may take a part: leave no torn line behind
			err = errors.Join(err, l.file.Truncate(l.end))
		}
		return fmt.Errorf("appending to %s: %w", l.file.Name(), err)
	}
	l.end += int64(n)
	return nil
}

// Sync makes all appended lines survive a power loss. Lines survive a kill of
// the process without it.
func (l *Log) Sync() error {
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("syncing log: %w", err)
	}
	return nil
}

// Close releases the log and its lock. The lock is given back before the file
// is closed: a child of this process that has not yet reached its exec holds
// a copy of the file, and with it would hold the lock.
func (l *Log) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}

// recover finds the end of the last whole line. A last line without its
// newline is kept when it is valid JSON (the newline is added), else it is
// set aside.
func (l *Log) recover(path string) error {
	size, err := l.file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("reading log %s: %w", path, err)
	}
	tail, err := lastLine(l.file, size)
	if err != nil {
		return fmt.Errorf("reading log %s: %w", path, err)
	}
	l.end = size
	if len(tail) == 0 {
		return nil
	}
	if json.Valid(tail) {
		n, err := l.file.Write([]byte("\n"))
		l.end += int64(n)
		return err
	}
	aside, err := os.OpenFile(path+".torn", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("setting a torn line aside: %w", err)
	}
	_, err = aside.Write(append(tail, '\n'))
	if err = errors.Join(err, aside.Sync(), aside.Close()); err != nil {
		return fmt.Errorf("setting a torn line aside: %w", err)
	}
	l.torn = len(tail)
	l.end = size - int64(len(tail))
	return l.file.Truncate(l.end)
}

// lastLine returns what stands after the last newline of the first size bytes.
func lastLine(r io.ReaderAt, size int64) ([]byte, error) {
	const chunk = 64 << 10
	var tail []byte
	for end := size; end > 0; {
		start := max(end-chunk, 0)
		buf := make([]byte, end-start)
		if _, err := r.ReadAt(buf, start); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
			return append(buf[i+1:], tail...), nil
		}
		tail = append(buf, tail...)
		end = start
	}
	return tail, nil
}

// Lines calls fn for each whole line of the log at path that starts at or
// after the byte offset from, without its newline and with the offset behind
// it. A last line that is still being written is left for the next call. It
// returns the offset to go on from. A missing file has no lines. An error of
// fn ends the reading and is returned.
func Lines(path string, from int64, fn func(line []byte, next int64) error) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return from, nil
	}
	if err != nil {
		return from, fmt.Errorf("reading log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, fmt.Errorf("reading log %s: %w", path, err)
	}
	var own error
	next, err := Scan(f, from, func(line []byte, start int64) error {
		own = fn(bytes.Clone(line), start+int64(len(line))+1)
		return own
	})
	if err != nil && own == nil {
		err = fmt.Errorf("reading log %s: %w", path, err)
	}
	return next, err
}

// Scan calls fn for each whole line of r, without its newline and with the
// offset at which it starts; the first one starts at from. A line is fn's only
// until fn returns: the memory is used again. What stands after the last newline
// is left. It returns the offset to go on from. An error of fn ends the reading
// and is returned as it is.
func Scan(r io.Reader, from int64, fn func(line []byte, start int64) error) (int64, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	var long []byte // a line that is longer than the buffer
	for {
		line, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			continue
		}
		if errors.Is(err, io.EOF) {
			return from, nil
		}
		if err != nil {
			return from, err
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		start := from
		from += int64(len(line))
		if err := fn(line[:len(line)-1], start); err != nil {
			return from, err
		}
		if cap(long) > 1<<20 {
			long = nil // one huge line must not stay
		}
		long = long[:0]
	}
}
