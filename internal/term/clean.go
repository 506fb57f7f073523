package term

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Clean makes foreign text safe to print on a terminal as one or more lines:
// escape sequences go, other control characters but line feed and tab become
// U+FFFD, and so do runs of bytes that are not UTF-8 and the marks that reorder
// text.
func Clean(s string) string {
	s = ansi.Strip(strings.ToValidUTF8(s, string(utf8.RuneError)))
	if strings.IndexFunc(s, unsafeRune) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		if unsafeRune(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

// CleanLine is Clean for text that must stay on one line: line feeds and tabs
// become spaces.
func CleanLine(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Clean(strings.ReplaceAll(s, "\r\n", "\n")))
}

// Truncate shortens s to width cells, with an ellipsis where something was cut.
func Truncate(s string, width int) string { return ansi.Truncate(s, width, "…") }

// Width is the number of cells that s takes, escape sequences not counted.
func Width(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return ansi.StringWidth(s)
		}
	}
	return len(s) // plain ASCII, as most of what is measured
}

func unsafeRune(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || isBidi(r)
}

// isBidi tells the explicit directional formatting characters, which can make
// a line read as something else than it is (CVE-2021-42574).
func isBidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
