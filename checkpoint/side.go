package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// A side commit holds what a restore needs and what git's tree of a
// checkpoint cannot hold. Its tree has up to two names: "raw", a tree of the
// converted paths with their bytes as on disk, and "skipped", JSON lines with
// the paths that were left out. The same content gives the same commit.

// A saved state is what a restore starts from or goes to.
type saved struct {
	tree    plumbing.Hash
	raw     map[string]plumbing.Hash
	skipped []PathNote
}

// disk is the hash of the bytes that the path's file has in this state.
func (v *saved) disk(path string, e treeEntry) plumbing.Hash {
	if h, ok := v.raw[path]; ok {
		return h
	}
	return e.hash
}

// writeSide writes the side commit; zero if there is nothing to keep.
func (o *objects) writeSide(v saved) (plumbing.Hash, error) {
	var entries []treeEntry
	if len(v.raw) > 0 {
		root := &node{}
		for path, h := range v.raw {
			root.insert(path, ent{mode: modeFile, hash: h}, true)
		}
		if err := root.finish(nil, o); err != nil {
			return plumbing.ZeroHash, err
		}
		entries = append(entries, treeEntry{name: "raw", mode: modeDir, hash: root.hash})
	}
	if len(v.skipped) > 0 {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		for _, n := range v.skipped {
			// JSON text would lose names that are no UTF-8; bytes are base64 there.
			if err := enc.Encode(sideNote{Path: []byte(n.Path), Why: n.Why}); err != nil {
				return plumbing.ZeroHash, fmt.Errorf("encoding skipped paths: %w", err)
			}
		}
		h, err := o.write(plumbing.BlobObject, b.Bytes())
		if err != nil {
			return plumbing.ZeroHash, err
		}
		entries = append(entries, treeEntry{name: "skipped", mode: modeFile, hash: h})
	}
	if len(entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	tree, err := o.write(plumbing.TreeObject, encodeTree(entries))
	if err != nil {
		return plumbing.ZeroHash, err
	}
	date := time.Unix(0, 0).Unix()
	text := fmt.Sprintf("tree %s\nauthor %s %d +0000\ncommitter %s %d +0000\n\nbytes on disk and skipped paths of a checkpoint\n", tree, identity, date, identity, date)
	return o.write(plumbing.CommitObject, []byte(text))
}

type sideNote struct {
	Path []byte `json:"path"`
	Why  string `json:"why"`
}

// saved reads what a checkpoint's commit holds.
func (o *objects) saved(r *record) (*saved, error) {
	v := &saved{tree: r.tree, raw: map[string]plumbing.Hash{}}
	if r.side.IsZero() {
		return v, nil
	}
	tree, err := o.commitTree(r.side)
	if err != nil {
		return nil, err
	}
	raw, err := o.lookup(tree, "raw")
	if err != nil {
		return nil, err
	}
	if raw.isTree() {
		err := o.diffTrees(plumbing.ZeroHash, raw.hash, func(d pathDiff) error {
			v.raw[d.path] = d.new.hash
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	skipped, err := o.lookup(tree, "skipped")
	if err != nil || skipped.mode == 0 {
		return v, err
	}
	data, err := o.content(plumbing.BlobObject, skipped.hash)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var n sideNote
		if err := json.Unmarshal(line, &n); err != nil {
			return nil, fmt.Errorf("reading skipped paths of %s: %w", r.hash, err)
		}
		v.skipped = append(v.skipped, PathNote{Path: string(n.Path), Why: n.Why})
	}
	return v, nil
}
