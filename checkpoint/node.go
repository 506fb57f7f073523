package checkpoint

import (
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// A node is one folder of a scanned worktree. Nodes of a finished scan are
// not changed any more; the next scan looks them up as its stat cache.
type node struct {
	ents []ent         // by the bytes of their names; only what belongs to the snapshot
	hash plumbing.Hash // of the tree; zero for a folder with nothing in it

	attrs     uint64                   // signature of the conversion rules the entries were hashed under
	converted map[string]plumbing.Hash // names that went through git, with the index's blob at that time
	nested    bool                     // during a scan: a repository of its own, with hash as its commit
}

// An ent is one name in a node.
type ent struct {
	name string
	mode uint32        // as in git's trees
	hash plumbing.Hash // of the blob as git would store it, or the nested repository's commit
	raw  plumbing.Hash // of the bytes on disk where git converts them to others; else zero
	racy bool          // may have changed within the clock's tick: hash it again next time
	stat statKey       // zero for what was taken from the index
	dir  *node         // for modeDir
}

// disk is the hash of the bytes on disk.
func (e *ent) disk() plumbing.Hash {
	if !e.raw.IsZero() {
		return e.raw
	}
	return e.hash
}

// A statKey is what must be equal for a file to be unchanged.
type statKey struct {
	size         int64
	mtime, ctime int64 // nanoseconds
	inode        uint64
	mode         uint32 // type and permissions as the system gives them
}

// find returns the entry of a name, or nil. n may be nil.
func (n *node) find(name string) *ent {
	if n == nil {
		return nil
	}
	i := sort.Search(len(n.ents), func(i int) bool { return n.ents[i].name >= name })
	if i < len(n.ents) && n.ents[i].name == name {
		return &n.ents[i]
	}
	return nil
}

// lookup returns the entry of a path, or nil.
func (n *node) lookup(path string) *ent {
	var e *ent
	for name := range strings.SplitSeq(path, "/") {
		if e = n.find(name); e == nil {
			return nil
		}
		n = e.dir
	}
	return e
}

// insert adds a leaf at path, making folders. It returns false if a leaf is
// where a folder must be. An entry that is there already is kept unless
// replace is set. The folders' entries must be sorted.
func (n *node) insert(path string, leaf ent, replace bool) bool {
	name, rest, more := strings.Cut(path, "/")
	i := sort.Search(len(n.ents), func(i int) bool { return n.ents[i].name >= name })
	found := i < len(n.ents) && n.ents[i].name == name
	if !more {
		leaf.name = name
		switch {
		case !found:
			n.ents = slices.Insert(n.ents, i, leaf)
		case n.ents[i].mode == modeDir:
			return false
		case replace:
			n.ents[i] = leaf
		}
		return true
	}
	if !found {
		n.ents = slices.Insert(n.ents, i, ent{name: name, mode: modeDir, dir: &node{}})
	}
	if n.ents[i].mode != modeDir {
		return false
	}
	return n.ents[i].dir.insert(rest, leaf, replace)
}

// each calls fn for every leaf with its path.
func (n *node) each(prefix string, fn func(path string, e *ent)) {
	for i := range n.ents {
		e := &n.ents[i]
		if e.mode == modeDir {
			e.dir.each(prefix+e.name+"/", fn)
		} else {
			fn(prefix+e.name, e)
		}
	}
}

// finish computes the hashes of n's tree bottom-up and writes the trees that
// old, the same folder of a saved snapshot, does not have. Folders with
// nothing in them are dropped.
func (n *node) finish(old *node, odb *objects) error {
	keep := n.ents[:0]
	for _, e := range n.ents {
		if e.mode == modeDir {
			var was *node
			if o := old.find(e.name); o != nil {
				was = o.dir
			}
			if err := e.dir.finish(was, odb); err != nil {
				return err
			}
			if len(e.dir.ents) == 0 {
				continue
			}
			e.hash = e.dir.hash
		}
		keep = append(keep, e)
	}
	n.ents = keep
	if len(n.ents) == 0 {
		return nil
	}
	if old != nil && slices.EqualFunc(n.ents, old.ents, func(a, b ent) bool {
		return a.name == b.name && a.mode == b.mode && a.hash == b.hash
	}) {
		n.hash = old.hash
		return nil
	}
	entries := make([]treeEntry, len(n.ents))
	for i, e := range n.ents {
		entries[i] = treeEntry{name: e.name, mode: e.mode, hash: e.hash}
	}
	h, err := odb.write(plumbing.TreeObject, encodeTree(entries))
	if err != nil {
		return err
	}
	n.hash = h
	odb.keepTree(h, entries)
	return nil
}
