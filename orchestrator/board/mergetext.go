package board

import (
	"bytes"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// An edit replaces whole lines of the base.
type edit struct {
	span
	text string
}

// mergeText is a three-way merge by lines (diff3). It is done when the lines of
// tasks that both sides have are the same in all three texts.
func (m *merger) mergeText() []byte {
	base := endLine(m.base.text)
	var edits [2][]edit
	for i, side := range m.sides {
		edits[i] = lineEdits(base, endLine(side.text))
	}
	for i := range m.sides {
		for _, t := range m.base.tasks {
			if _, ok := m.sides[i].byID[t.ID]; !ok { // removed here: what the other did to it counts as one edit
				edits[1-i] = widen(edits[1-i], base, span{t.pos.lineStart, min(t.pos.itemEnd, len(base))})
			}
		}
		edits[i] = m.splitRemovals(edits[i])
	}
	out := weave(base, edits, &m.conflicts)
	if !endsLine(m.sides[0].text) && !endsLine(m.sides[1].text) {
		out = strings.TrimSuffix(out, "\n")
	}
	return []byte(out)
}

func endsLine(s string) bool { return s == "" || strings.HasSuffix(s, "\n") }

func endLine(s string) string {
	if endsLine(s) {
		return s
	}
	return s + "\n"
}

func lineEdits(base, text string) []edit {
	var out []edit
	for _, e := range udiff.Lines(base, text) {
		out = append(out, edit{span{e.Start, e.End}, e.New})
	}
	return out
}

// widen makes the edits in a task, or right at its end, one edit of all of it.
func widen(edits []edit, base string, task span) []edit {
	touches := func(e edit) bool {
		return e.start < task.end && e.end > task.start || e.start == e.end && e.start > task.start && e.start <= task.end
	}
	first := slices.IndexFunc(edits, touches)
	if first < 0 {
		return edits
	}
	last := first
	for last+1 < len(edits) && touches(edits[last+1]) {
		last++
	}
	all := span{min(task.start, edits[first].start), max(task.end, edits[last].end)}
	var text strings.Builder
	at := all.start
	for _, e := range edits[first : last+1] {
		text.WriteString(base[at:e.start])
		text.WriteString(e.text)
		at = e.end
	}
	text.WriteString(base[at:all.end])
	return slices.Replace(edits, first, last+1, edit{all, text.String()})
}

// splitRemovals cuts a removal of several tasks into one a task, so that what the
// other side did to one of them does not bring back the rest.
func (m *merger) splitRemovals(edits []edit) []edit {
	var out []edit
	for _, e := range edits {
		if e.text == "" {
			for _, t := range m.base.tasks {
				for _, cut := range []int{t.pos.lineStart, t.pos.itemEnd} {
					if t.parent < 0 && cut > e.start && cut < e.end {
						out = append(out, edit{span{e.start, cut}, ""})
						e.start = cut
					}
				}
			}
		}
		out = append(out, e)
	}
	return out
}

// weave makes the text with both sides' edits in it.
func weave(base string, edits [2][]edit, conflicts *[]Conflict) string {
	var out strings.Builder
	at := 0
	for len(edits[0]) > 0 || len(edits[1]) > 0 {
		hunk, taken := nextHunk(&edits)
		out.WriteString(base[at:hunk.start])
		at = hunk.end
		old := base[hunk.start:hunk.end]
		mine, theirs := applyEdits(base, hunk, taken[0]), applyEdits(base, hunk, taken[1])
		switch {
		case mine == theirs, theirs == old:
			out.WriteString(mine)
		case mine == old:
			out.WriteString(theirs)
		case old == "" && startsItem(mine) && !startsItem(theirs): // details of what stands above come first
			out.WriteString(both(theirs, mine))
		default:
			out.WriteString(both(mine, theirs))
			if old != "" && mine != "" && theirs != "" {
				*conflicts = append(*conflicts, Conflict{Text: "changed twice at the same time: " + strings.TrimSpace(firstLine(old))})
			}
		}
	}
	out.WriteString(base[at:])
	return out.String()
}

// nextHunk takes the edits that come first and all that overlap with them. Two
// insertions at one place overlap as well.
func nextHunk(edits *[2][]edit) (hunk span, taken [2][]edit) {
	side := 0
	if len(edits[0]) == 0 || len(edits[1]) > 0 && edits[1][0].before(edits[0][0]) {
		side = 1
	}
	hunk = edits[side][0].span
	for again := true; again; {
		again = false
		for i := range edits {
			for len(edits[i]) > 0 && overlap(edits[i][0].span, hunk) {
				e := edits[i][0]
				taken[i], edits[i] = append(taken[i], e), edits[i][1:]
				hunk = span{min(hunk.start, e.start), max(hunk.end, e.end)}
				again = true
			}
		}
	}
	return hunk, taken
}

func (e edit) before(o edit) bool {
	return e.start < o.start || e.start == o.start && e.end < o.end
}

func overlap(a, b span) bool {
	if a == b {
		return true
	}
	return a.start < b.end && b.start < a.end
}

func applyEdits(base string, hunk span, edits []edit) string {
	var out strings.Builder
	at := hunk.start
	for _, e := range edits {
		out.WriteString(base[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.WriteString(base[at:hunk.end])
	return out.String()
}

// both keeps the lines of both: mine, and of theirs what mine does not have.
func both(mine, theirs string) string {
	have := map[string]int{}
	for l := range strings.Lines(mine) {
		have[l]++
	}
	var out strings.Builder
	out.WriteString(mine)
	for l := range strings.Lines(theirs) {
		if have[l] > 0 {
			have[l]--
			continue
		}
		out.WriteString(l)
	}
	return out.String()
}

// startsItem reports whether a text begins with a list item, and not with details
// of one.
func startsItem(s string) bool {
	s = strings.TrimLeft(s, " \t>")
	marker := strings.TrimLeft(s, "0123456789")
	signs := "-+*"
	if len(marker) < len(s) {
		signs = ".)"
	}
	return len(marker) > 1 && strings.IndexByte(signs, marker[0]) >= 0 && isBlank(marker[1])
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// endings makes texts comparable that differ in all their line ends, as when an
// editor saved the file in the other style.
type endings struct {
	mixed bool // at least one text has both: nothing is changed
	same  bool
	crlf  bool // the outcome's
}

func commonEndings(base, mine, theirs []byte) endings {
	styles := [3]string{style(base), style(mine), style(theirs)}
	for _, s := range styles {
		if s == "mixed" {
			return endings{mixed: true}
		}
	}
	want, _ := pick(styles[0], styles[1], styles[2])
	return endings{same: styles[0] == styles[1] && styles[1] == styles[2], crlf: want == "crlf"}
}

func style(text []byte) string {
	lf, crlf := bytes.Count(text, []byte("\n")), bytes.Count(text, []byte("\r\n"))
	switch {
	case crlf == 0:
		return "lf"
	case crlf == lf:
		return "crlf"
	}
	return "mixed"
}

func (e endings) unify(text []byte) []byte {
	if e.mixed || e.same {
		return bytes.Clone(text)
	}
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
}

func (e endings) restore(text []byte) []byte {
	if e.mixed || e.same || !e.crlf {
		return text
	}
	return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
}
