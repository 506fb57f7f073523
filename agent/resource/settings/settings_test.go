package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	user := Layer{Scope: User, Path: "u.yaml", Data: []byte("model: a/b\ncompaction:\n  auto: false\n  keep: 5\ntools: [read]\nskills: [/u]\ntrust: never\n")}
	project := Layer{Scope: Project, Path: "p.yaml", Data: []byte("model: c/d\ncompaction:\n  keep: 7\ntools: [bash]\nskills: [p]\ntrust: always\neditor: evil\nretry:\n")}
	s, problems := Resolve(user, project)
	if s.Model != "c/d" || s.Compaction.Auto || s.Compaction.Keep != 7 || s.Compaction.Reserve != 16384 || s.Retry.Attempts != 3 || !s.ContextFiles {
		t.Errorf("%+v", s.Values)
	}
	if fmt.Sprint(s.Tools, s.Skills) != "[bash] [/u p]" {
		t.Errorf("tools %v, skills %v", s.Tools, s.Skills)
	}
	if s.Trust != TrustNever || s.Editor != "" {
		t.Errorf("a project set what is the user's: trust %s, editor %q", s.Trust, s.Editor)
	}
	want := "[p.yaml:6:1: trust is each user's own and does not count here p.yaml:7:1: editor is each user's own and does not count here]"
	if fmt.Sprint(problems) != want {
		t.Errorf("%v", problems)
	}
	if from := s.From["skills"]; len(from) != 2 || from[1].Line != 5 || from[1].Scope != Project {
		t.Errorf("%+v", from)
	}
	if from := s.From["compaction.auto"]; len(from) != 1 || from[0].Scope != User {
		t.Errorf("%+v", from)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"modle: x":                      `f:1:1: there is no setting "modle"; did you mean model?`,
		"contextFiles: true":            `f:1:1: there is no setting "contextFiles"; did you mean context_files?`,
		"# c\ncompaction:\n  atuo: yes": `f:3:3: there is no setting "compaction.atuo"; did you mean compaction.auto?`,
		"compaction: true":              `f:1:1: compaction: want keys and values, got true or false`,
		"thinking: loud":                `f:1:11: thinking: "loud" is none of off, minimal, low, medium, high, xhigh, max`,
		"tools: bash":                   `f:1:8: tools: want a list, such as [one, two], got text`,
		"compaction:\n  keep: -1":       `f:2:9: compaction.keep: want a whole number that is not negative, got a number -1`,
		"model: {a: b}":                 `f:1:8: model: want text, got keys and values`,
		"model: a\nmodel: b":            `f:2:1: `,
		"- a":                           `f:1:1: want keys and values, such as "key: value"`,
		"model: &x y":                   `f:1:8: "&" has a meaning of its own in YAML that is not supported here: put the text in quotes`,
		"a: b\n---\nc: d":               `f:3:2: a second document: there can be one only`,
		"deadlines: soon":               `f:1:12: deadlines: `,
	} {
		s, problems := Resolve(Layer{Scope: User, Path: "f", Data: []byte(text)})
		if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), want) {
			t.Errorf("%q: %v, want %s", text, problems, want)
		}
		if len(s.From) != 0 {
			t.Errorf("%q: %v counts", text, s.From)
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, name, value, want string }{
		{"", "model", "a/b:high", "model: a/b:high\n"},
		{"# mine\n", "compaction.keep", "5", "# mine\ncompaction:\n  keep: 5\n"},
		{"model: x # why\ntheme: 'y' # z\n", "model", "a/b", "model: a/b # why\ntheme: 'y' # z\n"},
		{"theme: \"a # b\"   # c\n", "theme", "d", "theme: d   # c\n"},
		{"theme: it's # c", "theme", "d: e", "theme: \"d: e\" # c"},
		{"model: x", "theme", "z", "model: x\ntheme: z\n"},
		{"compaction:\n    auto: true # a\n\n# about tools\ntools: []\n", "compaction.keep", "7", "compaction:\n    auto: true # a\n    keep: 7\n\n# about tools\ntools: []\n"},
		{"compaction: # c\ntheme: x\n", "compaction.keep", "7", "compaction: # c\n  keep: 7\ntheme: x\n"},
		{"compaction: {}\n", "compaction.keep", "7", "compaction:\n  keep: 7\n"},
		{"tools: # t\n  # one\n  - read\n\n  - bash\n# next\nmodel: x\n", "tools", "grep,+x", "tools: [grep, \"+x\"] # t\n# next\nmodel: x\n"},
		{"tools:\n- read\n- bash\nmodel: x\n", "tools", "", "tools: []\nmodel: x\n"},
		{"editor: |\n  a\n  # no comment\ntheme: x\n", "editor", "vi", "editor: vi\ntheme: x\n"},
		{"editor: >-\n  a\n\n  b\n\ntheme: x\n", "editor", "code -w", "editor: \"code -w\"\n\ntheme: x\n"},
		{"a: 1\r\ntheme: x\r\n", "model", "m", "a: 1\r\ntheme: x\r\nmodel: m\r\n"},
		{"\ufeffmodel: x\n", "model", "m", "\ufeffmodel: m\n"},
		{"model: x\n...\n", "theme", "t", "model: x\ntheme: t\n...\n"},
		{"---\nmodel: x\n", "theme", "true", "---\nmodel: x\ntheme: \"true\"\n"},
		{"\"model\": ééé # é\n", "model", "m", "\"model\": m # é\n"},
		{"unknown: {a: [1, 2]}\nmodel: x\n", "model", "z", "unknown: {a: [1, 2]}\nmodel: z\n"},
	} {
		got, err := Set([]byte(c.text), c.name, c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%q, %s=%s:\n got %q, %v\nwant %q", c.text, c.name, c.value, got, err, c.want)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, name, value, want string }{
		{"", "modle", "x", "did you mean model?"},
		{"", "thinking", "loud", "is none of"},
		{"", "compaction.auto", "yes", "want true or false"},
		{"", "compaction.keep", "many", "whole number"},
		{"", "compaction", "x", "there is no setting"},
		{"compaction: {auto: true}\n", "compaction.keep", "1", "by hand: line 1 has keys in braces"},
		{"{model: x}\n", "model", "y", "by hand"},
		{"compaction: 5\n", "compaction.keep", "1", "want keys and values"},
		{"model: [\n", "model", "1", "1:"},
	} {
		got, err := Set([]byte(c.text), c.name, c.value)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %s=%s: got %q, %v, want %s", c.text, c.name, c.value, got, err, c.want)
		}
	}
}

