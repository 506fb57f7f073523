package checkpoint

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

const childEnv = "CHECKPOINT_TEST_WORKTREE"

// child is the process that the kill test kills: it saves and restores for ever.
func child([]string) bool {
	dir := os.Getenv(childEnv)
	if dir == "" {
		return false
	}
	ctx := context.Background()
	s, err := Open(ctx, Options{Worktree: dir, Ref: "refs/muntin/run/agent"})
	if err != nil {
		fmt.Println("error", err)
		return true
	}
	fmt.Println("ready")
	for i := 0; ; i++ {
		for _, spec := range []string{"#1", "#2"} {
			c, err := s.Find(ctx, spec)
			if err == nil {
				_, err = s.Restore(ctx, c)
			}
			if err == nil && i%2 == 0 {
				_, _, err = s.Save(ctx, Meta{Cause: CauseTurn, Turn: i})
			}
			if err != nil {
				fmt.Println("error", err)
				return true
			}
		}
	}
}

// TestKill kills a process in the middle of saves and restores. After that,
// the worktree must be in one of the two states, and the repository whole.
func TestKill(t *testing.T) {
	t.Parallel()
	kills := steps(t, 8)
	r := newRepo(t)
	r.write("keep", "same in both\n")
	r.write(".gitignore", "*.tmp\n")
	for i := range 12 {
		r.write("only-a/"+strconv.Itoa(i), "a\n")
		r.write("both/"+strconv.Itoa(i), "a\n")
	}
	r.write("swap", "file\n")
	r.write("x.tmp", "ignored\n")
	s := r.open(Options{})
	a, _ := r.save(s, Meta{})
	r.remove("only-a")
	r.remove("swap")
	for i := range 12 {
		r.write("only-b/"+strconv.Itoa(i), "b\n")
		r.write("both/"+strconv.Itoa(i), "b\n")
		r.write("swap/"+strconv.Itoa(i), "b\n")
	}
	b, _ := r.save(s, Meta{})
	for range kills {
		killChild(t, r)
		s := r.open(Options{}) // recovers
		if s.interrupted() {
			t.Fatal("a journal is left after recovery")
		}
		now := r.check(s)
		if now.Tree != a.Tree && now.Tree != b.Tree {
			diff, _ := r.try(nil, "diff-tree", "-r", a.Tree, now.Tree)
			t.Fatalf("the worktree is in neither state; against the first:\n%s", diff)
		}
		if out := r.git("status", "--porcelain", "--ignored", "-uall"); strings.Contains(out, tempPrefix) {
			t.Fatalf("temporary files are left:\n%s", out)
		}
		all, err := s.List(t.Context())
		if err != nil || all[len(all)-1].Commit != a.Commit {
			t.Fatalf("the chain is broken: %v", err)
		}
	}
	r.git("fsck", "--strict", "--no-dangling")
	if r.read("x.tmp") != "ignored\n" {
		t.Error("an ignored file was changed")
	}
}

func killChild(t *testing.T, r *repo) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(gitEnv(), childEnv+"="+r.dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("child: %q", lines.Text())
	}
	kill := time.AfterFunc(time.Duration(rand.Int64N(int64(120*time.Millisecond))), func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	if lines.Scan() {
		t.Errorf("child: %q", lines.Text())
	}
	_ = cmd.Wait() // killed
}
