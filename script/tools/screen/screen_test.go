package screen

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestRows(t *testing.T) {
	s := New(12, 2, &bytes.Buffer{})
	defer s.Close()
	if _, err := s.Write([]byte("\x1b[31mred\x1b[0m \x1b[1;38;2;1;2;3m日x\x1b[0m\r\n\x1b[7m rev \x1b[0m")); err != nil {
		t.Fatal(err)
	}
	want := [][]Run{
		{
			{Col: 0, Width: 3, Text: "red", Style: Style{Fg: "#ff7b72"}},
			{Col: 4, Width: 3, Text: "日x", Style: Style{Fg: "#010203", Bold: true}},
		},
		{{Col: 0, Width: 5, Text: " rev ", Style: Style{Fg: Background, Bg: Foreground}}},
	}
	if got := s.Rows(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The emulator answers queries and blocks until the answer is taken.
func TestQueriesAreDrained(t *testing.T) {
	var answers bytes.Buffer
	s := New(20, 2, &answers)
	if _, err := s.Write([]byte("\x1b[c\x1b[6n\x1b]11;?\x1b\\done")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Text(), "done") {
		t.Errorf("text %q", s.Text())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(answers.String(), "\x1b[1;1R") {
		t.Errorf("answers %q", answers.String())
	}
}
