package checkpoint

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"muntin/internal/gittest"
)

func TestMain(m *testing.M) {
	if child(os.Args) || saverChild() || busyChild() || faultChild() {
		return
	}
	// The machine's own configuration must not matter.
	for key, value := range map[string]string{"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_ATTR_NOSYSTEM": "1", "XDG_CONFIG_HOME": os.DevNull} {
		if err := os.Setenv(key, value); err != nil {
			panic(err)
		}
	}
	home, err := os.MkdirTemp(tempBase(), "checkpoint")
	if err != nil {
		panic(err)
	}
	if err := prepare(home); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(home)
		os.Exit(code)
	}))
}

// inMemory is where Linux has a file system in memory, roomy the space that the tests may need.
const (
	inMemory = "/dev/shm"
	roomy    = 4 << 30
)

// tempBase is where the tests' folders are. Hundreds of small repositories
// wait for nothing but the disk, so they are in memory where there is room; the
// long versions are on the disk, as worktrees are.
func tempBase() string {
	var st unix.Statfs_t
	if os.Getenv("MUNTIN_SOAK") != "" || os.Getenv("TMPDIR") != "" || unix.Statfs(inMemory, &st) != nil || st.Bavail*uint64(st.Bsize) < roomy {
		return ""
	}
	return inMemory
}

// prepare makes a home for the tests, with a repository to copy.
func prepare(home string) error {
	for _, dir := range []string{"tmp", "none/hooks", "none/info"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			return err
		}
	}
	err := errors.Join(os.Setenv("XDG_STATE_HOME", filepath.Join(home, "state")), os.Setenv("HOME", home),
		os.Setenv("TMPDIR", filepath.Join(home, "tmp")), os.Setenv("GIT_TEMPLATE_DIR", filepath.Join(home, "none")))
	if err != nil {
		return err
	}
	cmd := exec.Command("git", "init", "-q", "-b", "main", filepath.Join(home, "repo"))
	cmd.Env = gitEnv()
	return cmd.Run()
}

// A repo is a git repository for one test.
type repo struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) *repo {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &repo{t: t, dir: filepath.Join(base, "repo")}
	must(r, os.CopyFS(r.dir, os.DirFS(filepath.Join(os.Getenv("HOME"), "repo"))))
	return r
}

// gitEnv is the environment of git in tests.
func gitEnv() []string { return gittest.Env() }

func (r *repo) git(args ...string) string {
	r.t.Helper()
	return gittest.At(r.t, r.dir).Git(args...)
}

func (r *repo) try(env []string, args ...string) (string, error) {
	r.t.Helper()
	return gittest.At(r.t, r.dir).Try(env, args...)
}

func (r *repo) path(name string) string { return filepath.Join(r.dir, name) }

func (r *repo) write(name, content string) {
	r.t.Helper()
	gittest.At(r.t, r.dir).Write(name, content)
}

func (r *repo) read(name string) string {
	r.t.Helper()
	return gittest.At(r.t, r.dir).Read(name)
}

func (r *repo) remove(name string) {
	r.t.Helper()
	if err := os.RemoveAll(r.path(name)); err != nil {
		r.t.Fatal(err)
	}
}

// commit commits everything.
func (r *repo) commit() {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "c")
}

// oracle is the tree that git makes of the worktree with a copy of the index
// that has no stat data, so that git reads every file.
func (r *repo) oracle() string {
	r.t.Helper()
	temp := filepath.Join(r.t.TempDir(), "index")
	env := []string{"GIT_INDEX_FILE=" + temp}
	file := r.path(".git/index")
	if info, err := os.Lstat(r.path(".git")); err != nil || !info.IsDir() {
		file = r.git("rev-parse", "--path-format=absolute", "--git-path", "index")
	}
	index, err := os.ReadFile(file)
	if err == nil {
		if err := os.WriteFile(temp, index, 0o600); err != nil {
			r.t.Fatal(err)
		}
		// An index that is newer than nothing is racy everywhere: git trusts no entry.
		old := time.Unix(1, 0)
		if err := os.Chtimes(temp, old, old); err != nil {
			r.t.Fatal(err)
		}
	}
	if _, err := r.try(env, "-c", "core.hooksPath=/dev/null", "add", "-A", "--sparse"); err != nil {
		r.t.Fatalf("oracle: %v", err)
	}
	tree, err := r.try(env, "write-tree")
	if err != nil {
		r.t.Fatalf("oracle: %v", err)
	}
	return tree
}

func (r *repo) open(opts Options) *Store {
	r.t.Helper()
	if opts.Worktree == "" {
		opts.Worktree = r.dir
	}
	if opts.Ref == "" {
		opts.Ref = "refs/muntin/run/agent"
	}
	s, err := Open(r.t.Context(), opts)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *repo) save(s *Store, m Meta) (Checkpoint, Report) {
	r.t.Helper()
	c, rep, err := s.Save(r.t.Context(), m)
	if err != nil {
		r.t.Fatal(err)
	}
	return c, rep
}

// check saves a checkpoint and compares its tree with git's.
func (r *repo) check(s *Store) Checkpoint {
	r.t.Helper()
	c, _ := r.save(s, Meta{Cause: CauseTurn, Turn: 1})
	if want := r.oracle(); c.Tree != want {
		diff, _ := r.try(nil, "diff-tree", "-r", want, c.Tree)
		if keep := os.Getenv("CHECKPOINT_TEST_KEEP"); keep != "" {
			_ = os.CopyFS(keep, os.DirFS(r.dir))
		}
		r.t.Fatalf("tree differs from git's (git's first):\n%s", diff)
	}
	return c
}
