package resource

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"muntin/agent/llm"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, root string, files []File) string {
	t.Helper()
	var all []string
	for _, f := range files {
		rel, err := filepath.Rel(root, f.Path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rel+"="+f.Text)
	}
	return strings.Join(all, " ")
}

func TestContextFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "AGENTS.md"), "outside")
	write(t, filepath.Join(root, "home", "CLAUDE.md"), "home")
	write(t, filepath.Join(root, "home", "repo", ".git", "HEAD"), "")
	write(t, filepath.Join(root, "home", "repo", "AGENTS.md"), "repo")
	write(t, filepath.Join(root, "home", "repo", "CLAUDE.md"), "not this one")
	write(t, filepath.Join(root, "home", "repo", "a", "b", "CLAUDE.md"), "\uFEFFb")
	write(t, filepath.Join(root, "home", "tree", ".git"), "gitdir: elsewhere") // a linked worktree
	write(t, filepath.Join(root, "home", "plain", "x", "AGENTS.md"), "x")
	for _, c := range []struct{ dir, want string }{
		{"home/repo/a/b", "home/repo/AGENTS.md=repo home/repo/a/b/CLAUDE.md=b"},
		{"home/repo/a", "home/repo/AGENTS.md=repo"},
		{"home/tree", ""},
		{"home/plain/x", "home/CLAUDE.md=home home/plain/x/AGENTS.md=x"},
		{"", "AGENTS.md=outside"},
	} {
		files, err := ContextFiles(filepath.Join(root, c.dir), filepath.Join(root, "home"))
		if err != nil || names(t, root, files) != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.dir, names(t, root, files), err, c.want)
		}
	}
}

func TestContextFilesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "AGENTS.md"), strings.Repeat("0123456789\n", 10000))
	files, err := ContextFiles(dir, "")
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if f := files[0]; !f.Cut || len(f.Text) > MaxFile || !strings.HasSuffix(f.Text, "9\n") {
		t.Errorf("cut %v, %d bytes, end %q", f.Cut, len(f.Text), f.Text[len(f.Text)-5:])
	}
	write(t, filepath.Join(dir, "AGENTS.md"), "x"+strings.Repeat("é", MaxFile))
	files, err = ContextFiles(dir, "")
	if err != nil || !utf8.ValidString(files[0].Text) || strings.Contains(files[0].Text, "\uFFFD") || !files[0].Cut {
		t.Errorf("%v, cut %v", err, files[0].Cut)
	}
}

func TestContextFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".git", "HEAD"), "")
	write(t, filepath.Join(dir, "AGENTS.md"), "outer")
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(sub, "AGENTS.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := ContextFiles(sub, "")
	if err == nil || !strings.Contains(err.Error(), "AGENTS.md: it is not a regular file") {
		t.Errorf("got %v", err)
	}
	if got := names(t, dir, files); got != "AGENTS.md=outer" {
		t.Errorf("got %q", got)
	}
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	p := Prompt{
		Dir: "/p", Date: time.Date(2026, 3, 4, 23, 0, 0, 0, time.UTC),
		Tools:  []llm.Tool{{Name: "read"}, {Name: "bash"}},
		Files:  []File{{Path: "/p/AGENTS.md", Text: "be brief\n"}, {Path: "/p/x/AGENTS.md", Text: "y", Cut: true}},
		Append: "one more thing",
	}
	got := p.Text()
	for _, want := range []string{
		"Working folder: /p\nDate: 2026-03-04\n", "Tools: read, bash\n", "Run the project's own checks",
		"<project_instructions path=\"/p/AGENTS.md\">\nbe brief\n</project_instructions>", "[The file is longer; these are its first 32 KiB.]",
		"\none more thing\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "use edit") || strings.Index(got, "be brief") > strings.Index(got, "\ny\n") {
		t.Errorf("rules of tools that are not there, or the wrong order:\n%s", got)
	}
}
