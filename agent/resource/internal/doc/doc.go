// Package doc reads small YAML documents that people write by hand, settings
// and front matter, as a tree with positions. It takes the plain part of YAML
// only: no anchors and aliases, with which a small file becomes a huge one, no
// tags, one document.
package doc

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxSize is how many bytes a document may have.
const MaxSize = 256 << 10

// maxNesting is how deep a document may be nested; each level costs the parser stack.
const maxNesting = 32

// A Kind says what a value is.
type Kind string

// The kinds of values.
const (
	Null   Kind = "nothing"
	Bool   Kind = "true or false"
	Number Kind = "a number"
	Text   Kind = "text"
	List   Kind = "a list"
	Map    Kind = "keys and values"
)

// A Value is a node of the tree. Line and Col count from 1, in characters.
type Value struct {
	Kind      Kind
	Text      string // of a scalar, as it is meant; of a bool "true" or "false"
	List      []Value
	Map       []Entry
	Flow      bool // a map or a list in brackets
	Line, Col int
}

// An Entry is a key of a map and its value.
type Entry struct {
	Key       string
	Line, Col int // of the key
	Colon     int // the column of the colon, on the same line; 0: it is on another
	Value     Value
}

// An Error is a mistake at a place.
type Error struct {
	Line, Col int
	Text      string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Text) }

func errorAt(line, col int, format string, args ...any) *Error {
	return &Error{Line: line, Col: col, Text: fmt.Sprintf(format, args...)}
}

// Parse reads a document whose top is a map; one with nothing in it is an empty
// map. The error is an *Error.
func Parse(src []byte) (Value, error) {
	empty := Value{Kind: Map, Line: 1, Col: 1}
	switch {
	case len(src) > MaxSize:
		return empty, errorAt(1, 1, "the text is larger than %d KiB", MaxSize>>10)
	case !utf8.Valid(src):
		return empty, errorAt(1, 1, "the text is not UTF-8")
	case bytes.ContainsRune(src, 0):
		return empty, errorAt(1, 1, "there is a NUL in the text")
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(src), "\ufeff"), "\r\n", "\n") // the lexer counts two lines
	if i := strings.IndexByte(text, '\r'); i >= 0 {
		return empty, errorAt(1+strings.Count(text[:i], "\n"), 1, "there is a carriage return that ends no line")
	}
	tokens := lexer.Tokenize(text)
	if err := check(tokens); err != nil {
		return empty, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return empty, ofYAML(err)
	}
	var bodies []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType {
			bodies = append(bodies, d.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		return empty, nil
	case len(bodies) > 1:
		pos := bodies[1].GetToken().Position
		return empty, errorAt(pos.Line, pos.Column, "a second document: there can be one only")
	}
	v, err := value(bodies[0])
	if err != nil {
		return empty, err
	}
	switch v.Kind {
	case Null:
		return empty, nil
	case Map:
		return v, nil
	case Bool, Number, Text, List:
	}
	return empty, errorAt(v.Line, v.Col, "want keys and values, such as \"key: value\"")
}

// check refuses what is not needed and what could hurt.
func check(tokens token.Tokens) error {
	flow, entries, line := 0, 0, 0
	for _, t := range tokens {
		at := t.Position
		if at.Line != line {
			line, entries = at.Line, 0
		}
		switch t.Type { //nolint:exhaustive // the others are well
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingValueType:
			entries++
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType, token.DirectiveType, token.MappingKeyType:
			return errorAt(at.Line, at.Column, "%q has a meaning of its own in YAML that is not supported here: put the text in quotes", t.Value)
		}
		if flow > maxNesting || entries > maxNesting || at.Column > 16*maxNesting && t.Type == token.MappingValueType {
			return errorAt(at.Line, at.Column, "nested too deep")
		}
	}
	return nil
}

func value(n ast.Node) (Value, error) {
	pos := n.GetToken().Position
	v := Value{Line: pos.Line, Col: pos.Column}
	switch n := n.(type) {
	case *ast.NullNode:
		v.Kind = Null
	case *ast.BoolNode:
		v.Kind, v.Text = Bool, fmt.Sprint(n.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		v.Kind, v.Text = Number, n.GetToken().Value
	case *ast.StringNode:
		v.Kind, v.Text = Text, n.Value
	case *ast.LiteralNode:
		v.Kind, v.Text = Text, n.Value.Value
	case *ast.SequenceNode:
		v.Kind, v.Flow = List, n.IsFlowStyle
		for _, item := range n.Values {
			one, err := value(item)
			if err != nil {
				return v, err
			}
			v.List = append(v.List, one)
		}
	case *ast.MappingNode:
		v.Kind, v.Flow = Map, n.IsFlowStyle
		return mapping(v, n.Values)
	case *ast.MappingValueNode:
		v.Kind = Map
		return mapping(v, []*ast.MappingValueNode{n})
	case *ast.CommentGroupNode:
		v.Kind = Null
	default:
		return v, errorAt(pos.Line, pos.Column, "%s is not supported here", n.Type())
	}
	return v, nil
}

func mapping(v Value, values []*ast.MappingValueNode) (Value, error) {
	seen := map[string]int{}
	for i, m := range values {
		key := m.Key.GetToken()
		e := Entry{Key: key.Value, Line: key.Position.Line, Col: key.Position.Column}
		if s, ok := m.Key.(*ast.StringNode); ok {
			e.Key = s.Value
		}
		if colon := m.Start; colon != nil && colon.Position.Line == e.Line {
			e.Colon = colon.Position.Column
		}
		if line, twice := seen[e.Key]; twice {
			return v, errorAt(e.Line, e.Col, "the key %q is on line %d already", e.Key, line)
		}
		seen[e.Key] = e.Line
		if i == 0 && !v.Flow {
			v.Line, v.Col = e.Line, e.Col // the node's own is its first colon
		}
		e.Value = Value{Kind: Null, Line: e.Line, Col: e.Col}
		if m.Value != nil {
			var err error
			if e.Value, err = value(m.Value); err != nil {
				return v, err
			}
		}
		v.Map = append(v.Map, e)
	}
	return v, nil
}

func ofYAML(err error) error {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		return errorAt(1, 1, "%v", err)
	}
	pos, text := e.GetToken().Position, e.GetMessage()
	if strings.Contains(text, "found character '\t'") || strings.Contains(text, "found a tab character") {
		text = "a tab: YAML is indented with spaces"
	}
	return errorAt(pos.Line, pos.Column, "%s", text)
}
