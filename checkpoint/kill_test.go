package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	childEnv = "CHECKPOINT_TEST_WORKTREE"
	modeEnv  = "CHECKPOINT_TEST_CHILD"
)

// child is the process that the kill tests kill: it saves and restores for ever.
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
	step := childWhole
	if os.Getenv(modeEnv) == "steps" {
		step = childSteps
	}
	for i := 0; ; i++ {
		if err := step(ctx, s, i); err != nil {
			fmt.Println("error", err)
			return true
		}
		if i == 0 {
			fmt.Println("begun")
		}
	}
}

// childWhole goes back and forth between two checkpoints.
func childWhole(ctx context.Context, s *Store, i int) error {
	for _, spec := range []string{"#1", "#2"} {
		c, err := s.Find(ctx, spec)
		if err == nil {
			_, err = s.Restore(ctx, c)
		}
		if err == nil && i%2 == 0 {
			_, _, err = s.Save(ctx, Meta{Cause: CauseTurn, Turn: i})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// childSteps changes the worktree in all the ways there are.
func childSteps(ctx context.Context, s *Store, _ int) error {
	c, err := s.Find(ctx, "#"+strconv.Itoa(1+rand.IntN(2)))
	if err != nil {
		return err
	}
	switch rand.IntN(6) {
	case 0:
		_, err = s.Restore(ctx, c)
	case 1:
		_, err = s.Restore(ctx, c, "both", "swap")
	case 2:
		_, err = s.Restore(ctx, c, "only-a")
	case 3:
		if c, err = s.Find(ctx, "#2"); err == nil {
			_, err = s.RevertTurn(ctx, c, RevertOptions{})
		}
	case 4:
		_, err = s.Undo(ctx)
	case 5:
		_, err = s.Redo(ctx)
	}
	for _, fine := range []error{ErrNothingToUndo, ErrNothingToRedo, ErrConflict, ErrNoPath} {
		if errors.Is(err, fine) {
			return nil
		}
	}
	return err
}

// killRepo has two checkpoints that differ in all kinds of ways.
func killRepo(t *testing.T) (r *repo, s *Store, a, b Checkpoint) {
	t.Helper()
	r = newRepo(t)
	r.write("keep", "same in both\n")
	r.write(".gitignore", "*.tmp\n")
	for i := range 12 {
		r.write("only-a/"+strconv.Itoa(i), "a\n")
		r.write("both/"+strconv.Itoa(i), "a\n")
	}
	r.write("swap", "file\n")
	r.write("x.tmp", "ignored\n")
	s = r.open(Options{})
	a, _ = r.save(s, Meta{})
	r.remove("only-a")
	r.remove("swap")
	for i := range 12 {
		r.write("only-b/"+strconv.Itoa(i), "b\n")
		r.write("both/"+strconv.Itoa(i), "b\n")
		r.write("swap/"+strconv.Itoa(i), "b\n")
	}
	b, _ = r.save(s, Meta{})
	return r, s, a, b
}

// afterKill recovers and checks what must hold after any kill.
func (r *repo) afterKill(first Checkpoint) (*Store, Checkpoint) {
	r.t.Helper()
	s := r.open(Options{}) // recovers
	if s.interrupted() {
		r.t.Fatal("a journal is left after recovery")
	}
	latest, err := s.Find(r.t.Context(), "latest")
	if err != nil {
		r.t.Fatal(err)
	}
	now := r.check(s)
	if out := r.git("status", "--porcelain", "--ignored", "-uall"); strings.Contains(out, tempPrefix) {
		r.t.Fatalf("temporary files are left:\n%s", out)
	}
	all, err := s.List(r.t.Context())
	if err != nil || all[len(all)-1].Commit != first.Commit {
		r.t.Fatalf("the chain is broken: %v", err)
	}
	// Nobody but the killed process changed anything, so the newest checkpoint has the present.
	if now.Tree != latest.Tree {
		diff, _ := r.try(nil, "diff-tree", "-r", latest.Tree, now.Tree)
		r.t.Fatalf("the worktree is not as the newest checkpoint, #%d (%s: %s), has it:\n%s", latest.ID, latest.Cause, latest.Note, diff)
	}
	return s, now
}

// TestKill kills a process in the middle of saves and restores. After that,
// the worktree must be in one of the two states, and the repository whole.
func TestKill(t *testing.T) {
	t.Parallel()
	r, _, a, b := killRepo(t)
	for range steps(t, 5) {
		killChild(t, r, "whole")
		_, now := r.afterKill(a)
		if now.Tree != a.Tree && now.Tree != b.Tree {
			diff, _ := r.try(nil, "diff-tree", "-r", a.Tree, now.Tree)
			t.Fatalf("the worktree is in neither state; against the first:\n%s", diff)
		}
	}
	r.git("fsck", "--strict", "--no-dangling")
	if r.read("x.tmp") != "ignored\n" {
		t.Error("an ignored file was changed")
	}
}

// TestKillSteps does so with restores of some paths, reverts, undos and redos. Each
// kill is followed by an undo and a redo, which must give the state again.
func TestKillSteps(t *testing.T) {
	t.Parallel()
	r, _, a, _ := killRepo(t)
	index := r.git("ls-files", "-s")
	undone := 0
	for range steps(t, 4) {
		killChild(t, r, "steps")
		s, now := r.afterKill(a)
		_, err := s.Undo(t.Context())
		if errors.Is(err, ErrNothingToUndo) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if redo, err := s.Redo(t.Context()); err != nil || redo.Now.Tree != now.Tree {
			t.Fatalf("undo and redo after a kill: %v, tree %s, want %s", err, redo.Now.Tree, now.Tree)
		}
		undone++
	}
	t.Logf("%d kills left something to undo", undone)
	r.git("fsck", "--strict", "--no-dangling")
	if rep, err := r.open(Options{}).Verify(t.Context(), true); err != nil || !rep.OK() {
		t.Errorf("%+v, %v", rep, err)
	}
	if r.read("x.tmp") != "ignored\n" || r.git("ls-files", "-s") != index {
		t.Error("an ignored file or the index was changed")
	}
}

func killChild(t *testing.T, r *repo, mode string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(gitEnv(), childEnv+"="+r.dir, modeEnv+"="+mode)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"ready", "begun"} { // a slow machine must not be killed before it does anything
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("child: %q", lines.Text())
		}
	}
	kill := time.AfterFunc(time.Duration(rand.Int64N(int64(120*time.Millisecond))), func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	if lines.Scan() {
		t.Errorf("child: %q", lines.Text())
	}
	_ = cmd.Wait() // killed
}
