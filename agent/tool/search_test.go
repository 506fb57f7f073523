package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// tree makes files, a name ending in a slash for a folder.
func (e *env) tree(files map[string]string) {
	e.t.Helper()
	for name, content := range files {
		path := filepath.Join(e.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			e.t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				e.t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			e.t.Fatal(err)
		}
	}
}

func project() map[string]string {
	return map[string]string{
		".git/HEAD":            "ref: refs/heads/main\n",
		".git/info/exclude":    "private.txt\n",
		".gitignore":           "*.log\nbuild/\n!keep.log\n",
		"main.go":              "package main\n\nfunc main() {\n\tprintln(\"Hello\")\n}\n",
		"src/a.go":             "package src\n// hello there\nvar A = 1\n",
		"src/b.ts":             "const hello = 1\n",
		"src/c.tsx":            "nothing\n",
		"src/.gitignore":       "/gen\n",
		"src/gen/x.go":         "hello generated\n",
		"src/deep/gen/y.go":    "hello deep\n",
		".hidden/h.txt":        "hello hidden\n",
		"debug.log":            "hello log\n",
		"keep.log":             "hello kept\n",
		"build/out.txt":        "hello built\n",
		"private.txt":          "hello private\n",
		"bin.dat":              "hello\x00world\n",
		"-dash.txt":            "hello dash\n",
		"crlf.txt":             "one\r\nhello crlf\r\n",
		"empty/":               "",
		"name with space.txt":  "hello space\n",
		"src/deep/no-newline":  "hello end",
		"src/deep/inner/z.txt": "z\n",
	}
}

// engines runs a test with each way to search that there is here.
func engines(t *testing.T, run func(t *testing.T, e *env)) {
	t.Helper()
	for _, name := range []string{"own", "ripgrep"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			if name == "own" {
				e.set.ripgrep = ""
			} else if e.set.ripgrep == "" {
				t.Skip("rg is not installed")
			}
			run(t, e)
		})
	}
}

func TestGrep(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *env) {
		e.tree(project())
		for _, c := range []struct {
			name string
			args args
			want []string
		}{
			{"all", args{"pattern": "hello"}, []string{
				"-dash.txt:1: hello dash", ".hidden/h.txt:1: hello hidden", "crlf.txt:2: hello crlf", "keep.log:1: hello kept",
				"name with space.txt:1: hello space", "src/a.go:2: // hello there", "src/b.ts:1: const hello = 1",
				"src/deep/gen/y.go:1: hello deep", "src/deep/no-newline:1: hello end",
			}},
			{"case", args{"pattern": "HELLO", "ignoreCase": true, "path": "main.go"}, []string{`main.go:4: ` + "\t" + `println("Hello")`}},
			{"literal", args{"pattern": "main()", "literal": true}, []string{"main.go:3: func main() {"}},
			{"regexp", args{"pattern": `^func\s+\w+\(`}, []string{"main.go:3: func main() {"}},
			{"glob by name", args{"pattern": "hello", "glob": "*.ts"}, []string{"src/b.ts:1: const hello = 1"}},
			{"glob with braces", args{"pattern": "hello|nothing", "glob": "*.{ts,tsx}"}, []string{"src/b.ts:1: const hello = 1", "src/c.tsx:1: nothing"}},
			{"glob by path", args{"pattern": "hello", "glob": "src/*.go"}, []string{"src/a.go:2: // hello there"}},
			{"glob below a folder", args{"pattern": "hello", "glob": "**/deep/**"}, []string{
				"src/deep/gen/y.go:1: hello deep", "src/deep/no-newline:1: hello end",
			}},
			{"a folder", args{"pattern": "hello", "path": "src/deep"}, []string{"gen/y.go:1: hello deep", "no-newline:1: hello end"}},
			{"an ignored file asked for", args{"pattern": "hello", "path": "debug.log"}, []string{"debug.log:1: hello log"}},
			{"a dash", args{"pattern": "-dash|hello dash"}, []string{"-dash.txt:1: hello dash"}},
			{"context", args{"pattern": "func main", "context": 1}, []string{"main.go-2- ", "main.go:3: func main() {", "main.go-4- \tprintln(\"Hello\")"}},
			{"none", args{"pattern": "absent"}, []string{"No matches found"}},
		} {
			got := strings.Split(e.must("grep", c.args), "\n")
			if c.args["context"] == nil {
				slices.Sort(got) // folders and files sort in another way in each engine
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, c.want)
			}
		}
	})
}

func TestGrepLimits(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *env) {
		e.file("many.txt", strings.Repeat("match\n", 101))
		e.file("just.csv", strings.Repeat("match\n", 100))
		e.file("long.md", "match "+strings.Repeat("é", 600)+"\n")
		out := e.must("grep", args{"pattern": "match", "glob": "*.txt"})
		if n := strings.Count(out, "many.txt:"); n != 100 || !strings.HasSuffix(out, "\n\n[100 matches limit reached. Use limit=200 for more, or refine pattern]") {
			t.Errorf("%d matches, %s", n, out[len(out)-90:])
		}
		if out := e.must("grep", args{"pattern": "match", "glob": "*.csv"}); strings.Contains(out, "limit") {
			t.Errorf("a limit that was not passed is told: %s", out)
		}
		out = e.must("grep", args{"pattern": "match", "glob": "*.md"})
		if !strings.Contains(out, "... [truncated]\n\n[Some lines truncated to 500 chars. Use read tool to see full lines]") {
			t.Errorf("got %s", out)
		}
		if n := strings.Count(out, "é"); n != 494 {
			t.Errorf("%d characters are shown", n)
		}
		big := strings.Repeat("match "+strings.Repeat("x", 400)+"\n", 200)
		e.file("big.c", big)
		if out := e.must("grep", args{"pattern": "match", "glob": "*.c", "limit": 500}); len(out) > MaxBytes+200 || !strings.Contains(out, "[50.0KB limit reached]") {
			t.Errorf("%d bytes, ends %q", len(out), out[len(out)-60:])
		}
	})
}

