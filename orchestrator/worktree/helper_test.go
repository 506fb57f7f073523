package worktree

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/internal/gittest"
	"muntin/internal/state"
)

func TestMain(m *testing.M) {
	if arg := os.Getenv(removerEnv); arg != "" {
		if err := remover(context.Background(), arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// A fixture is a repository with a manager on it. Its paths hold spaces and
// letters outside ASCII, so that every test meets them.
type fixture struct {
	t    testing.TB
	dir  string // the main worktree
	base string // the temp folder of everything
	m    *Manager
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := emptyFixture(t)
	f.write(f.dir, "a.txt", "one\ntwo\nthree\n")
	f.write(f.dir, "dir/ü b.txt", "x\n")
	f.write(f.dir, ".gitignore", "*.log\nbuild/\n")
	f.git(f.dir, "add", "-A")
	f.git(f.dir, "commit", "-qm", "first")
	f.open()
	return f
}

// emptyFixture is a repository without a commit, and no manager yet.
func emptyFixture(t testing.TB) *fixture {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, base: base, dir: filepath.Join(base, "my répo ✓")}
	f.git(base, "init", "-q", "-b", "main", f.dir)
	return f
}

func (f *fixture) open() {
	f.t.Helper()
	repo, err := state.FindRepo(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	f.m, err = Open(f.t.Context(), Options{
		Repo: repo, Root: f.root(), Trash: filepath.Join(f.base, "state dir", "trash"),
		Env:    append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"),
		Rescue: f.rescue,
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) root() string { return filepath.Join(f.base, "state dir", "worktrees") }

func (f *fixture) path(agent string) string { return filepath.Join(f.root(), "r1", agent) }

// git runs git the way a person would, not through the package.
func (f *fixture) git(dir string, args ...string) string {
	f.t.Helper()
	out, err := f.tryGit(dir, nil, args...)
	if err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

func (f *fixture) tryGit(dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(f.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, append(gittest.Env(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// rescue commits the whole folder but what is ignored, as checkpoints do.
func (f *fixture) rescue(_ context.Context, path string) (string, error) {
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(f.t.TempDir(), "index")}
	for _, args := range [][]string{{"read-tree", "HEAD"}, {"add", "-A"}} {
		if out, err := f.tryGit(path, env, args...); err != nil {
			f.t.Log(out)
			return "", err
		}
	}
	tree, err := f.tryGit(path, env, "write-tree")
	if err != nil {
		return "", err
	}
	oid, err := f.tryGit(path, nil, "commit-tree", strings.TrimSpace(tree), "-m", "rescue")
	return strings.TrimSpace(oid), err
}

// snapshot is the tree of a folder's files, as a checkpoint would have it.
func (f *fixture) snapshot(path string) string {
	f.t.Helper()
	oid, err := f.rescue(f.t.Context(), path)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.git(path, "rev-parse", oid+"^{tree}")
}

func (f *fixture) write(dir, name, text string) {
	f.t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) read(dir, name string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

func (f *fixture) head() string {
	f.t.Helper()
	oid, unborn, err := f.m.Head(f.t.Context())
	if err != nil || unborn {
		f.t.Fatalf("Head: unborn %v, %v", unborn, err)
	}
	return oid
}

// agent adds a worktree for an agent of run r1.
func (f *fixture) agent(name string) Worktree {
	f.t.Helper()
	wt, err := f.m.Add(f.t.Context(), f.path(name), AgentBranch("r1", name), f.head())
	if err != nil {
		f.t.Fatal(err)
	}
	return wt
}

// work changes a file in the worktree and commits the snapshot of it.
func (f *fixture) work(wt Worktree, name, text string) string {
	f.t.Helper()
	f.write(wt.Path, name, text)
	oid, err := f.m.Commit(f.t.Context(), wt, CommitRequest{Tree: f.snapshot(wt.Path), Message: "work on " + name})
	if err != nil {
		f.t.Fatal(err)
	}
	return oid
}

func (f *fixture) integration() string {
	f.t.Helper()
	name := Integration("r1")
	if err := f.m.CreateBranch(f.t.Context(), name, f.head()); err != nil {
		f.t.Fatal(err)
	}
	return name
}

func (f *fixture) wantClean(dir string) {
	f.t.Helper()
	if out := f.git(dir, "status", "--porcelain"); out != "" {
		f.t.Errorf("status of %s:\n%s", dir, out)
	}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
