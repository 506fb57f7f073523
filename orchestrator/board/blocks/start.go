package blocks

import "bytes"

// start opens the blocks that start on the rest of the line, which goes on with
// the first depth open blocks. done says that nothing is left of the line.
func (p *parser) start(depth int) (opened, done bool) {
	for p.open[depth-1].kind.holdsBlocks() || p.open[depth-1].kind == Paragraph {
		p.look()
		if p.blank {
			return opened, false
		}
		if p.indent >= 4 {
			if p.tip().kind == Paragraph { // code does not interrupt
				return opened, false
			}
			p.closeTo(depth)
			p.skipColumns(4)
			p.add(open{kind: Code}, Node{Kind: Code, Start: p.text})
			return true, false
		}
		if p.open[depth-1].kind == Paragraph && p.underline() {
			if p.closeHeading() {
				return true, true
			}
			depth-- // the paragraph was definitions alone and is gone
		}
		switch p.startOne(depth) {
		case nothing:
			return opened, false
		case leaf:
			return true, p.tip().kind != HTML
		}
		opened, depth = true, len(p.open)
	}
	return opened, false
}

// found says what starts at a place.
type found int

const (
	nothing   found = iota
	container       // more blocks may start behind it
	leaf
)

// startOne opens the block that starts at the first byte of the line's text.
func (p *parser) startOne(depth int) found {
	c := p.ahead(0)
	switch c {
	case '>':
		p.closeTo(depth)
		start := p.text
		p.add(open{kind: Quote}, Node{Kind: Quote, Start: start, End: p.takeQuoteMark()})
		return container
	case '#':
		return p.startHeading(depth)
	case '`', '~':
		return p.startFence(depth, c)
	case '<':
		return p.startHTML(depth)
	case '-', '*', '_':
		if p.isBreak(c) {
			p.closeTo(depth)
			p.add(open{kind: Break}, Node{Kind: Break, Marker: c, Start: p.text, End: p.end})
			p.closeTo(len(p.open) - 1)
			return leaf
		}
		if c != '_' {
			return p.startItem(depth, 1)
		}
	case '+':
		return p.startItem(depth, 1)
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return p.startItem(depth, p.number())
	}
	return nothing
}

// startHeading: https://spec.commonmark.org/0.31.2/#atx-headings.
func (p *parser) startHeading(depth int) found {
	s := p.src[p.text:p.end]
	level := runOf(s, '#')
	if level > 6 || level < len(s) && !isSpace(s[level]) {
		return nothing
	}
	p.closeTo(depth)
	p.add(open{kind: Heading}, Node{Kind: Heading, Level: uint8(level), Marker: '#', Start: p.text, End: p.end})
	start, end := p.text+level, p.end
	for start < end && isSpace(p.src[start]) {
		start++
	}
	end = trimRight(p.src, start, end)
	marks := end
	for marks > start && p.src[marks-1] == '#' {
		marks--
	}
	if marks == start || isSpace(p.src[marks-1]) {
		end = trimRight(p.src, start, marks)
	}
	if start < end {
		p.addLine(Line{Start: start, End: end})
	}
	p.closeTo(len(p.open) - 1)
	return leaf
}

// trimRight is the end of src[start:end] without the white space it ends with.
func trimRight(src []byte, start, end int) int {
	for end > start && isSpace(src[end-1]) {
		end--
	}
	return end
}

// underline reports whether the line is one below a heading:
// https://spec.commonmark.org/0.31.2/#setext-heading-underline.
func (p *parser) underline() bool {
	c := p.ahead(0)
	if c != '=' && c != '-' {
		return false
	}
	s := p.src[p.text:p.end]
	return isBlank(s[runOf(s, c):])
}

// closeHeading makes a heading of the last open block, a paragraph. It returns
// false if that was of definitions alone and is closed without a heading.
func (p *parser) closeHeading() bool {
	if !p.takeDefinitions() {
		return false
	}
	n := &p.nodes[p.tip().node]
	n.Kind, n.Level, n.Marker, n.End = Heading, 1, p.ahead(0), p.end
	if n.Marker == '-' {
		n.Level = 2
	}
	p.tip().kind = Heading
	p.closeTo(len(p.open) - 1)
	return true
}

