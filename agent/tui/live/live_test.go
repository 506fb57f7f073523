package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
)

func screenOf(e *vt.Emulator) string {
	var lines []string
	for l := range strings.SplitSeq(e.String(), "\n") {
		lines = append(lines, strings.TrimRight(l, " \r"))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func draw(t *testing.T, s *Screen, above []Line, r Region) {
	t.Helper()
	if err := s.Draw(above, r); err != nil {
		t.Fatal(err)
	}
}

func TestDraw(t *testing.T) {
	t.Parallel()
	e := vt.NewEmulator(20, 6)
	s := New(e, 20)
	draw(t, s, nil, Region{Lines: []string{"> ", "status"}, X: 2})
	draw(t, s, []Line{{Text: "one"}, {Text: "two"}}, Region{Lines: []string{"tail", "> x", "status"}, X: 3, Y: 1})
	if got := screenOf(e); got != "one\ntwo\ntail\n> x\nstatus" {
		t.Errorf("got\n%s", got)
	}
	if p := e.CursorPosition(); p.X != 3 || p.Y != 3 {
		t.Errorf("the cursor is at %v", p)
	}
	draw(t, s, nil, Region{Lines: []string{"> xy", "status"}, X: 4})
	if got := screenOf(e); got != "one\ntwo\n> xy\nstatus" {
		t.Errorf("got\n%s", got)
	}
	var above []Line
	for i := range 20 {
		above = append(above, Line{Text: fmt.Sprint("line ", i)})
	}
	draw(t, s, above, Region{Lines: []string{"a", "b", "c"}, X: 1, Y: 2})
	if got := screenOf(e); got != "line 17\nline 18\nline 19\na\nb\nc" {
		t.Errorf("got\n%s", got)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := screenOf(e); got != "line 17\nline 18\nline 19" {
		t.Errorf("got\n%s", got)
	}
}

// What does not change is not written, and a change writes its line only.
func TestWritesLittle(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	s := New(&b, 40)
	r := Region{Lines: []string{"first line", "second", "third"}, X: 1, Y: 1}
	draw(t, s, nil, r)
	b.Reset()
	draw(t, s, nil, r)
	if b.Len() > 0 {
		t.Errorf("wrote %q", b.String())
	}
	r.Lines = []string{"first line", "2nd", "third"}
	draw(t, s, nil, r)
	if got := b.String(); !strings.Contains(got, "2nd") || strings.Contains(got, "first") || strings.Contains(got, "third") ||
		!strings.HasPrefix(got, "\x1b[?2026h") || !strings.HasSuffix(got, "\x1b[?2026l") {
		t.Errorf("wrote %q", got)
	}
}

// A full line that goes on is wrapped by the terminal.
func TestWraps(t *testing.T) {
	t.Parallel()
	e := vt.NewEmulator(10, 6)
	s := New(e, 10)
	draw(t, s, []Line{{Text: "0123456789", Wraps: true}, {Text: "abc"}, {Text: "0123456789"}, {Text: "z"}}, Region{Lines: []string{"> "}})
	if got := screenOf(e); got != "0123456789\nabc\n0123456789\nz\n>" {
		t.Errorf("got\n%s", got)
	}
}
