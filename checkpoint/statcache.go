package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// The stat cache file: the magic; worktree, ref and commit of the snapshot;
// the basis it rests on; its root folder; a CRC-32 (Castagnoli) of all that.
//
// A folder is its signatures and stat data, its flags, the number of its
// entries, the entries, and then, for each entry that is a folder, the length of that folder's
// own record (four bytes) and the record. So a folder is unpacked when the
// walk comes to it, by the worker that reads it, and never if nobody asks.
// Numbers are varints of encoding/binary, but for sums and times.
//
// Anything odd makes the file worthless, never wrong: a file is only taken as
// clean if its stat data agree.

const (
	cacheMagic = "muntin stat cache 2\n"

	// rehashed is how many files a snapshot must have read to be worth a new cache file.
	rehashed = 500
)

// The flags of an entry.
const (
	entRacy = 1 << iota
	entRaw
	entConverted
	entRawBelow
	entAgainBelow
	entIgnored
)

// The flags of a folder.
const (
	dirRacy = 1 << iota
	dirAgain
	dirIgnoreFile
	dirAttrsFile
)

// saveCache writes the snapshot's nodes for the next process. It is not
// synced: a file that a power loss tore has another CRC.
func (s *Store) saveCache(snap *snapshot) error {
	file := s.cacheFile("stat")
	if file == "" || s.cached == snap {
		return nil
	}
	if err := os.MkdirAll(s.opts.CacheDir, 0o700); err != nil {
		return fmt.Errorf("saving stat cache: %w", err)
	}
	b := make([]byte, 0, 1<<20)
	b = append(b, cacheMagic...)
	b = putString(b, s.repo.Root)
	b = putString(b, snap.ref)
	b = append(b, snap.commit[:]...)
	b = putString(b, snap.basis.index)
	b = binary.LittleEndian.AppendUint64(b, snap.basis.conf)
	b = append(b, nodeFlags(snap.root))
	b = append(b, snap.root.hash[:]...)
	b = putNode(b, snap.root)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	if err := replaceFile(file, b); err != nil {
		return fmt.Errorf("saving stat cache: %w", err)
	}
	s.cached = snap
	return nil
}

