package checkpoint

import (
	"crypto/sha1" //nolint:gosec // git's object names
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// hashBig is hash for files that are not held in memory: they are streamed
// into objects of their own, of any size.
func (s *scan) hashBig(f *file, e *ent) bool {
	s.hashed.Add(1)
	stable := false
	var err error
	for range readTries {
		var after statKey
		at := s.now()
		if e.hash, e.stat, after, err = s.stream(f); err != nil && !errors.Is(err, errSize) {
			break
		}
		e.racy = s.isRacy(e.stat, at)
		if stable = err == nil && after == e.stat; stable {
			break
		}
	}
	var store *storeError
	switch {
	case errors.As(err, &store):
		s.fail(err)
		return false
	case err != nil:
		s.readError(f, err)
		return false
	}
	if !stable {
		e.racy = true
		s.unstable(f.path(), "changed while it was read")
	}
	if attrs := f.task.attrs; attrs.flags != 0 {
		// Git looks at the content, which is not at hand.
		p := pending{task: f.task, name: f.name, path: f.path(), byContent: true}
		if f.tracked != nil {
			p.tracked = f.tracked.hash
		}
		s.mu.Lock()
		s.convert = append(s.convert, p)
		s.mu.Unlock()
	}
	return true
}

// stream hashes one file and stores it unless the last snapshot or the index
// has the same content. What is appended meanwhile is left out.
func (s *scan) stream(f *file) (h plumbing.Hash, before, after statKey, err error) {
	fd, err := retry(func() (int, error) { return unix.Openat(f.dir, f.name, fileFlags, 0) })
	if err != nil {
		return h, before, after, err
	}
	in := os.NewFile(uintptr(fd), f.path())
	defer in.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return h, before, after, err
	}
	before = statKeyOf(&st)
	switch {
	case !before.isRegular():
		return h, before, after, errors.New("changed into something else while it was read")
	case before.size > s.cap:
		return h, before, after, errors.New("grew over the size cap while it was read")
	}
	known := false
	if f.old != nil || f.tracked != nil {
		if h, err = hashStream(io.NewSectionReader(in, 0, before.size), before.size); err != nil {
			return h, before, after, err
		}
		known = f.old != nil && (f.old.hash == h || f.old.raw == h) || f.tracked != nil && f.tracked.hash == h
	}
	if !known {
		content := &noting{in: io.NewSectionReader(in, 0, before.size)}
		if h, err = s.odb.writeStream(content, before.size); err != nil {
			if content.err == nil && !errors.Is(err, errSize) {
				err = &storeError{err}
			}
			return h, before, after, err
		}
	}
	err = unix.Fstat(fd, &st)
	return h, before, statKeyOf(&st), err
}

// A storeError is the store's, not the file's: the save fails.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// noting keeps the error of a reader.
type noting struct {
	in  io.Reader
	err error
}

func (n *noting) Read(p []byte) (int, error) {
	k, err := n.in.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return k, err
}

// hashStream is the name of a blob of the given size. The error is errSize if in is shorter.
func hashStream(in io.Reader, size int64) (plumbing.Hash, error) {
	sum := sha1.New()                            //nolint:gosec // git's object names
	_, _ = fmt.Fprintf(sum, "blob %d\x00", size) // never fails
	n, err := io.CopyBuffer(sum, in, make([]byte, 256<<10))
	if err == nil && n != size {
		err = errSize
	}
	return plumbing.Hash(sum.Sum(nil)), err
}
