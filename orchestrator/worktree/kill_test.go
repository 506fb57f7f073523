package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muntin/internal/gittest"
	"muntin/internal/state"
)

// removerEnv makes the test binary a program that removes the worktree of ada:
// its value is the repository and the base folder, a line each.
const removerEnv = "MUNTIN_TEST_REMOVE"

// remover is that program.
func remover(ctx context.Context, arg string) error {
	dir, base, _ := strings.Cut(arg, "\n")
	repo, err := state.FindRepo(dir)
	if err != nil {
		return err
	}
	root := filepath.Join(base, "state dir", "worktrees")
	m, err := Open(ctx, Options{
		Repo: repo, Root: root, Trash: filepath.Join(base, "state dir", "trash"), Env: gittest.Env(),
		Rescue: func(ctx context.Context, path string) (string, error) {
			g := git{env: append(gittest.Env(), "GIT_INDEX_FILE="+filepath.Join(base, "index"))}
			if _, err := g.run(ctx, call{dir: path, args: []string{"add", "-A"}}); err != nil {
				return "", err
			}
			tree, err := g.run(ctx, call{dir: path, args: []string{"write-tree"}})
			if err != nil {
				return "", err
			}
			oid, err := g.run(ctx, call{dir: path, args: []string{"commit-tree", strings.TrimSpace(tree), "-m", "rescue"}})
			return strings.TrimSpace(oid), err
		},
	})
	if err != nil {
		return err
	}
	_, err = m.Remove(ctx, RemoveRequest{Path: filepath.Join(root, "r1", "ada"), Branch: AgentBranch("r1", "ada")})
	return err
}

// killer is a git that kills its caller at its Nth call.
const killer = `#!/bin/sh
n=$(($(cat "$KILL_COUNT") + 1))
echo $n > "$KILL_COUNT"
if [ $n -eq "$KILL_AT" ]; then kill -9 $PPID; exit 1; fi
exec "$REAL_GIT" "$@"
`

// TestRemovalThatIsKilled kills a removal at its calls of git: each time the
// worktree is there in full, or comes back in full.
func TestRemovalThatIsKilled(t *testing.T) {
	t.Parallel()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	step := 5
	if os.Getenv("MUNTIN_SOAK") != "" {
		step = 1
	}
	for at := 1; ; at += step {
		f := newFixture(t)
		wt := f.agent("ada")
		tip := f.work(wt, "n.txt", "committed\n")
		f.write(wt.Path, "a.txt", "staged\n")
		f.git(wt.Path, "add", "a.txt")
		f.write(wt.Path, "new.txt", "untracked\n")
		f.write(wt.Path, "x.log", "ignored\n")
		f.write(f.base, "bin/git", killer)
		f.write(f.base, "count", "0")
		if err := os.Chmod(filepath.Join(f.base, "bin", "git"), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(within(t), os.Args[0])
		cmd.Env = append(os.Environ(), removerEnv+"="+f.dir+"\n"+f.base, "REAL_GIT="+real, fmt.Sprint("KILL_AT=", at),
			"KILL_COUNT="+filepath.Join(f.base, "count"), "PATH="+filepath.Join(f.base, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState.ExitCode() >= 0 {
			t.Fatalf("at %d: %v\n%s", at, err, out)
		}
		killed := err != nil
		if _, err := f.m.Resume(within(t)); err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		if _, err := os.Lstat(wt.Path); errors.Is(err, os.ErrNotExist) {
			entries, err := f.m.Entries()
			if err != nil || len(entries) != 1 {
				t.Fatalf("at %d: %+v, %v", at, entries, err)
			}
			if _, err := f.m.Restore(within(t), entries[0].ID); err != nil {
				t.Fatalf("at %d: %v", at, err)
			}
		}
		for name, want := range map[string]string{"n.txt": "committed\n", "a.txt": "staged\n", "new.txt": "untracked\n", "x.log": "ignored\n"} {
			if got := f.read(wt.Path, name); got != want {
				t.Errorf("at %d: %s is %q", at, name, got)
			}
		}
		if head := f.git(wt.Path, "rev-parse", wt.Branch); head != tip {
			t.Errorf("at %d: the branch is at %s", at, head)
		}
		if got := f.git(wt.Path, "status", "--porcelain"); got != "M  a.txt\n?? new.txt" {
			t.Errorf("at %d: status\n%s", at, got)
		}
		if !killed {
			if at < 10 {
				t.Errorf("only %d calls of git", at)
			}
			return
		}
	}
}
