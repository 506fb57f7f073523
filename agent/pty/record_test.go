package pty

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRecorder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "screen.cast")
	secrets := []string{"s3cr3t-key", "other secret", "abc"}
	text := "é漢👩 a \"quoted\" \\ \x1b[31mred\x1b[0m \x7f s3cr3t-key, s3cr3t-ke, other secret. abc\r\n"
	want := strings.NewReplacer("s3cr3t-key", redacted, "other secret", redacted).Replace(text)
	for life := range 2 { // the second goes on in the same file
		r, err := openRecorder(path, 0, secrets)
		if err != nil {
			t.Fatal(err)
		}
		r.resize(80, 24)
		for i := range len(text) { // in the smallest pieces
			r.output([]byte(text[i : i+1]))
		}
		if err := r.close(life); err != nil {
			t.Fatal(err)
		}
	}
	if got := castText(t, path); got != want+want {
		t.Errorf("got\n%q, want\n%q", got, want+want)
	}
	// A crash in the middle of a line.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`[0.1, "o", "cut o`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	r, err := openRecorder(path, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.resize(80, 24)
	r.output([]byte("end\xe6\xbc"))
	if err := r.close(0); err != nil {
		t.Fatal(err)
	}
	if got := castText(t, path); got != want+want+"end\uFFFD\uFFFD" {
		t.Errorf("after a crash: %q", got)
	}
}

func TestRecorderRotates(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "screen.cast")
	r, err := openRecorder(path, 4<<10, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.resize(80, 24)
	for range 200 {
		r.output([]byte(strings.Repeat("x", 90) + "\r\n"))
	}
	if err := r.close(0); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, strings.TrimSuffix(path, ".cast") + ".1.cast"} {
		info, err := os.Stat(p)
		if err != nil || info.Size() > 4<<10 {
			t.Fatalf("%s: %v, %v", p, info, err)
		}
		castText(t, p)
		if first := lines(t, p)[0]; !strings.HasPrefix(first, `{"version":3`) {
			t.Errorf("%s begins with %s", p, first)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("{\"id\":1,\"op\":\"hello\"}\n"))
	f.Add([]byte("{\"op\":\"send\",\"message\":{\"id\":\"x\",\"time\":\"2020-01-01T00:00:00Z\"}}\nnot\n\n{\"event\":{\"seq\":1}}"))
	f.Add([]byte("{\"report\":{\"turn_end\":{\"usage\":{}}}}\n\xff\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := newFrameReader(bytes.NewReader(data))
		for range bytes.Count(data, []byte("\n")) + 2 {
			frame, err := d.next()
			if err != nil {
				continue
			}
			line, err := encode(frame)
			if err != nil { // a time out of range, as JSON has it
				continue
			}
			if back, err := decode(line); err != nil || back.ID != frame.ID || back.Op != frame.Op {
				t.Fatalf("%s: %v", line, err)
			}
		}
	})
}

func FuzzPasteBytes(f *testing.F) {
	f.Add("a\x1b[201~b\r\nc")
	f.Add("\x1b[20\x1b[201~1~\u009b")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := pasteBytes(text, true, false)
		if err != nil {
			t.Fatal(err)
		}
		inner := got[len(pasteStart) : len(got)-len(pasteEnd)]
		if !utf8.Valid(inner) || bytes.ContainsFunc(inner, func(r rune) bool {
			return r < 0x20 && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0
		}) {
			t.Fatalf("%q became %q", text, inner)
		}
	})
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("\x1b[I\x1b[200~x\r\x1b[201~\r"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		byPerson(data)
		pressesEnter(data)
	})
}

func FuzzRedact(f *testing.F) {
	f.Add("before secret-value after", 9)
	f.Add("secret-secret-value", 7)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		cut = max(min(cut, len(text)), 0)
		r := newRedactor([]string{"secret-value"})
		got := string(r.pass([]byte(text[:cut]))) + string(r.pass([]byte(text[cut:]))) + string(r.rest())
		if want := strings.ReplaceAll(text, "secret-value", redacted); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func FuzzAppendJSON(f *testing.F) {
	f.Add("\x00\x1b\"\\\u2028\xff")
	f.Fuzz(func(t *testing.T, s string) {
		var back string
		if err := json.Unmarshal(appendJSON(nil, []byte(s)), &back); err != nil {
			t.Fatal(err)
		}
		if back != strings.ToValidUTF8(s, "\uFFFD") && !strings.Contains(back, "\uFFFD") {
			t.Fatalf("%q became %q", s, back)
		}
	})
}
