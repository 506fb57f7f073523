package markdown

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

func plain(lines []Line) string {
	var all []string
	for _, l := range lines {
		all = append(all, ansi.Strip(l.Text))
	}
	return strings.Join(all, "\n")
}

// inPieces writes a text piece by piece, and looks at the tail meanwhile.
func inPieces(text string, width, piece int) []Line {
	s := New(width)
	var out []Line
	for len(text) > 0 {
		n := min(piece, len(text))
		out = append(out, s.Write(text[:n])...)
		text = text[n:]
		s.Tail()
	}
	return append(out, s.Close()...)
}

func TestRender(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		width    int
		in, want string
	}{
		"paragraphs":    {20, "one two three four five\n\n\n\nsix", "one two three four\nfive\n\nsix"},
		"line breaks":   {20, "a\nb", "a\nb"},
		"heading":       {20, "## Two *words* ##\ntext", "Two words\ntext"},
		"no heading":    {20, "#hash and ####### x", "#hash and ####### x"},
		"list":          {16, "- one two three four\n  - nested words here\n3. third", "• one two three\n  four\n  • nested words\n    here\n3. third"},
		"tasks":         {20, "- [ ] open\n- [x] done", "☐ open\n☑ done"},
		"quote":         {12, "> quoted words go on\n> > deep", "▎ quoted\n▎ words go\n▎ on\n▎ ▎ deep"},
		"rule":          {20, "a\n\n---\nb", "a\n\n────────────────────\nb"},
		"fence":         {20, "```go\nfunc  x() {\n\n\treturn\n}\n```\nafter", "```go\nfunc  x() {\n\n    return\n}\n```\nafter"},
		"open fence":    {20, "~~~\n**not bold**", "~~~\n**not bold**"},
		"fence in list": {20, "- a\n  ```\n  code\n  ```", "• a\n  ```\n  code\n  ```"},
		"quoted fence":  {20, "> ```\n> x\nout", "▎ ```\n▎ x\nout"},
		"indented":      {20, "    code  here", "    code  here"},
		"table":         {30, "| A | B |\n|---|:-:|\n| 1 | two words |\n| `x|y` | z |\n\nend", "A   │ B\n────┼──────────\n1   │ two words\nx|y │ z\n\nend"},
		"narrow table":  {20, "| Name | What |\n|---|---|\n| a | one two three four |", "Name │ What\n─────┼──────────────\na    │ one two three\n     │ four"},
		"too narrow":    {8, "|a|b|c|\n|-|-|-|\n|1|2|3|", "|a|b|c|\n|-|-|-|\n|1|2|3|"},
		"no table":      {20, "| just | a line\nx", "| just | a line\nx"},
		"emphasis":      {60, "**b** __b__ *i* _i_ ***bi*** ~~s~~ `c` ``a`b``", "b b i i bi s c a`b"},
		"no emphasis":   {60, "2*3*4 a * b snake_case_name ** x ~ y `open", "234 a * b snake_case_name ** x ~ y `open"},
		"escapes":       {60, `\*no\* \a`, `*no* \a`},
		"links":         {80, "[text](https://a.b/c) <https://x.y> https://q.r/s_(t). ![pic](p.png) [no](", "text (https://a.b/c) https://x.y https://q.r/s_(t). pic (p.png) [no]("},
		"wide":          {8, "漢字漢字漢字", "漢字漢字\n漢字"},
		"long word":     {8, "abcdefghijkl", "abcdefgh\nijkl"},
		"combining":     {8, "e\u0301e\u0301e\u0301 abcd ef", "e\u0301e\u0301e\u0301 abcd\nef"},
	} {
		for _, piece := range []int{1, 3, 1000} {
			if got := plain(inPieces(c.in, c.width, piece)); got != c.want {
				t.Errorf("%s in pieces of %d:\n%s\nwant\n%s", name, piece, got, c.want)
			}
		}
	}
}

