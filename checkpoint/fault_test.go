package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
)

const (
	faultEnv  = "CHECKPOINT_TEST_FAULT"  // the point at which the child kills itself
	changeEnv = "CHECKPOINT_TEST_CHANGE" // what it does
	dirEnv    = "CHECKPOINT_TEST_DIR"
)

// A fault is a point of a restore, and how it must look after a crash there:
// the state before, the one after, or either.
type fault struct {
	point string
	at    int32 // which time it is reached
	after string
}

// faults are the boundaries between all that a restore does, in their order.
var faults = []fault{
	{"planned", 1, "old"},
	{"goal held", 1, "old"},
	{"journal written", 1, "old"},
	{"present saved", 1, "new"},
	{"looked", 1, "new"}, // at the first file to be deleted
	{"taken away", 1, "new"},
	{"file deleted", 1, "new"},
	{"file deleted", 13, "new"}, // all of them
	{"file written", 1, "new"},
	{"file written", 10, "new"},
	{"files written", 1, "new"},
	{"looked", 14, "new"}, // at the first to be replaced
	{"exchanged", 1, "new"},
	{"exchanged", 12, "new"},
	{"file in place", 1, "new"},
	{"file in place", 20, "new"},
	{"carried out", 1, "new"},
	{"result seen", 1, "new"},
	{"result saved", 1, "new"},
	{"journal dropped", 1, "new"},
}

// faultChild makes a change of the worktree and kills itself on the way.
func faultChild() bool {
	dir, point := os.Getenv(dirEnv), ""
	if dir == "" {
		return false
	}
	var at, seen int32
	if _, err := fmt.Sscanf(os.Getenv(faultEnv), "%d %q", &at, &point); err != nil {
		fmt.Println("error", err)
		return true
	}
	ctx := context.Background()
	s, err := Open(ctx, Options{Worktree: dir, Ref: "refs/muntin/run/agent", reached: func(reached string) {
		if reached == "looked" && os.Getenv(changeEnv) == "foreign" {
			_ = os.WriteFile(filepath.Join(dir, "f"), []byte("foreign"), 0o600)
		}
		if reached == point && atomic.AddInt32(&seen, 1) == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	if err == nil {
		err = faultChange(ctx, s, os.Getenv(changeEnv))
	}
	fmt.Println("not killed:", err)
	return true
}

func faultChange(ctx context.Context, s *Store, change string) error {
	if change == "undo" {
		_, err := s.Undo(ctx)
		return err
	}
	c, err := s.Find(ctx, "#1")
	if err != nil {
		return err
	}
	switch change {
	case "whole", "foreign":
		_, err = s.Restore(ctx, c)
	case "paths":
		_, err = s.Restore(ctx, c, "both", "swap", "only-a", "only-b")
	case "revert":
		if c, err = s.Find(ctx, "#2"); err == nil {
			_, err = s.RevertTurn(ctx, c, RevertOptions{})
		}
	}
	return err
}

// killAt runs a change that kills itself at a point.
func killAt(t *testing.T, r *repo, change string, f fault) {
	t.Helper()
	exe, err := os.Executable()
	must(r, err)
	cmd := exec.Command(exe)
	cmd.Env = append(gitEnv(), dirEnv+"="+r.dir, changeEnv+"="+change, fmt.Sprintf("%s=%d %q", faultEnv, f.at, f.point))
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed at %q: %v, %s", f.point, err, out)
	}
}

// TestFaults kills a restore at each of its boundaries. What recovery makes of
// it is the old or the new state, whole, and an undo gives the old one again.
func TestFaults(t *testing.T) {
	t.Parallel()
	changes := []string{"whole"}
	if soak(0, 1) == 1 {
		changes = []string{"whole", "paths", "revert", "undo"}
	}
	for _, change := range changes {
		for _, f := range faults {
			t.Run(fmt.Sprintf("%s/%s %d", change, f.point, f.at), func(t *testing.T) {
				t.Parallel()
				testFault(t, change, f)
			})
		}
	}
}

func testFault(t *testing.T, change string, f fault) {
	t.Helper()
	r, s, first, old := killRepo(t)
	undoOf := old.Tree
	if change == "undo" { // from a state like the first one back to the second
		r.restore(s, first)
		r.restore(s, old)
		undoOf = old.Tree
	}
	killAt(t, r, change, f)
	s, now := r.afterKill(first)
	want := map[string]string{"old": old.Tree, "new": first.Tree}[f.after]
	if now.Tree != want {
		t.Errorf("the worktree is not in the %s state", f.after)
	}
	if f.after == "new" {
		if rep, err := s.Undo(t.Context()); err != nil || rep.Now.Tree != undoOf {
			t.Errorf("undo: %v, tree %s, want %s", err, rep.Now.Tree, undoOf)
		}
		if rep, err := s.Redo(t.Context()); err != nil || rep.Now.Tree != first.Tree {
			t.Errorf("redo: %v, tree %s, want %s", err, rep.Now.Tree, first.Tree)
		}
	}
	if rep, err := s.Verify(t.Context(), true); err != nil || !rep.OK() {
		t.Errorf("%+v, %v", rep, err)
	}
	if r.read("x.tmp") != "ignored\n" {
		t.Error("an ignored file was changed")
	}
}

// TestFaultsOfRecovery kills the recovery as well, at the boundaries that it has.
func TestFaultsOfRecovery(t *testing.T) {
	t.Parallel()
	for _, second := range []fault{
		{"taken away", 1, ""}, {"file written", 2, ""}, {"exchanged", 1, ""}, {"file in place", 3, ""}, {"result seen", 1, ""}, {"result saved", 1, ""},
	} {
		t.Run(second.point, func(t *testing.T) {
			t.Parallel()
			r, _, first, old := killRepo(t)
			killAt(t, r, "whole", fault{point: "taken away", at: 1})
			killAt(t, r, "whole", second)
			s, now := r.afterKill(first)
			if now.Tree != first.Tree {
				t.Error("the worktree is not in the new state")
			}
			if rep, err := s.Undo(t.Context()); err != nil || rep.Now.Tree != old.Tree {
				t.Errorf("undo: %v, tree %s, want %s", err, rep.Now.Tree, old.Tree)
			}
		})
	}
}

// TestFaultKeepsForeignWrite kills a restore between an exchange and the look
// at what came out of it, which another process had just written: it is not lost.
func TestFaultKeepsForeignWrite(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ old, point string }{
		"replaced": {"old", "exchanged"},
		"deleted":  {"", "taken away"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			if tt.old != "" {
				r.write("f", tt.old)
			}
			r.save(r.open(Options{}), Meta{})
			r.write("f", "now")
			killAt(t, r, "foreign", fault{point: tt.point, at: 1})
			if r.state("f") != tt.old {
				t.Fatalf("%q is there after the kill", r.state("f"))
			}
			var rep RestoreReport
			r.open(Options{Recovered: func(had RestoreReport) { rep = had }})
			if got := r.state("f"); got != "foreign" {
				t.Errorf("%q is there after recovery", got)
			}
			if got := paths(rep.Conflicts); len(got) != 1 || got[0] != "f" {
				t.Errorf("%+v", rep)
			}
		})
	}
}
