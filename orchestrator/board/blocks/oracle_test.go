package blocks

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
	goldmark "github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// checkOracle compares the blocks of src with those that goldmark finds: their
// kinds, how they lie in each other, and where their lines start and end. It
// returns false if goldmark is known to be wrong about such a text.
func checkOracle(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, src []byte) bool {
	t.Helper()
	tree := Parse(src)
	got := dump(src, tree)
	for _, d := range deviations {
		if d.in(src, tree) {
			return false
		}
	}
	if want := goldmarkDump(plain(src)); got != want {
		t.Fatalf("%q\nhas the blocks\n%sand to goldmark\n%s", src, got, want)
	}
	return true
}

// deviations tell the texts that goldmark 1.8.7 does not read as the specification
// wants. The cases were looked at one by one, with the reference implementation
// https://github.com/commonmark/commonmark.js as a second opinion.
var deviations = []struct {
	why string
	in  func(src []byte, t *Tree) bool
}{
	{"other control characters are white space to it", func(src []byte, _ *Tree) bool {
		return bytes.ContainsAny(bytes.ReplaceAll(src, []byte("\r\n"), nil), "\r\v\f")
	}},
	{"it takes a link destination <a<b>", matches(`\]:\s*<[^>\n]*<`)},
	{"it takes a link destination with control characters", matches(`\]:\s*([^<\s]\S*)?[\x01-\x08\x0e-\x1f\x7f]`)},
	{"it takes a link destination with a parenthesis that is not closed", func(src []byte, _ *Tree) bool {
		for _, s := range regexp.MustCompile(`\]:\s*[^<\s]\S*`).FindAll(src, -1) {
			if s = regexp.MustCompile(`\\.`).ReplaceAll(s, nil); bytes.Count(s, []byte{'('}) > bytes.Count(s, []byte{')'}) {
				return true
			}
		}
		return false
	}},
	{"it takes <pre/> for the start of HTML", startsWith(`(?i)<(pre|script|style|textarea)/>`)},
	{"it takes </ div> for the start of HTML", startsWith(`</ `)},
	{"it takes <meta for the start of HTML", startsWith(`(?i)</?meta`)},
	{"it takes </textarea> for the start of HTML", startsWith(`(?i)</textarea`)},
	{"it wants capitals behind <!", startsWith(`<![a-z]`)},
	{"it does not take a tag with control characters in an attribute", matches(`<[^\n]*=[^\n>]*[\x00-\x08\x0e-\x1f]`)},
	{"it takes labels of any length", func(src []byte, _ *Tree) bool {
		for _, s := range bytes.Split(src, []byte{'['}) {
			if label, _, ok := bytes.Cut(s, []byte("]:")); ok && len(label) > maxLabel {
				return true
			}
		}
		return false
	}},
	{"it looks for the next definition inside what was no title of the last one", func(src []byte, t *Tree) bool {
		for i, n := range t.Nodes {
			if n.Kind == Paragraph && i > 0 && t.Nodes[i-1].Kind == Definition && bytes.IndexByte([]byte(`"'(`), src[n.Start]) >= 0 {
				return true
			}
		}
		return false
	}},
	{"it forgets which of the lists around it an item without text ends", func(src []byte, t *Tree) bool {
		for _, n := range t.Nodes {
			for p := n.Parent; n.Kind == Item && p > 0; p = t.Nodes[p].Parent {
				if q := t.Nodes[p]; q.Kind == Item && (startsBlank(src, n) || startsBlank(src, q)) {
					return true
				}
			}
		}
		return false
	}},
	{"a thematic break cannot be below an empty marker", func(src []byte, t *Tree) bool {
		for _, n := range t.Nodes {
			if n.Kind == Break && t.Nodes[n.Parent].Kind == Item && startsBlank(src, t.Nodes[n.Parent]) {
				return true
			}
		}
		return false
	}},
}

func matches(pattern string) func(src []byte, _ *Tree) bool {
	re := regexp.MustCompile(pattern)
	return func(src []byte, _ *Tree) bool { return re.Match(src) }
}

// startsWith tells the texts where a line of a paragraph or heading, or the first of an HTML
// block, starts so.
func startsWith(pattern string) func(src []byte, t *Tree) bool {
	re := regexp.MustCompile(`^\s*` + pattern)
	return func(src []byte, t *Tree) bool {
		for i, n := range t.Nodes {
			for j, l := range t.Lines(i) {
				text := n.Kind == Paragraph || n.Kind == Heading
				if (text || n.Kind == HTML && j == 0) && re.Match(src[l.Start:l.End]) {
					return true
				}
			}
		}
		return false
	}
}

// startsBlank reports whether nothing stands behind an item's marker.
func startsBlank(src []byte, n Node) bool {
	line, _, _ := bytes.Cut(src[n.Content:], []byte{'\n'})
	return len(bytes.TrimSpace(line)) == 0
}

