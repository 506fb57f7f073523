package checkpoint

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// A node is one folder of a scanned worktree. Nodes of a finished scan are
// not changed any more: the next scan takes those of unchanged folders as they
// are, and copies the others.
type node struct {
	ents []ent         // by the bytes of their names; what belongs to the snapshot, and empty folders
	hash plumbing.Hash // of the tree; zero for a folder with nothing in it

	key     statKey // of the folder before it was listed; zero: list it again
	rules   *rules  // its rule files; nil if it has none
	scope   uint64  // signature of the ignore rules its entries were judged by
	attrs   uint64  // signature of the conversion rules the entries were hashed under
	ignored bool    // only what is tracked counts in it
	racy    bool    // may have got other names within the clock's tick
	again   bool    // something in it can change without a change of its stat data

	rawBelow   bool // here or below is an entry whose bytes on disk are others
	againBelow bool // again, here or below

	converted map[string]plumbing.Hash // names that went through git, with the index's blob at that time
	nested    bool                     // during a scan: a repository of its own, with hash as its commit
	fresh     bool                     // during a scan: made by it, so it may be changed
	packed    *packedNode              // instead of ents: as it lies in a stat cache file
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

// empty tells that e is a folder that has no place in a tree.
func (e *ent) empty() bool { return e.mode == modeDir && e.hash.IsZero() }

// A statKey is what must be equal for a file to be unchanged.
type statKey struct {
	size         int64
	mtime, ctime int64 // nanoseconds
	inode        uint64
	mode         uint32 // type and permissions as the system gives them
}

// list returns the entries, unpacking them first if they come from a file.
// One goroutine at a time may look at a node.
func (n *node) list() []ent {
	if n.packed != nil {
		n.packed.unpack(n)
		n.packed = nil
	}
	return n.ents
}

// find returns the entry of a name, or nil. n may be nil.
func (n *node) find(name string) *ent {
	if n == nil {
		return nil
	}
	ents := n.list()
	i := sort.Search(len(ents), func(i int) bool { return ents[i].name >= name })
	if i < len(ents) && ents[i].name == name {
		return &ents[i]
	}
	return nil
}

// lookup returns the entry of a path, or nil. Empty folders are not found.
func (n *node) lookup(path string) *ent {
	var e *ent
	for name := range strings.SplitSeq(path, "/") {
		if e = n.find(name); e == nil {
			return nil
		}
		n = e.dir
	}
	if e.empty() {
		return nil
	}
	return e
}

// own returns n itself if this scan made it, else a copy that it may change.
func (n *node) own() *node {
	if n.fresh {
		return n
	}
	c := *n
	c.ents, c.converted, c.packed, c.fresh = slices.Clone(n.list()), maps.Clone(n.converted), nil, true
	return &c
}

// insert adds a leaf at path, making folders. It returns false if a leaf is
// where a folder must be. An entry that is there already is kept unless
// replace is set. The folders must be this scan's own (see reach).
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
		n.ents = slices.Insert(n.ents, i, ent{name: name, mode: modeDir, dir: &node{fresh: true}})
	}
	if n.ents[i].mode != modeDir {
		return false
	}
	return n.ents[i].dir.insert(rest, leaf, replace)
}

// reach makes the folders above path this scan's own as far as they exist,
// and marks the last one to be listed again: it gets a name that is not on disk.
func (n *node) reach(path string) {
	for rest := path; ; {
		dir, below, more := strings.Cut(rest, "/")
		if !more {
			break
		}
		rest = below
		e := n.find(dir)
		if e == nil || e.dir == nil {
			break
		}
		e.dir = e.dir.own()
		n = e.dir
	}
	n.again = true
}

// each calls fn for every leaf with its path.
func (n *node) each(prefix string, fn func(path string, e *ent)) {
	ents := n.list()
	for i := range ents {
		e := &ents[i]
		if e.mode == modeDir {
			e.dir.each(prefix+e.name+"/", fn)
		} else {
			fn(prefix+e.name, e)
		}
	}
}

// rawHashes maps the converted paths to the hashes of their bytes on disk.
func (n *node) rawHashes() map[string]plumbing.Hash {
	raw := map[string]plumbing.Hash{}
	n.addRaw("", raw)
	return raw
}

func (n *node) addRaw(prefix string, raw map[string]plumbing.Hash) {
	if !n.rawBelow {
		return
	}
	ents := n.list()
	for i := range ents {
		e := &ents[i]
		switch {
		case e.mode == modeDir:
			e.dir.addRaw(prefix+e.name+"/", raw)
		case !e.raw.IsZero():
			raw[prefix+e.name] = e.raw
		}
	}
}

// finish computes the hashes of n's tree bottom-up and writes the trees that
// old, the same folder of a saved snapshot, does not have.
func (n *node) finish(old *node, odb *objects) error {
	if n == old {
		return nil
	}
	n.fresh = false
	n.rawBelow, n.againBelow = false, n.again
	entries := make([]treeEntry, 0, len(n.ents))
	for i := range n.ents {
		e := &n.ents[i]
		if e.mode == modeDir {
			var was *node
			if o := old.find(e.name); o != nil {
				was = o.dir
			}
			if err := e.dir.finish(was, odb); err != nil {
				return err
			}
			e.hash = e.dir.hash
			n.rawBelow, n.againBelow = n.rawBelow || e.dir.rawBelow, n.againBelow || e.dir.againBelow
			if e.empty() {
				continue
			}
		}
		n.rawBelow = n.rawBelow || !e.raw.IsZero()
		entries = append(entries, treeEntry{name: e.name, mode: e.mode, hash: e.hash})
	}
	if n.hash = plumbing.ZeroHash; len(entries) == 0 {
		return nil
	}
	data := encodeTree(entries)
	n.hash = plumbing.ComputeHash(plumbing.TreeObject, data)
	if old != nil && n.hash == old.hash {
		return nil
	}
	if err := odb.writeAs(n.hash, plumbing.TreeObject, data); err != nil {
		return err
	}
	odb.keepTree(n.hash, entries)
	return nil
}
