package rpc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func readAll(r io.Reader, longest int) (lines []string) {
	l := newLineReader(r, longest)
	for {
		line, err := l.next()
		switch {
		case err == nil:
			lines = append(lines, string(line))
		case errors.Is(err, errLong):
			lines = append(lines, "<long>")
		default:
			return lines
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "a": "a", "a\n": "a", "a\r\nb\r\n": "a|b", "a\u2028b\u2029c\u0085d\ve\n\nf": "a\u2028b\u2029c\u0085d\ve||f",
		"a\rb\n": "a\rb", "123456789\n": "123456789", "123456789012345678901\nnext\n": "<long>|next", "123456789012345678901": "<long>",
	} {
		if got := strings.Join(readAll(strings.NewReader(in), 20), "|"); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	long := strings.Repeat("x", 300_000) // longer than the buffer
	if got := readAll(strings.NewReader(long+"\n"+long), maxLine); len(got) != 2 || got[0] != long || got[1] != long {
		t.Errorf("got %d lines", len(got))
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\r\n\u2028b\n\nc"))
	f.Add([]byte("{\"type\":\"prompt\"}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		want := strings.Split(string(in), "\n")
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
		for i := range want {
			want[i] = strings.TrimSuffix(want[i], "\r")
		}
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in))} {
			if got := readAll(r, maxLine); strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}
