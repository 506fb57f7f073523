package checkpoint

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's object names
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// maxInMemory is the size from which on blobs are streamed, in bytes.
const maxInMemory = 4 << 20

// An object is a read object. Big blobs have no content; open streams them.
type object struct {
	kind    plumbing.ObjectType
	size    int64
	content []byte
	open    func() (io.ReadCloser, error) // set for big blobs only
}

// encoded is the object as go-git knows it. The reader of a big blob streams.
func (obj *object) encoded() plumbing.EncodedObject {
	m := &plumbing.MemoryObject{}
	m.SetType(obj.kind)
	if obj.open != nil {
		return &streamed{MemoryObject: m, obj: obj}
	}
	_, _ = m.Write(obj.content) // into memory
	return m
}

// streamed is a big blob that is read from disk with each Reader.
type streamed struct {
	*plumbing.MemoryObject
	obj *object
}

func (s *streamed) Size() int64 { return s.obj.size }

func (s *streamed) Reader() (io.ReadCloser, error) { return s.obj.open() }

func loosePath(objects string, h plumbing.Hash) string {
	hex := h.String()
	return filepath.Join(objects, hex[:2], hex[2:])
}

// readLoose reads a loose object. big: blobs over maxInMemory may be left for
// streaming. Without an object, the error matches fs.ErrNotExist.
func (r *packReader) readLoose(path string, big bool) (*object, error) {
	// Plain calls: os.Open would ask the poller about every one of thousands of small files.
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	in, kind, size, err := r.looseHeader(&fdReader{fd: fd})
	if err != nil {
		return nil, err
	}
	if big && size > maxInMemory && kind == plumbing.BlobObject {
		return &object{kind: kind, size: size, open: func() (io.ReadCloser, error) { return openLoose(path) }}, nil
	}
	content, err := readSized(in, size)
	if err != nil {
		return nil, fmt.Errorf("inflating: %w", err)
	}
	if n, err := in.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return nil, errors.New("longer than it says, or its checksum is wrong")
	}
	return &object{kind: kind, size: size, content: content}, nil
}

// fdReader reads from a file descriptor.
type fdReader struct{ fd int }

func (f *fdReader) Read(p []byte) (int, error) {
	n, err := retry(func() (int, error) { return unix.Read(f.fd, p) })
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// looseHeader reads "kind size\0" with the reader's own inflater.
func (r *packReader) looseHeader(f io.Reader) (*bufio.Reader, plumbing.ObjectType, int64, error) {
	z, err := r.inflate(f)
	if err != nil {
		return nil, 0, 0, err
	}
	return looseHead(z)
}

func looseHead(z io.Reader) (*bufio.Reader, plumbing.ObjectType, int64, error) {
	in := bufio.NewReader(z)
	head, err := in.ReadSlice(0)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("reading header: %w", err)
	}
	name, digits, _ := bytes.Cut(head[:len(head)-1], []byte(" "))
	kind, err := plumbing.ParseObjectType(string(name))
	if err != nil {
		return nil, 0, 0, err
	}
	size, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || size < 0 {
		return nil, 0, 0, fmt.Errorf("bad size %q", digits)
	}
	return in, kind, size, nil
}

// openLoose streams the content of a loose object.
func openLoose(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	in, _, size, err := looseHead(z)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &stream{in: in, left: size, file: f}, nil
}

// stream is a content that must have exactly left bytes more.
type stream struct {
	in   io.Reader
	left int64
	file io.Closer // nil if it is not ours to close
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	s.left -= int64(n)
	switch {
	case s.left < 0:
		return n, errors.New("object is longer than it says")
	case errors.Is(err, io.EOF) && s.left > 0:
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func (s *stream) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// writeLoose stores an object of its own file, as git does: under a temporary
// name that gc knows, read-only, and then in its place.
func (o *objects) writeLoose(h plumbing.Hash, kind plumbing.ObjectType, content []byte) error {
	file := o.file(h)
	if info, err := os.Lstat(file); err == nil {
		if info.Size() > 0 {
			// A gc that runs now spares what is young, as it would a new object.
			now := time.Now()
			if err := os.Chtimes(file, now, now); err == nil {
				o.written(file)
				return nil
			}
		}
		if err := os.Remove(file); err != nil { // emptied by a power loss: write it again
			return fmt.Errorf("replacing broken object %s: %w", h, err)
		}
	}
	t, err := o.newLoose(kind, int64(len(content)))
	if err != nil {
		return fmt.Errorf("writing object %s: %w", h, err)
	}
	_, err = t.Write(content)
	if _, err = t.finish(err); err != nil {
		return fmt.Errorf("writing object %s: %w", h, err)
	}
	return nil
}

// writeStream stores a blob of the given size and returns its hash. Its
// content is never held in memory. A content that is shorter is the error errSize.
func (o *objects) writeStream(in io.Reader, size int64) (plumbing.Hash, error) {
	t, err := o.newLoose(plumbing.BlobObject, size)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("writing a blob of %d bytes: %w", size, err)
	}
	n, err := io.CopyBuffer(t, io.LimitReader(in, size), make([]byte, 256<<10))
	if err == nil && n != size {
		err = errSize
	}
	h, err := t.finish(err)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("writing a blob of %d bytes: %w", size, err)
	}
	return h, nil
}

// errSize says that a streamed content had not the size that was promised.
var errSize = errors.New("the file's size changed while it was read")

// A looseFile is a loose object in the making.
type looseFile struct {
	store *objects
	f     *os.File
	buf   *bufio.Writer
	z     *zlib.Writer
	sum   hash.Hash
}

func (o *objects) newLoose(kind plumbing.ObjectType, size int64) (*looseFile, error) {
	f, err := o.perm.temp(o.root, "tmp_obj_")
	if err != nil {
		return nil, err
	}
	t := &looseFile{store: o, f: f, buf: bufio.NewWriterSize(f, int(min(size+128, 32<<10))), sum: sha1.New()} //nolint:gosec // git's object names
	t.z, err = o.zip(t.buf)
	if err == nil {
		_, err = fmt.Fprintf(t, "%s %d\x00", kind, size)
	}
	if err != nil {
		_, err = t.finish(err)
		return nil, err
	}
	return t, nil
}

// Write compresses and hashes p.
func (t *looseFile) Write(p []byte) (int, error) {
	_, _ = t.sum.Write(p) // never fails
	return t.z.Write(p)
}

// finish puts the object in its place, or removes it when there was an error.
func (t *looseFile) finish(err error) (plumbing.Hash, error) {
	err = errors.Join(err, t.z.Close(), t.buf.Flush())
	t.store.zippers.Put(t.z)
	if err != nil {
		_ = t.f.Close() // of no use
		_ = os.Remove(t.f.Name())
		return plumbing.ZeroHash, err
	}
	var h plumbing.Hash
	t.sum.Sum(h[:0])
	file := t.store.file(h)
	for range 3 { // a gc may remove the empty folder, or the temporary file
		if err = t.store.perm.mkdir(filepath.Dir(file)); err != nil {
			break
		}
		if err = t.store.place(t.f, file); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err = errors.Join(err, t.f.Close()); err != nil {
		_ = os.Remove(t.f.Name())
		return plumbing.ZeroHash, err
	}
	t.store.written(file)
	return h, nil
}
