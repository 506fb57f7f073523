package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"muntin/script/tools/cast"
)

func recording(t *testing.T, steps int) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w, err := cast.NewWriter(&b, cast.Header{Term: cast.Term{Cols: 40, Rows: 6}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range steps {
		text := fmt.Sprintf("\x1b[H┌──┬──┐ <&> %03d\r\n│\x1b[3%dm█▌\x1b[0m│日│\x1b[4m u \x1b[0m", i, i%8)
		if err := w.Output(time.Duration(i+1)*100*time.Millisecond, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return &b
}

func convert(t *testing.T, in io.Reader, o options) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(in, &out, o); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return out.String()
		} else if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, out.String())
		}
	}
}

func TestPicture(t *testing.T) {
	o := options{frames: 10, play: 5 * time.Second, hold: time.Second, maxBytes: 1 << 20, title: `a "title"`}
	svg := convert(t, recording(t, 50), o)
	if n := strings.Count(svg, "<svg x="); n != 10+1 {
		t.Errorf("%d frames, want 10", n-1)
	}
	for _, want := range []string{"049", "&lt;&amp;&gt;", "prefers-reduced-motion", "film 6.0s", `aria-label="a &#34;title&#34;"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
	if strings.ContainsAny(svg, "┌─│█") {
		t.Errorf("lines and blocks are drawn as text")
	}
}

func TestFewerFramesWhereTheFileGrowsTooLong(t *testing.T) {
	o := options{frames: 40, play: time.Second, maxBytes: 6000}
	svg := convert(t, recording(t, 50), o)
	if n := strings.Count(svg, "<svg x="); len(svg) > o.maxBytes || n >= 41 || n < 3 {
		t.Errorf("%d bytes, %d frames", len(svg), n-1)
	}
	o.maxBytes = 100
	if err := run(recording(t, 50), io.Discard, o); err == nil {
		t.Error("a limit that cannot be kept is not reported")
	}
}

func TestAnEmptyRecordingIsRefused(t *testing.T) {
	if err := run(recording(t, 0), io.Discard, options{frames: 5, maxBytes: 1 << 20}); err == nil {
		t.Error("accepted")
	}
}
