package tool

import (
	"fmt"
	"strings"
)

const diffContext = 4

// diffOf prints the changed lines with their numbers and some lines around
// them, and returns the first changed line of the new text.
func diffOf(old string, spans []span) (string, int) {
	doc := newDoc(strings.TrimPrefix(old, bom))
	lines := splitLines(doc.text)
	var b strings.Builder
	first, shown, shift := 0, 0, 0 // shown: lines of the old text that are behind us
	for i := 0; i < len(spans); {
		from, to, text, next := hunk(doc, spans, i)
		before, after := lines[from:to], splitLines(text)
		head := commonPrefix(before, after)
		tail := commonPrefix(reversed(before[head:]), reversed(after[head:]))
		from, to = from+head, to-tail
		before, after = before[head:len(before)-tail], after[head:len(after)-tail]

		start := max(from-diffContext, shown)
		if start > shown && shown > 0 {
			b.WriteString(" ...\n")
		}
		around(&b, lines[start:from], start+shift+1)
		for j, l := range before {
			fmt.Fprintf(&b, "-%d %s\n", from+j+1, l)
		}
		for j, l := range after {
			fmt.Fprintf(&b, "+%d %s\n", from+shift+j+1, l)
		}
		if first == 0 {
			first = from + shift + 1
		}
		shift += len(after) - len(before)
		end := min(to+diffContext, len(lines))
		if next < len(spans) {
			end = min(end, doc.line(spans[next].start))
		}
		end = max(end, to)
		around(&b, lines[to:end], to+shift+1)
		shown, i = end, next
	}
	return strings.TrimSuffix(b.String(), "\n"), first
}

// hunk takes the spans from i on that touch the same lines, and returns those
// lines and their new text.
func hunk(doc *doc, spans []span, i int) (from, to int, text string, next int) {
	from = doc.line(spans[i].start)
	last := doc.line(max(spans[i].end-1, spans[i].start))
	var b strings.Builder
	at := doc.starts[from]
	for next = i; next < len(spans) && (next == i || doc.line(spans[next].start) <= last); next++ {
		b.WriteString(doc.text[at:spans[next].start])
		b.WriteString(spans[next].text)
		at = spans[next].end
		last = max(last, doc.line(max(at-1, spans[next].start)))
	}
	if at == doc.starts[last+1] && !strings.HasSuffix(b.String(), "\n") && last+2 < len(doc.starts) {
		last++ // the line end went: the next line is joined to this one
	}
	b.WriteString(doc.text[at:doc.starts[last+1]])
	return from, min(last+1, len(splitLines(doc.text))), b.String(), next
}

// around prints unchanged lines; first is the number of the first one.
func around(b *strings.Builder, lines []string, first int) {
	for i, l := range lines {
		fmt.Fprintf(b, " %d %s\n", first+i, l)
	}
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

func commonPrefix(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func reversed(s []string) []string {
	out := make([]string, len(s))
	for i, v := range s {
		out[len(s)-1-i] = v
	}
	return out
}
