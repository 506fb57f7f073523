package tool

import (
	"fmt"
	"strings"

	"muntin/internal/term"
)

const (
	missLines   = 12    // shown of the closest region
	missWidth   = 200   // cells of a line
	missCompare = 20000 // lines
	missSame    = 8     // lines of what was wanted that are the same
)

// closest shows the part of the text that looks most like what was looked for,
// with line numbers; nothing when no part does.
func closest(text, want string) string {
	lines := strings.Split(text, "\n")
	wanted := strings.Split(strings.Trim(want, "\n"), "\n")
	at, ok := closestByLines(lines, wanted)
	if !ok {
		at, ok = closestByWords(lines, wanted)
	}
	if !ok {
		return ""
	}
	end := min(at+min(len(wanted), missLines), len(lines))
	var b strings.Builder
	fmt.Fprintf(&b, " The closest region is at lines %d-%d:", at+1, end)
	for i := at; i < end; i++ {
		fmt.Fprintf(&b, "\n%d: %s", i+1, term.Truncate(strings.ToValidUTF8(lines[i], "\uFFFD"), missWidth))
	}
	return b.String()
}

// closestByLines finds the place where most lines are the same but for blanks.
// Each line that is found votes for the place where the region would start.
func closestByLines(lines, wanted []string) (int, bool) {
	byText := map[string][]int{}
	for j, w := range wanted {
		if w = squeeze(w); w != "" && len(byText[w]) < missSame {
			byText[w] = append(byText[w], j)
		}
	}
	votes := map[int]int{}
	best, most := 0, 0
	for i, l := range lines {
		l = squeeze(l)
		for _, j := range byText[l] {
			start := max(i-j, 0)
			votes[start] += len(l) // a long line says more than a brace
			if votes[start] > most {
				best, most = start, votes[start]
			}
		}
	}
	return best, most > 0
}

// closestByWords compares the longest line that was wanted with each line.
func closestByWords(lines, wanted []string) (int, bool) {
	longest := 0
	for j, w := range wanted {
		if len(w) > len(wanted[longest]) {
			longest = j
		}
	}
	words := map[string]bool{}
	for _, w := range splitWords(wanted[longest]) {
		words[w] = true
	}
	if len(words) == 0 {
		return 0, false
	}
	best, most := 0, 0.0
	for i, l := range lines[:min(len(lines), missCompare)] {
		found := splitWords(l)
		same := 0
		for _, w := range found {
			if words[w] {
				same++
			}
		}
		if score := 2 * float64(same) / float64(len(words)+len(found)); score > most {
			best, most = max(i-longest, 0), score
		}
	}
	return best, most >= 0.5
}

func splitWords(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return r < '0' || r > '9' && r < 'A' || r > 'Z' && r < '_' || r == '`' || r > 'z' && r < 0x80
	})
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
