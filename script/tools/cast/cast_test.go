package cast

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestRoundTripKeepsCutCharacters(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Term: Term{Cols: 120, Rows: 34}})
	if err != nil {
		t.Fatal(err)
	}
	text := "a│ж😀<b>"
	for i := range len(text) { // byte by byte: every character is cut
		if err := w.Output(time.Duration(i)*time.Millisecond, []byte{text[i]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Exit(time.Second, 3); err != nil {
		t.Fatal(err)
	}
	h, events, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, e := range events[:len(events)-1] {
		got.WriteString(e.Data)
	}
	if h.Term.Cols != 120 || got.String() != text {
		t.Errorf("header %+v, text %q, want %q", h, got.String(), text)
	}
	if last := events[len(events)-1]; last != (Event{time.Second, "x", "3"}) {
		t.Errorf("last event %+v", last)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{
		"", "{}", `{"version":2,"width":80,"height":24}`, `{"version":3,"term":{"cols":0,"rows":2}}`,
		`{"version":3,"term":{"cols":1,"rows":2}}` + "\n[0.1,\"o\"]",
		`{"version":3,"term":{"cols":1,"rows":2}}` + "\n[-1,\"o\",\"x\"]",
		`{"version":3,"term":{"cols":1,"rows":2}}` + "\n[0.1,\"o\",",
	} {
		if _, _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("accepted %q", text)
		}
	}
}
