package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/internal/gittest"
)

func TestFindRepo(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	main, linked, bare := filepath.Join(top, "proj"), filepath.Join(top, "linked"), filepath.Join(top, "lib.git")
	made := gittest.Init(t, main)
	made.Commit("start")
	made.Git("worktree", "add", "-q", linked)
	made.Git("clone", "-q", "--bare", main, bare)
	gittest.At(t, bare).Git("worktree", "add", "-q", filepath.Join(top, "of-bare"))
	sub := filepath.Join(linked, "a", "b")
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}

	repo, err := FindRepo(main)
	if err != nil || repo.Root != main || repo.Main != main || repo.Name() != "proj" {
		t.Errorf("main: %+v, %v", repo, err)
	}
	other, err := FindRepo(sub)
	if err != nil || other.Root != linked || other.Main != main || other.Name() != "proj" || other.Key() != repo.Key() {
		t.Errorf("linked: %+v, %v", other, err)
	}
	of, err := FindRepo(filepath.Join(top, "of-bare"))
	if err != nil || of.Main != bare || of.Name() != "lib" || of.Key() == repo.Key() {
		t.Errorf("worktree of a bare repository: %+v, %v", of, err)
	}
	if _, err := FindRepo(top); !errors.Is(err, ErrNoRepo) {
		t.Errorf("outside: %v", err)
	}
	if err := os.WriteFile(filepath.Join(top, ".git"), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := FindRepo(top); err == nil || errors.Is(err, ErrNoRepo) {
		t.Errorf("a broken .git file: %v", err)
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	env := map[string]string{"HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/user/1"}
	l, err := NewLayout(func(k string) string { return env[k] })
	if err != nil || l.State != "/home/u/.local/state/muntin" || l.Runtime != "/run/user/1/muntin" || l.Models() != "/home/u/.config/muntin/models.json" {
		t.Errorf("%+v, %v", l, err)
	}
	repo := l.Repo(Repo{Root: "/src/proj", Main: "/src/proj", CommonDir: "/src/proj/.git"})
	agent := repo.Run("demo").Agent("ada")
	if !strings.HasPrefix(agent.Events(), repo.Path+"/runs/demo/agents/ada/") || !strings.HasSuffix(agent.Worktree, "/worktrees/demo/ada") {
		t.Errorf("%+v", agent)
	}
	if agent.Socket == repo.Run("other").Agent("ada").Socket || len(agent.Socket) > MaxSocketPath {
		t.Errorf("socket %s", agent.Socket)
	}
	if _, err := NewLayout(func(string) string { return "" }); err == nil {
		t.Error("no HOME was taken")
	}
	if l, err := NewLayout(func(k string) string { return map[string]string{"XDG_STATE_HOME": "/s"}[k] }); err != nil || l.State != "/s/muntin" || l.Runtime == "" || l.Config != "" {
		t.Errorf("%+v, %v", l, err)
	}
}