func TestUnset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, name, want string
		was              bool
	}{
		{"model: x\n", "model", "", true},
		{"model: x\n", "theme", "model: x\n", false},
		{"# a\nmodel: x # b\n# c\ntheme: y\n", "model", "# a\n# c\ntheme: y\n", true},
		{"compaction:\n  # c\n  keep: 1\ntheme: y\n", "compaction.keep", "compaction:\n  # c\ntheme: y\n", true},
		{"tools:\n  - a\n\n  - b\ntheme: y", "tools", "theme: y", true},
	} {
		got, was, err := Unset([]byte(c.text), c.name)
		if err != nil || string(got) != c.want || was != c.was {
			t.Errorf("%q, %s: got %q, %v, %v", c.text, c.name, got, was, err)
		}
	}
	if _, _, err := Unset([]byte("compaction: {keep: 1}\n"), "compaction.keep"); !errors.Is(err, ErrByHand) {
		t.Errorf("in braces: %v", err)
	}
}

func TestChangeKeepsALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	real := filepath.Join(dir, "dotfiles.yaml")
	if err := os.WriteFile(real, []byte("# mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	at := Location{Path: filepath.Join(dir, "c", "settings.yaml"), Lock: filepath.Join(dir, "s", "lock"), Perm: 0o600}
	if err := os.Mkdir(filepath.Dir(at.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, at.Path); err != nil {
		t.Fatal(err)
	}
	change := func(ctx context.Context) error {
		return Change(ctx, at, func(b []byte) ([]byte, error) { return Set(b, "theme", "x") })
	}
	if err := change(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(real); err != nil || string(b) != "# mine\ntheme: x\n" {
		t.Errorf("%q, %v", b, err)
	}
	if info, err := os.Lstat(at.Path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
}

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	s, problems := Resolve()
	if len(problems) > 0 || s.Trust != TrustAsk {
		t.Errorf("%+v, %v", s, problems)
	}
	for _, k := range Keys() {
		if _, ok := s.Get(k.Name); !ok || k.Doc == "" {
			t.Errorf("%s: not described", k.Name)
		}
	}
}

// An edit changes the lines of its key and nothing else.
func FuzzEdit(f *testing.F) {
	for _, text := range []string{
		"", "# c\n", "model: x # c\ntheme: y\n", "compaction:\n  auto: true # a\n\n  # b\n  keep: 1\n# d\ntools:\n- a\n- b\n",
		"tools: [a, # x\n  b]\neditor: |\n  a\n  # b\ntheme: >-\n  x\n\n  y\n", "{model: x}", "compaction: {}\r\nmodel: 'a''b' #x\r\n",
		"\ufeff---\nmodel: \"a\\\" # b\" # c\n...\n", "compaction:\n\n# x\n", "theme: a\n  b\n  c\nmodel: ü # ü\n", "? a\n: b\n", "\"model\" : x\n",
	} {
		for _, k := range []byte{0, 2, 6, 7, 10} {
			f.Add([]byte(text), k, "a/b: # c")
			f.Add([]byte(text), k, "7")
		}
	}
	keys := Keys()
	f.Fuzz(func(t *testing.T, text []byte, k byte, value string) {
		key := keys[int(k)%len(keys)]
		out, err := Set(text, key.Name, value)
		if err != nil {
			return
		}
		before, _ := Resolve(Layer{Scope: User, Data: text})
		after, _ := Resolve(Layer{Scope: User, Data: out})
		for _, other := range keys {
			a, _ := before.Get(other.Name)
			b, _ := after.Get(other.Name)
			if other.Name != key.Name && fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("%s became %v, was %v:\n%q\n%q", other.Name, b, a, text, out)
			}
		}
		if len(after.From[key.Name]) != 1 {
			t.Fatalf("%s is not set:\n%q", key.Name, out)
		}
		onlyOneBlock(t, text, out)
		gone, was, err := Unset(out, key.Name)
		if err != nil || !was {
			t.Fatalf("unset: %v, %v\n%q", was, err, out)
		}
		onlyOneBlock(t, out, gone)
	})
}

// onlyOneBlock makes sure that what two texts do not share is one run of lines, in
// which a comment at the beginning of a line is not lost.
func onlyOneBlock(t *testing.T, before, after []byte) {
	t.Helper()
	a, b := bytes.Split(before, []byte("\n")), bytes.Split(after, []byte("\n"))
	for len(a) > 0 && len(b) > 0 && bytes.Equal(a[0], b[0]) {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && bytes.Equal(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for _, line := range a {
		if bytes.HasPrefix(line, []byte("#")) && !bytes.Contains(bytes.Join(b, []byte("\n")), line) {
			t.Fatalf("a comment is gone:\n%q\n%q", before, after)
		}
	}
}
