package session

import "slices"

// tree is the entries of a session in the order of the file.
type tree struct {
	entries []Entry
	parents []int          // index of each entry's parent, -1 at the root
	index   map[string]int // by id
	origins map[string]bool
	leaf    string // id; never that of a move
}

func newTree() tree { return tree{index: map[string]int{}, origins: map[string]bool{}} }

func (t *tree) len() int { return len(t.entries) }

func (t *tree) has(id string) bool { _, ok := t.index[id]; return ok }

// add takes the next entry, whose id is new, and makes it the leaf. A parent
// that is not known was lost with its line; then the entry goes below the one
// before it in the file, which is where that parent most likely stood. found is
// false in this case.
func (t *tree) add(e Entry) (found bool) {
	parent, found := -1, true
	if e.ParentID != nil && *e.ParentID != "" {
		if parent, found = t.index[*e.ParentID]; !found {
			parent = len(t.entries) - 1
		}
	}
	t.index[e.ID] = len(t.entries)
	t.entries = append(t.entries, e)
	t.parents = append(t.parents, parent)
	if e.Origin != nil && e.Origin.ID != "" {
		t.origins[e.Origin.ID] = true
	}
	t.leaf = e.ID
	if e.Type == TypeCustom && e.CustomType == customLeaf {
		t.leaf = ""
		if parent >= 0 {
			t.leaf = t.entries[parent].ID
		}
	}
	return found
}

// branch is the entries from the root to the leaf. A parent stands before its
// children in the file, so the walk ends.
func (t *tree) branch() []Entry {
	at, ok := t.index[t.leaf]
	if !ok {
		return nil
	}
	var path []Entry
	for ; at >= 0; at = t.parents[at] {
		path = append(path, t.entries[at])
	}
	slices.Reverse(path)
	return path
}
