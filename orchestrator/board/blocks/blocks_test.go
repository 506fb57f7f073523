package blocks

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// outline is the tree without places: names, with what lies inside in brackets.
func outline(src string) string {
	t := Parse([]byte(src))
	var b strings.Builder
	var write func(from, to int)
	write = func(from, to int) {
		for i := from; i < to; i = t.Nodes[i].Next {
			n := t.Nodes[i]
			if i > from {
				b.WriteByte(' ')
			}
			var s strings.Builder
			writeBlock(&s, 0, n, nil)
			b.WriteString(strings.TrimSpace(s.String()))
			if n.Next > i+1 {
				b.WriteByte('(')
				write(i+1, n.Next)
				b.WriteByte(')')
			}
		}
	}
	write(1, len(t.Nodes))
	return b.String()
}

func TestCases(t *testing.T) {
	t.Parallel()
	for _, tt := range cases {
		if got := outline(tt.src); got != tt.want {
			t.Errorf("%q\ngot  %s\nwant %s", tt.src, got, tt.want)
		}
		checkTree(t, []byte(tt.src))
		if checkOracle(t, []byte(tt.src)) == tt.deviates {
			t.Errorf("%q: goldmark deviates: want %v", tt.src, tt.deviates)
		}
	}
}

// TestPlaces: offsets of blocks, and the lines of those that have some.
func TestPlaces(t *testing.T) {
	t.Parallel()
	tests := []struct {
		src   string
		node  int
		want  string // of src, from Start to End
		inner string // of src, from Content on; for a leaf its lines
	}{
		{"a\n\n  - [ ] b\n    c\r\n", 3, "- [ ] b\n    c", "[ ] b\n    c\r\n"},
		{"10.\t[x] b", 2, "10.\t[x] b", "[x] b"},
		{"-\n  a", 2, "-\n  a", "\n  a"},
		{"> a\n>   b \nc\n", 2, "a\n>   b \nc", "a|b |c"},
		{"> a\n>\n> - b\n>\n\nc", 1, "> a\n>\n> - b\n>", ""},
		{" ## a b ## \n", 1, "## a b ## ", "a b"},
		{"a\n b\n===\nc", 1, "a\n b\n===", "a|b"},
		{"- ```go x\n  a\n   b\n  ```\n", 3, "```go x\n  a\n   b\n  ```", "a| b"},
		{"~~~ go\n", 1, "~~~ go", ""},
		{"- a\n\n\t\tb\n", 4, "b", "  b"},
		{"    a\n\n     b\n\n\nc", 1, "a\n\n     b", "a|| b"},
		{" <!-- a\n\n--> b\nc", 1, "<!-- a\n\n--> b", " <!-- a||--> b"},
		{"[a]: b\n 'c\n d'\ne", 1, "[a]: b\n 'c\n d'", "[a]: b|'c|d'"},
		{"[a]: b\ne\n", 2, "e", "e"},
	}
	for _, tt := range tests {
		tree := Parse([]byte(tt.src))
		n := tree.Nodes[tt.node]
		if got := tt.src[n.Start:n.End]; got != tt.want {
			t.Errorf("%q: the block is %q, want %q", tt.src, got, tt.want)
		}
		got := ""
		if n.Kind == Item {
			got = tt.src[n.Content:]
		} else if !n.Kind.holdsBlocks() {
			var lines []string
			for _, l := range tree.Lines(tt.node) {
				lines = append(lines, strings.Repeat(" ", l.Pad)+tt.src[l.Start:l.End])
			}
			got = strings.Join(lines, "|")
		}
		if got != tt.inner {
			t.Errorf("%q: got %q, want %q", tt.src, got, tt.inner)
		}
		if n.Kind == Code && n.Marker != 0 && tt.src[n.Content:n.Content+2] != "go" {
			t.Errorf("%q: the info string starts with %q", tt.src, tt.src[n.Content:])
		}
	}
}

