package tmux

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in           string
		major, minor int
		old          bool
	}{
		{"tmux 3.3a\n", 3, 3, false},
		{"tmux next-3.5", 3, 5, false},
		{"3.7c", 3, 7, false},
		{"tmux 3.10", 3, 10, false},
		{"tmux 3.8-rc2", 3, 8, false},
		{"tmux master", newest, 0, false},
		{"tmux openbsd-7.4", 3, 3, false},
		{"tmux openbsd-6.9", 3, 2, false},
		{"tmux openbsd-6.6", 2, 0, true},
		{"tmux 3.1c", 3, 1, true},
		{"tmux 2.9a", 2, 9, true},
	}
	for _, tt := range tests {
		v, err := ParseVersion(tt.in)
		if err != nil || v.Major != tt.major || v.Minor != tt.minor {
			t.Errorf("ParseVersion(%q) = %+v, %v; want %d.%d", tt.in, v, err, tt.major, tt.minor)
		}
		if got := errors.Is(v.check(), ErrTooOld); got != tt.old {
			t.Errorf("%q is too old: %v, want %v", tt.in, got, tt.old)
		}
	}
	for _, bad := range []string{"", "tmux", "tmux 3", "tmux .3", "tmux 3.", "tmux x.y", "tmux 3.999999999999", "usage: tmux"} {
		if v, err := ParseVersion(bad); err == nil {
			t.Errorf("ParseVersion(%q) = %+v, want an error", bad, v)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"tmux 3.3a", "next-3.5", "openbsd-7.4", "master", "3.", "-1.2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVersion(s)
		if err == nil && (v.Major < 0 || v.Minor < 0 || v.Raw == "") {
			t.Errorf("ParseVersion(%q) = %+v", s, v)
		}
	})
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "muntin-repo-run_1", "0", strings.Repeat("x", 40)} {
		if err := CheckName("session", good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "-a", "a:b", "a.b", "a b", "#(x)", "=a", "a\n", "é", "$1", "a;", strings.Repeat("x", 41)} {
		if CheckName("session", bad) == nil {
			t.Errorf("name %q was accepted", bad)
		}
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want, time string }{
		{"plain é", "plain é", "plain é"},
		{"#(id) #{pid} #[x]", "##(id) ##{pid} ##[x]", "##(id) ##{pid} ##[x]"},
		{"50% #", "50% ##", "50%% ##"},
		{"a\nb\x1b[31m\x7f\u0085c\xff", "ab[31mc", "ab[31mc"},
	}
	for _, tt := range tests {
		if got := Escape(tt.in); got != tt.want {
			t.Errorf("Escape(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if got := EscapeTime(tt.in); got != tt.time {
			t.Errorf("EscapeTime(%q) = %q, want %q", tt.in, got, tt.time)
		}
	}
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	tests := []struct {
		layout           Layout
		cols, rows, want int
	}{
		{Tiled, 200, 50, 42}, {Tiled, 80, 24, 6}, {Tiled, 10, 3, 1},
		{EvenHorizontal, 200, 50, 6}, {EvenVertical, 200, 50, 7},
		{MainVertical, 200, 50, 8}, {MainHorizontal, 200, 50, 7},
	}
	for _, tt := range tests {
		if got := tt.layout.Capacity(Size{tt.cols, tt.rows}, Size{30, 6}); got != tt.want {
			t.Errorf("capacity of %s in %dx%d = %d, want %d", tt.layout, tt.cols, tt.rows, got, tt.want)
		}
	}
	for panes, want := range map[int]string{0: "[]", 1: "[1]", 6: "[6]", 7: "[4 3]", 14: "[5 5 4]"} {
		if got := fmt.Sprint(Tiled.Spread(panes, Size{80, 24}, Size{30, 6})); got != want {
			t.Errorf("%d panes are spread %s, want %s", panes, got, want)
		}
	}
	if got := fmt.Sprint(Tiled.Spread(3, Size{1, 1}, Size{})); got != "[1 1 1]" {
		t.Errorf("in one cell: %s", got)
	}
	for _, bad := range []Layout{"#(x)", "tiled;", "-x", "bb62,;"} {
		if bad.check() == nil {
			t.Errorf("layout %q was accepted", bad)
		}
	}
	if err := Layout("bb62,159x48,0,0{79x48,0,0,79x48,80,0}").check(); err != nil {
		t.Error(err)
	}
}

func TestPasteText(t *testing.T) {
	t.Parallel()
	in := "-a\r\nb\tc\rd\x00\x1b[201~e\u009b\xff\x03é;\n"
	if got, want := pasteText(in), "-a\nb\tc\nd[201~eé;\n"; got != want {
		t.Errorf("pasteText = %q, want %q", got, want)
	}
}

func TestScriptRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []Cmd{{}, {""}, {"kill-server;"}, {"a b"}, {"#x"}, {"set-buffer", "a\x00b"}} {
		if s, err := script("N", Epoch{}, []Cmd{bad}); err == nil {
			t.Errorf("command %q made the script %q", bad, s)
		}
	}
}

