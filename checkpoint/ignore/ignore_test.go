package ignore

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		list, path string
		dir        bool
		want       Verdict
	}{
		{"*.o\n", "a/b.o", false, Ignored},
		{"*.o\n!keep.o\n", "a/keep.o", false, Included},
		{"build/\n", "build", false, Undecided},
		{"build/\n", "x/build", true, Ignored},
		{"/build\n", "x/build", true, Undecided},
		{"a/**/b\n", "a/b", false, Ignored},
		{"a/**/b\n", "a/x/y/b", false, Ignored},
		{"doc/*.txt\n", "doc/a/b.txt", false, Undecided},
		{"\\#x\n", "#x", false, Ignored},
		{"# x\n", "# x", false, Undecided},
		{"trail   \n", "trail", false, Ignored},
		{"trail\\ \n", "trail ", false, Ignored},
		{"[[:upper:]]x\n", "Ax", false, Ignored},
		{"[!a-z]x\n", "Ax", false, Ignored},
		{"\xef\xbb\xbfbom\n", "bom", false, Ignored},
		{"crlf\r\n", "crlf", false, Ignored},
	} {
		s := Root().Enter("", Parse([]byte(tt.list), false))
		if got := s.Match(tt.path, tt.dir); got != tt.want {
			t.Errorf("list %q, path %q (dir %v): got %d, want %d", tt.list, tt.path, tt.dir, got, tt.want)
		}
	}
}

func TestScopeOrder(t *testing.T) {
	t.Parallel()
	global := Parse([]byte("*.log\n"), false)
	exclude := Parse([]byte("!keep.log\n"), false)
	s := Root(global, exclude).Enter("", Parse([]byte("/top\n"), false)).Enter("sub", Parse([]byte("/keep.log\n"), false))
	if got := s.Match("sub/keep.log", false); got != Ignored {
		t.Errorf("the nearest list must win: got %d", got)
	}
	if got := s.Match("sub/x/keep.log", false); got != Included {
		t.Errorf("info/exclude must win over the global list: got %d", got)
	}
}

// TestAgreesWithGit compares random lists on random trees with `git check-ignore`.
func TestAgreesWithGit(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range 14 {
		checkTree(t, r, round%2 == 1)
	}
}

func checkTree(t *testing.T, r *rand.Rand, fold bool) {
	t.Helper()
	root := t.TempDir()
	git(t, root, nil, "init", "-q")
	if fold {
		git(t, root, nil, "config", "core.ignorecase", "true")
	}
	dirs, paths := randomTree(t, r, root)
	global, exclude := randomList(r), randomList(r)
	write(t, filepath.Join(root, "..", "global"), global)
	write(t, filepath.Join(root, ".git/info/exclude"), exclude)
	git(t, root, nil, "config", "core.excludesFile", filepath.Join(root, "..", "global"))
	lists := map[string][]byte{}
	for _, d := range dirs {
		if d == "" || r.IntN(3) == 0 {
			lists[d] = randomList(r)
			write(t, filepath.Join(root, d, ".gitignore"), lists[d])
		}
	}
	out := git(t, root, []byte(strings.Join(paths, "\x00")+"\x00"), "check-ignore", "--no-index", "-z", "-v", "-n", "--stdin")
	fields := strings.Split(string(out), "\x00")
	outside := Root(Parse(global, fold), Parse(exclude, fold))
	for i, p := range paths {
		source, line := fields[4*i], fields[4*i+2]
		want := source != "" && !strings.HasPrefix(line, "!")
		if got := walk(outside, lists, root, p, fold); got != want {
			t.Errorf("fold %v, path %q: git says %v by %q in %q, we say %v\nroot list %q", fold, p, want, line, source, got, lists[""])
		}
	}
}

// walk asks for each part of p from the top, as a scanner does.
func walk(s *Scope, lists map[string][]byte, root, p string, fold bool) bool {
	dir := ""
	for {
		if l, ok := lists[dir]; ok {
			s = s.Enter(dir, Parse(l, fold))
		}
		rest := strings.TrimPrefix(strings.TrimPrefix(p, dir), "/")
		name, _, more := strings.Cut(rest, "/")
		at := strings.TrimPrefix(dir+"/"+name, "/")
		info, err := os.Lstat(filepath.Join(root, at))
		if s.Match(at, err == nil && info.IsDir()) == Ignored {
			return true
		}
		if !more {
			return false
		}
		dir = at
	}
}

var names = []string{"a", "b", "A", "B", "ab", "foo", "Foo", "bar", "x.o", "X.O", "foo.txt", "a-b", "a b", "[x]", "*", "#h", "!n", "a\\b", "tail ", "é", "\xff", "foo.tar.gz"}

func randomTree(t *testing.T, r *rand.Rand, root string) (dirs, paths []string) {
	t.Helper()
	dirs = []string{""}
	for range 60 {
		d := dirs[r.IntN(len(dirs))]
		p := filepath.Join(d, names[r.IntN(len(names))])
		if _, err := os.Lstat(filepath.Join(root, p)); err == nil || strings.Count(p, "/") > 4 {
			continue
		}
		if r.IntN(2) == 0 {
			if err := os.Mkdir(filepath.Join(root, p), 0o755); err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, p)
		} else {
			write(t, filepath.Join(root, p), nil)
		}
		paths = append(paths, p)
	}
	return dirs, paths
}

var atoms = []string{"*", "**", "?", "/", "/", "/", "a", "b", "A", "foo", "Foo", "bar", ".o", ".txt", "[a-c]", "[!a]", "[^f]", "[[:alpha:]]", "[[:upper:]]",
	"[[:lower:][:digit:]]", "[]a]", "[a-]", "[[:bad:]]", "[a", "\\*", "\\[", "\\", "x", "-", " ", "\\ ", "é", "[\xc3]", "\xff", "[--0]", "[[:x]", "#", "!"}

func randomList(r *rand.Rand) []byte {
	var b bytes.Buffer
	for range r.IntN(7) {
		if r.IntN(4) == 0 {
			b.WriteByte('!')
		}
		if r.IntN(3) == 0 { // real names make real matches
			b.WriteString(names[r.IntN(len(names))])
		}
		for range r.IntN(6) {
			b.WriteString(atoms[r.IntN(len(atoms))])
		}
		b.WriteString([]string{"\n", "\n", "/\n", "\r\n", " \n"}[r.IntN(5)])
	}
	return b.Bytes()
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("*.o\n!x\n/a/**/b[[:alpha:]]/\n\\"), "a/b/c")
	f.Add([]byte("[!-\\]]\n[[:alpha:"), "x")
	f.Fuzz(func(t *testing.T, list []byte, path string) {
		if path == "" || len(path) > 60 || len(list) > 60 || strings.ContainsRune(path, 0) {
			return
		}
		for _, fold := range []bool{false, true} {
			Root(Parse(list, fold)).Enter("a", Parse(list, fold)).Match(path, false)
		}
	})
}

func git(t *testing.T, dir string, stdin []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); err != nil && code != 1 { // check-ignore: 1 is "none ignored"
		t.Fatalf("git %q: %v", args, err)
	}
	return out
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
