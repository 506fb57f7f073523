package worktree

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func (f *fixture) remove(req RemoveRequest) RemoveReport {
	f.t.Helper()
	rep, err := f.m.Remove(within(f.t), req)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := os.Lstat(req.Path); !os.IsNotExist(err) {
		f.t.Errorf("the folder is still there: %v", err)
	}
	return rep
}

func TestRemoveClean(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	tip := f.work(wt, "n.txt", "n\n")
	rep := f.remove(RemoveRequest{Path: wt.Path, Branch: wt.Branch})
	if rep.Losses != (Losses{Commits: 1}) || rep.State != EntryRemoved || rep.Head != tip || rep.Kept || rep.Rescue != "" {
		t.Errorf("report = %+v", rep)
	}
	if list, _ := f.m.List(within(t)); len(list) != 1 {
		t.Errorf("List = %+v", list)
	}
	if got, _ := f.m.Tip(within(t), wt.Branch); got != "" {
		t.Error("the branch is left")
	}
	f.git(f.dir, "reflog", "expire", "--expire=now", "--all")
	f.git(f.dir, "gc", "-q", "--prune=now")
	back, err := f.m.Restore(within(t), rep.ID)
	if err != nil || back != (Worktree{Path: wt.Path, Branch: wt.Branch, Head: tip}) {
		t.Fatalf("Restore = %+v, %v", back, err)
	}
	f.wantClean(wt.Path)
	if got := f.read(wt.Path, "n.txt"); got != "n\n" {
		t.Errorf("n.txt = %q", got)
	}
}

func TestRemoveUnusedLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	idle, used := f.agent("ann"), f.agent("bob")
	f.write(used.Path, "notes.txt", "worth keeping\n")
	f.remove(RemoveRequest{Path: idle.Path, Branch: idle.Branch, Unused: true})
	rep := f.remove(RemoveRequest{Path: used.Path, Branch: used.Branch, Unused: true})
	list, err := f.m.Entries()
	if err != nil || len(list) != 1 || list[0].ID != rep.ID || !list[0].Kept {
		t.Errorf("the trash holds %+v, %v: want the one with a file of its own", list, err)
	}
	if refs := f.git(f.dir, "for-each-ref", "--format=%(refname)", trashRefs); strings.Contains(refs, "/head") && strings.Count(refs, "/head") != 1 {
		t.Errorf("refs of the trash:\n%s", refs)
	}
}

// dirty puts one of each kind of change into a worktree.
func (f *fixture) dirty(wt Worktree) {
	f.write(wt.Path, "a.txt", "staged\n")
	f.git(wt.Path, "add", "a.txt")
	f.write(wt.Path, "a.txt", "modified\n")
	f.write(wt.Path, "notes ü.txt", "untracked\n")
	f.write(wt.Path, "sub/deep/x", "untracked\n")
	f.write(wt.Path, "secret.log", "ignored\n")
	f.write(wt.Path, "build/out", "ignored\n")
	if err := os.Chmod(filepath.Join(wt.Path, "build"), 0o555); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Symlink("a.txt", filepath.Join(wt.Path, "link")); err != nil {
		f.t.Fatal(err)
	}
}

func TestRemoveDirtyAndRestore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	f.dirty(wt)
	before := f.git(wt.Path, "status", "--porcelain", "--ignored")
	rep := f.remove(RemoveRequest{Path: wt.Path, Branch: wt.Branch})
	if rep.Losses != (Losses{Modified: 1, Untracked: 3, Ignored: 2}) || !rep.Kept || !isOID(rep.Rescue) || !isOID(rep.Index) {
		t.Errorf("report = %+v", rep)
	}
	if entries, err := f.m.Entries(); err != nil || len(entries) != 1 || entries[0].Rescue != rep.Rescue {
		t.Errorf("Entries = %+v, %v", entries, err)
	}
	if _, err := f.m.Restore(within(t), rep.ID); err != nil {
		t.Fatal(err)
	}
	if after := f.git(wt.Path, "status", "--porcelain", "--ignored"); after != before {
		t.Errorf("status after:\n%s\nbefore:\n%s", after, before)
	}
	if got := f.git(wt.Path, "show", ":a.txt") + f.read(wt.Path, "a.txt") + f.read(wt.Path, "build/out"); got != "stagedmodified\nignored\n" {
		t.Errorf("contents = %q", got)
	}
	if _, err := f.m.Restore(within(t), rep.ID); err == nil {
		t.Error("a second Restore: no error")
	}
}

