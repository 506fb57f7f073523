// Package nearest finds what a mistyped word was meant to be.
package nearest

import "strings"

// Of is the known word that s was probably meant to be, or empty. A known word is in
// lower case.
func Of(s string, known []string) string {
	const enough = 2 // edits
	lower := strings.ReplaceAll(strings.ToLower(s), "-", "_")
	best, distance := "", enough+1
	for _, k := range known {
		n := edits(lower, k)
		if n < distance && n < len(k) {
			best, distance = k, n
		}
	}
	if best != "" {
		return best
	}
	for _, k := range known {
		if len(lower) >= 3 && (strings.HasPrefix(k, lower) || strings.HasPrefix(lower, k)) {
			return k
		}
	}
	return ""
}

// edits counts the letters to insert, remove, change or swap to make t of s
// (optimal string alignment, in bytes).
func edits(s, t string) int {
	if len(s) > 64 {
		return len(s)
	}
	rows := [3][]int{make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		before, last, row := rows[(i+1)%3], rows[(i+2)%3], rows[i%3]
		row[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			row[j] = min(last[j-1]+cost, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return rows[len(s)%3][len(t)]
}
