package term

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ünï 漢字\n\ttab":        "plain ünï 漢字\n\ttab",
		"\x1b[31mred\x1b[0m":         "red",
		"\x1b]0;title\x07after":      "after",
		"\x1b]8;;http://x\x1b\\a":    "a",
		"bell\x07 cr\r back\x08":     "bell\ufffd cr\ufffd back\ufffd",
		"bad \xff\xfe":               "bad \ufffd",
		"\u202egnp.exe":              "\ufffdgnp.exe",
		"nul\x00":                    "nul\ufffd",
		"\x1bPq#0;2;0;0;0\x1b\\done": "done",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := CleanLine("a\r\nb\tc"); got != "a b c" {
		t.Errorf("CleanLine: %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred")
	f.Add("\x1b]8;;\xff")
	f.Add("\u009b31m")
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\x00\a\r\u009b\u202e") {
			t.Errorf("Clean(%q) = %q", s, got)
		}
	})
}

func TestPaint(t *testing.T) {
	t.Parallel()
	style := DefaultTheme().Good
	if got, want := Paint(style, "\ta\tb"), "\x1b[32m\ta\tb\x1b[m"; got != want {
		t.Errorf("Paint: %q, want %q", got, want)
	}
	if got := style.Render("\ta\tb"); strings.Contains(got, "\t") {
		t.Errorf("the style itself keeps tabs too: %q", got)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	theme := DefaultTheme()
	table := NewTable("NAME", "STATE")
	table.Row("漢字", theme.Good.Render("ready"))
	table.Row("longer-name", "a very long last cell")
	var out bytes.Buffer
	streams := Plain(nil, &out, &out)
	if err := table.Write(streams.Out, theme, 24); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []int{18, 18, 24} {
		if got := Width(lines[i]); got != want {
			t.Errorf("line %d %q is %d cells wide, want %d", i, lines[i], got, want)
		}
	}
	if !strings.HasSuffix(lines[2], "…") {
		t.Errorf("cut line %q", lines[2])
	}
}