func TestPurgeKeepsCommits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	f.dirty(wt)
	rep := f.remove(RemoveRequest{Path: wt.Path, Branch: wt.Branch})
	if err := f.m.Purge(within(t), rep.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(f.m.keptDir(rep.ID)); !os.IsNotExist(err) {
		t.Errorf("kept folder: %v", err)
	}
	f.git(f.dir, "reflog", "expire", "--expire=now", "--all")
	f.git(f.dir, "gc", "-q", "--prune=now")
	if _, err := f.m.Restore(within(t), rep.ID); err != nil {
		t.Fatal(err)
	}
	if got := f.git(wt.Path, "status", "--porcelain"); got != "MM a.txt\n?? link\n?? \"notes \\303\\274.txt\"\n?? sub/" {
		t.Errorf("status = %q", got)
	}
	if got := f.git(wt.Path, "show", ":a.txt") + f.read(wt.Path, "a.txt") + f.read(wt.Path, "sub/deep/x"); got != "stagedmodified\nuntracked\n" {
		t.Errorf("contents = %q", got)
	}
}

func TestRestoreWhenPlaceOrBranchIsTaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	rep := f.remove(RemoveRequest{Path: wt.Path})
	f.write(wt.Path, "in the way", "x")
	if _, err := f.m.Restore(within(t), rep.ID); !errors.Is(err, ErrExists) {
		t.Errorf("Restore = %v", err)
	}
	if err := os.RemoveAll(wt.Path); err != nil {
		t.Fatal(err)
	}
	f.git(f.dir, "branch", "-f", wt.Branch, f.git(f.dir, "commit-tree", "HEAD^{tree}", "-m", "moved"))
	back, err := f.m.Restore(within(t), rep.ID)
	if err != nil || back.Branch != "" || back.Head != rep.Head {
		t.Errorf("Restore = %+v, %v", back, err)
	}
	if _, err := f.m.Restore(within(t), "../x"); err == nil {
		t.Error("Restore of a path: no error")
	}
}

func TestRemoveRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	f.agent("bob")
	f.write(f.path("plain"), "file", "x")
	outside := filepath.Join(f.base, "outside")
	f.git(f.dir, "worktree", "add", "-q", "--detach", outside)
	link := filepath.Join(f.root(), "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	locked := f.agent("cyd")
	f.git(f.dir, "worktree", "lock", "--reason", "on a stick", locked.Path)
	for _, tt := range []struct {
		name string
		req  RemoveRequest
		want string
	}{
		{"main", RemoveRequest{Path: f.dir}, "main worktree"},
		{"above main", RemoveRequest{Path: f.base}, "main worktree"},
		{"outside", RemoveRequest{Path: outside}, "not inside"},
		{"outside by link", RemoveRequest{Path: link}, "not inside"},
		{"root", RemoveRequest{Path: f.root()}, "not inside"},
		{"dots", RemoveRequest{Path: f.root() + "/../../my répo ✓"}, "main worktree"},
		{"a run's folder", RemoveRequest{Path: filepath.Dir(wt.Path)}, "lies in it"},
		{"not a worktree", RemoveRequest{Path: f.path("plain")}, "not a linked worktree"},
		{"inside a worktree", RemoveRequest{Path: filepath.Join(wt.Path, "dir")}, "not a linked worktree"},
		{"relative", RemoveRequest{Path: "x"}, "not absolute"},
		{"locked", RemoveRequest{Path: locked.Path}, "on a stick"},
		{"foreign branch", RemoveRequest{Path: wt.Path, Branch: "main"}, "not one of muntin's"},
		{"branch in use", RemoveRequest{Path: wt.Path, Branch: AgentBranch("r1", "bob")}, "checked out in"},
	} {
		_, err := f.m.Remove(within(t), tt.req)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Remove = %v", tt.name, err)
		}
	}
	if _, err := f.m.Remove(within(t), RemoveRequest{Path: f.path("nobody")}); !errors.Is(err, ErrMissing) {
		t.Errorf("missing: Remove = %v", err)
	}
	if entries, err := f.m.Entries(); len(entries) != 0 || err != nil {
		t.Errorf("Entries = %+v, %v", entries, err)
	}
	f.wantClean(wt.Path)
	f.wantClean(f.dir)
}

func TestRemoveRefusesLiveFolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.Dir = filepath.Join(wt.Path, "dir")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = f.m.Remove(within(t), RemoveRequest{Path: wt.Path})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "process") {
		t.Errorf("Remove = %v", err)
	}
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	f.remove(RemoveRequest{Path: wt.Path})
}

func TestRemoveWithoutRescue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	f.write(wt.Path, "n.txt", "n\n")
	f.m.rescue = nil
	if _, err := f.m.Remove(within(t), RemoveRequest{Path: wt.Path}); !errors.Is(err, ErrRefused) {
		t.Errorf("Remove = %v", err)
	}
	if got := f.read(wt.Path, "n.txt"); got != "n\n" {
		t.Errorf("n.txt = %q", got)
	}
}

func TestRemoveWhenRescueFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	f.write(wt.Path, "n.txt", "n\n")
	good := f.m.rescue
	f.m.rescue = func(_ context.Context, _ string) (string, error) { return "", io.ErrShortWrite }
	if _, err := f.m.Remove(within(t), RemoveRequest{Path: wt.Path}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Remove = %v", err)
	}
	if entries, _ := f.m.Entries(); len(entries) != 1 || entries[0].State != EntryKeptOn {
		t.Errorf("Entries = %+v", entries)
	}
	f.m.rescue = good
	f.remove(RemoveRequest{Path: wt.Path})
}

// A crash leaves an entry in the state "removing", with the folder moved or not.
func TestResume(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	moved, stayed := f.agent("ann"), f.agent("bob")
	f.write(moved.Path, "n.txt", "n\n")
	var crashed []Entry
	for _, wt := range []Worktree{moved, stayed} {
		rep := f.remove(RemoveRequest{Path: wt.Path, Branch: wt.Branch})
		if _, err := f.m.Restore(within(t), rep.ID); err != nil {
			t.Fatal(err)
		}
		rep.State, rep.Kept = EntryRemoving, !rep.Clean()
		if err := f.m.save(rep.Entry); err != nil {
			t.Fatal(err)
		}
		crashed = append(crashed, rep.Entry)
	}
	if err := os.Rename(moved.Path, f.m.keptDir(crashed[0].ID)); err != nil {
		t.Fatal(err)
	}
	f.write(f.m.trash, "01ARZ3NDEKTSV4RRFFQ69G5FAV.json", "torn {")

	done, err := f.m.Resume(within(t))
	if err == nil || !strings.Contains(err.Error(), "01ARZ3NDEKTSV4RRFFQ69G5FAV") {
		t.Errorf("the torn entry is not reported: %v", err)
	}
	var states []string
	for _, e := range done {
		states = append(states, e.State)
	}
	if !slices.Equal(states, []string{EntryRemoved, EntryKeptOn}) {
		t.Errorf("states = %q", states)
	}
	f.wantClean(stayed.Path)
	if list, _ := f.m.List(within(t)); len(list) != 2 {
		t.Errorf("List = %+v", list)
	}
	if _, err := f.m.Restore(within(t), crashed[0].ID); err != nil {
		t.Fatal(err)
	}
	if got := f.read(moved.Path, "n.txt"); got != "n\n" {
		t.Errorf("n.txt = %q", got)
	}
	if got := f.read(f.m.trash, "01ARZ3NDEKTSV4RRFFQ69G5FAV.json"); got != "torn {" {
		t.Errorf("the torn entry was changed: %q", got)
	}
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ann := f.agent("ann")
	tip := f.work(ann, "n.txt", "n\n")
	if _, err := f.m.Merge(within(t), into, ann.Branch, "m"); err != nil {
		t.Fatal(err)
	}
	wt, err := f.m.Checkout(within(t), into)
	if err != nil || wt.Head != tip || f.read(wt.Path, "n.txt") != "n\n" {
		t.Fatalf("Checkout = %+v, %v", wt, err)
	}
	f.wantClean(wt.Path)
	f.write(wt.Path, "build/out", "made by the check\n")
	f.remove(RemoveRequest{Path: wt.Path})
	if entries, err := f.m.Entries(); len(entries) != 0 || err != nil {
		t.Errorf("Entries = %+v, %v", entries, err)
	}
	if refs := f.git(f.dir, "for-each-ref", "refs/muntin"); refs != "" {
		t.Errorf("refs left: %s", refs)
	}
	if _, err := f.m.Checkout(within(t), "--help"); err == nil {
		t.Error("Checkout of an option: no error")
	}

	// A commit made in the export is kept.
	if wt, err = f.m.Checkout(within(t), tip); err != nil {
		t.Fatal(err)
	}
	f.git(wt.Path, "commit", "-q", "--allow-empty", "-m", "made by the check")
	made := f.git(wt.Path, "rev-parse", "HEAD")
	rep := f.remove(RemoveRequest{Path: wt.Path})
	if rep.Commits != 1 || f.git(f.dir, "rev-parse", trashRefs+rep.ID+"/head") != made {
		t.Errorf("report = %+v", rep)
	}
}

func TestSubmodule(t *testing.T) {
	t.Parallel()
	lib := newFixture(t)
	f := newFixture(t)
	f.git(f.dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.dir, "lib")
	f.git(f.dir, "commit", "-qm", "submodule")
	wt := f.agent("ann")
	f.wantClean(wt.Path)
	f.work(wt, "n.txt", "n\n")
	if got := f.git(wt.Path, "ls-tree", "HEAD", "lib"); !strings.HasPrefix(got, "160000 commit") {
		t.Errorf("lib = %q", got)
	}
	rep := f.remove(RemoveRequest{Path: wt.Path, Branch: wt.Branch})
	if _, err := f.m.Restore(within(t), rep.ID); err != nil {
		t.Fatal(err)
	}
	f.git(wt.Path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
	if _, err := f.m.Remove(within(t), RemoveRequest{Path: wt.Path}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "submodule lib") {
		t.Errorf("Remove = %v", err)
	}
}
