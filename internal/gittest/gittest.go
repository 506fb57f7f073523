// Package gittest builds real git repositories for tests. git runs as a person
// would run it, but for the machine's own configuration, which never counts.
package gittest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Repo is a worktree of a git repository. Its methods fail the test when git
// says no.
type Repo struct {
	Dir string // symbolic links resolved
	t   testing.TB
}

// New makes an empty repository, on branch main, in a temp folder.
func New(t testing.TB) *Repo {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Init(t, filepath.Join(base, "repo"))
}

// Init makes an empty repository, on branch main, in dir.
func Init(t testing.TB, dir string) *Repo {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := At(t, dir)
	r.Git("init", "-q", "-b", "main")
	return r
}

// At is a repository, or a worktree of one, that is there already.
func At(t testing.TB, dir string) *Repo { return &Repo{Dir: dir, t: t} }

// Env is the environment of git in tests.
func Env() []string {
	return append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_ALLOW_PROTOCOL=file",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org",
		"GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org")
}

// Git runs git in the worktree and returns what it prints, without the last
// line feed.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	out, err := r.Try(nil, args...)
	if err != nil {
		r.t.Fatalf("git %q in %s: %v", args, r.Dir, err)
	}
	return out
}

// Try is Git for calls that may fail. env is added to Env.
func (r *Repo) Try(env []string, args ...string) (string, error) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.Dir
	cmd.Env = append(Env(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && stderr.Len() > 0 {
		r.t.Logf("git %q: %s", args, stderr.String())
	}
	return strings.TrimRight(string(out), "\n"), err
}

// Path is where a file of the worktree is.
func (r *Repo) Path(name string) string { return filepath.Join(r.Dir, name) }

// Write writes a file of the worktree, and the folders above it.
func (r *Repo) Write(name, content string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.Path(name)), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.Path(name), []byte(content), 0o644); err != nil { //nolint:gosec // as an editor would
		r.t.Fatal(err)
	}
}

// Read reads a file of the worktree.
func (r *Repo) Read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(r.Path(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// Commit commits everything there is, even if that is nothing, and returns the
// commit.
func (r *Repo) Commit(message string) string {
	r.t.Helper()
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", message)
	return r.Git("rev-parse", "HEAD")
}