func TestSplitReplies(t *testing.T) {
	t.Parallel()
	got, stale := splitReplies("a\nb\nN\nN\n%1\nN\nlost", "N")
	if want := []string{"a\nb", "", "%1"}; stale || strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("replies %q, stale %v", got, stale)
	}
	if _, stale := splitReplies("N:stale\n", "N"); !stale {
		t.Error("a stale reply was not seen")
	}
}

// A pane that tmux started elsewhere because it could not enter the folder is
// reported; one whose program moved on is not.
func TestFellBack(t *testing.T) {
	t.Parallel()
	s := &Server{env: []string{"HOME=/home/x"}}
	dir := t.TempDir()
	for path, want := range map[string]bool{"/": true, "/home/x": true, dir: false, "/usr": false} {
		if got := s.fellBack(path, dir); got != want {
			t.Errorf("fellBack(%q) = %v, want %v", path, got, want)
		}
	}
	ref := PaneRef{ID: "%1"}
	sn := Snapshot{Panes: []Pane{{Ref: ref, Path: "/home/x", Status: -1}}}
	err := s.failures(t.Context(), sn, []started{{ref, PaneSpec{Argv: []string{"a", "b"}, Dir: dir}}})
	var start *StartError
	if !errors.As(err, &start) || start.Path != "/home/x" || start.Dir != dir {
		t.Errorf("error %v", err)
	}
}

func TestUnquote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "plain é": "plain é", `a\ b\;`: "a b;", `\\`: `\`, `\\\\`: `\\`, `\`: `\`,
		`\\001`: `\001`, `\001\377`: "\x01\xff", `\a\b\v\f\r`: "\a\b\v\f\r", "\x01\xff": "\x01\xff",
		`\$HOME`: "$HOME", `\\$HOME`: "$HOME", `\\\$HOME`: `\$HOME`, `\\\\$HOME`: `\$HOME`, `x\\\`: `x\\`,
	} {
		if got := unquote(in); got != want {
			t.Errorf("unquote(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzParseRows(f *testing.F) {
	row := "$0N|a|N@0NwN%0N0N1N80N24N12N0NNNshN/tmpNtitle\nxN1N|k|NNvNN\n"
	f.Add(strings.ReplaceAll(row, "N|a|", "Na"), "N")
	f.Add(strings.Repeat("N", 20), "N")
	f.Add("", "N")
	f.Fuzz(func(t *testing.T, out, sep string) {
		if sep == "" {
			return
		}
		panes, _, err := parseRows(out, sep, []string{"k"})
		for _, p := range panes {
			if err == nil && p.Ref.ID.check() != nil {
				t.Errorf("pane %+v", p)
			}
		}
	})
}

func TestParseRows(t *testing.T) {
	t.Parallel()
	f := []string{"$3", "a", "@4", "w", "%5", "0", "1", "80", "24", "12", "1", "7", "", "sh", "/tmp/a\nb", `t\tx`, "1", `\|k\|`, `\|j\|`, "v\n\\;", "sv"}
	out := strings.Repeat(strings.Join(f, "SEP")+"SEP\n", 2)
	panes, known, err := parseRows(strings.TrimSuffix(out, "\n"), "SEP", []string{"k"})
	if err != nil || len(panes) != 2 || strings.Join(known, " ") != "k j k j" {
		t.Fatal(panes, known, err)
	}
	p := panes[1]
	if p.Ref.ID != "%5" || p.Status != 7 || p.Path != "/tmp/a\nb" || p.Meta["k"] != "v\n;" || p.SessionMeta["k"] != "sv" || p.Title != "t\tx" {
		t.Errorf("%+v", p)
	}
	for _, bad := range []string{"x", strings.Replace(out, "%5", "5", 1), strings.Replace(out, "80", "", 1)} {
		if _, _, err := parseRows(bad, "SEP", []string{"k"}); err == nil {
			t.Errorf("listing %q was accepted", bad)
		}
	}
}
