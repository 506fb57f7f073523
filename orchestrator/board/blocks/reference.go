package blocks

// maxLabel is how many characters a link's label may have:
// https://spec.commonmark.org/0.31.2/#link-label.
const maxLabel = 999

// definition is the number of lines of the link reference definition that a
// paragraph of these lines starts with, 0 if it starts with none:
// https://spec.commonmark.org/0.31.2/#link-reference-definitions.
func definition(src []byte, lines []Line) int {
	if len(lines) == 0 || src[lines[0].Start] != '[' {
		return 0
	}
	r := reader{src: src, lines: lines, pos: lines[0].Start}
	if !r.label() || !r.take(':') {
		return 0
	}
	r.space()
	if !r.destination() {
		return 0
	}
	before := r
	if r.space() && r.title() && r.atLineEnd() {
		return r.line + 1
	}
	// What looked like a title on the next line may be text.
	if before.atLineEnd() {
		return before.line + 1
	}
	return 0
}

// A reader reads the bytes of a paragraph, a line feed for each line's end.
type reader struct {
	src   []byte
	lines []Line
	line  int
	pos   int
}

// eof is what peek returns behind the last line.
const eof = -1

func (r *reader) peek() int {
	switch {
	case r.line >= len(r.lines):
		return eof
	case r.pos >= r.lines[r.line].End:
		return '\n'
	}
	return int(r.src[r.pos])
}

func (r *reader) next() {
	if r.pos < r.lines[r.line].End {
		r.pos++
		return
	}
	r.line++
	if r.line < len(r.lines) {
		r.pos = r.lines[r.line].Start
	}
}

func (r *reader) take(b byte) bool {
	if r.peek() != int(b) {
		return false
	}
	r.next()
	return true
}

// space goes over white space with at most one line end in it, and tells whether
// there was any.
func (r *reader) space() bool {
	some, ended := false, false
	for {
		switch c := r.peek(); {
		case c == ' ' || c == '\t':
		case c == '\n' && !ended:
			ended = true
		default:
			return some
		}
		some = true
		r.next()
	}
}

// atLineEnd reports whether only white space follows on the line, and stays on it.
func (r *reader) atLineEnd() bool {
	for r.peek() == ' ' || r.peek() == '\t' {
		r.next()
	}
	return r.peek() == '\n' || r.peek() == eof
}

// escaped goes over a backslash and the punctuation it escapes.
func (r *reader) escaped() bool {
	if !r.take('\\') {
		return false
	}
	if c := r.peek(); c != eof && isPunctuation(byte(c)) {
		r.next()
	}
	return true
}

// label reads a link's label with its brackets.
func (r *reader) label() bool {
	r.next()
	text := false
	for n := 0; n <= maxLabel; n++ {
		switch c := r.peek(); c {
		case eof, '[':
			return false
		case ']':
			r.next()
			return text
		case '\\':
			text = true
			before := r.pos
			r.escaped()
			n += r.pos - before - 1
			continue
		case ' ', '\t', '\n':
		default:
			text = true
			if c&0xc0 == 0x80 { // the rest of a character
				n--
			}
		}
		r.next()
	}
	return false
}

// destination reads a link's destination:
// https://spec.commonmark.org/0.31.2/#link-destination.
func (r *reader) destination() bool {
	if r.take('<') {
		return r.closed('<', '>', false)
	}
	depth, some := 0, false // NUL stands for U+FFFD, which is no control character
	for {
		switch c := r.peek(); {
		case c <= ' ' && c != 0 || c == 0x7f || c == ')' && depth == 0:
			return some && depth == 0
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '\\':
			some = true
			r.escaped()
			continue
		}
		some = true
		r.next()
	}
}

// title reads a link's title: https://spec.commonmark.org/0.31.2/#link-title.
func (r *reader) title() bool {
	switch {
	case r.take('"'):
		return r.closed(0, '"', true)
	case r.take('\''):
		return r.closed(0, '\'', true)
	case r.take('('):
		return r.closed('(', ')', true)
	}
	return false
}

// closed reads up to and with the closing byte, where the opening one may not
// stand again.
func (r *reader) closed(opening, closing byte, multiline bool) bool {
	for {
		switch c := r.peek(); {
		case c == eof || c == '\n' && !multiline:
			return false
		case c == int(closing):
			r.next()
			return true
		case opening != 0 && c == int(opening):
			return false
		case c == '\\':
			r.escaped()
			continue
		}
		r.next()
	}
}

func isPunctuation(b byte) bool {
	return b > ' ' && b < 0x7f && !isLetter(b) && !isDigit(b)
}
