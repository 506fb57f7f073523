package scripted

import (
	"bytes"
	"encoding/json"

	"github.com/goccy/go-yaml/ast"
)

// maxDepth bounds how deep arguments may be nested.
const maxDepth = 100

// appendJSON adds a YAML value as JSON, with the keys in the order of the file.
func appendJSON(out []byte, node ast.Node, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, wrong(node, "nested too deep")
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		return appendObject(out, n.Values, depth)
	case *ast.MappingValueNode:
		return appendObject(out, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out = append(out, '[')
		for i, v := range n.Values {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = appendJSON(out, v, depth+1); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case *ast.NullNode:
		return append(out, "null"...), nil
	case *ast.BoolNode:
		return appendValue(out, node, n.Value)
	case *ast.IntegerNode:
		return appendValue(out, node, n.Value)
	case *ast.FloatNode:
		return appendValue(out, node, n.Value)
	}
	if text, ok := scalar(node); ok {
		return appendValue(out, node, text)
	}
	return nil, wrong(node, "a value that JSON does not have")
}

func appendObject(out []byte, values []*ast.MappingValueNode, depth int) ([]byte, error) {
	out = append(out, '{')
	for i, v := range values {
		key, ok := keyText(v.Key)
		if !ok {
			return nil, wrong(v, "expected a text as the key")
		}
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendValue(out, v, key); err != nil {
			return nil, err
		}
		if out, err = appendJSON(append(out, ':'), v.Value, depth+1); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendValue(out []byte, node ast.Node, v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, wrong(node, "a value that JSON does not have")
	}
	return append(out, bytes.TrimSpace(buf.Bytes())...), nil
}
