package tool

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"golang.org/x/text/unicode/norm"
)

const (
	bom       = "\uFEFF"
	maxPlaces = 100 // counted of what must be unique anyway
)

// A change replaces Old by New. Old must be found once.
type change struct {
	Old string `json:"oldText"`
	New string `json:"newText"`
}

// A span is a range of bytes [start, end) and what comes in its place.
type span struct {
	start, end int
	text       string
	index      int // of the change, for messages
}

// A matchError says which change does not fit and why, for the model.
type matchError struct {
	index int
	count int // of all changes
	why   string
}

func (e *matchError) Error() string {
	if e.count == 1 {
		return e.why
	}
	return fmt.Sprintf("edits[%d]: %s", e.index, e.why)
}

// applyChanges returns content with the changes made. All of them are matched
// against the same content: first byte by byte, and if one is not found that
// way, all of them in a view where quotes, dashes, spaces and line ends are
// made plain. Bytes outside the changed ranges (in the plain view: the changed
// lines) stay as they are, with their line endings; new line ends take the
// ending of the line where the change begins.
func applyChanges(content string, changes []change) (string, []span, error) {
	body, hasBOM := strings.CutPrefix(content, bom)
	doc := newDoc(body)
	plain := newView(doc.text)
	normal := make([]change, len(changes))
	exact := true
	for i, c := range changes {
		normal[i] = change{toLF(c.Old), toLF(c.New)}
		if normal[i].Old == "" {
			return "", nil, &matchError{i, len(changes), "oldText must not be empty"}
		}
		exact = exact && strings.Contains(doc.text, normal[i].Old)
	}
	find := findPlain
	if exact {
		find = findExact
	}
	spans := make([]span, len(changes))
	for i, c := range normal {
		at, err := find(doc, plain, c)
		if err != "" {
			return "", nil, &matchError{i, len(changes), err}
		}
		spans[i] = span{at.start, at.end, c.New, i}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	for i := 1; i < len(spans); i++ {
		if spans[i].start < spans[i-1].end {
			a, b := min(spans[i-1].index, spans[i].index), max(spans[i-1].index, spans[i].index)
			return "", nil, fmt.Errorf("edits[%d] and edits[%d] overlap: make one edit of them", a, b)
		}
	}
	if !exact {
		spans = widen(doc, plain, spans)
	}
	result := doc.splice(spans)
	if hasBOM {
		result = bom + result
	}
	if result == content {
		return "", nil, fmt.Errorf("no changes made: the new text is the same as the old")
	}
	return result, spans, nil
}

// findExact looks for the text as it is. That it is the only one is checked in
// the plain view too: two places that differ in their quotes only are two.
func findExact(doc *doc, plain *view, c change) (span, string) {
	places := indexAll(doc.text, c.Old)
	if len(places) > 1 {
		return span{}, foundMany(doc.text, places)
	}
	if p := plainText(c.Old, false); strings.TrimSpace(p) != "" {
		if alike := indexAll(plain.text, p); len(alike) > 1 {
			return span{}, foundMany(plain.text, alike)
		}
	}
	return span{start: places[0], end: places[0] + len(c.Old)}, ""
}

// findPlain looks for the text in the plain view.
func findPlain(doc *doc, plain *view, c change) (span, string) {
	for _, trimLast := range []bool{false, true} {
		p := plainText(c.Old, trimLast)
		if p == "" {
			continue
		}
		places := indexAll(plain.text, p)
		if len(places) > 1 {
			return span{}, foundMany(plain.text, places)
		}
		if len(places) == 1 {
			return span{start: places[0], end: places[0] + len(p)}, ""
		}
	}
	return span{}, "the text was not found. It must be there exactly, with all spaces and line ends." + closest(doc.text, c.Old)
}

func foundMany(text string, places []int) string {
	var lines []string
	for _, at := range places[:min(len(places), 10)] {
		lines = append(lines, fmt.Sprint(strings.Count(text[:at], "\n")+1))
	}
	if len(places) > 10 {
		lines = append(lines, "…")
	}
	count := fmt.Sprint(len(places))
	if len(places) == maxPlaces {
		count += " or more"
	}
	return fmt.Sprintf("found %s occurrences of the text (at lines %s). It must be unique: add more of the lines around it",
		count, strings.Join(lines, ", "))
}

// indexAll returns where sub begins in s, overlapping places too: "aa" is
// found twice in "aaa", so which one is meant is not clear.
func indexAll(s, sub string) []int {
	var places []int
	for from := 0; len(places) < maxPlaces; {
		i := strings.Index(s[from:], sub)
		if i < 0 {
			break
		}
		places = append(places, from+i)
		from += i + 1
	}
	return places
}

// widen turns spans of the plain view into spans of the document: whole lines,
// rewritten from the plain view.
func widen(doc *doc, plain *view, spans []span) []span {
	var out []span
	for i := 0; i < len(spans); {
		first, last := plain.line(spans[i].start), plain.line(spans[i].end-1)
		var b strings.Builder
		b.WriteString(plain.text[plain.starts[first]:spans[i].start])
		b.WriteString(spans[i].text)
		at := spans[i].end
		next := i + 1
		for ; next < len(spans) && plain.line(spans[next].start) <= last; next++ {
			b.WriteString(plain.text[at:spans[next].start])
			b.WriteString(spans[next].text)
			at = spans[next].end
			last = max(last, plain.line(at-1))
		}
		b.WriteString(plain.text[at:plain.starts[last+1]])
		out = append(out, span{doc.starts[first], doc.starts[last+1], b.String(), spans[i].index})
		i = next
	}
	return out
}

// A view is a text with the places where its lines start, and its length.
type view struct {
	text   string
	starts []int
}

func lineStarts(text string) []int {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' && i+1 < len(text) {
			starts = append(starts, i+1)
		}
	}
	return append(starts, len(text))
}

// line returns the number, from 0, of the line that holds the byte at.
func (v *view) line(at int) int {
	n := sort.SearchInts(v.starts, at+1) - 1
	return min(max(n, 0), len(v.starts)-2)
}

// newView makes the plain view of a text, line by line, so that both have the
// same lines.
func newView(text string) *view {
	p := plainText(text, true)
	return &view{p, lineStarts(p)}
}

// plainText is the view in which texts are compared that a model remembers not
// quite as they are: compatibility forms, quotes, dashes and spaces made plain
// and blanks at line ends removed. trimLast says whether the end of the text
// counts as a line's end.
func plainText(s string, trimLast bool) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		l = strings.Map(plainRune, norm.NFKC.String(l))
		if trimLast || i < len(lines)-1 {
			l = strings.TrimRight(l, " \t\r\v\f")
		}
		lines[i] = l
	}
	return strings.Join(lines, "\n")
}

func plainRune(r rune) rune {
	switch {
	case r >= 0x2018 && r <= 0x201b:
		return '\''
	case r >= 0x201c && r <= 0x201f:
		return '"'
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return '-'
	case r == '\n': // a compatibility form must not make lines
		return ' '
	}
	return plainSpace(r)
}

func toLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
