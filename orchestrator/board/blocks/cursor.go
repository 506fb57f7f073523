package blocks

import "bytes"

// A cursor is a place in a line, with its column: tabs reach to the next of the
// tab stops, which are four columns apart.
type cursor struct {
	src      []byte
	end      int // of the line, without its line end
	pos, col int
	cut      bool // pos is at a tab of which some columns are taken already

	// What stands ahead, as of the last look:
	text, textCol int  // the first byte that is neither space nor tab
	indent        int  // columns up to there
	blank         bool // there is none
}

// setLine goes to the start of the line at start and returns the start of the next.
func (c *cursor) setLine(start int) int {
	next := len(c.src)
	c.end = next
	if i := bytes.IndexByte(c.src[start:], '\n'); i >= 0 {
		c.end = start + i
		next = c.end + 1
	}
	for c.end > start && c.src[c.end-1] == '\r' {
		c.end--
	}
	c.pos, c.col, c.cut = start, 0, false
	c.text = start - 1
	return next
}

// look finds what stands ahead. The white space of a line is read once, however
// many containers take their share of it.
func (c *cursor) look() {
	if c.text <= c.pos {
		i, col := c.pos, c.col
		for i < c.end && isSpace(c.src[i]) {
			col += width(c.src[i], col)
			i++
		}
		c.text, c.textCol = i, col
	}
	c.indent = c.textCol - c.col
	c.blank = c.text >= c.end
}

// skip goes n bytes ahead, none of which is a tab.
func (c *cursor) skip(n int) {
	c.pos += n
	c.col += n
	c.cut = false
}

// skipColumns goes ahead over n columns of white space, or what there is of them.
func (c *cursor) skipColumns(n int) {
	for n > 0 && c.pos < c.end && isSpace(c.src[c.pos]) {
		w := width(c.src[c.pos], c.col)
		if w > n {
			c.col += n
			c.cut = true
			return
		}
		c.pos++
		c.col += w
		c.cut = false
		n -= w
	}
}

// skipToText goes to the first byte that is no white space.
func (c *cursor) skipToText() {
	c.look()
	c.pos, c.col, c.cut = c.text, c.textCol, false
}

// rest is the line from here.
func (c *cursor) rest() Line {
	if c.cut {
		return Line{Start: c.pos + 1, End: c.end, Pad: width('\t', c.col)}
	}
	return Line{Start: c.pos, End: c.end}
}

// ahead is the byte n bytes behind the white space, or 0 at the end of the line.
func (c *cursor) ahead(n int) byte {
	if c.text+n < c.end {
		return c.src[c.text+n]
	}
	return 0
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' }

// width is how many columns a byte takes at a column.
func width(b byte, col int) int {
	if b == '\t' {
		return 4 - col%4
	}
	return 1
}

// isBlank reports whether s is spaces and tabs alone.
func isBlank(s []byte) bool {
	for _, b := range s {
		if !isSpace(b) {
			return false
		}
	}
	return true
}

// runOf is the number of bytes b that s starts with.
func runOf(s []byte, b byte) int {
	n := 0
	for n < len(s) && s[n] == b {
		n++
	}
	return n
}