func TestGrepContextGaps(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *env) {
		var b strings.Builder
		for i := 1; i <= 20; i++ {
			word := "line"
			if i == 5 || i == 6 || i == 15 {
				word = "hit"
			}
			fmt.Fprintf(&b, "%s %d\n", word, i)
		}
		e.file("f", b.String())
		want := "f-4- line 4\nf:5: hit 5\nf:6: hit 6\nf-7- line 7\n--\nf-14- line 14\nf:15: hit 15\nf-16- line 16"
		if got := e.must("grep", args{"pattern": "hit", "context": 1}); got != want {
			t.Errorf("got\n%s", got)
		}
	})
}

func TestGrepErrors(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *env) {
		e.fails("grep", args{"pattern": "a("}, "missing closing )", "set literal")
		e.fails("grep", args{"pattern": ""}, "empty")
		e.fails("grep", args{"pattern": "a\nb"}, "line break")
		e.fails("grep", args{"pattern": "a", "path": "missing"}, "no such file")
		e.fails("grep", args{"pattern": "a", "limit": 0}, "at least 1")
		e.fails("grep", args{"pattern": "a", "glob": strings.Repeat("{a,b}", 12)}, "more than 256")
		if err := syscall.Mkfifo(filepath.Join(e.dir, "pipe"), 0o644); err != nil {
			t.Fatal(err)
		}
		e.fails("grep", args{"pattern": "a", "path": "pipe"}, "named pipe")
		if out := e.must("grep", args{"pattern": "a"}); out != "No matches found" { // and does not wait for the pipe
			t.Errorf("got %s", out)
		}
	})
}

func TestFind(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.tree(project())
	for _, c := range []struct{ pattern, path, want string }{
		{"*.go", "", "main.go src/a.go src/deep/gen/y.go"},
		{"*.{ts,tsx}", "", "src/b.ts src/c.tsx"},
		{"src/*.go", "", "src/a.go"},
		{"./src/*.go", "", "src/a.go"},
		{"src/**/*.go", "", "src/a.go src/deep/gen/y.go"},
		{"**/gen/*", "", "src/deep/gen/y.go"},
		{"gen", "src", "deep/gen/"},
		{"deep", "", "src/deep/"},
		{"MAIN.go", "", ""},
		{"[mk]*", "", "keep.log main.go"},
		{"h.txt", "", ".hidden/h.txt"},
		{"private*", "", ""},
		{"*.log", "", "keep.log"},
	} {
		want := strings.ReplaceAll(c.want, " ", "\n")
		if want == "" {
			want = "No files found matching pattern"
		}
		if got := e.must("find", args{"pattern": c.pattern, "path": c.path}); got != want {
			t.Errorf("%s in %q: got %q, want %q", c.pattern, c.path, got, want)
		}
	}
	if got := e.must("find", args{"pattern": "*.GO"}); got != "No files found matching pattern" {
		t.Errorf("capitals in the pattern count: got %s", got)
	}
	got := e.must("find", args{"pattern": "*.go", "limit": 2})
	if got != "main.go\nsrc/a.go\n\n[2 results limit reached. Use limit=4 for more, or refine pattern]" {
		t.Errorf("got %s", got)
	}
	e.fails("find", args{"pattern": "*", "path": "main.go"}, "not a folder")
	e.fails("find", args{"pattern": "/"}, "empty")
}

func TestList(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.tree(map[string]string{"b": "", "A/": "", "c.txt": "", ".dot": "", "A/x": ""})
	if err := os.Symlink("A", filepath.Join(e.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(e.dir, "loose")); err != nil {
		t.Fatal(err)
	}
	if got := e.must("ls", args{}); got != ".dot\nA/\nb\nc.txt\nlink/\nloose" {
		t.Errorf("got %q", got)
	}
	if got := e.must("ls", args{"path": "A"}); got != "x" {
		t.Errorf("got %q", got)
	}
	if got := e.must("ls", args{"limit": 2}); got != ".dot\nA/\n\n[2 entries limit reached. Use limit=4 for more]" {
		t.Errorf("got %q", got)
	}
	if err := os.Mkdir(filepath.Join(e.dir, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := e.must("ls", args{"path": "none"}); got != "(empty directory)" {
		t.Errorf("got %q", got)
	}
	e.fails("ls", args{"path": "b"}, "not a folder")
	e.fails("ls", args{"path": "gone"}, "no such file")
}

func TestBraces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"a", "a"},
		{"{a,b}", "a b"},
		{"x{a,b}y{c,d}", "xayc xayd xbyc xbyd"},
		{"{a,{b,c}}", "a b c"},
		{"{a", "{a"},
		{`\{a,b}`, `\{a,b}`},
		{"[{]a,b}", "[{]a,b}"},
		{"{,a}b", "b ab"},
	} {
		got, err := braces(c.in)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, %v", c.in, got, err)
		}
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"*.go", "{a,b}/**", "[a", `\`, "{{{", "a{b,c}{d,e}", "!x", "#", " "} {
		f.Add(s, "a/b c.go")
	}
	f.Fuzz(func(_ *testing.T, pattern, path string) {
		if len(pattern) > 100 || len(path) > 100 {
			return
		}
		g, err := parseGlob(pattern, globOptions{negate: true})
		if err == nil {
			g.match(path, false)
		}
	})
}
