package session

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muntin/agent/llm"
)

// cpu reports the processor time that an iteration takes, which other programs
// on the machine do not change as they do the time on the clock.
func cpu(b *testing.B) func() {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N)/1e6, "cpu-ms/op") }
}

// BenchmarkAppend is what an entry costs: one write, and for what something
// depends on a sync. The floors are a bare write, with and without a sync.
func BenchmarkAppend(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(filepath.Join(dir, "s.jsonl"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		name string
		m    llm.Message
	}{{"answer", answer("a")}, {"user, synced", user("a")}} {
		b.Run(c.name, func(b *testing.B) {
			defer cpu(b)()
			for b.Loop() {
				if _, err := s.AppendMessage(c.m, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	line := []byte(msg("aaaaaaaa", "bbbbbbbb", "user", "a"))
	for name, sync := range map[string]bool{"floor, write": false, "floor, write and sync": true} {
		b.Run(name, func(b *testing.B) {
			f, err := os.OpenFile(filepath.Join(b.TempDir(), "f"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			defer cpu(b)()
			for b.Loop() {
				if _, err := f.Write(line); err != nil {
					b.Fatal(err)
				}
				if sync {
					if err := f.Sync(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// hundred makes a session of 100 MB: turns of a question, a call, a result of
// 20 KB and an answer. compacted has all but the last hundredth summarised.
func hundred(tb testing.TB, compacted bool) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "s.jsonl")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var text strings.Builder
	text.WriteString(head)
	result, parent := strings.Repeat(`func f(x int) \"quoted\" {\n\treturn x\n}\n`, 500), ""
	for i := 0; text.Len() < 100<<20; i++ {
		for _, role := range []string{"user", "assistant", "user", "assistant"} {
			id := fmt.Sprintf("%08x", text.Len())
			words := "a few words"
			if role == "user" && i%2 == 1 {
				words = result
			}
			text.WriteString(msg(id, parent, role, words))
			parent = id
		}
		if compacted && text.Len() > 99<<20 {
			id := fmt.Sprintf("%08x", text.Len())
			text.WriteString(`{"type":"compaction","id":"` + id + `","parentId":"` + parent + `","timestamp":"2026-01-01T00:00:00.000Z","summary":"s","firstKeptEntryId":"` + parent + `","tokensBefore":9}` + "\n")
			parent, compacted = id, false
		}
	}
	if _, err := io.WriteString(f, text.String()); err != nil {
		tb.Fatal(err)
	}
	return path
}

// BenchmarkOpen100MB opens a session and makes the context of it. The floor is
// the reading of the file.
func BenchmarkOpen100MB(b *testing.B) {
	for name, compacted := range map[string]bool{"whole": false, "compacted": true} {
		path := hundred(b, compacted)
		b.Run(name, func(b *testing.B) {
			defer cpu(b)()
			for b.Loop() {
				s, err := Open(path, Options{ReadOnly: true})
				if err != nil {
					b.Fatal(err)
				}
				if len(s.Messages()) == 0 || len(s.Problems()) > 0 {
					b.Fatal("it holds nothing", s.Problems())
				}
				s.Close()
			}
		})
		b.Run(name+", floor", func(b *testing.B) {
			defer cpu(b)()
			for b.Loop() {
				f, err := os.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, make([]byte, 64<<10)); err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		})
	}
}

// BenchmarkList5000 lists a folder of 5,000 sessions of 20 KB, from the files and
// from the index. The floor is to look for the files and their sizes.
func BenchmarkList5000(b *testing.B) {
	dir := b.TempDir()
	content := head + msg("a", "", "user", "the question") + msg("b", "a", "assistant", strings.Repeat("answer ", 2800))
	for i := range 5000 {
		file := strings.Replace(content, `"id":"x"`, fmt.Sprintf(`"id":"s%d"`, i), 1)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.jsonl", i)), []byte(file), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	check := func(b *testing.B) {
		infos, err := List(dir)
		if err != nil || len(infos) != 5000 || infos[0].First != "the question" {
			b.Fatal(len(infos), err)
		}
	}
	b.Run("without an index", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			_ = os.Remove(filepath.Join(dir, indexName)) // it is not there at first
			check(b)
		}
	})
	b.Run("with it", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			check(b)
		}
	})
	b.Run("floor", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			if files, err := sessionFiles(dir); err != nil || len(files) != 5000 {
				b.Fatal(len(files), err)
			}
		}
	})
}
