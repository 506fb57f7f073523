package tool

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestApplyChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		changes  []change
		want     string
		err      string
	}{
		{"one", "a\nb\nc\n", []change{{"b", "B"}}, "a\nB\nc\n", ""},
		{"several, in any order", "a\nb\nc\n", []change{{"c", "C"}, {"a", "A"}}, "A\nb\nC\n", ""},
		{"matched against the original", "a b\n", []change{{"a", "b"}, {"b", "a"}}, "b a\n", ""},
		{"delete", "a\nb\nc\n", []change{{"b\n", ""}}, "a\nc\n", ""},
		{"whole file", "a\n", []change{{"a\n", ""}}, "", ""},
		{"touching", "ab", []change{{"a", "1"}, {"b", "2"}}, "12", ""},
		{"bom stays", bom + "a\n", []change{{"a", "b"}}, bom + "b\n", ""},

		{"crlf stays", "a\r\nb\r\nc\r\n", []change{{"b", "x\ny"}}, "a\r\nx\r\ny\r\nc\r\n", ""},
		{"crlf across lines", "a\r\nb\r\nc\r\n", []change{{"a\nb", "a\nz"}}, "a\r\nz\r\nc\r\n", ""},
		{"crlf in the call", "a\nb\n", []change{{"a\r\nb", "x\r\ny"}}, "x\ny\n", ""},
		{"mixed ends, lf line", "a\nb\r\nc\n", []change{{"a", "1\n2"}}, "1\n2\nb\r\nc\n", ""},
		{"mixed ends, crlf line", "a\nb\r\nc\n", []change{{"b", "1\n2"}}, "a\n1\r\n2\r\nc\n", ""},
		{"lone cr", "a\rb\rc", []change{{"b", "1\n2"}}, "a\r1\r2\rc", ""},
		{"lone cr beside lf", "a\rb\nc\n", []change{{"a", "1\n2"}}, "1\n2\rb\nc\n", ""},
		{"last line without end", "a\r\nb", []change{{"b", "1\n2"}}, "a\r\n1\r\n2", ""},

		{"quotes", "say “hi” now\nother “q”\n", []change{{`say "hi"`, `say "yo"`}}, "say \"yo\" now\nother “q”\n", ""},
		{"dashes and spaces", "a – b\u00a0c\n", []change{{"a - b c", "x"}}, "x\n", ""},
		{"blanks at line ends", "a  \nb\t\nc \n", []change{{"a\nb\n", "x\n"}}, "x\nc \n", ""},
		{"compatibility forms", "ﬁne ①\n", []change{{"fine 1", "ok"}}, "ok\n", ""},
		{"composed", "caf\u0065\u0301\n", []change{{"caf\u00e9", "tea"}}, "tea\n", ""},
		{"plain view with crlf", "k\r\n“a”\r\nz\u00a0\r\n", []change{{`"a"`, "b\nc"}}, "k\r\nb\r\nc\r\nz\u00a0\r\n", ""},
		{"two in one plain line", "“a” “b” “c”\n", []change{{`"a"`, "1"}, {`"c"`, "3"}}, "1 \"b\" 3\n", ""},
		{"plain, joins lines", "“a”\nb\nc\n", []change{{"\"a\"\n", ""}}, "b\nc\n", ""},
		{"blank at the end of what is wanted", "foo bar\nfoo\n", []change{{"foo ", "baz "}}, "baz bar\nfoo\n", ""},
		{"indentation counts", "  a\n", []change{{"\ta", "b"}}, "", "not found"},

		{"empty", "a", []change{{"", "b"}}, "", "oldText must not be empty"},
		{"missing", "a\n", []change{{"b", "c"}}, "", "the text was not found"},
		{"missing, of several", "a\n", []change{{"a", "c"}, {"b", "c"}}, "", "edits[1]: the text was not found"},
		{"twice", "a\nb\na\n", []change{{"a", "c"}}, "", "found 2 occurrences of the text (at lines 1, 3)"},
		{"overlapping itself", "aaa", []change{{"aa", "b"}}, "", "found 2 occurrences"},
		{"twice but for quotes", "“a”\n\"a\"\n", []change{{`"a"`, "c"}}, "", "found 2 occurrences"},
		{"overlap", "abc", []change{{"bc", "1"}, {"ab", "2"}}, "", "edits[0] and edits[1] overlap"},
		{"same", "abc", []change{{"b", "b"}}, "", "no changes made"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := applyChanges(c.in, c.changes)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %q, error %v; want error %q", got, err, c.err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestEditShowsTheClosestRegion(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.file("f.go", "package f\n\nfunc one() {\n\treturn 1\n}\n\nfunc two() {\n\treturn 2\n}\n")
	e.fails("edit", args{"path": "f.go", "edits": []args{{"oldText": "func two() {\n    return 2\n}", "newText": "x"}}},
		"editing f.go", "The closest region is at lines 7-9:\n7: func two() {\n8: \treturn 2\n9: }")
	e.fails("edit", args{"path": "f.go", "edits": []args{{"oldText": "func two(a int) {", "newText": "x"}}}, "at lines 7-7:\n7: func two() {")
}

func TestEdit(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	path := e.file("f", "one\ntwo\nthree\n")
	if err := os.Chmod(path, 0o751); err != nil {
		t.Fatal(err)
	}
	res, err := e.try("edit", args{"path": "f", "edits": []args{{"oldText": "two", "newText": "2\n2b"}}})
	if err != nil || textOf(res) != "Successfully replaced 1 block(s) in f" {
		t.Fatalf("got %q, %v", textOf(res), err)
	}
	var d editDetails
	if err := json.Unmarshal(res.Details, &d); err != nil {
		t.Fatal(err)
	}
	if want := " 1 one\n-2 two\n+2 2\n+3 2b\n 4 three"; d.Diff != want || d.FirstLine != 2 {
		t.Errorf("got diff %q at %d, want %q", d.Diff, d.FirstLine, want)
	}
	if got := e.content("f"); got != "one\n2\n2b\nthree\n" {
		t.Errorf("got %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestEditMendsArguments(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]args{
		"a string":   {"edits": `[{"oldText":"a","newText":"b"}]`},
		"one object": {"edits": args{"oldText": "a", "newText": "b"}},
		"legacy":     {"oldText": "a", "newText": "b"},
	} {
		e := newEnv(t)
		e.file("f", "a\n")
		a["path"] = "f"
		e.must("edit", a)
		if got := e.content("f"); got != "b\n" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	e := newEnv(t)
	e.file("f", "a\n")
	e.fails("edit", args{"path": "f"}, "edits is empty")
	e.fails("edit", args{"path": "f", "edits": []args{}}, "edits is empty")
}

func TestEditRefusesAStaleFile(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.file("f", "one\ntwo\n")
	change := func(old, text string) args {
		return args{"path": "f", "edits": []args{{"oldText": old, "newText": text}}}
	}
	e.must("edit", change("one", "1")) // never read: the exact match is enough
	e.must("edit", change("two", "2")) // its own change is known
	e.file("f", "1\n2\nnew\n")
	e.fails("edit", change("1", "x"), "changed since you last read or wrote it")
	if got := e.content("f"); got != "1\n2\nnew\n" {
		t.Errorf("got %q", got)
	}
	e.must("read", args{"path": "f", "limit": 1})
	e.must("edit", change("1", "x"))
	e.must("write", args{"path": "f", "content": "w\n"})
	e.must("edit", change("w", "v"))
}

func TestEditRefuses(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if err := syscall.Mkfifo(filepath.Join(e.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.file("bin", "a\x00b")
	edits := []args{{"oldText": "a", "newText": "b"}}
	e.fails("edit", args{"path": "fifo", "edits": edits}, "editing fifo", "named pipe")
	e.fails("edit", args{"path": "bin", "edits": edits}, "binary")
	e.fails("edit", args{"path": "gone", "edits": edits}, "editing gone: no such file")
	e.fails("write", args{"path": "fifo", "content": ""}, "named pipe")
	e.fails("write", args{"path": ".", "content": ""}, "folder")
	e.fails("write", args{"path": "bin/x", "content": ""}, "writing bin/x")
	e.fails("write", args{"path": "x"}, "content is missing")
}

func TestWrite(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if got := e.must("write", args{"path": "a/b/c.txt", "content": "x\ny\n"}); got != "Successfully wrote 4B to a/b/c.txt" {
		t.Errorf("got %q", got)
	}
	if err := os.Chmod(filepath.Join(e.dir, "a/b/c.txt"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/b/c.txt", filepath.Join(e.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("new.txt", filepath.Join(e.dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	e.must("write", args{"path": "link", "content": "z"})
	e.must("write", args{"path": "dangling", "content": "d"})
	info, err := os.Lstat(filepath.Join(e.dir, "a/b/c.txt"))
	if err != nil || info.Mode().Perm() != 0o750 || e.content("a/b/c.txt") != "z" {
		t.Errorf("%v, %v, %q", info.Mode(), err, e.content("a/b/c.txt"))
	}
	if link, err := os.Readlink(filepath.Join(e.dir, "link")); err != nil || link != "a/b/c.txt" {
		t.Errorf("the link is now %q, %v", link, err)
	}
	if e.content("new.txt") != "d" {
		t.Errorf("got %q", e.content("new.txt"))
	}
	names, err := os.ReadDir(filepath.Join(e.dir, "a/b"))
	if err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// Many edits of one file at once, by two names of it: none is lost.
func TestEditsOfOneFileQueue(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const n = 16
	var b strings.Builder
	for i := range n {
		b.WriteString("<" + string(rune('a'+i)) + ">\n")
	}
	e.file("f", b.String())
	if err := os.Symlink("f", filepath.Join(e.dir, "g")); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			_, errs[i] = e.try("edit", args{"path": []string{"f", "g"}[i%2], "edits": []args{{"oldText": "<" + string(rune('a'+i)) + ">", "newText": "done"}}})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := e.content("f"); got != strings.Repeat("done\n", n) {
		t.Errorf("got %q", got)
	}
	if len(e.set.queue.files) != 0 {
		t.Errorf("%d places are left in the queue", len(e.set.queue.files))
	}
}

// A change must do what it says and nothing else: with one exact change, the
// result is the old content with that one piece replaced.
func FuzzApplyChanges(f *testing.F) {
	f.Add("a\r\nb\nc\r", "b", "x\ny")
	f.Add("“a”\n\"b\"\n", `"a"`, "z")
	f.Add("ﬁ\u00a0x  \n", "fi x\n", "")
	f.Add("\u0301a\n\n", "a", "\r\n")
	f.Add(bom+"x", "x", bom)
	f.Add("\xff\xfe\n", "\xff", "\n")
	f.Fuzz(func(t *testing.T, content, old, text string) {
		got, spans, err := applyChanges(content, []change{{old, text}})
		if err != nil {
			return
		}
		if got == content {
			t.Fatal("nothing changed, and no error")
		}
		if strings.Count(strings.TrimPrefix(content, bom), old) == 1 && !strings.ContainsAny(content+old+text, "\r") {
			body, marked := strings.CutPrefix(content, bom)
			want := strings.Replace(body, old, text, 1)
			if marked {
				want = bom + want
			}
			if got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		diff, first := diffOf(content, spans)
		if first < 1 || diff == "" {
			t.Fatalf("diff %q at %d", diff, first)
		}
		// Lines that no span touches keep their bytes.
		doc := newDoc(strings.TrimPrefix(content, bom))
		head := doc.orig[:doc.offset(doc.starts[doc.line(spans[0].start)])]
		if !strings.HasPrefix(strings.TrimPrefix(got, bom), head) {
			t.Fatalf("the beginning changed: %q → %q", head, got)
		}
		tail := doc.orig[doc.offset(spans[0].end):]
		if !strings.HasSuffix(got, tail) {
			t.Fatalf("the end changed: %q → %q", tail, got)
		}
	})
}

func FuzzTailOf(f *testing.F) {
	f.Add("a\nb\n", 3)
	f.Add("", 0)
	f.Add("\n\n\n", 2000)
	f.Fuzz(func(t *testing.T, piece string, times int) {
		text := strings.Repeat(piece, min(max(times, 0), 5000))
		if len(text) > 1<<20 {
			return
		}
		out, cut := tailOf(text)
		if len(out) > MaxBytes || countLines(out) > MaxLines || !strings.HasSuffix(strings.TrimSuffix(text, "\n"), out) {
			t.Fatalf("%d bytes, %d lines", len(out), countLines(out))
		}
		if !cut.Truncated && out != strings.TrimSuffix(text, "\n") {
			t.Fatal("cut, and does not say so")
		}
	})
}

func BenchmarkApplyChanges(b *testing.B) {
	content := numbered(1, 20000)
	for b.Loop() {
		if _, _, err := applyChanges(content, []change{{"line 15000\n", "x\n"}}); err != nil {
			b.Fatal(err)
		}
	}
}
