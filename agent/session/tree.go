package session

import "slices"

// A node is what the tree holds of an entry: where its line is, and not what it
// says. So the memory that a session takes is that of its present branch.
type node struct {
	id     string
	parent int32 // index; -1 at the root
	number int32 // of the line, from 1
	off    int64
	length int32
	kind   kind
}

// tree is the entries of a session in the order of the file.
type tree struct {
	nodes   []node
	index   map[string]int32 // by id
	origins map[string]bool
	leaf    int32 // -1 at the root; never a move's own entry
}

func newTree() tree { return tree{index: map[string]int32{}, origins: map[string]bool{}, leaf: -1} }

func (t *tree) len() int { return len(t.nodes) }

func (t *tree) find(id string) (int32, bool) {
	i, ok := t.index[id]
	return i, ok
}

// add takes the next entry, whose id is new, and makes it the leaf. A parent
// that is not known was lost with its line; then the entry goes below the one
// before it in the file, which is where that parent most likely stood. found is
// false in this case.
func (t *tree) add(l line, n node) (found bool) {
	n.id, n.kind, n.parent, found = l.id, l.kind, -1, true
	if l.parent != "" {
		if n.parent, found = t.index[l.parent]; !found {
			n.parent = int32(len(t.nodes)) - 1
		}
	}
	at := int32(len(t.nodes))
	t.index[l.id] = at
	t.nodes = append(t.nodes, n)
	if l.origin != "" {
		t.origins[l.origin] = true
	}
	t.leaf = at
	if n.kind == kindLeaf {
		t.leaf = n.parent
	}
	return found
}

// id of the node at i; "" at the root.
func (t *tree) id(i int32) string {
	if i < 0 {
		return ""
	}
	return t.nodes[i].id
}

// path is the nodes from the root to the one at i. A parent stands before its
// children in the file, so the walk ends.
func (t *tree) path(i int32) []int32 {
	var path []int32
	for ; i >= 0; i = t.nodes[i].parent {
		path = append(path, i)
	}
	slices.Reverse(path)
	return path
}

// nearest is the last node of a kind on the way from i to the root, or -1.
func (t *tree) nearest(i int32, k kind) int32 {
	for i >= 0 && t.nodes[i].kind != k {
		i = t.nodes[i].parent
	}
	return i
}
