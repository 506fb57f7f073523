package board

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"muntin/orchestrator/board/blocks"
)

// maxDepth is the longest run of list and quote marks at the start of a line: what
// nests deeper was not written for people. What goes from a task to those it lies
// in, or the other way, need not be fast for it, then.
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
	b := &Board{src: src, text: string(src), lines: lineStarts(src), eol: "\n"}
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		b.eol = "\r\n"
	}
	base := bodyStart(src)
	r := reader{Board: b, tree: blocks.Parse(src[base:]), base: base}
	r.readTasks()
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
	for at := 0; ; {
		n := bytes.IndexByte(src[at:], '\n') + 1
		if at += n; n == 0 || at == len(src) {
			return starts
		}
		starts = append(starts, at)
	}
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

// A reader finds the tasks of a text among its blocks.
type reader struct {
	*Board
	tree  *blocks.Tree
	base  int    // of the blocks' text in the board's
	words []word // of one line; the room is used again for the next
}

func (r *reader) readTasks() {
	items := 0
	for _, n := range r.tree.Nodes {
		if n.Kind == blocks.Item {
			items++
		}
	}
	r.tasks = make([]Task, 0, items)
	inside := make([]int, len(r.tree.Nodes)) // the task that a block is or lies in, or -1
	inside[0] = -1
	for i := 1; i < len(inside); i++ {
		inside[i] = inside[r.tree.Nodes[i].Parent]
		if r.tree.Nodes[i].Kind != blocks.Item {
			continue
		}
		t := Task{index: len(r.tasks), parent: inside[i]}
		if r.readTask(&t, i) {
			inside[i] = t.index
			r.tasks = append(r.tasks, t)
		}
	}
}

// lineOf is the line, from 0, that the byte at pos stands on.
func (b *Board) lineOf(pos int) int { return sort.SearchInts(b.lines, pos+1) - 1 }

// lineEnd is the offset behind a line, its line end included.
func (b *Board) lineEnd(line int) int {
	if line+1 < len(b.lines) {
		return b.lines[line+1]
	}
	return len(b.src)
}

// readTask reads the task that an item is, if it is one: its first block is text
// that starts with a box, white space, and more on the same line.
func (r *reader) readTask(t *Task, item int) bool {
	first := r.tree.First(item)
	if first < 0 {
		return false
	}
	// An underlined heading is text as well: its first line is the task's.
	if n := r.tree.Nodes[first]; n.Kind != blocks.Paragraph && (n.Kind != blocks.Heading || n.Marker == '#') {
		return false
	}
	text := r.tree.Lines(first)
	start := text[0].Start + r.base
	if r.src[start] != '[' {
		return false
	}
	line := r.lineOf(start)
	if !r.readLine(t, start, r.lineEnd(line)) {
		return false
	}
	endLine := len(r.lines)
	if next := r.tree.Nodes[item].Next; next < len(r.tree.Nodes) {
		endLine = r.lineOf(r.tree.Nodes[next].Start + r.base)
	}
	t.Line, t.pos.lineStart = line+1, r.lines[line]
	t.pos.itemEnd = r.trimBlank(line, endLine)
	t.pos.paraEnd = min(r.lineEnd(line+len(text)-1), t.pos.itemEnd)
	return true
}

// trimBlank is the offset behind the last line before endLine, but not before
// line, that is not blank.
func (b *Board) trimBlank(line, endLine int) int {
	end := min(max(endLine, line+1), len(b.lines))
	for end-1 > line && b.isBlankLine(end-1) {
		end--
	}
	return b.lineEnd(end - 1)
}

// isBlankLine reports whether a line is white space and quote marks alone.
func (b *Board) isBlankLine(line int) bool {
	for _, c := range b.src[b.lines[line]:b.lineEnd(line)] {
		if !isBlank(c) && c != '>' && c != '\n' {
			return false
		}
	}
	return true
}

// readLine reads a task whose box starts at start.
func (r *reader) readLine(t *Task, start, end int) bool {
	line := r.text[start:end]
	if len(line) < 4 {
		return false
	}
	mark, n := utf8.DecodeRuneInString(line[1:])
	close := 1 + n
	if mark == '[' || mark == ']' || mark == '\n' || len(line) < close+2 || line[close] != ']' || !isBlank(line[close+1]) {
		return false
	}
	contentEnd := end
	for contentEnd > start && (isBlank(r.text[contentEnd-1]) || r.text[contentEnd-1] == '\n') {
		contentEnd--
	}
	words := appendWords(r.words[:0], r.text, start+close+1, contentEnd)
	r.words = words
	if len(words) == 0 {
		return false
	}
	t.Mark = line[1:close]
	t.State = stateOf(t.Mark)
	t.pos = position{box: start, markStart: start + 1, markEnd: start + close, contentEnd: contentEnd}
	run := tokenStart(words)
	t.pos.tokens = slices.Clone(words[run:])
	t.Raw = r.text[words[0].start:contentEnd]
	t.pos.textStart, t.pos.textEnd = words[0].start, words[0].start
	for _, w := range words[:run] {
		if w.kind != wordComment {
			t.pos.textEnd = w.end
		}
	}
	t.Text = r.text[t.pos.textStart:t.pos.textEnd]
	r.takeTokens(t, words[run:])
	r.reportText(t, words[:run])
	return true
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
			t.After = slices.AppendSeq(t.After, strings.SplitSeq(w.value, ","))
		case wordCheck:
			t.Check = w.value
		case wordPriority:
			t.Priority, _ = strconv.Atoi(w.value)
		case wordTag:
			t.Tags = append(t.Tags, w.value)
		case wordField, wordBad:
			raw := b.text[w.start:w.end]
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
func (b *Board) reportText(t *Task, words []word) {
	if t.State == Unknown {
		return // perhaps no task at all
	}
	for _, w := range words {
		raw := b.text[w.start:w.end]
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
