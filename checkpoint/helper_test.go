package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

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
	home, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		panic(err)
	}
	if err := errors.Join(os.Setenv("XDG_STATE_HOME", filepath.Join(home, "state")), os.Setenv("HOME", home)); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(home)
		os.Exit(code)
	}))
}

// A repo is a git repository for one test.
type repo struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) *repo {
	t.Helper()
	return &repo{t: t, dir: gittest.New(t).Dir}
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
	index, err := os.ReadFile(r.git("rev-parse", "--path-format=absolute", "--git-path", "index"))
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
