package tui

import (
	"strings"
	"testing"

	"muntin/internal/term"
)

func wrapAll(text string, width, piece int) string {
	var w wrapper
	var out strings.Builder
	for len(text) > 0 {
		n := min(piece, len(text))
		for n < len(text) && text[n]&0xc0 == 0x80 { // not within a character
			n++
		}
		out.WriteString(w.write(text[:n], width))
		text = text[n:]
	}
	return out.String() + w.rest(width)
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"words":       {"one two three four", "one two\nthree four"},
		"fits":        {"one two", "one two"},
		"lines":       {"a\n\nb", "a\n\nb"},
		"long word":   {"a abcdefghijklmnop b", "a\nabcdefghijklmnop\nb"},
		"wide":        {"漢字漢 字漢字", "漢字漢\n字漢字"},
		"indented":    {"    a b c d e f g h", "    a b c d e f g h"},
		"fence":       {"```\na b c d e f g h\n```\na b c d e f g", "```\na b c d e f g h\n```\na b c d e\nf g"},
		"end of line": {"one two \nthree", "one two\nthree"},
	} {
		for _, piece := range []int{1, 3, 100} {
			if got := wrapAll(tc.in, 10, piece); got != tc.want {
				t.Errorf("%s in pieces of %d: %q, want %q", name, piece, got, tc.want)
			}
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("one two three four\n```\nx y\n", 10, 3)
	f.Fuzz(func(t *testing.T, text string, width, piece int) {
		text = term.Clean(text)
		if width < 1 || width > 200 || piece < 1 {
			return
		}
		got := wrapAll(text, width, piece)
		if whole := wrapAll(text, width, len(text)+1); got != whole {
			t.Fatalf("in pieces %q, whole %q", got, whole)
		}
		strip := func(s string) string { return strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s) }
		if strip(got) != strip(text) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
