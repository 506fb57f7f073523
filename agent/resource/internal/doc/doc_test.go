package doc

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	root, err := Parse([]byte("# c\na: 1\r\nb: [x, 'y']\nc:\n  d: true\n  \"e f\": |\n    text\ng:\n"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range root.Map {
		names = append(names, e.Key+"="+string(e.Value.Kind))
	}
	if got := strings.Join(names, " "); got != "a=a number b=a list c=keys and values g=nothing" {
		t.Errorf("got %s", got)
	}
	c := root.Map[2]
	if c.Line != 4 || c.Colon != 2 || len(c.Value.Map) != 2 || c.Value.Map[1].Key != "e f" || c.Value.Map[1].Line != 6 || c.Value.Map[1].Value.Text != "text\n" {
		t.Errorf("%+v", c)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: *x":                         "1:4: ",
		"a: !!int 1":                    "1:4: ",
		"a: " + strings.Repeat("[", 40): "nested too deep",
		strings.Repeat("- ", 40):        "nested too deep",
		"a\rb: c":                       "1:1: there is a carriage return",
		"a: \xff":                       "not UTF-8",
		"a: \x00":                       "NUL",
		"a:\n\t- b":                     "2:",
		strings.Repeat("a", MaxSize+1):  "larger than",
		"x":                             "1:1: want keys and values",
		"a: 1\nb: {c: 1, c: 2}":         "2:11: ",
		"a: 1\n---\nb: 1":               "a second document",
		"%YAML 1.2\n---\na: 1":          "1:1: ",
		"a: [1, 2":                      "1:",
		"a:\n" + strings.Repeat(" ", 600) + "b: 1": "nested too deep",
	} {
		_, err := Parse([]byte(text))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "a: 1", "a:\n  - b\n  - {c: d}\n", "? a", "a: |\n  x\n", "\ufeffa: 'x'\r\n", "- a", "a: &b *b", "[", "{a: [}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Col < 0 {
				t.Errorf("%v", err)
			}
		}
		if root.Kind != Map {
			t.Errorf("the root is %s", root.Kind)
		}
	})
}
