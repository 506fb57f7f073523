package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// An index is what we need of git's index: the tracked paths, sorted by their
// bytes, with git's stat data as a first stat cache.
type index struct {
	entries []indexEntry
	mtime   int64 // of the file, in nanoseconds; 0: the entries have no stat data
	stamp   string
	aliases map[plumbing.Hash]string // see alias
}

type indexEntry struct {
	path         string
	mode         uint32
	hash         plumbing.Hash
	stage        uint8
	skipWorktree bool
	intentToAdd  bool

	size         uint32
	inode        uint32
	mtime, ctime int64 // nanoseconds since 1970
}

// errIndexFormat says that only git can read this index.
var errIndexFormat = errors.New("index format not known")

// loadIndex reads the index at path, through git where it is of a kind that
// we do not read (split or sparse index). A missing index is empty.
func (g *git) loadIndex(ctx context.Context, path string) (*index, error) {
	stamp := stampFiles([]string{path})
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return &index{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading index: %w", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading index: %w", err)
	}
	var x *index
	err = errIndexFormat // also if it has other hashes than ours
	if !g.longHash {
		x, err = parseIndex(data)
	}
	if errors.Is(err, errIndexFormat) {
		x, err = g.listIndex(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("reading index %s: %w", path, err)
	}
	if x.mtime != 0 {
		x.mtime = info.ModTime().UnixNano()
	}
	x.stamp = stamp
	return x, nil
}

// parseIndex reads git's index format, versions 2 to 4
// (gitformat-index(5)). The checksum at its end is not checked: git replaces
// the file by rename, so it is whole.
func parseIndex(data []byte) (*index, error) {
	if len(data) < 12+20 || string(data[:4]) != "DIRC" {
		return nil, errors.New("not an index")
	}
	version, count := binary.BigEndian.Uint32(data[4:]), int(binary.BigEndian.Uint32(data[8:]))
	if version < 2 || version > 4 {
		return nil, errIndexFormat
	}
	body := data[:len(data)-20]
	if count > len(body)/62 { // the least size of an entry
		return nil, errors.New("index is cut short")
	}
	x := &index{entries: make([]indexEntry, 0, count), mtime: 1}
	pos, prev := 12, ""
	for range count {
		e, n, err := parseEntry(body[pos:], version, prev)
		if err != nil {
			return nil, err
		}
		if e.mode == modeDir { // a sparse index
			return nil, errIndexFormat
		}
		x.entries = append(x.entries, e)
		pos, prev = pos+n, e.path
	}
	for pos+8 <= len(body) {
		name, size := body[pos:pos+4], int(binary.BigEndian.Uint32(body[pos+4:]))
		if string(name) == "link" { // a split index
			return nil, errIndexFormat
		}
		if size < 0 || size > len(body)-pos-8 {
			return nil, errors.New("index extension is cut short")
		}
		pos += 8 + size
	}
	return x, nil
}

func parseEntry(b []byte, version uint32, prev string) (indexEntry, int, error) {
	short := errors.New("index entry is cut short")
	if len(b) < 62 {
		return indexEntry{}, 0, short
	}
	u32 := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	nano := func(at int) int64 { return int64(u32(at))*int64(time.Second) + int64(u32(at+4)) }
	e := indexEntry{ctime: nano(0), mtime: nano(8), inode: u32(20), mode: u32(24), size: u32(36)}
	copy(e.hash[:], b[40:60])
	flags := binary.BigEndian.Uint16(b[60:])
	e.stage = uint8(flags>>12) & 3
	pos := 62
	if flags&0x4000 != 0 {
		if len(b) < 64 {
			return indexEntry{}, 0, short
		}
		more := binary.BigEndian.Uint16(b[62:])
		e.skipWorktree, e.intentToAdd = more&0x4000 != 0, more&0x2000 != 0
		pos = 64
	}
	if version == 4 {
		strip, n := varint(b[pos:])
		if n == 0 || strip > len(prev) {
			return indexEntry{}, 0, short
		}
		pos += n
		end := bytes.IndexByte(b[pos:], 0)
		if end < 0 {
			return indexEntry{}, 0, short
		}
		e.path = prev[:len(prev)-strip] + string(b[pos:pos+end])
		return e, pos + end + 1, nil
	}
	end := bytes.IndexByte(b[pos:], 0)
	if end < 0 {
		return indexEntry{}, 0, short
	}
	e.path = string(b[pos : pos+end])
	size := (pos + end + 8) &^ 7 // 1 to 8 NUL bytes fill up to a multiple of eight
	if size > len(b) {
		return indexEntry{}, 0, short
	}
	return e, size, nil
}

// varint reads git's offset encoding. n is 0 if b is cut short or the number
// makes no sense.
func varint(b []byte) (value, n int) {
	for n < len(b) && n < 5 {
		c := b[n]
		n++
		value += int(c & 0x7f)
		if c&0x80 == 0 {
			return value, n
		}
		value = (value + 1) << 7
	}
	return 0, 0
}

// listIndex asks git for the entries, without stat data.
func (g *git) listIndex(ctx context.Context) (*index, error) {
	if g.blind {
		return nil, errors.New("the git of this machine cannot open this repository")
	}
	out, err := g.run(ctx, "", nil, "ls-files", "-z", "-s", "-t")
	if err != nil {
		return nil, err
	}
	x := &index{}
	for _, line := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if line == "" {
			continue
		}
		head, path, ok := strings.Cut(line, "\t")
		f := strings.Fields(head) // tag, mode, hash, stage
		if !ok || len(f) != 4 {
			return nil, fmt.Errorf("git ls-files printed %q", line)
		}
		mode, err1 := strconv.ParseUint(f[1], 8, 32)
		stage, err2 := strconv.ParseUint(f[3], 10, 8)
		hash, ok := parseHash(f[2])
		if isHash(f[2]) && !ok {
			hash, ok = x.alias(f[2]), true
		}
		if err1 != nil || err2 != nil || !ok {
			return nil, fmt.Errorf("git ls-files printed %q", line)
		}
		x.entries = append(x.entries, indexEntry{path: path, mode: uint32(mode), hash: hash, stage: uint8(stage), skipWorktree: f[0] == "S"})
	}
	return x, nil
}