// plain writes a text without tabs and carriage returns. By the specification a
// tab is then as good as spaces up to the tab stop; goldmark miscounts the
// columns of tabs that follow the marker of another block. That is why places
// are compared as columns.
func plain(src []byte) []byte {
	var out []byte
	col := 0
	for _, c := range bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")) {
		w := width(c, col)
		col += w
		if c == '\t' {
			out = append(out, "    "[:w]...)
			continue
		}
		out = append(out, c)
		if c == '\n' {
			col = 0
		}
	}
	return out
}

// dump has a line for each block: how deep it lies, what it is, and the places of
// its lines. Blank lines at its end are left out.
func dump(src []byte, t *Tree) string {
	var b strings.Builder
	depth := make([]int, len(t.Nodes))
	for i, n := range t.Nodes[1:] {
		i++
		depth[i] = depth[n.Parent] + 1
		var lines []string
		if !n.Kind.holdsBlocks() {
			for _, l := range t.Lines(i) {
				lines = append(lines, placeOf(src, l, n.Kind))
			}
		}
		writeBlock(&b, depth[i], n, lines)
	}
	return b.String()
}

func writeBlock(b *strings.Builder, depth int, n Node, lines []string) {
	names := []string{"document", "quote", "list", "item", "paragraph", "heading", "code", "html", "break", "definition"}
	b.WriteString(strings.Repeat("  ", depth) + names[n.Kind])
	switch {
	case n.Kind == Heading || n.Kind == HTML:
		fmt.Fprint(b, n.Level)
	case n.Kind == List || n.Kind == Code && n.Marker != 0:
		b.WriteByte(n.Marker)
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	b.WriteString(" " + strings.Join(lines, " ") + "\n")
}

// placeOf is the place of a line's text: its line and columns, and in code and
// HTML how many columns of white space before it belong to the block.
func placeOf(src []byte, l Line, k Kind) string {
	lineStart := bytes.LastIndexByte(src[:l.Start], '\n') + 1
	start, inside := l.Start, l.Pad
	col := columnOf(src[lineStart:start])
	for start < l.End && isSpace(src[start]) {
		w := width(src[start], col)
		col, inside, start = col+w, inside+w, start+1
	}
	end := start + len(bytes.TrimRight(src[start:l.End], " \t\r\n"))
	if start == end {
		return ""
	}
	s := fmt.Sprintf("%d:%d-%d", bytes.Count(src[:start], []byte{'\n'})+1, col, columnOf(src[lineStart:end]))
	if k == Code || k == HTML {
		s = fmt.Sprintf("%d+%s", inside, s)
	}
	return s
}

// columnOf is the column behind s, the start of a line.
func columnOf(s []byte) int {
	col := 0
	for _, c := range s {
		col += width(c, col)
	}
	return col
}

func goldmarkDump(src []byte) string {
	p := goldmark.NewParser(
		goldmark.WithBlockParsers(goldmark.DefaultBlockParsers()...),
		goldmark.WithParagraphTransformers(goldmark.DefaultParagraphTransformers()...),
	)
	var b strings.Builder
	var walk func(n ast.Node, depth int)
	walk = func(n ast.Node, depth int) {
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if c.Type() != ast.TypeBlock {
				continue
			}
			node, segments := fromGoldmark(src, c)
			var lines []string
			for _, s := range segments {
				lines = append(lines, placeOf(src, Line{Start: s.Start, End: s.Stop, Pad: s.Padding}, node.Kind))
			}
			writeBlock(&b, depth, node, lines)
			walk(c, depth+1)
		}
	}
	walk(p.Parse(text.NewReader(src)), 1)
	return b.String()
}

func fromGoldmark(src []byte, n ast.Node) (Node, []text.Segment) {
	lines := n.Lines().Sliced(0, n.Lines().Len())
	switch n := n.(type) {
	case *ast.Blockquote:
		return Node{Kind: Quote}, nil
	case *ast.List:
		return Node{Kind: List, Marker: n.Marker}, nil
	case *ast.ListItem:
		return Node{Kind: Item}, nil
	case *ast.Paragraph, *ast.TextBlock:
		return Node{Kind: Paragraph}, lines
	case *ast.Heading:
		return Node{Kind: Heading, Level: uint8(n.Level)}, lines
	case *ast.CodeBlock:
		return Node{Kind: Code}, lines
	case *ast.FencedCodeBlock:
		return Node{Kind: Code, Marker: src[n.Pos()]}, lines
	case *ast.HTMLBlock:
		if n.HasClosure() {
			lines = append(lines, n.ClosureLine)
		}
		return Node{Kind: HTML, Level: uint8(n.HTMLBlockType)}, lines
	case *ast.ThematicBreak:
		return Node{Kind: Break}, nil
	case *ast.LinkReferenceDefinition:
		return Node{Kind: Definition}, lines
	}
	panic(fmt.Sprintf("%T", n))
}

func FuzzParse(f *testing.F) {
	for _, tt := range cases {
		f.Add([]byte(tt.src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		checkTree(t, src)
		checkOracle(t, src)
	})
}
