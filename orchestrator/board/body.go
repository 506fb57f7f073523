package board

import (
	"bytes"
	"strings"
)

// readBody collects the lines of a task's item below its first line that do
// not belong to a task inside it.
func (b *Board) readBody(t *Task) {
	quoted := bytes.ContainsRune(b.src[t.pos.lineStart:t.pos.box], '>')
	width := columns(b.src[t.pos.lineStart:t.pos.box])
	inside := b.children[t.index]
	var body []string
	for line := t.Line; line < len(b.lines) && b.lines[line] < t.pos.itemEnd; line++ {
		start, end := b.lines[line], b.lineEnd(line)
		if len(inside) > 0 && start >= b.tasks[inside[0]].pos.lineStart {
			line = max(line, b.lineOf(b.tasks[inside[0]].pos.itemEnd-1))
			inside = inside[1:]
			continue
		}
		s := unindent(strings.TrimRight(b.text[start:end], " \t\r\n"), width, quoted)
		if reason, ok := strings.CutPrefix(strings.TrimLeft(s, " \t"), reasonPrefix); ok && end <= t.pos.paraEnd && t.Reason == "" {
			t.Reason = strings.TrimSpace(reason)
			t.pos.reason = span{start, end}
			continue
		}
		body = append(body, s)
	}
	t.Body = joinBody(body)
}

// columns is the width of a line's start, with tab stops of 4.
func columns(s []byte) int {
	col := 0
	for _, r := range string(s) {
		if r == '\ufeff' {
			continue
		}
		col++
		if r == '\t' {
			col += (4 - (col-1)%4) - 1
		}
	}
	return col
}

// unindent takes away the white space, and the quote marks of a quoted line,
// that put s into an item of this width.
func unindent(s string, width int, quoted bool) string {
	col := 0
	for i := range len(s) {
		c := s[i]
		if col >= width || c != ' ' && c != '\t' && (c != '>' || !quoted) {
			return s[i:]
		}
		col++
		if c == '\t' {
			col += (4 - (col-1)%4) - 1
		}
	}
	return ""
}

// joinBody takes away blank lines around the body and the white space that
// all of its lines start with.
func joinBody(lines []string) string {
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 {
		return ""
	}
	indent := leading(lines[0])
	for _, s := range lines {
		for s != "" && !strings.HasPrefix(s, indent) {
			indent = indent[:len(indent)-1]
		}
	}
	for i, s := range lines {
		lines[i] = strings.TrimPrefix(s, indent)
	}
	return strings.Join(lines, "\n")
}

func leading(s string) string { return s[:len(s)-len(strings.TrimLeft(s, " \t"))] }
