package board

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// maxDepth is the longest run of list and quote marks at the start of a line.
// The Markdown parser's time grows with its square.
const maxDepth = 1000

const reasonPrefix = "Blocked:"

// Parse reads the text of a TODO.md. What is wrong with single tasks is in
// Board.Problems; an error means that the text is no board at all: too long,
// nested too deep, or not UTF-8. The board keeps src: the caller must not
// change it afterwards.
func Parse(src []byte) (*Board, error) {
	if err := checkText(src); err != nil {
		return nil, err
	}
	b := &Board{src: src, byID: map[string]int{}, lines: lineStarts(src), eol: "\n"}
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		b.eol = "\r\n"
	}
	base := bodyStart(src)
	p := parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...))
	root := p.Parse(text.NewReader(src[base:]))
	w := walker{board: b, base: base}
	w.walk(root, len(b.lines), -1)
	b.finish()
	return b, nil
}

// checkText refuses what is certainly not a board.
func checkText(src []byte) error {
	if len(src) > MaxSize {
		return fmt.Errorf("parsing board: %d bytes are more than the limit of %d", len(src), MaxSize)
	}
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return fmt.Errorf("parsing board: the text is UTF-16; save it as UTF-8")
	}
	depth, line := 0, 1
	for _, c := range src {
		switch {
		case c == '\n':
			depth, line = 0, line+1
		case depth < 0: // behind the marks of this line
		case c == '>' || c == '-' || c == '+' || c == '*':
			depth++
		case isBlank(c) || c >= '0' && c <= '9' || c == '.' || c == ')':
		default:
			depth = -1
		}
		if depth > maxDepth {
			return fmt.Errorf("parsing board: line %d is nested more than %d deep", line, maxDepth)
		}
	}
	return nil
}