// startFence: https://spec.commonmark.org/0.31.2/#fenced-code-blocks.
func (p *parser) startFence(depth int, c byte) found {
	s := p.src[p.text:p.end]
	n := runOf(s, c)
	if n < 3 {
		return nothing
	}
	if c == '`' && bytes.IndexByte(s[n:], c) >= 0 {
		return nothing // a code span
	}
	p.closeTo(depth)
	info := n
	for info < len(s) && isSpace(s[info]) {
		info++
	}
	if info == len(s) {
		info = n
	}
	p.add(open{kind: Code, marker: c, length: n, width: p.indent},
		Node{Kind: Code, Marker: c, Start: p.text, End: p.end, Content: p.text + info})
	return leaf
}

// startHTML: https://spec.commonmark.org/0.31.2/#html-blocks.
func (p *parser) startHTML(depth int) found {
	kind := htmlStart(p.src[p.text:p.end])
	// A tag that is not known does not interrupt a paragraph, not even one that
	// the line would be a lazy continuation of.
	if kind == 0 || kind == 7 && p.tip().kind == Paragraph {
		return nothing
	}
	p.closeTo(depth)
	p.add(open{kind: HTML, html: kind}, Node{Kind: HTML, Level: kind, Start: p.text})
	return leaf
}

// isBreak reports whether the line is a thematic break of the byte c:
// https://spec.commonmark.org/0.31.2/#thematic-breaks. That a break failed at a
// byte is remembered: the line may be asked at each of its list markers.
func (p *parser) isBreak(c byte) bool {
	if p.breakFails > p.text {
		return false
	}
	n := 0
	for i := p.text; i < p.end; i++ {
		switch b := p.src[i]; {
		case b == c:
			n++
		case !isSpace(b):
			p.breakFails = i
			return false
		}
	}
	p.breakFails = p.end
	return n >= 3
}

// number is the length of the marker of an ordered list's item that the text
// starts with, or 0 if there is none.
func (p *parser) number() int {
	n := 0
	for c := p.ahead(n); c >= '0' && c <= '9'; c = p.ahead(n) {
		n++
	}
	if c := p.ahead(n); n > 9 || c != '.' && c != ')' {
		return 0
	}
	return n + 1
}

// startItem opens a list item with a marker of n bytes, and a list if the item
// does not go on with the one before:
// https://spec.commonmark.org/0.31.2/#list-items.
func (p *parser) startItem(depth, n int) found {
	marker := p.text
	end := marker + n
	if n == 0 || end < p.end && !isSpace(p.src[end]) {
		return nothing
	}
	empty := isBlank(p.src[end:p.end])
	if p.open[depth-1].kind == Paragraph && (empty || n > 1 && !isOne(p.src[marker:end-1])) {
		return nothing // does not interrupt
	}
	p.closeTo(depth)
	c := p.src[end-1]
	width := p.indent + n
	p.skipToText()
	p.skip(n)
	p.look()
	content := p.text
	if !empty && p.indent <= 4 {
		width += p.indent
		p.skipToText()
	} else { // a blank start, or indented code behind one space
		width++
		p.skipColumns(1)
	}
	if empty {
		content = end
	}
	if p.tip().kind == Paragraph {
		p.closeTo(len(p.open) - 1)
	}
	if t := p.tip(); t.kind == List && t.marker != c {
		p.closeTo(len(p.open) - 1)
	}
	if p.tip().kind != List {
		p.push(open{kind: List, marker: c}, Node{Kind: List, Marker: c, Start: marker})
	}
	p.push(open{kind: Item, width: width}, Node{Kind: Item, Marker: c, Start: marker, End: end, Content: content})
	return container
}

// isOne reports whether the digits are those of the number 1.
func isOne(digits []byte) bool { return string(bytes.TrimLeft(digits, "0")) == "1" }
