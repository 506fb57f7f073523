package tree

import (
	"math"

	"github.com/goccy/go-yaml/ast"
)

// node turns a value of the YAML library into a Node.
func (p *reader) node(n ast.Node) *Node {
	if n == nil {
		return &Node{Kind: Null, At: Place{Source: p.source}}
	}
	out := &Node{At: p.placeOf(n)}
	if p.nodes++; p.nodes > maxNodes {
		if p.nodes == maxNodes+1 {
			p.problems.Add(out.At, "more than %d values: the aliases grow without end", maxNodes)
		}
		return out
	}
	if p.tooLong(n, out.At) {
		return out
	}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		out.Kind, out.Bool, out.Text = Bool, n.Value, n.Token.Value
	case *ast.IntegerNode:
		out.Kind, out.Text = Int, n.Token.Value
		out.Int, out.Big = whole(n.Value)
	case *ast.FloatNode:
		out.Kind, out.Text, out.Float = Float, n.Token.Value, n.Value
	case *ast.InfinityNode:
		out.Kind, out.Text, out.Float = Float, n.Token.Value, n.Value
	case *ast.NanNode:
		out.Kind, out.Text, out.Float = Float, n.Token.Value, math.NaN()
	case *ast.StringNode:
		out.Kind, out.Text = Text, n.Value
	case *ast.LiteralNode:
		out.Kind, out.Text = Text, n.Value.Value
	case *ast.SequenceNode:
		out.Kind, out.Items = List, make([]*Node, 0, len(n.Values))
		for _, item := range n.Values {
			out.Items = append(out.Items, p.node(item))
		}
	case *ast.MappingNode:
		out.Kind, out.Pairs = Map, make([]Pair, 0, len(n.Values))
		for _, kv := range n.Values {
			if !kv.Key.IsMergeKey() {
				p.pair(out, kv)
			}
		}
		for _, kv := range n.Values { // what is merged in stands behind what is there
			if kv.Key.IsMergeKey() {
				p.merge(out, p.node(kv.Value))
			}
		}
	case *ast.MappingValueNode:
		out.Kind, out.At = Map, p.placeOf(n.Key)
		p.pair(out, n)
	default:
		return p.reference(n, out)
	}
	return out
}

// tooLong reports a list or mapping that no reader should have to compare with
// itself.
func (p *reader) tooLong(n ast.Node, at Place) bool {
	size := 0
	switch n := n.(type) {
	case *ast.SequenceNode:
		size = len(n.Values)
	case *ast.MappingNode:
		size = len(n.Values)
	}
	if size > maxItems {
		p.problems.Add(at, "%d values are more than the limit of %d in one place", size, maxItems)
	}
	return size > maxItems
}

// whole is an integer of the YAML library, and whether it does not fit.
func whole(v any) (n int64, big bool) {
	switch v := v.(type) {
	case int64:
		return v, false
	case uint64:
		return int64(min(v, math.MaxInt64)), v > math.MaxInt64
	}
	return 0, true
}

func (p *reader) pair(to *Node, kv *ast.MappingValueNode) {
	value := p.node(kv.Value)
	if kv.Value == nil {
		value.At = p.placeOf(kv.Key)
	}
	to.Pairs = append(to.Pairs, Pair{Key: kv.Key.GetToken().Value, KeyAt: p.placeOf(kv.Key), Value: value})
}

// merge takes over the pairs of a merge key that are not there yet.
func (p *reader) merge(to, value *Node) {
	from := []*Node{value}
	if value.Kind == List {
		from = value.Items
	}
	for _, m := range from {
		for _, pair := range m.Pairs {
			if to.Get(pair.Key) == nil {
				to.Pairs = append(to.Pairs, pair)
			}
		}
	}
}

// reference writes out what an anchor, an alias or a tag stands for.
func (p *reader) reference(n ast.Node, out *Node) *Node {
	switch n := n.(type) {
	case *ast.AnchorNode:
		if p.anchors == nil {
			p.anchors, p.open = map[string]ast.Node{}, map[string]bool{}
		}
		name := n.Name.GetToken().Value
		p.anchors[name] = n.Value
		p.open[name] = true
		defer delete(p.open, name)
		return p.node(n.Value)
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		target, ok := p.anchors[name]
		if !ok || p.open[name] {
			p.problems.Add(out.At, "the alias *%s stands for nothing before it", name)
			return out
		}
		p.open[name] = true
		defer delete(p.open, name)
		return p.node(target)
	case *ast.TagNode:
		return p.node(n.Value)
	}
	out.Kind = Other
	return out
}
