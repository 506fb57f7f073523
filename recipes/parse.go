package recipes

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

// maxNesting is far above what a recipe needs and far below what overflows
// the YAML parser's stack.
const maxNesting = 32

// Parse reads a recipe. name is what errors call it: its path, or the name of
// a built-in recipe. Whatever is wrong with the text is an *Error.
func Parse(name string, src []byte) (*Recipe, error) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	p := newProblems(src)
	if len(src) > MaxSize {
		p.lines = nil
		p.add(1, 1, "the file is larger than %d bytes", MaxSize)
		return nil, p.err(name)
	}
	root, ok := p.parseYAML(src)
	if !ok {
		return nil, p.err(name)
	}
	d := decoder{problems: p, at: map[any]place{}}
	r := d.recipe(root)
	d.validate(r)
	if err := p.err(name); err != nil {
		return nil, err
	}
	return r, nil
}

// parseYAML makes the tree of one document that is a mapping.
func (p *problems) parseYAML(src []byte) (*ast.MappingNode, bool) {
	if !utf8.Valid(src) {
		line := 1 + bytes.Count(src[:invalidAt(src)], []byte{'\n'})
		p.add(line, 1, "the text is not UTF-8")
		return nil, false
	}
	tokens := lexer.Tokenize(string(src))
	p.checkTokens(tokens)
	if len(p.found) > 0 {
		return nil, false
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		p.addYAML(err)
		return nil, false
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.DirectiveType && doc.Body.Type() != ast.CommentType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		p.add(1, 1, "the recipe is empty")
	case len(bodies) > 1:
		at := placeOf(bodies[1])
		p.add(at.line, at.col, "a second document: a recipe is one")
	default:
		root, ok := bodies[0].(*ast.MappingNode)
		if !ok {
			at := placeOf(bodies[0])
			p.add(at.line, at.col, "want keys and values, such as \"name: demo\"")
		}
		return root, ok
	}
	return nil, false
}

func invalidAt(src []byte) int {
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(src)
}

// checkTokens refuses what a recipe does not need and what could hurt: deep
// nesting, and anchors and aliases, with which a small file becomes a huge one.
func (p *problems) checkTokens(tokens token.Tokens) {
	flow, entries, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, entries = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType:
			entries++
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			p.add(line, t.Position.Column, "anchors, aliases and merge keys are not supported: write the value out, or put it in quotes if %q belongs to it", t.Value)
		case token.TagType:
			p.add(line, t.Position.Column, "tags are not supported: put the value in quotes if %q belongs to it", t.Value)
		case token.MappingKeyType:
			p.add(line, t.Position.Column, "keys with \"?\" are not supported")
		}
		if flow > maxNesting || entries > maxNesting {
			p.add(line, t.Position.Column, "nested too deep")
			return
		}
	}
}

// addYAML takes over an error of the YAML library.
func (p *problems) addYAML(err error) {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		p.add(1, 1, "%v", err)
		return
	}
	pos, text := e.GetToken().Position, e.GetMessage()
	if strings.Contains(text, "found character '\t'") || strings.Contains(text, "found a tab character") {
		text = "a tab: YAML is indented with spaces"
	}
	if i := strings.Index(text, "already defined at ["); i >= 0 {
		text = strings.NewReplacer("[", "line ", "]", "").Replace(text)
		text = "duplicate key: " + text[:strings.LastIndexByte(text, ':')]
	}
	p.add(pos.Line, pos.Column, "%s", text)
}

// describe names what kind of value a node is, for errors.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.BoolNode:
		return fmt.Sprintf("the boolean %s", n.Token.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return fmt.Sprintf("the number %s", n.GetToken().Value)
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys and values"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	}
	return n.Type().String()
}