// TestLabel: a label has at most 999 characters.
func TestLabel(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"[" + strings.Repeat("é", maxLabel) + "]: b":            "definition",
		"[" + strings.Repeat("é", maxLabel) + "x]: b":           "paragraph",
		"[" + strings.Repeat(`\]`, maxLabel/2) + "x]: b":        "definition",
		"[" + strings.Repeat("x\n", maxLabel/2) + "x]: b":       "definition",
		"[" + strings.Repeat(`\]`, maxLabel/2) + "xx]: b":       "paragraph",
		"[" + strings.Repeat("x\n", maxLabel/2) + "xx]: b":      "paragraph",
		"[" + strings.Repeat(`\x`, maxLabel/2) + "x]: b":        "definition",
		"[" + strings.Repeat("x", maxLabel-1) + `\` + "]: b":    "paragraph",
		"[" + strings.Repeat("x", maxLabel-2) + `\]` + "]: b\n": "definition",
	} {
		if got := outline(src); got != want {
			t.Errorf("%.20q…%q is a %s, want a %s", src, src[len(src)-10:], got, want)
		}
	}
}

// checkTree checks what holds for every tree.
func checkTree(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, src []byte) {
	t.Helper()
	tree := Parse(src)
	lastStart, lastLine := 0, 0
	for i, n := range tree.Nodes {
		if i == 0 {
			if n.Kind != Document || n.Parent != -1 || n.Next != len(tree.Nodes) {
				t.Fatalf("%q: document %+v", src, n)
			}
			continue
		}
		p := tree.Nodes[n.Parent]
		switch {
		case n.Parent >= i || n.Next <= i || n.Next > p.Next || n.Parent < i-1 && tree.Nodes[i-1].Next > i && n.Parent != i-1:
			t.Fatalf("%q: node %d %+v in %+v", src, i, n, p)
		case n.Start < lastStart || n.Start < p.Start || n.End > p.End || n.Start >= n.End || n.End > len(src):
			t.Fatalf("%q: node %d %+v is out of place in %+v", src, i, n, p)
		case !p.Kind.holdsBlocks() || (n.Kind == Item) != (p.Kind == List):
			t.Fatalf("%q: a %d in a %d", src, n.Kind, p.Kind)
		case isSpace(src[n.Start]) || src[n.Start] == '\n' || n.Content != 0 && (n.Content < n.Start || n.Content > n.End):
			t.Fatalf("%q: node %d %+v starts wrong", src, i, n)
		}
		lastStart = n.Start
		if (n.Kind == Paragraph || n.Kind == Definition) && len(tree.Lines(i)) == 0 {
			t.Fatalf("%q: node %d %+v is empty", src, i, n)
		}
		for _, l := range tree.Lines(i) {
			if l.Start < lastLine || l.End < l.Start || l.End > n.End || l.Pad < 0 || l.Pad > 3 || bytes.IndexByte(src[l.Start:l.End], '\n') >= 0 {
				t.Fatalf("%q: line %+v of node %d %+v", src, l, i, n)
			}
			lastLine = l.End
		}
	}
}

// TestRandom puts texts together from what is hard in Markdown.
func TestRandom(t *testing.T) {
	t.Parallel()
	fragments := []string{
		"- ", "* ", "+ ", "1. ", "2) ", "10. ", "01. ", "-", "*", "1)", "123456789.", "1234567890.",
		" ", "  ", "   ", "    ", "\t", "\t", "> ", ">", ">\t",
		"```", "~~~", "````", " ```x", "``", "~~~ a`b", "#", "# ", "## x ##", "#######", "===", "---", "=", "--", "***", "_ _ _", "- - -",
		"<div>", "</div>", "<!--", "-->", "<?", "?>", "<!A", "<![CDATA[", "]]>", "<pre", "<script>", "</script>", "</style>", "<a>", "</b >",
		"<a b='c' d=e/>", "<x", "<table\t>", "[a]: b", "[a]:", "[", "]", "]:", "\"t\"", "'", "(t)", " \"x", "<b>", "\\",
		"<pre/>", "</ div>", "<meta>", "<!a>", "<textarea", "</textarea>", "<search>", "<a\tb>", "<A/>", "<a b=>", "<a:b>", "b(", "[a]: <b>", "\x01",
		"text", "a", "0", "é", "漢", "\x00", "\u00a0", "&", "[ ] ", "[x] ", "|", "`",
		"\n", "\n", "\n", "\n", "\n\n", "\r\n", "\n    ", "\n  ", "\n\t", "\n> ", "\n- ",
	}
	all, skipped := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(fragments), 1, 20).Draw(t, "parts")
		src := []byte(strings.Join(parts, ""))
		checkTree(t, src)
		all++
		if !checkOracle(t, src) {
			skipped++
		}
	})
	if skipped > all/3 {
		t.Errorf("%d of %d texts were not compared", skipped, all)
	}
}

// TestDeep would not end if time or memory grew faster than the text.
func TestDeep(t *testing.T) {
	t.Parallel()
	const n = 50_000
	for _, src := range []string{
		strings.Repeat(">", n),
		strings.Repeat("- ", n) + "a",
		strings.Repeat("- ", n), // a thematic break
		strings.Repeat("- ", n) + "a\n" + strings.Repeat("\n", n) + "b",
		strings.Repeat("> ", n) + "a\n" + strings.Repeat("b\n", n),
		strings.Repeat("- * ", n) + "a" + strings.Repeat(" ", n),
		strings.Repeat("- ", n) + "> a" + strings.Repeat("\n"+strings.Repeat(" ", n), 20),
		strings.Repeat("- ", n/100) + "a\n" + strings.Repeat(strings.Repeat(" ", n/50)+"b\n\n", 100),
		strings.Repeat("*\t", n) + "a",
		strings.Repeat("1. ", n) + "```\n" + strings.Repeat("\n", n),
		strings.Repeat("[a]: b\n", n),
		strings.Repeat("[a]: b\n'", n),
		strings.Repeat("[", n) + strings.Repeat("\n[a]:", n),
		strings.Repeat("[a]: "+strings.Repeat("(", n), 2),
		"<a" + strings.Repeat(" b='", n),
		"<pre>\n" + strings.Repeat("</pre", n),
		strings.Repeat("`", n) + "\n" + strings.Repeat("`", n-1),
		strings.Repeat("-\n", n) + strings.Repeat("- -\n", n),
		"    " + strings.Repeat("\n", n) + "    a" + strings.Repeat("\n    a\n\n", n),
	} {
		tree := Parse([]byte(src))
		if last := tree.Nodes[len(tree.Nodes)-1]; last.Next != len(tree.Nodes) {
			t.Errorf("%.20q: %+v", src, last)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, bm := range []struct{ name, src string }{
		{"tasks", strings.Repeat("- [ ] Do the thing as it is written @ada after:t1 ^t2\n  with a line of details\n", 10_000)},
		{"quotes", strings.Repeat(">", 1<<20)},
		{"items", strings.Repeat("- ", 1<<19) + "a"},
		{"blank", strings.Repeat("- ", 1000) + "a" + strings.Repeat("\n", 1<<20)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(int64(len(bm.src)))
			for b.Loop() {
				Parse([]byte(bm.src))
			}
		})
	}
}