// replaceFile is durable.WriteFile for what need not outlive a power loss.
func replaceFile(file string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".stat-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func putString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// nodeFlags are the flags of a folder's entry.
func nodeFlags(n *node) (flags byte) {
	if n.rawBelow {
		flags |= entRawBelow
	}
	if n.againBelow {
		flags |= entAgainBelow
	}
	if n.ignored {
		flags |= entIgnored
	}
	return flags
}

func putNode(b []byte, n *node) []byte {
	if n.packed != nil {
		return append(b, n.packed.data...)
	}
	var flags byte
	if n.racy {
		flags |= dirRacy
	}
	if n.again {
		flags |= dirAgain
	}
	if n.rules != nil && n.rules.ignore.there {
		flags |= dirIgnoreFile
	}
	if n.rules != nil && n.rules.attrs.there {
		flags |= dirAttrsFile
	}
	b = append(b, flags)
	b = binary.LittleEndian.AppendUint64(b, n.scope)
	b = binary.LittleEndian.AppendUint64(b, n.attrs)
	b = putKey(b, n.key)
	b = binary.AppendUvarint(b, uint64(len(n.ents)))
	for i := range n.ents {
		b = n.putEnt(b, &n.ents[i])
	}
	for i := range n.ents {
		if n.ents[i].mode != modeDir {
			continue
		}
		at := len(b)
		b = putNode(append(b, 0, 0, 0, 0), n.ents[i].dir)
		binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	return b
}

func (n *node) putEnt(b []byte, e *ent) []byte {
	b = putString(b, e.name)
	b = binary.AppendUvarint(b, uint64(e.mode))
	if e.mode == modeDir {
		b = append(b, nodeFlags(e.dir))
		return append(b, e.hash[:]...)
	}
	var flags byte
	index, converted := n.converted[e.name]
	if e.racy {
		flags |= entRacy
	}
	if !e.raw.IsZero() {
		flags |= entRaw
	}
	if converted {
		flags |= entConverted
	}
	b = append(b, flags)
	b = append(b, e.hash[:]...)
	if flags&entRaw != 0 {
		b = append(b, e.raw[:]...)
	}
	if converted {
		b = append(b, index[:]...)
	}
	return putKey(b, e.stat)
}

func putKey(b []byte, k statKey) []byte {
	b = binary.AppendUvarint(b, uint64(k.size))
	b = binary.LittleEndian.AppendUint64(b, uint64(k.mtime))
	b = binary.AppendVarint(b, k.ctime-k.mtime)
	b = binary.AppendUvarint(b, k.inode)
	return binary.AppendUvarint(b, uint64(k.mode))
}

// loadCache reads the cache file; nil if there is none that can be used.
func (s *Store) loadCache() *snapshot {
	file := s.cacheFile("stat")
	if file == "" {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	worktree, snap, err := parseCache(data)
	if err != nil || worktree != s.repo.Root || checkRef(snap.ref) != nil {
		return nil
	}
	return snap
}

var errCache = errors.New("stat cache is broken")

func parseCache(data []byte) (worktree string, snap *snapshot, err error) {
	if len(data) < len(cacheMagic)+4 || string(data[:len(cacheMagic)]) != cacheMagic {
		return "", nil, errCache
	}
	body, want := data[:len(data)-4], binary.BigEndian.Uint32(data[len(data)-4:])
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != want {
		return "", nil, errCache
	}
	c := cacheReader{rest: string(body[len(cacheMagic):])}
	snap = &snapshot{}
	worktree, snap.ref, snap.commit = c.string(), c.string(), c.hash()
	snap.basis = basis{index: c.string(), conf: c.fixed()}
	snap.root = packed(c.byte(), c.hash())
	snap.root.packed.data = c.rest
	if c.bad {
		return "", nil, errCache
	}
	snap.root.list()
	return worktree, snap, nil
}

// A packedNode is a folder's record. Names of unpacked entries are parts of it.
type packedNode struct{ data string }

// unpack fills a node from its record. A broken one gives a node that is
// never taken for an unchanged folder.
func (p *packedNode) unpack(n *node) {
	c := cacheReader{rest: p.data}
	flags := c.byte()
	n.racy, n.again = flags&dirRacy != 0, flags&dirAgain != 0
	if flags&(dirIgnoreFile|dirAttrsFile) != 0 {
		n.rules = &rules{}
		n.rules.ignore.there, n.rules.attrs.there = flags&dirIgnoreFile != 0, flags&dirAttrsFile != 0
	}
	n.scope, n.attrs, n.key = c.fixed(), c.fixed(), c.key()
	count := c.uint()
	if count > uint64(len(c.rest)) {
		c.bad = true
	}
	if !c.bad {
		n.ents = make([]ent, 0, count)
	}
	for i := uint64(0); i < count && !c.bad; i++ {
		n.ents = append(n.ents, c.ent(n))
	}
	for i := range n.ents {
		if e := &n.ents[i]; e.mode == modeDir {
			e.dir.packed.data = c.bytes(uint64(c.u32()))
		}
	}
	if c.bad || len(c.rest) > 0 {
		n.ents, n.key, n.again = nil, statKey{}, true
	}
}

// A cacheReader takes values off a buffer; once bad, all values are zero.
type cacheReader struct {
	rest string
	bad  bool
}

func (c *cacheReader) bytes(n uint64) string {
	if c.bad || n > uint64(len(c.rest)) {
		c.bad = true
		return ""
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cacheReader) byte() byte {
	if b := c.bytes(1); b != "" {
		return b[0]
	}
	return 0
}

func (c *cacheReader) uint() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		b := c.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	c.bad = true
	return 0
}

func (c *cacheReader) int() int64 {
	u := c.uint()
	return int64(u>>1) ^ -int64(u&1) // zigzag, as encoding/binary
}

func (c *cacheReader) u32() (v uint32) {
	b := c.bytes(4)
	for i := range b {
		v |= uint32(b[i]) << (8 * i)
	}
	return v
}

func (c *cacheReader) fixed() (v uint64) {
	b := c.bytes(8)
	for i := range b {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

func (c *cacheReader) string() string { return c.bytes(c.uint()) }

func (c *cacheReader) hash() (h plumbing.Hash) {
	copy(h[:], c.bytes(uint64(len(h))))
	return h
}

func (c *cacheReader) key() statKey {
	k := statKey{size: int64(c.uint()), mtime: int64(c.fixed())}
	k.ctime = k.mtime + c.int()
	k.inode, k.mode = c.uint(), uint32(c.uint())
	return k
}

func (c *cacheReader) ent(n *node) ent {
	e := ent{name: c.string(), mode: uint32(c.uint())}
	flags := c.byte()
	e.hash = c.hash()
	if e.mode == modeDir {
		e.dir = packed(flags, e.hash)
		return e
	}
	e.racy = flags&entRacy != 0
	if flags&entRaw != 0 {
		e.raw = c.hash()
	}
	if flags&entConverted != 0 {
		if n.converted == nil {
			n.converted = map[string]plumbing.Hash{}
		}
		n.converted[e.name] = c.hash()
	}
	e.stat = c.key()
	return e
}

// packed is a node of which only the flags are known.
func packed(flags byte, hash plumbing.Hash) *node {
	return &node{
		hash: hash, rawBelow: flags&entRawBelow != 0, againBelow: flags&entAgainBelow != 0, ignored: flags&entIgnored != 0,
		packed: &packedNode{},
	}
}