func TestStyles(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"**b** x":                  "\x1b[1mb\x1b[m x",
		"**b *bi***":               "\x1b[1mb \x1b[m\x1b[1;3mbi\x1b[m",
		"[t](https://a.b)":         "\x1b]8;;https://a.b\x07\x1b[4;34mt\x1b[m\x1b]8;;\x07\x1b[2m (https://a.b)\x1b[m",
		"```diff\n+a\n-b\n```":     "\x1b[2m```diff\x1b[m|\x1b[32m+a\x1b[m|\x1b[31m-b\x1b[m|\x1b[2m```\x1b[m",
		"```go\nif x /* y\nz */ 1": "\x1b[2m```go\x1b[m|\x1b[35mif\x1b[m x \x1b[2m/* y\x1b[m|\x1b[2mz */\x1b[m \x1b[36m1\x1b[m",
	} {
		var got []string
		for _, l := range Render(in, 60) {
			got = append(got, l.Text)
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q: got %q, want %q", in, s, want)
		}
	}
}

// Long lines of code are one line to whoever copies them.
func TestCodeWraps(t *testing.T) {
	t.Parallel()
	lines := Render("```\nabcdefghijkl\n```", 8)
	if !lines[1].Wraps || lines[2].Wraps || lines[1].Text+lines[2].Text != "\x1b[33mabcdefgh\x1b[m\x1b[33mijkl\x1b[m" {
		t.Errorf("got %+v", lines)
	}
}

func TestStableLines(t *testing.T) {
	t.Parallel()
	s := New(40)
	if got := plain(s.Write("# Head\nsome *text* that")); got != "Head" {
		t.Errorf("got %q", got)
	}
	if got := plain(s.Tail()); got != "some text that" {
		t.Errorf("tail %q", got)
	}
	if got := plain(s.Write("\n| a |\n|---|\n")); got != "some text that" {
		t.Errorf("got %q", got)
	}
	if got := plain(s.Tail()); got != "a\n─" {
		t.Errorf("tail %q", got)
	}
}

func TestWrapPlain(t *testing.T) {
	t.Parallel()
	if got := strings.Join(Wrap("a **b** c\n\nd", 5), "|"); got != "a|**b**|c||d" {
		t.Errorf("got %q", got)
	}
}

// letters are the letters and digits of a text, sorted: columns of a table change
// their order.
func letters(text string) []rune {
	var all []rune
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			all = append(all, r)
		}
	}
	slices.Sort(all)
	return all
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"# h\n\n- a **b** `c`\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n```go\nx := \"y\"\n```\n> q [t](http://u)\n", "***", "|\n|-", "> ```\n> a\nb", "1. x\n   y", "\\", "[](", "`` ` ``",
	} {
		f.Add(s, uint8(20), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, width, piece uint8) {
		text = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				return -1
			}
			return r
		}, strings.ToValidUTF8(text, ""))
		columns := int(width)%200 + MinWidth
		lines := inPieces(text, columns, int(piece)+1)
		for _, l := range lines {
			if n := ansi.StringWidth(l.Text); n > columns {
				t.Fatalf("%d cells on a screen of %d: %q", n, columns, l.Text)
			}
			if strings.ContainsAny(ansi.Strip(l.Text), "\n\r\t\x1b") {
				t.Fatalf("a control character in %q", l.Text)
			}
		}
		if strings.Contains(strings.ToLower(text), "[x] ") {
			return // shown as a box
		}
		if got, want := letters(plain(lines)), letters(text); string(got) != string(want) {
			t.Fatalf("the letters %q became %q", string(want), string(got))
		}
	})
}

// BenchmarkStream is the cost of a token of a long answer, with the tail drawn.
func BenchmarkStream(b *testing.B) {
	text := strings.Repeat("Some **words** of an answer that goes on, with `code` and more of it.\n\n- an item\n\n```go\nfunc main() {}\n```\n\n", 50)
	s := New(100)
	at := 0
	for b.Loop() {
		s.Write(text[at : at+4])
		s.Tail()
		if at += 4; at+4 > len(text) {
			at = 0
		}
	}
}
