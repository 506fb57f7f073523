package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/internal/durable"
)

// The stat cache file, all numbers as varints of encoding/binary:
// the magic; worktree, ref and commit of the snapshot; its root folder; a
// CRC-32 of all that. A folder is the signature of its conversion rules, the
// number of its entries, and the entries. Anything odd makes it worthless,
// never wrong: a file is only taken as clean if its stat data agree.

const (
	cacheMagic = "muntin stat cache 1\n"

	// rehashed is how many files a snapshot must have read to be worth a new cache file.
	rehashed = 500
)

const (
	entRacy = 1 << iota
	entRaw
	entConverted
)

// saveCache writes the snapshot's nodes for the next process.
func (s *Store) saveCache(snap *snapshot) error {
	file := s.cacheFile()
	if file == "" {
		return nil
	}
	if err := os.MkdirAll(s.opts.CacheDir, 0o700); err != nil {
		return fmt.Errorf("saving stat cache: %w", err)
	}
	b := []byte(cacheMagic)
	b = putString(b, s.repo.Root)
	b = putString(b, snap.ref)
	b = append(b, snap.commit[:]...)
	b = putNode(b, snap.root)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return durable.WriteFile(file, b, 0o600)
}

func putString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func putNode(b []byte, n *node) []byte {
	b = binary.AppendUvarint(b, n.attrs)
	b = append(b, n.hash[:]...)
	b = binary.AppendUvarint(b, uint64(len(n.ents)))
	for i := range n.ents {
		e := &n.ents[i]
		b = putString(b, e.name)
		b = binary.AppendUvarint(b, uint64(e.mode))
		if e.mode == modeDir {
			b = putNode(b, e.dir)
			continue
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
		b = binary.AppendUvarint(b, uint64(e.stat.size))
		b = binary.AppendVarint(b, e.stat.mtime)
		b = binary.AppendVarint(b, e.stat.ctime)
		b = binary.AppendUvarint(b, e.stat.inode)
		b = binary.AppendUvarint(b, uint64(e.stat.mode))
	}
	return b
}

// loadCache reads the cache file; nil if there is none that can be used.
func (s *Store) loadCache() *snapshot {
	file := s.cacheFile()
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
	body, sum := data[:len(data)-4], binary.BigEndian.Uint32(data[len(data)-4:])
	if crc32.ChecksumIEEE(body) != sum {
		return "", nil, errCache
	}
	c := cacheReader{rest: body[len(cacheMagic):]}
	snap = &snapshot{}
	worktree, snap.ref, snap.commit = c.string(), c.string(), c.hash()
	snap.root = c.node(0)
	if c.bad || len(c.rest) > 0 {
		return "", nil, errCache
	}
	return worktree, snap, nil
}

// A cacheReader takes values off a buffer; once bad, all values are zero.
type cacheReader struct {
	rest []byte
	bad  bool
}

func (c *cacheReader) bytes(n uint64) []byte {
	if c.bad || n > uint64(len(c.rest)) {
		c.bad = true
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cacheReader) uint() uint64 {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.bytes(uint64(n))
	return v
}

func (c *cacheReader) int() int64 {
	v, n := binary.Varint(c.rest)
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.bytes(uint64(n))
	return v
}

func (c *cacheReader) string() string { return string(c.bytes(c.uint())) }

func (c *cacheReader) hash() (h plumbing.Hash) {
	copy(h[:], c.bytes(uint64(len(h))))
	return h
}

// maxDepth bounds the folders below each other that a cache may hold.
const maxDepth = 2000

func (c *cacheReader) node(depth int) *node {
	n := &node{attrs: c.uint(), hash: c.hash()}
	count := c.uint()
	if depth > maxDepth || count > uint64(len(c.rest)) {
		c.bad = true
	}
	if c.bad {
		return n
	}
	n.ents = make([]ent, 0, count)
	for range count {
		e := ent{name: c.string(), mode: uint32(c.uint())}
		if e.mode == modeDir {
			e.dir = c.node(depth + 1)
			e.hash = e.dir.hash
		} else {
			c.leaf(n, &e)
		}
		if c.bad {
			return n
		}
		n.ents = append(n.ents, e)
	}
	return n
}

func (c *cacheReader) leaf(n *node, e *ent) {
	b := c.bytes(1)
	if c.bad {
		return
	}
	flags := b[0]
	e.racy, e.hash = flags&entRacy != 0, c.hash()
	if flags&entRaw != 0 {
		e.raw = c.hash()
	}
	if flags&entConverted != 0 {
		if n.converted == nil {
			n.converted = map[string]plumbing.Hash{}
		}
		n.converted[e.name] = c.hash()
	}
	e.stat = statKey{size: int64(c.uint()), mtime: c.int(), ctime: c.int(), inode: c.uint(), mode: uint32(c.uint())}
}
