package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// The modes that git's trees know.
const (
	modeDir     = 0o040000
	modeFile    = 0o100644
	modeExec    = 0o100755
	modeSymlink = 0o120000
	modeGitlink = 0o160000
)

// keptTrees bounds the memory of parsed trees; they are dropped all at once.
const keptTrees = 20_000

// A treeEntry is one name of a tree object.
type treeEntry struct {
	name string
	mode uint32
	hash plumbing.Hash
}

// isTree tells folders from leaves. To trees, a nested repository is a leaf.
func (e treeEntry) isTree() bool { return e.mode == modeDir }

// sortKey is git's order: folders compare as if their names ended in a slash.
func (e treeEntry) sortKey() string {
	if e.isTree() {
		return e.name + "/"
	}
	return e.name
}

// encodeTree sorts entries in git's order and encodes them as a tree object.
func encodeTree(entries []treeEntry) []byte {
	slices.SortFunc(entries, func(a, b treeEntry) int {
		if !a.isTree() && !b.isTree() {
			return strings.Compare(a.name, b.name)
		}
		return strings.Compare(a.sortKey(), b.sortKey())
	})
	var b bytes.Buffer
	for _, e := range entries {
		b.WriteString(strconv.FormatUint(uint64(e.mode), 8))
		b.WriteByte(' ')
		b.WriteString(e.name)
		b.WriteByte(0)
		b.Write(e.hash[:])
	}
	return b.Bytes()
}

// parseTree reads a tree object. Names that could leave the worktree or
// reach into a git folder are refused: a tree may come from anywhere.
func parseTree(data []byte) ([]treeEntry, error) {
	var entries []treeEntry
	for len(data) > 0 {
		space, nul := bytes.IndexByte(data, ' '), bytes.IndexByte(data, 0)
		if space < 0 || nul < space || len(data) < nul+21 {
			return nil, errors.New("tree is cut short")
		}
		mode, err := strconv.ParseUint(string(data[:space]), 8, 32)
		if err != nil {
			return nil, errors.New("tree has a bad mode")
		}
		e := treeEntry{name: string(data[space+1 : nul]), mode: uint32(mode)}
		copy(e.hash[:], data[nul+1:nul+21])
		if e.name == "" || e.name == "." || e.name == ".." || strings.Contains(e.name, "/") || dotGitLike(e.name) {
			return nil, fmt.Errorf("tree has the unsafe name %q", e.name)
		}
		switch e.mode {
		case modeDir, modeFile, modeExec, modeSymlink, modeGitlink:
		case 0o100664: // old versions of git wrote it
			e.mode = modeFile
		default:
			return nil, fmt.Errorf("tree has the unknown mode %o", e.mode)
		}
		entries = append(entries, e)
		data = data[nul+21:]
	}
	return entries, nil
}

// dotGitLike tells whether git refuses to track the name because it is, or
// on some file system could be, ".git" (verify_path and is_ntfs_dotgit).
func dotGitLike(name string) bool {
	low := strings.ToLower(name)
	rest, ok := strings.CutPrefix(low, ".git")
	if !ok {
		if rest, ok = strings.CutPrefix(low, "git~1"); !ok {
			return false
		}
	}
	if i := strings.IndexByte(rest, ':'); i >= 0 {
		rest = rest[:i]
	}
	if i := strings.IndexByte(rest, '\\'); i >= 0 {
		rest = rest[:i]
	}
	return strings.Trim(rest, ". ") == ""
}

// tree returns the entries of a tree in the order of their names' bytes. The
// zero hash is the empty tree. The result must not be changed.
func (o *objects) tree(h plumbing.Hash) ([]treeEntry, error) {
	if h.IsZero() {
		return nil, nil
	}
	if entries, ok := o.trees[h]; ok {
		return entries, nil
	}
	data, err := o.content(plumbing.TreeObject, h)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(data)
	if err != nil {
		return nil, fmt.Errorf("reading tree %s: %w", h, err)
	}
	o.keepTree(h, entries)
	return entries, nil
}

// keepTree remembers a tree that was just read or written.
func (o *objects) keepTree(h plumbing.Hash, entries []treeEntry) {
	slices.SortFunc(entries, func(a, b treeEntry) int { return strings.Compare(a.name, b.name) })
	if len(o.trees) >= keptTrees {
		clear(o.trees)
	}
	o.trees[h] = entries
}

// A pathDiff is one path that two trees do not share. A missing side has mode 0.
type pathDiff struct {
	path     string
	old, new treeEntry
}

// diffTrees calls fn for each leaf that differs, in the order of the names in
// each folder. Folders with equal hashes are not read.
func (o *objects) diffTrees(from, to plumbing.Hash, fn func(pathDiff) error) error {
	return o.diffDirs("", from, to, fn)
}

func (o *objects) diffDirs(dir string, from, to plumbing.Hash, fn func(pathDiff) error) error {
	if from == to {
		return nil
	}
	a, err := o.tree(from)
	if err != nil {
		return err
	}
	b, err := o.tree(to)
	if err != nil {
		return err
	}
	for len(a) > 0 || len(b) > 0 {
		var x, y treeEntry
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].name < b[0].name:
			x, a = a[0], a[1:]
		case len(a) == 0 || b[0].name < a[0].name:
			y, b = b[0], b[1:]
		default:
			x, y, a, b = a[0], b[0], a[1:], b[1:]
		}
		if err := o.diffEntry(dir, x, y, fn); err != nil {
			return err
		}
	}
	return nil
}

func (o *objects) diffEntry(dir string, x, y treeEntry, fn func(pathDiff) error) error {
	if x.mode == y.mode && x.hash == y.hash {
		return nil
	}
	path := dir + x.name
	if x.mode == 0 {
		path = dir + y.name
	}
	var under pathDiff
	var subX, subY plumbing.Hash
	if x.isTree() {
		subX = x.hash
	} else {
		under.old = x
	}
	if y.isTree() {
		subY = y.hash
	} else {
		under.new = y
	}
	if under.old.mode != 0 || under.new.mode != 0 {
		under.path = path
		if err := fn(under); err != nil {
			return err
		}
	}
	return o.diffDirs(path+"/", subX, subY, fn)
}

// lookup finds the entry of a path in a tree; mode 0 if there is none.
func (o *objects) lookup(root plumbing.Hash, path string) (treeEntry, error) {
	entry := treeEntry{mode: modeDir, hash: root}
	for part := range strings.SplitSeq(path, "/") {
		if !entry.isTree() {
			return treeEntry{}, nil
		}
		entries, err := o.tree(entry.hash)
		if err != nil {
			return treeEntry{}, err
		}
		i, ok := slices.BinarySearchFunc(entries, part, func(e treeEntry, name string) int { return strings.Compare(e.name, name) })
		if !ok {
			return treeEntry{}, nil
		}
		entry = entries[i]
	}
	return entry, nil
}
