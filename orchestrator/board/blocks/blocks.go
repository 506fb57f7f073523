// Package blocks finds the block structure of a Markdown document: quotes,
// lists and their items, code, headings, HTML, paragraphs and link reference
// definitions, each with its place in the text. What stands inside a line is
// not looked at.
//
// The rules are those of CommonMark, https://spec.commonmark.org/0.31.2/, sections
// 2 to 5; the items of GitHub's task lists,
// https://github.github.com/gfm/#task-list-items-extension-, are list items whose
// first paragraph starts with a box. A line ends at a line feed, with the carriage
// returns right before it: unlike in CommonMark a carriage return in the middle
// of a line is a character like any other. Time and memory grow with the length
// of the text alone, however deep it nests.
package blocks

import "bytes"

// maxRoom bounds what Parse allocates before it has seen a block.
const maxRoom = 1 << 16

// A Kind says what a block is.
type Kind uint8

// The kinds of blocks.
const (
	Document   Kind = iota // always the first node, and no other
	Quote                  // of lines that start with '>'
	List                   // of items with the same marker
	Item                   // of a list
	Paragraph              // plain lines
	Heading                // Level 1 to 6
	Code                   // indented by four columns, or between fences
	HTML                   // raw; Level says which of the seven ways it starts in
	Break                  // a thematic break
	Definition             // of a link: [label]: destination "title"
)

// A Node is one block. Offsets count bytes of the text from 0.
type Node struct {
	Kind Kind
	// Level is that of a heading, 1 to 6, or the number of the start condition
	// of an HTML block, 1 to 7.
	Level uint8
	// Marker is what the block was known by: of a list and its items '-', '+',
	// '*', '.' or ')'; of code '`' or '~', or 0 if it is indented; of a heading
	// '#', or '=' or '-' if it is underlined; of a break its byte. Else it is 0.
	Marker byte

	// Start is the offset of the first byte that is no white space; End is behind
	// the last byte of its last line, or of its marker if that is all there is of
	// it; the line end does not count.
	Start, End int
	// Content is, in an item, the offset of what stands behind the marker, or of
	// the end of the marker if nothing does; in fenced code it is that of the
	// info string, in the same way. Else it is 0.
	Content int

	// Parent is the index of the block that this one lies in, -1 for the document.
	Parent int
	// Next is the index of the first node behind this one that does not lie in it.
	Next int

	firstLine, endLine int // in Tree.lines
}

// A Line is what a block has of one line of the text: src[Start:End] behind Pad
// spaces, which are what is left of a tab that the indentation has cut.
type Line struct{ Start, End, Pad int }

// A Tree holds the blocks of a text in the order in which they start, so that a
// block stands before those inside it.
type Tree struct {
	Nodes []Node

	lines []Line
}

// Lines are the lines of a block that holds no other blocks, without line ends
// and what the blocks around it take from their start. Those of paragraphs,
// headings and definitions start behind the white space; code is without
// its fences, a heading without its marks and its underline.
func (t *Tree) Lines(node int) []Line {
	n := &t.Nodes[node]
	return t.lines[n.firstLine:n.endLine]
}

// First is the index of the first block inside a node, or -1 if there is none.
func (t *Tree) First(node int) int {
	if t.Nodes[node].Next == node+1 {
		return -1
	}
	return node + 1
}

// Parse finds the blocks of src. Every text is a document, so there is no error.
func Parse(src []byte) *Tree {
	room := min(bytes.Count(src, []byte{'\n'})+2, maxRoom) // for most texts enough
	p := parser{cursor: cursor{src: src}, nodes: make([]Node, 0, room), lines: make([]Line, 0, room)}
	p.push(open{kind: Document}, Node{Kind: Document, Parent: -1})
	for next := 0; next < len(src); {
		next = p.setLine(next)
		p.line()
	}
	p.closeTo(0)
	return &Tree{Nodes: p.nodes, lines: p.lines}
}
