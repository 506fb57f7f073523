package tree

import (
	"errors"
	"strings"
	"testing"
)

func parse(text string, aliases bool) (*Node, error) {
	p := &Problems{}
	n := Parse(p, "t", []byte(text), Options{What: "file", Aliases: aliases})
	return n, p.Err()
}

func TestAliases(t *testing.T) {
	t.Parallel()
	n, err := parse("a: &x {k: 1, l: two}\nb: *x\nc: {<<: *x, l: 3}\nd: !!str 5\n", true)
	if err != nil {
		t.Fatal(err)
	}
	if n.Get("b").Get("l").Text != "two" || n.Get("c").Get("k").Int != 1 || n.Get("c").Get("l").Text != "3" || len(n.Get("c").Pairs) != 2 {
		t.Errorf("%+v", n)
	}
	for _, text := range []string{"a: *x\n", "a: &x [*x]\n", "a: &x {b: &y [*x]}\n"} {
		if n, err := parse(text, true); err == nil || n != nil || !strings.Contains(err.Error(), "stands for nothing before it") {
			t.Errorf("%q: %v, %v", text, n, err)
		}
	}
}

func TestPlacesOfTwoFiles(t *testing.T) {
	t.Parallel()
	p := &Problems{}
	one, two := NewSource("one", []byte("a: 1\nb: 2\n")), NewSource("two", []byte("c"))
	p.Add(Place{two, 1, 1}, "second")
	p.Add(Place{one, 2, 4}, "third")
	p.Add(Place{one, 1, 1}, "first")
	p.AddAbout("--set x", "none")
	want := "two:1:1: second\n     1 | c\n       | ^\none:1:1: first\n     1 | a: 1\n       | ^\none:2:4: third\n     2 | b: 2\n       |    ^\n--set x: none"
	if err := p.Err(); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if !p.Reported(Place{one, 2, 4}) || p.Reported(Place{two, 2, 4}) {
		t.Error("what is reported")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: b", "a: &x [1, *x]\n", "a: &x {b: c}\nd: {<<: *x}\n", "? a\n: b\n", "- a", "a: |\n  b\n", "a: 1e999", "a: !!binary x", "a:\n\tb"} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, aliases bool) {
		n, err := parse(string(text), aliases)
		var e *Error
		if (n == nil) != errors.As(err, &e) {
			t.Fatalf("%v, %v", n, err)
		}
		if err == nil && n.Kind != Map {
			t.Fatalf("the root is %s", n.Describe())
		}
	})
}
