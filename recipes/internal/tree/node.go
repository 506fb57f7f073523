package tree

import "fmt"

// A Kind is what a Node is.
type Kind int

// The kinds.
const (
	Null Kind = iota
	Bool
	Int
	Float // also the numbers that are none: .inf, .nan
	Text
	List
	Map
	Other // what YAML has besides; no reader takes it
)

// A Node is a value of a YAML text.
type Node struct {
	Kind  Kind
	Text  string // a scalar's words; of a number or boolean as it was written
	Bool  bool
	Int   int64
	Big   bool // an Int that does not fit
	Float float64
	Items []*Node // of a List
	Pairs []Pair  // of a Map, in the order of the text
	At    Place
}

// A Pair is a key of a Map with its value.
type Pair struct {
	Key   string
	KeyAt Place
	Value *Node
}

// Get is the value of a key, or nil.
func (n *Node) Get(key string) *Node {
	if i := n.index(key); i >= 0 {
		return n.Pairs[i].Value
	}
	return nil
}

func (n *Node) index(key string) int {
	for i := range n.Pairs {
		if n.Pairs[i].Key == key {
			return i
		}
	}
	return -1
}

// Set replaces the value of a key, or adds the pair at the end.
func (n *Node) Set(p Pair) {
	if i := n.index(p.Key); i >= 0 {
		n.Pairs[i] = p
		return
	}
	n.Pairs = append(n.Pairs, p)
}

// Take removes a key and returns its pair. The value is nil if there is none.
func (n *Node) Take(key string) Pair {
	i := n.index(key)
	if i < 0 {
		return Pair{}
	}
	p := n.Pairs[i]
	n.Pairs = append(n.Pairs[:i:i], n.Pairs[i+1:]...)
	return p
}

// Scalar reports whether the node is one value, not a list or a mapping.
func (n *Node) Scalar() bool { return n.Kind != List && n.Kind != Map && n.Kind != Other }

// Describe names what kind of value it is, for errors.
func (n *Node) Describe() string {
	switch n.Kind {
	case Null:
		return "nothing"
	case Bool:
		return fmt.Sprintf("the boolean %s", n.Text)
	case Int, Float:
		return fmt.Sprintf("the number %s", n.Text)
	case List:
		return "a list"
	case Map:
		return "keys and values"
	case Text:
		return "text"
	case Other:
	}
	return "something else"
}
