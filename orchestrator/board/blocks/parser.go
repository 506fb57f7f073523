package blocks

// A parser adds one line after the other to the blocks that are open: those that
// the next line may still belong to. It is the method of the specification's
// appendix, https://spec.commonmark.org/0.31.2/#phase-1-block-structure.
type parser struct {
	cursor

	nodes  []Node
	lines  []Line
	open   []open // from the document down to the block the last line went to
	quotes []int  // indexes in open of the quotes

	// breakFails is the place of a byte of this line that keeps what stands
	// before it from being a thematic break.
	breakFails int
}

// open is a block that may go on.
type open struct {
	node   int
	width  int // of an item: the columns up to its content; of fenced code: those before the fence
	length int // of a fence
	kind   Kind
	marker byte  // of a list or fence
	html   uint8 // of an HTML block: its start condition
}

// holdsBlocks reports whether blocks of the kind have others inside.
func (k Kind) holdsBlocks() bool { return k <= Item }

func (p *parser) tip() *open { return &p.open[len(p.open)-1] }

// push opens a block inside the last open one.
func (p *parser) push(o open, n Node) {
	if len(p.open) > 0 {
		n.Parent = p.tip().node
	}
	o.node = len(p.nodes)
	n.firstLine, n.endLine = len(p.lines), len(p.lines)
	p.nodes = append(p.nodes, n)
	if o.kind == Quote {
		p.quotes = append(p.quotes, len(p.open))
	}
	p.open = append(p.open, o)
}

// addLine gives a line to the last open block, which has no others inside.
func (p *parser) addLine(l Line) {
	p.lines = append(p.lines, l)
	n := &p.nodes[p.tip().node]
	n.endLine = len(p.lines)
	n.End = max(n.End, l.End)
}

// closeTo closes all but the first depth open blocks.
func (p *parser) closeTo(depth int) {
	for len(p.open) > depth {
		switch o := p.tip(); o.kind {
		case Paragraph:
			if !p.takeDefinitions() {
				continue
			}
		case Code:
			if o.marker == 0 {
				p.trimCode(o.node)
			}
		case Quote:
			p.quotes = p.quotes[:len(p.quotes)-1]
		}
		n := &p.nodes[p.tip().node]
		n.Next = len(p.nodes)
		if n.Parent >= 0 {
			parent := &p.nodes[n.Parent]
			parent.End = max(parent.End, n.End)
		}
		p.open = p.open[:len(p.open)-1]
	}
}

// trimCode takes the blank lines away that indented code ends with.
func (p *parser) trimCode(node int) {
	n := &p.nodes[node]
	for n.endLine > n.firstLine && isBlank(p.src[p.lines[n.endLine-1].Start:p.lines[n.endLine-1].End]) {
		n.endLine--
	}
	p.lines = p.lines[:n.endLine]
	n.End = p.lines[n.endLine-1].End
}

// line adds the line that the cursor is at the start of.
func (p *parser) line() {
	p.breakFails = 0
	depth, done := p.match()
	if done {
		return
	}
	opened, done := p.start(depth)
	if done {
		return
	}
	p.look()
	if !opened && depth < len(p.open) {
		if p.tip().kind == Paragraph && !p.blank { // a lazy continuation line
			p.addLine(Line{Start: p.text, End: p.end})
			return
		}
		p.closeTo(depth)
	}
	p.addText()
}

// addText adds what is left of the line to the last open block.
func (p *parser) addText() {
	switch o := p.tip(); {
	case o.kind == Code:
		p.addLine(p.rest())
	case o.kind == HTML:
		p.addLine(p.rest())
		if htmlEnds(p.src[p.pos:p.end], o.html) {
			p.closeTo(len(p.open) - 1)
		}
	case p.blank:
	default:
		if o.kind != Paragraph {
			p.add(open{kind: Paragraph}, Node{Kind: Paragraph, Start: p.text})
		}
		p.addLine(Line{Start: p.text, End: p.end})
	}
}

// add opens a block after it has closed what cannot hold it: a paragraph, or
// a list if the block is no item.
func (p *parser) add(o open, n Node) {
	if p.tip().kind == Paragraph {
		p.closeTo(len(p.open) - 1)
	}
	if p.tip().kind == List && o.kind != Item {
		p.closeTo(len(p.open) - 1)
	}
	p.push(o, n)
}

