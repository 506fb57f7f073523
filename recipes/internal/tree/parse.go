// Package tree reads YAML into values that know where they stand, so that every
// mistake can be named with its file, line and column. It reads strictly: what
// could hurt (deep nesting, aliases that grow without end, huge files) and what
// makes a text say something other than it seems to is refused.
package tree

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxSize is the largest text that is read, in bytes.
const MaxSize = 1 << 20

// Bounds of a text.
const (
	maxNesting = 32      // far above what is needed and far below what overflows the YAML parser's stack
	maxNodes   = 100_000 // when aliases are written out
	maxItems   = 2_000   // of one list or mapping
	maxKeys    = 10_000  // of a text: the YAML parser compares each with all of its mapping
)

// Options say how a text is read.
type Options struct {
	What    string // what the text is, for errors: "recipe"
	Aliases bool   // anchors, aliases, merge keys and tags are taken: for the files of other programs
}

// Parse reads a text of one document that is a mapping. What is wrong with it is
// added to the problems, and there is no node then. name is what errors call the
// text: its path, or what else it is known by.
func Parse(problems *Problems, name string, src []byte, o Options) *Node {
	p := &reader{Options: o, problems: problems, before: len(problems.found)}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if len(src) > MaxSize {
		p.source = NewSource(name, nil)
		p.add(1, 1, "the file is larger than %d bytes", MaxSize)
		return nil
	}
	p.source = NewSource(name, src)
	body := p.document(src)
	if body == nil {
		return nil
	}
	root := p.node(body)
	if p.failed() {
		return nil
	}
	return root
}

// A reader turns the YAML library's tree into ours.
type reader struct {
	Options
	source   *Source
	problems *Problems
	anchors  map[string]ast.Node
	open     map[string]bool // aliases being written out
	nodes    int
	before   int // problems of other texts
}

func (p *reader) failed() bool { return len(p.problems.found) > p.before }

func (p *reader) add(line, col int, format string, args ...any) {
	p.problems.Add(Place{p.source, line, col}, format, args...)
}

func (p *reader) placeOf(n ast.Node) Place {
	t := n.GetToken()
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		t = m.Values[0].Key.GetToken() // the node's own is its first colon
	}
	return Place{p.source, t.Position.Line, t.Position.Column}
}

// document makes the tree of one document that is a mapping.
func (p *reader) document(src []byte) ast.Node {
	if !utf8.Valid(src) {
		line := 1 + bytes.Count(src[:invalidAt(src)], []byte{'\n'})
		p.add(line, 1, "the text is not UTF-8")
		return nil
	}
	tokens := lexer.Tokenize(string(src))
	p.checkTokens(tokens)
	if p.failed() {
		return nil
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		p.addYAML(err)
		return nil
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.DirectiveType && doc.Body.Type() != ast.CommentType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		p.add(1, 1, "the %s is empty", p.What)
	case len(bodies) > 1:
		p.problems.Add(p.placeOf(bodies[1]), "a second document: a %s is one", p.What)
	default:
		switch bodies[0].(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			return bodies[0]
		}
		p.problems.Add(p.placeOf(bodies[0]), "want keys and values, such as \"name: demo\"")
	}
	return nil
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

// checkTokens refuses what is not needed and what could hurt: deep nesting,
// and anchors and aliases, with which a small file becomes a huge one.
func (p *reader) checkTokens(tokens token.Tokens) {
	flow, entries, line, keys := 0, 0, 0, 0
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
		case token.MappingValueType:
			if keys++; keys > maxKeys {
				p.add(line, t.Position.Column, "more than %d keys", maxKeys)
				return
			}
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			if !p.Aliases {
				p.add(line, t.Position.Column, "anchors, aliases and merge keys are not supported: write the value out, or put it in quotes if %q belongs to it", t.Value)
			}
		case token.TagType:
			if !p.Aliases {
				p.add(line, t.Position.Column, "tags are not supported: put the value in quotes if %q belongs to it", t.Value)
			}
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
func (p *reader) addYAML(err error) {
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
