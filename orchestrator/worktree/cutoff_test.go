package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a git leaves that was killed while it brought an agent's folder forward is
// no reason to stop; what the agent has in the way is.
func TestUpdateAfterAKilledOne(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		leave func(f *fixture, dir string)
		mine  bool
	}{
		"a lock":          {func(f *fixture, dir string) { f.write(f.gitDir(dir), "index.lock", "") }, false},
		"a lock of a ref": {func(f *fixture, dir string) { f.write(f.gitDir(dir), "HEAD.lock", "") }, false},
		"whole files": {func(f *fixture, dir string) {
			f.write(dir, "a.txt", "ann's, which is longer\n")
			f.write(dir, "new.txt", "new\n")
		}, false},
		"a torn file":    {func(f *fixture, dir string) { f.write(dir, "a.txt", "ann's") }, false},
		"a file is gone": {func(_ *fixture, dir string) { _ = os.Remove(filepath.Join(dir, "a.txt")) }, false},
		"the agent's own": {func(f *fixture, dir string) {
			f.write(dir, "a.txt", "bob's\n")
			f.write(dir, "new.txt", "new\n")
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			into := f.integration()
			ann, bob := f.agent("ann"), f.agent("bob")
			f.write(ann.Path, "new.txt", "new\n")
			f.work(ann, "a.txt", "ann's, which is longer\n")
			if _, err := f.m.Merge(within(t), into, ann.Branch, "ann"); err != nil {
				t.Fatal(err)
			}
			test.leave(f, bob.Path)
			_, err := f.m.Update(within(t), bob, into)
			var over *OverwriteError
			switch {
			case test.mine && !errors.As(err, &over):
				t.Errorf("Update: %v", err)
			case test.mine && f.read(bob.Path, "a.txt") != "bob's\n":
				t.Error("what the agent had is gone")
			case !test.mine && err != nil:
				t.Errorf("Update: %v", err)
			case !test.mine:
				f.wantClean(bob.Path)
			}
		})
	}
}

// A lock in the person's own worktree is never taken away.
func TestALockOfThePersonStays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ann := f.agent("ann")
	f.work(ann, "a.txt", "ann\n")
	if _, err := f.m.Merge(within(t), into, ann.Branch, "ann"); err != nil {
		t.Fatal(err)
	}
	f.write(f.dir, ".git/index.lock", "")
	if _, err := f.m.Merge(within(t), "main", into, "merge"); err == nil || !strings.Contains(err.Error(), "index.lock") {
		t.Errorf("Merge: %v", err)
	}
	if _, err := os.Stat(filepath.Join(f.dir, ".git", "index.lock")); err != nil {
		t.Error(err)
	}
}

// The tree of a checkpoint is committed where the agent was when it was taken:
// on top of what the agent did since, it would undo that.
func TestCommitWhereTheAgentWas(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ann, bob := f.agent("ann"), f.agent("bob")
	f.write(bob.Path, "bob.txt", "bob\n")
	req := CommitRequest{Tree: f.snapshot(bob.Path), Message: "bob's task", On: Basis{Head: f.head()}}
	f.git(bob.Path, "add", "-A")
	f.git(bob.Path, "commit", "-qm", "wip")
	f.work(ann, "ann.txt", "ann\n")
	if _, err := f.m.Merge(within(t), into, ann.Branch, "ann"); err != nil {
		t.Fatal(err)
	}
	f.git(bob.Path, "merge", "-q", "-m", "merge", into) // bob was told to bring it in
	before := f.git(bob.Path, "rev-parse", "HEAD")
	oid, err := f.m.Commit(within(t), bob, req)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.git(bob.Path, "rev-parse", "HEAD"); got != before {
		t.Error("the agent's branch has moved")
	}
	res, err := f.m.Land(within(t), Landing{Into: into, From: oid, Message: "bob"})
	if err != nil || len(res.Conflicts) > 0 {
		t.Fatalf("Land = %+v, %v", res, err)
	}
	if got := f.git(f.dir, "ls-tree", "--name-only", into); !strings.Contains(got, "ann.txt") || !strings.Contains(got, "bob.txt") {
		t.Errorf("%s has %q", into, got)
	}
	if res, err := f.m.Update(within(t), bob, into); err != nil || len(res.Conflicts) > 0 {
		t.Errorf("Update = %+v, %v", res, err)
	}
}

// A call that was cut off after the branch had moved finds its commit, and brings
// the index in line.
func TestCommitAgainAfterAKill(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	f.write(wt.Path, "a.txt", "changed\n")
	req := CommitRequest{Tree: f.snapshot(wt.Path), Message: "task", On: Basis{Head: f.head()}}
	first, err := f.m.Commit(within(t), wt, req)
	if err != nil {
		t.Fatal(err)
	}
	f.git(wt.Path, "read-tree", f.head())
	again, err := f.m.Commit(within(t), wt, req)
	if err != nil || again != first {
		t.Errorf("Commit = %s, %v; want %s", again, err, first)
	}
	f.wantClean(wt.Path)
}

// gitDir is the git folder of a worktree.
func (f *fixture) gitDir(dir string) string { return f.git(dir, "rev-parse", "--absolute-git-dir") }
