package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// An index is what we need of git's index: the tracked paths, sorted by their
// bytes, with git's stat data as a first stat cache. Entries stay in the bytes
// they were read as, and are decoded one at a time: a walk needs few of them.
type index struct {
	data    []byte   // entries of version 2 or 3
	at      []uint32 // where each begins
	mtime   int64    // of the file, in nanoseconds; 0: the entries have no stat data
	stamp   string
	aliases map[plumbing.Hash]string // see alias
	skipped []int                    // entries with skip-worktree
	attrs   []int                    // entries that are a .gitattributes
}

type indexEntry struct {
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

// entryHead is the size of an entry before its path, without the extended flags.
const entryHead = 62

// The bits of an entry's flags, and of its extended flags.
const (
	flagExtended = 0x4000
	flagStages   = 0x3000
	flagNameLen  = 0x0fff

	flagSkipWorktree = 0x4000
	flagIntentToAdd  = 0x2000
)

// loadIndex reads the index at path, or returns old if it is the same still.
// It asks git where the index is of a kind that we do not read (split or
// sparse index). A missing index is empty.
func (g *git) loadIndex(ctx context.Context, path string, old *index) (*index, error) {
	stamp := stampFiles([]string{path})
	if old != nil && old.stamp == stamp {
		return old, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return &index{stamp: stamp}, nil
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
	if count > len(body)/entryHead {
		return nil, errors.New("index is cut short")
	}
	x := &index{at: make([]uint32, 0, count), mtime: 1}
	var pos int
	var err error
	if version == 4 {
		pos, err = x.expand(body, count)
	} else {
		x.data = body
		pos, err = x.locate(body, count)
	}
	if err != nil {
		return nil, err
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
	return x, x.survey()
}

var errIndexShort = errors.New("index entry is cut short")

// locate finds the entries of a version 2 or 3 index, and where they end.
func (x *index) locate(body []byte, count int) (pos int, err error) {
	pos = 12
	for range count {
		head, err := headLen(body[pos:])
		if err != nil {
			return 0, err
		}
		size := int(binary.BigEndian.Uint16(body[pos+60:]) & flagNameLen)
		if size == flagNameLen { // or longer
			if size = bytes.IndexByte(body[pos+head:], 0); size < 0 {
				return 0, errIndexShort
			}
		}
		full := (head + size + 8) &^ 7 // 1 to 8 NUL bytes fill up to a multiple of eight
		if full > len(body)-pos || body[pos+head+size] != 0 {
			return 0, errIndexShort
		}
		x.at = append(x.at, uint32(pos))
		pos += full
	}
	return pos, nil
}

// headLen is the length of what lies before an entry's path.
func headLen(entry []byte) (int, error) {
	if len(entry) < entryHead {
		return 0, errIndexShort
	}
	if binary.BigEndian.Uint16(entry[60:])&flagExtended == 0 {
		return entryHead, nil
	}
	if len(entry) < entryHead+2 {
		return 0, errIndexShort
	}
	return entryHead + 2, nil
}

// expand writes the entries of a version 4 index, whose paths are given by
// their difference to the path before, as version 3 has them.
func (x *index) expand(body []byte, count int) (pos int, err error) {
	pos = 12
	var name []byte
	for range count {
		head, err := headLen(body[pos:])
		if err != nil {
			return 0, err
		}
		fixed := body[pos : pos+head]
		pos += head
		strip, n := varint(body[pos:])
		if n == 0 || strip > len(name) {
			return 0, errIndexShort
		}
		pos += n
		end := bytes.IndexByte(body[pos:], 0)
		if end < 0 {
			return 0, errIndexShort
		}
		name = append(name[:len(name)-strip], body[pos:pos+end]...)
		pos += end + 1
		if len(name) > len(body) { // each entry may name the whole of the one before
			return 0, errIndexShort
		}
		x.add(fixed, name)
	}
	return pos, nil
}

// add appends an entry.
func (x *index) add(fixed, name []byte) {
	x.at = append(x.at, uint32(len(x.data)))
	x.data = append(x.data, fixed...)
	flags := x.data[len(x.data)-len(fixed)+60:]
	binary.BigEndian.PutUint16(flags, binary.BigEndian.Uint16(flags)&^flagNameLen|uint16(min(len(name), flagNameLen)))
	x.data = append(append(x.data, name...), 0)
}

// setHash changes the hash of the i-th entry.
func (x *index) setHash(i int, h plumbing.Hash) { copy(x.data[x.at[i]+40:], h[:]) }

// survey notes the entries of special interest. A sparse index is not for us.
func (x *index) survey() error {
	x.skipped, x.attrs = nil, nil
	for i, at := range x.at {
		if binary.BigEndian.Uint32(x.data[at+24:]) == modeDir {
			return errIndexFormat
		}
		if binary.BigEndian.Uint16(x.data[at+60:])&flagExtended != 0 && binary.BigEndian.Uint16(x.data[at+entryHead:])&flagSkipWorktree != 0 {
			x.skipped = append(x.skipped, i)
		}
		p := x.path(i)
		if len(p) == 0 {
			return errors.New("index entry without a path")
		}
		if p[len(p)-1] == 's' && path.Base(string(p)) == ".gitattributes" {
			x.attrs = append(x.attrs, i)
		}
	}
	return nil
}

// path is the path of the i-th entry, as part of the index's bytes.
func (x *index) path(i int) []byte {
	at := x.at[i]
	flags := binary.BigEndian.Uint16(x.data[at+60:])
	from := at + entryHead
	if flags&flagExtended != 0 {
		from += 2
	}
	if size := uint32(flags & flagNameLen); size < flagNameLen {
		return x.data[from : from+size]
	}
	return x.data[from : from+uint32(bytes.IndexByte(x.data[from:], 0))]
}

// entry decodes the i-th entry.
func (x *index) entry(i int) indexEntry {
	b := x.data[x.at[i]:]
	u32 := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	nano := func(at int) int64 { return int64(u32(at))*int64(time.Second) + int64(u32(at+4)) }
	e := indexEntry{ctime: nano(0), mtime: nano(8), inode: u32(20), mode: u32(24), size: u32(36)}
	copy(e.hash[:], b[40:60])
	flags := binary.BigEndian.Uint16(b[60:])
	e.stage = uint8(flags >> 12 & 3)
	if flags&flagExtended != 0 {
		more := binary.BigEndian.Uint16(b[entryHead:])
		e.skipWorktree, e.intentToAdd = more&flagSkipWorktree != 0, more&flagIntentToAdd != 0
	}
	return e
}

// A span is a part of an index: from one entry to before another.
type span struct{ from, to int }

// search is the place in a span of the first entry that is not before path.
func (x *index) search(in span, path []byte) int {
	return in.from + sort.Search(in.to-in.from, func(i int) bool { return bytes.Compare(x.path(in.from+i), path) >= 0 })
}

// below is the part of the index under the folder dir, "" for the root.
func (x *index) below(dir string) span {
	all := span{0, len(x.at)}
	if dir == "" {
		return all
	}
	all.from = x.search(all, []byte(dir+"/"))
	return span{all.from, x.search(all, []byte(dir+"0"))} // "0" follows "/"
}

// find returns the first entry of path in a span, or nil.
func (x *index) find(in span, path []byte) *indexEntry {
	i := x.search(in, path)
	if i == in.to || !bytes.Equal(x.path(i), path) {
		return nil
	}
	e := x.entry(i)
	return &e
}

// hasBelow tells whether the span holds something under the folder dir.
func (x *index) hasBelow(in span, dir string) bool {
	under := []byte(dir + "/")
	i := x.search(in, under)
	return i < in.to && bytes.HasPrefix(x.path(i), under)
}

// changed marks the folders whose entries, or what is tracked below, differ
// between two indexes; stat data do not count.
func (x *index) changed(y *index) map[string]bool {
	dirs := map[string]bool{}
	mark := func(file []byte) {
		for at, dir := string(file), parent(string(file)); at != "" && !dirs[dir]; at, dir = dir, parent(dir) {
			dirs[dir] = true
		}
	}
	i, j := 0, 0
	for i < len(x.at) || j < len(y.at) {
		var order int
		switch {
		case i == len(x.at):
			order = 1
		case j == len(y.at):
			order = -1
		default:
			order = bytes.Compare(x.path(i), y.path(j))
		}
		if order < 0 {
			mark(x.path(i))
			i++
			continue
		}
		if order > 0 {
			mark(y.path(j))
			j++
			continue
		}
		if !x.same(i, y, j) {
			mark(x.path(i))
		}
		i++
		j++
	}
	return dirs
}

// same tells that two entries of one path hold the same, whatever their stat data.
func (x *index) same(i int, y *index, j int) bool {
	a, b := x.data[x.at[i]:], y.data[y.at[j]:]
	return bytes.Equal(a[24:28], b[24:28]) && bytes.Equal(a[40:60], b[40:60]) && extra(a) == extra(b)
}

// extra is the stage of an entry and its extended flags.
func extra(entry []byte) uint32 {
	flags := binary.BigEndian.Uint16(entry[60:])
	e := uint32(flags&flagStages) << 16
	if flags&flagExtended != 0 {
		e |= uint32(binary.BigEndian.Uint16(entry[entryHead:]))
	}
	return e
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
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if line == "" {
			continue
		}
		head, name, ok := strings.Cut(line, "\t")
		f := strings.Fields(head) // tag, mode, hash, stage
		if !ok || len(f) != 4 {
			return nil, fmt.Errorf("git ls-files printed %q", line)
		}
		mode, err1 := strconv.ParseUint(f[1], 8, 32)
		stage, err2 := strconv.ParseUint(f[3], 10, 2)
		hash, ok := parseHash(f[2])
		if isHash(f[2]) && !ok {
			hash, ok = x.alias(f[2]), true
		}
		if err1 != nil || err2 != nil || !ok {
			return nil, fmt.Errorf("git ls-files printed %q", line)
		}
		fixed := make([]byte, entryHead+2)
		binary.BigEndian.PutUint32(fixed[24:], uint32(mode))
		copy(fixed[40:], hash[:])
		binary.BigEndian.PutUint16(fixed[60:], flagExtended|uint16(stage)<<12)
		if f[0] == "S" {
			binary.BigEndian.PutUint16(fixed[entryHead:], flagSkipWorktree)
		}
		x.add(fixed, []byte(name))
	}
	return x, x.survey()
}