// match finds how many of the open blocks the line goes on with, and takes what
// belongs to them from its start. done says that it ended fenced code.
func (p *parser) match() (depth int, done bool) {
	quotes := 0
	for depth = 1; depth < len(p.open); depth++ {
		p.look()
		o := &p.open[depth]
		switch o.kind {
		case Quote:
			if !p.matchQuote(o) {
				return depth, false
			}
			quotes++
		case Item:
			if !p.matchItem(o, depth) {
				return depth, false
			}
		case Code:
			if o.marker != 0 && p.closesFence(o) {
				p.nodes[o.node].End = p.end
				p.closeTo(depth)
				return depth, true
			}
			return p.matchCode(o, depth), false
		case HTML:
			if o.html >= 6 && p.blank {
				return depth, false
			}
		case Paragraph:
			if p.blank {
				return depth, false
			}
		}
		if p.pos == p.end {
			// Lists and items go on after an empty line, whatever their number.
			depth = max(depth, p.beforeNextStop(quotes)-1)
		}
	}
	return depth, false
}

// beforeNextStop is the index of the first open block that an empty line may not
// go through, behind the first few quotes: another quote, or the last block.
func (p *parser) beforeNextStop(quotes int) int {
	if quotes < len(p.quotes) {
		return p.quotes[quotes]
	}
	return len(p.open) - 1
}

func (p *parser) matchQuote(o *open) bool {
	if p.indent >= 4 || p.ahead(0) != '>' {
		return false
	}
	n := &p.nodes[o.node]
	n.End = max(n.End, p.takeQuoteMark())
	return true
}

// takeQuoteMark goes behind a '>' and the space that may follow it, and returns
// the end of the mark.
func (p *parser) takeQuoteMark() int {
	p.skipToText()
	p.skip(1)
	end := p.pos
	p.skipColumns(1)
	return end
}

func (p *parser) matchItem(o *open, depth int) bool {
	switch {
	case p.blank && depth == len(p.open)-1 && len(p.nodes) == o.node+1:
		return false // only the first line of an item may be blank
	case p.indent >= o.width:
		p.skipColumns(o.width)
	case p.blank:
		p.skipToText()
	default:
		return false
	}
	return true
}

// matchCode returns how many blocks match if the block at depth is code.
func (p *parser) matchCode(o *open, depth int) int {
	switch {
	case o.marker != 0:
		p.skipColumns(o.width)
	case p.indent >= 4:
		p.skipColumns(4)
	case p.blank:
		p.skipToText()
	default:
		return depth
	}
	return depth + 1
}

// closesFence reports whether the line is the closing fence of code.
func (p *parser) closesFence(o *open) bool {
	if p.indent >= 4 || p.ahead(0) != o.marker {
		return false
	}
	n := runOf(p.src[p.text:p.end], o.marker)
	return n >= o.length && isBlank(p.src[p.text+n:p.end])
}

// takeDefinitions turns the link reference definitions that the last open block,
// a paragraph, starts with into blocks of their own. If nothing is left of
// the paragraph, it takes it away and returns false.
func (p *parser) takeDefinitions() bool {
	o := p.tip()
	para := p.nodes[o.node]
	for para.firstLine < para.endLine {
		n := definition(p.src, p.lines[para.firstLine:para.endLine])
		if n == 0 {
			break
		}
		def := para
		def.Kind, def.Next = Definition, o.node+1
		def.endLine = def.firstLine + n
		def.End = p.lines[def.endLine-1].End
		p.nodes[o.node] = def
		o.node++
		p.nodes = append(p.nodes, Node{})
		para.firstLine = def.endLine
		parent := &p.nodes[para.Parent]
		parent.End = max(parent.End, def.End)
	}
	if para.firstLine == para.endLine {
		p.nodes = p.nodes[:o.node]
		p.open = p.open[:len(p.open)-1]
		return false
	}
	para.Start = p.lines[para.firstLine].Start
	p.nodes[o.node] = para
	return true
}
