package checkpoint

import (
	"bufio"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// A packHeader is what stands before an object's bytes in a pack
// (gitformat-pack(5)).
type packHeader struct {
	kind plumbing.ObjectType
	size int64         // of the object, or of the delta, inflated
	data int64         // offset of the compressed bytes
	base int64         // OFSDeltaObject: offset of its base
	ref  plumbing.Hash // REFDeltaObject: its base
}

// longestHeader is a kind and size of 10 bytes and a hash or an offset.
const longestHeader = 10 + 20

func readPackHeader(in io.ReaderAt, offset int64) (packHeader, error) {
	var buf [longestHeader]byte
	n, err := in.ReadAt(buf[:], offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return packHeader{}, fmt.Errorf("reading pack: %w", err)
	}
	h, used, ok := parsePackHeader(buf[:n])
	if !ok {
		return packHeader{}, errors.New("pack is cut short or broken")
	}
	if h.kind == plumbing.OFSDeltaObject {
		if h.base = offset - h.base; h.base <= 0 {
			return packHeader{}, errors.New("delta's base lies before the pack")
		}
	}
	h.data = offset + int64(used)
	return h, nil
}

// parsePackHeader reads a header; base is the distance back to the base.
func parsePackHeader(b []byte) (h packHeader, used int, ok bool) {
	next := func() (byte, bool) {
		if used >= len(b) {
			return 0, false
		}
		used++
		return b[used-1], true
	}
	c, ok := next()
	if !ok {
		return h, 0, false
	}
	h.kind, h.size = plumbing.ObjectType(c>>4&7), int64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, ok = next(); !ok || shift > 55 {
			return h, 0, false
		}
		h.size |= int64(c&0x7f) << shift
	}
	if h.size < 0 {
		return h, 0, false
	}
	switch h.kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		return h, used, true
	case plumbing.OFSDeltaObject:
		for first := true; ; first = false {
			if c, ok = next(); !ok || h.base > 1<<55 {
				return h, 0, false
			}
			if !first {
				h.base++
			}
			h.base = h.base<<7 | int64(c&0x7f)
			if c&0x80 == 0 {
				return h, used, true
			}
		}
	case plumbing.REFDeltaObject:
		if used+20 > len(b) {
			return h, 0, false
		}
		copy(h.ref[:], b[used:])
		return h, used + 20, true
	}
	return h, 0, false
}

// packHead encodes the header of an object that is no delta.
func packHead(kind plumbing.ObjectType, size int64) []byte {
	c := byte(kind)<<4 | byte(size&15)
	var b []byte
	for size >>= 4; size > 0; size >>= 7 {
		b = append(b, c|0x80)
		c = byte(size & 0x7f)
	}
	return append(b, c)
}

// stream streams an object's content from a file of its own, since the
// reader may close the pack meanwhile and a gc may delete it.
func (p *pack) stream(h packHeader) (io.ReadCloser, error) {
	f, err := p.dup()
	if err != nil {
		return nil, err
	}
	z, err := zlib.NewReader(bufio.NewReader(io.NewSectionReader(f, h.data, 1<<62)))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &stream{in: z, left: h.size, file: f}, nil
}

func (p *pack) dup() (*os.File, error) {
	if p.file == nil {
		return os.Open(p.path + ".pack")
	}
	fd, err := unix.FcntlInt(p.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening pack %s again: %w", p.path, err)
	}
	return os.NewFile(uintptr(fd), p.path+".pack"), nil
}