func lineStarts(src []byte) []int {
	starts := make([]int, 1, 1+bytes.Count(src, []byte{'\n'}))
	for i, c := range src {
		if c == '\n' && i+1 < len(src) {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// bodyStart is where the Markdown starts: behind a byte order mark and front matter.
func bodyStart(src []byte) int {
	base := 0
	if bytes.HasPrefix(src, []byte("\ufeff")) {
		base = len("\ufeff")
	}
	_, n := frontMatter(src[base:])
	return base + n
}

// frontMatter finds YAML between two lines of "---" at the start of src. n is
// the offset behind the second line, 0 if there is none.
func frontMatter(src []byte) (yaml []byte, n int) {
	line, rest, ok := bytes.Cut(src, []byte{'\n'})
	if !ok || string(bytes.TrimRight(line, " \t\r")) != "---" {
		return nil, 0
	}
	start := len(src) - len(rest)
	for at := start; at < len(src); {
		end := len(src)
		if i := bytes.IndexByte(src[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if s := string(bytes.TrimRight(src[at:end], " \t\r\n")); s == "---" || s == "..." {
			return src[start:at], end
		}
		at = end
	}
	return nil, 0
}

// A walker collects the tasks of a Markdown tree.
type walker struct {
	board *Board
	base  int // of the parsed text in the board's
}

// walk visits the blocks below node, which ends before line endLine (from 0).
func (w *walker) walk(node ast.Node, endLine, parent int) {
	for c := node.FirstChild(); c != nil; c = c.NextSibling() {
		if c.Type() != ast.TypeBlock {
			continue
		}
		end := endLine
		if next := c.NextSibling(); next != nil && next.Type() == ast.TypeBlock {
			end = min(w.startLine(next), endLine)
		}
		inner := parent
		if item, ok := c.(*ast.ListItem); ok {
			if i, ok := w.task(item, end, parent); ok {
				inner = i
			}
		}
		w.walk(c, end, inner)
	}
}

// startLine is the line a block starts on. The parser's own position may lie
// a few bytes too far behind a tab, so what lies inside is asked as well.
func (w *walker) startLine(n ast.Node) int {
	line := len(w.board.lines)
	if pos := n.Pos(); pos >= 0 {
		line = w.line(pos)
	}
	if n.Type() == ast.TypeBlock && n.Lines().Len() > 0 {
		line = min(line, w.line(n.Lines().At(0).Start))
	}
	if c := n.FirstChild(); c != nil && c.Type() == ast.TypeBlock {
		line = min(line, w.startLine(c))
	}
	return line
}

func (w *walker) line(pos int) int { return w.board.lineOf(pos + w.base) }

// lineOf is the line, from 0, that the byte at pos stands on.
func (b *Board) lineOf(pos int) int { return sort.SearchInts(b.lines, pos+1) - 1 }

// lineEnd is the offset behind a line, its line end included.
func (b *Board) lineEnd(line int) int {
	if line+1 < len(b.lines) {
		return b.lines[line+1]
	}
	return len(b.src)
}

// task adds the task that an item is, if it is one: its first block is text
// that starts with a box, white space, and more on the same line.
func (w *walker) task(item *ast.ListItem, endLine, parent int) (int, bool) {
	first := item.FirstChild()
	if first == nil || first.Type() != ast.TypeBlock || first.Lines().Len() == 0 {
		return 0, false
	}
	switch first.Kind() {
	case ast.KindParagraph, ast.KindTextBlock, ast.KindHeading:
	default:
		return 0, false
	}
	b := w.board
	start := first.Lines().At(0).Start + w.base
	line := b.lineOf(start)
	if first.Kind() == ast.KindHeading && bytes.ContainsRune(b.src[b.lines[line]:start], '#') {
		return 0, false
	}
	t, ok := b.readLine(start, b.lineEnd(line))
	if !ok {
		return 0, false
	}
	last := first.Lines().At(first.Lines().Len() - 1)
	t.pos.paraEnd = b.lineEnd(max(line, b.lineOf(max(last.Start, last.Stop-1)+w.base)))
	t.pos.itemEnd = b.trimBlank(line, endLine)
	t.pos.paraEnd = min(t.pos.paraEnd, t.pos.itemEnd)
	t.Line, t.pos.lineStart = line+1, b.lines[line]
	t.index, t.parent = len(b.tasks), parent
	b.tasks = append(b.tasks, t)
	return t.index, true
}

// trimBlank is the offset behind the last line before endLine, but not before
// line, that is not blank.
func (b *Board) trimBlank(line, endLine int) int {
	end := min(max(endLine, line+1), len(b.lines))
	for end-1 > line && len(bytes.Trim(b.src[b.lines[end-1]:b.lineEnd(end-1)], "> \t\r\n\v\f")) == 0 {
		end--
	}
	return b.lineEnd(end - 1)
}

// readLine reads a task whose box starts at start.
func (b *Board) readLine(start, end int) (Task, bool) {
	line := b.src[start:end]
	if len(line) < 4 || line[0] != '[' {
		return Task{}, false
	}
	r, n := utf8.DecodeRune(line[1:])
	close := 1 + n
	if r == '[' || r == ']' || r == '\n' || len(line) < close+2 || line[close] != ']' || !isBlank(line[close+1]) {
		return Task{}, false
	}
	contentEnd := start + len(bytes.TrimRight(line, " \t\r\n\v\f"))
	words := splitWords(b.src, start+close+1, contentEnd)
	if len(words) == 0 {
		return Task{}, false
	}
	t := Task{Mark: string(line[1:close])}
	t.State = stateOf(t.Mark)
	t.pos = position{box: start, markStart: start + 1, markEnd: start + close, contentEnd: contentEnd}
	run := tokenStart(words)
	t.pos.tokens = words[run:]
	t.Raw = string(b.src[words[0].start:contentEnd])
	t.pos.textStart, t.pos.textEnd = words[0].start, words[0].start
	for _, w := range words[:run] {
		if w.kind != wordComment {
			t.pos.textEnd = w.end
		}
	}
	t.Text = string(b.src[t.pos.textStart:t.pos.textEnd])
	b.takeTokens(&t, words[run:])
	b.reportText(t, words[:run])
	return t, true
}

// takeTokens fills in what the tokens at the end of a line say.
func (b *Board) takeTokens(t *Task, tokens []word) {
	for _, w := range tokens {
		switch w.kind {
		case wordID:
			if t.ID != "" {
				b.report(w.start, "a second id: ^%s counts, ^%s does not", w.value, t.ID)
			}
			t.ID = w.value
		case wordName:
			t.Assignees = append(t.Assignees, w.value)
		case wordAfter:
			t.After = append(t.After, strings.Split(w.value, ",")...)
		case wordCheck:
			t.Check = w.value
		case wordPriority:
			t.Priority, _ = strconv.Atoi(w.value)
		case wordTag:
			t.Tags = append(t.Tags, w.value)
		case wordField, wordBad:
			raw := string(b.src[w.start:w.end])
			t.Unknown = append(t.Unknown, raw)
			if w.kind == wordBad {
				b.report(w.start, "%s", w.value)
			} else {
				b.report(w.start, "unknown token %s", raw)
			}
		}
	}
	if t.State == Claimed && len(t.Assignees) > 0 {
		t.Claim = t.Assignees[len(t.Assignees)-1]
	}
	if t.State == Unknown {
		b.report(t.pos.markStart, "unknown mark [%s]", t.Mark)
	}
}

// reportText tells of words that look like tokens but stand in the text.
func (b *Board) reportText(t Task, words []word) {
	if t.State == Unknown {
		return // perhaps no task at all
	}
	for _, w := range words {
		raw := b.src[w.start:w.end]
		switch w.kind {
		case wordID, wordAfter, wordCheck, wordPriority:
			b.report(w.start, "%s is read as text: tokens stand at the end of the line", raw)
		case wordField:
			if soundsLikeToken(w.value) {
				b.report(w.start, "%s is read as text: want after:id or check:\"command\"", raw)
			}
		case wordBad:
			b.report(w.start, "%s", w.value)
		}
	}
}

func (b *Board) report(pos int, format string, args ...any) {
	line := b.lineOf(pos)
	start := b.lines[line]
	if line == 0 && bytes.HasPrefix(b.src, []byte("\ufeff")) {
		start = min(start+len("\ufeff"), pos)
	}
	col := utf8.RuneCount(b.src[start:pos]) + 1
	b.Problems = append(b.Problems, Problem{Line: line + 1, Col: col, Text: fmt.Sprintf(format, args...)})
}

// finish links the tasks and looks at them together.
func (b *Board) finish() {
	b.children = make([][]int, len(b.tasks))
	for i := range b.tasks {
		t := &b.tasks[i]
		if t.parent >= 0 {
			b.children[t.parent] = append(b.children[t.parent], i)
			t.Parent = b.tasks[t.parent].ID
		}
	}
	for i := range b.tasks {
		b.readBody(&b.tasks[i])
	}
	b.checkLinks()
	slices.SortStableFunc(b.Problems, func(p, q Problem) int {
		if p.Line != q.Line {
			return p.Line - q.Line
		}
		return p.Col - q.Col
	})
}
