package worktree

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	start := f.head()
	same, err := f.m.Commit(within(t), wt, CommitRequest{Tree: f.snapshot(wt.Path), Message: "nothing"})
	if err != nil || same != start {
		t.Errorf("Commit of the same tree = %s, %v; want %s", same, err, start)
	}
	f.write(wt.Path, "new ü.txt", "new\n")
	f.write(wt.Path, "a.txt", "changed\n")
	tree := f.snapshot(wt.Path)
	f.write(wt.Path, "later.txt", "after the checkpoint\n")
	req := CommitRequest{Tree: tree, Message: "task t1\n\nMuntin-Task: t1\n\n", Author: Identity{"ann", "ann@muntin"}}
	oid, err := f.m.Commit(within(t), wt, req)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.git(wt.Path, "log", "-1", "--format=%H %T %P %an %cn %s|%(trailers:key=Muntin-Task,valueonly)"); got !=
		oid+" "+tree+" "+start+" ann muntin task t1|t1" {
		t.Errorf("commit = %s", got)
	}
	if got := f.git(wt.Path, "status", "--porcelain"); got != "?? later.txt" {
		t.Errorf("status = %q; want the later file only", got)
	}
}

func TestCommitConcludesMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ann, bob := f.agent("ann"), f.agent("bob")
	f.work(ann, "a.txt", "ann\n")
	f.work(bob, "a.txt", "bob\n")
	if _, err := f.m.Merge(within(t), into, ann.Branch, "ann"); err != nil {
		t.Fatal(err)
	}
	// Bob's agent merges and resolves, and leaves the commit to us.
	if out, err := f.tryGit(bob.Path, nil, "merge", into); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	oid := f.work(bob, "a.txt", "both\n")
	if parents := strings.Fields(f.git(bob.Path, "log", "-1", "--format=%P")); len(parents) != 2 {
		t.Errorf("parents of %s: %v", oid, parents)
	}
	f.wantClean(bob.Path)
	res, err := f.m.Merge(within(t), into, bob.Branch, "bob")
	if err != nil || len(res.Conflicts) > 0 || !res.FastForward {
		t.Errorf("Merge = %+v, %v", res, err)
	}
}

// An agent that switched its folder elsewhere loses nothing by our commit.
func TestCommitOffBranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	f.git(wt.Path, "checkout", "-q", "-b", "mine")
	f.write(wt.Path, "n.txt", "n\n")
	f.git(wt.Path, "add", "n.txt")
	oid := f.work(wt, "n.txt", "n2\n")
	if tip, _ := f.m.Tip(within(t), wt.Branch); tip != oid {
		t.Errorf("branch at %s, want %s", tip, oid)
	}
	if got := f.git(wt.Path, "status", "--porcelain", "-b"); got != "## mine\nAM n.txt" {
		t.Errorf("status = %q", got)
	}
	if _, err := f.m.Update(within(t), wt, wt.Branch); !errors.Is(err, ErrOffBranch) {
		t.Errorf("Update = %v", err)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ann, bob := f.agent("ann"), f.agent("bob")
	a := f.work(ann, "ann.txt", "ann\n")
	b := f.work(bob, "bob.txt", "bob\n")

	res, err := f.m.Merge(within(t), into, ann.Branch, "merge ann")
	if err != nil || !res.FastForward || res.Commit != a || res.Tree != f.git(f.dir, "rev-parse", a+"^{tree}") {
		t.Errorf("fast-forward = %+v, %v", res, err)
	}
	if res, err = f.m.Merge(within(t), into, ann.Branch, "again"); err != nil || !res.UpToDate || res.Commit != a {
		t.Errorf("again = %+v, %v", res, err)
	}
	res, err = f.m.Merge(within(t), into, bob.Branch, "merge bob")
	if err != nil || res.FastForward || res.UpToDate || len(res.Conflicts) > 0 {
		t.Fatalf("merge = %+v, %v", res, err)
	}
	if got := f.git(f.dir, "log", "-1", "--format=%H %P %T %s", into); got != res.Commit+" "+a+" "+b+" "+res.Tree+" merge bob" {
		t.Errorf("commit = %s", got)
	}
	if got := f.git(f.dir, "ls-tree", "--name-only", res.Tree); !strings.Contains(got, "ann.txt") || !strings.Contains(got, "bob.txt") {
		t.Errorf("tree = %s", got)
	}
	f.wantClean(f.dir)
	if ahead, behind, err := f.m.Ahead(within(t), into, ann.Branch); ahead != 2 || behind != 0 || err != nil {
		t.Errorf("Ahead = %d, %d, %v", ahead, behind, err)
	}
	if _, err := f.m.Merge(within(t), into, "nobody", ""); !errors.Is(err, ErrMissing) {
		t.Errorf("merging nobody: %v", err)
	}
}

func TestMergeConflicts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ann, bob := f.agent("ann"), f.agent("bob")
	f.write(ann.Path, "a.txt", "ann\n")
	f.write(ann.Path, "new.txt", "ann\n")
	f.work(ann, "dir/ü b.txt", "ann\n")
	f.write(bob.Path, "a.txt", "bob\n")
	f.write(bob.Path, "new.txt", "bob\n")
	if err := os.Remove(bob.Path + "/dir/ü b.txt"); err != nil {
		t.Fatal(err)
	}
	f.work(bob, "ok.txt", "bob\n")
	first, err := f.m.Merge(within(t), into, ann.Branch, "ann")
	if err != nil {
		t.Fatal(err)
	}
	for name, merge := range map[string]func() (MergeResult, error){
		"Merge":  func() (MergeResult, error) { return f.m.Merge(within(t), into, bob.Branch, "bob") },
		"Update": func() (MergeResult, error) { return f.m.Update(within(t), bob, into) },
	} {
		res, err := merge()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range res.Conflicts {
			got = append(got, c.Path+" "+c.Kind)
			if c.Detail == "" {
				t.Errorf("%s: no detail for %s", name, c.Path)
			}
		}
		want := []string{"a.txt contents", "dir/ü b.txt modify/delete", "new.txt contents"}
		if !slices.Equal(got, want) || res.Commit != "" {
			t.Errorf("%s: conflicts = %q, want %q; commit %q", name, got, want, res.Commit)
		}
	}
	if tip, _ := f.m.Tip(within(t), into); tip != first.Commit {
		t.Error("the branch moved")
	}
	f.wantClean(bob.Path)
}

func TestMoveLosesRace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	stale := f.head()
	ann, bob := f.agent("ann"), f.agent("bob")
	f.work(ann, "ann.txt", "ann\n")
	b := f.work(bob, "bob.txt", "bob\n")
	if _, err := f.m.Merge(within(t), into, ann.Branch, "ann"); err != nil {
		t.Fatal(err)
	}
	moved, _ := f.m.Tip(within(t), into)
	err := f.m.forward(within(t), moveRequest{branch: into, from: stale, to: b, note: "late"})
	if !errors.Is(err, ErrMoved) {
		t.Errorf("forward = %v", err)
	}
	// The same where the branch is checked out.
	err = f.m.forward(within(t), moveRequest{branch: ann.Branch, from: stale, to: b, note: "late"})
	if !errors.Is(err, ErrMoved) {
		t.Errorf("forward of a branch in use = %v", err)
	}
	if tip, _ := f.m.Tip(within(t), into); tip != moved {
		t.Error("the branch moved")
	}
	if err := f.m.deleteBranch(within(t), into, stale); !errors.Is(err, ErrMoved) {
		t.Errorf("deleteBranch = %v", err)
	}
	if err := f.m.deleteBranch(within(t), "main", stale); !errors.Is(err, ErrRefused) {
		t.Errorf("deleteBranch of main = %v", err)
	}
}

func TestDeleteBranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	f.agent("ann")
	if err := f.m.DeleteBranch(within(t), into, f.head()); err != nil {
		t.Error(err)
	}
	if err := f.m.DeleteBranch(within(t), into, f.head()); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if err := f.m.DeleteBranch(within(t), "main", f.head()); !errors.Is(err, ErrRefused) {
		t.Errorf("main: %v", err)
	}
	into = f.integration()
	oid := f.git(f.dir, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "only here")
	f.git(f.dir, "update-ref", "refs/heads/"+into, oid)
	if err := f.m.DeleteBranch(within(t), into, oid); !errors.Is(err, ErrRefused) {
		t.Errorf("with a commit of its own: %v", err)
	}
	if err := f.m.DeleteBranch(within(t), into, f.head()); !errors.Is(err, ErrMoved) {
		t.Errorf("at another commit: %v", err)
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ann, bob, cyd := f.agent("ann"), f.agent("bob"), f.agent("cyd")
	tip := f.work(ann, "ann.txt", "ann\n")
	if _, err := f.m.Merge(within(t), into, ann.Branch, "ann"); err != nil {
		t.Fatal(err)
	}

	f.write(bob.Path, "notes.txt", "not in the way\n")
	res, err := f.m.Update(within(t), bob, into)
	if err != nil || !res.FastForward || res.Commit != tip || f.read(bob.Path, "ann.txt") != "ann\n" {
		t.Errorf("fast-forward = %+v, %v", res, err)
	}
	if got := f.git(bob.Path, "status", "--porcelain"); got != "?? notes.txt" {
		t.Errorf("status = %q", got)
	}

	f.work(cyd, "cyd.txt", "cyd\n")
	res, err = f.m.Update(within(t), cyd, into)
	if err != nil || res.FastForward || f.read(cyd.Path, "ann.txt") != "ann\n" || f.read(cyd.Path, "cyd.txt") != "cyd\n" {
		t.Errorf("merge = %+v, %v", res, err)
	}
	f.wantClean(cyd.Path)
}

func TestUpdateKeepsLocalFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ann := f.agent("ann")
	f.write(ann.Path, "a.txt", "ann\n")
	f.write(ann.Path, ".gitignore", "")
	f.write(ann.Path, "x.log", "from ann\n")
	f.work(ann, "new ü.txt", "ann\n")
	if _, err := f.m.Merge(within(t), into, ann.Branch, "ann"); err != nil {
		t.Fatal(err)
	}
	for agent, file := range map[string]string{"bob": "a.txt", "cyd": "new ü.txt", "dan": "x.log"} {
		wt := f.agent(agent)
		f.write(wt.Path, file, "local\n")
		_, err := f.m.Update(within(t), wt, into)
		var over *OverwriteError
		if !errors.As(err, &over) || !slices.Equal(over.Paths, []string{file}) || over.Dir != wt.Path {
			t.Errorf("%s: Update = %v", file, err)
		}
		if got := f.read(wt.Path, file); got != "local\n" {
			t.Errorf("%s = %q", file, got)
		}
	}
}

// The user's own checked-out branch comes along with its files.
func TestMergeIntoCheckedOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ann := f.agent("ann")
	f.work(ann, "ann.txt", "ann\n")
	if _, err := f.m.Merge(within(t), "main", ann.Branch, "ann"); err != nil {
		t.Fatal(err)
	}
	if got := f.read(f.dir, "ann.txt"); got != "ann\n" {
		t.Errorf("ann.txt = %q", got)
	}
	f.wantClean(f.dir)
}

func TestDiffStat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	f.write(wt.Path, "bin", "\x00\x01")
	oid := f.work(wt, "dir/ü b.txt", "x\ny\nz\n")
	got, err := f.m.DiffStat(within(t), f.head(), oid)
	want := []FileStat{{Path: "bin", Binary: true}, {Path: "dir/ü b.txt", Added: 2}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("DiffStat = %+v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	oid := strings.Repeat("ab", 20)
	f.Add(oid + "\x00")
	f.Add(oid + "\x00100644 " + oid + " 1\tf\x00\x001\x00f\x00CONFLICT (contents)\x00CONFLICT: f\n\x00")
	f.Add(oid + "\x00\x00-1\x00")
	f.Add("worktree /a\x00HEAD " + oid + "\x00branch refs/heads/x\x00locked why\x00\x00worktree /b\x00bare\x00")
	f.Add("1\t2\tpath\x00-\t-\tbin\x00")
	f.Add("R  new\x00old\x00?? x\x00 M")
	f.Add("git version 2.39.5 (Apple Git-154)")
	f.Add(`{"version":1,"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","path":"/x","head":"` + oid + `"}`)
	f.Add("p12\nfcwd\nn/a/b\n")
	f.Fuzz(func(t *testing.T, in string) {
		tree, conflicts, err := parseMergeTree(in)
		if err == nil && !isOID(tree) {
			t.Errorf("tree %q", tree)
		}
		seen := map[string]bool{}
		for _, c := range conflicts {
			if seen[c.Path] {
				t.Errorf("path %q twice", c.Path)
			}
			seen[c.Path] = true
		}
		for _, wt := range parseList(in) {
			if wt.Path == "" {
				t.Error("worktree without a path")
			}
		}
		for _, s := range parseStatus(in) {
			if len(s.code) != 2 || s.path == "" {
				t.Errorf("status %+v", s)
			}
		}
		_, _ = parseNumstat(in)
		_, _ = parseVersion(in)
		_ = overwritten(in)
		for _, pid := range parseLsof(in, "/a") {
			if pid <= 0 {
				t.Errorf("pid %d", pid)
			}
		}
		if e, err := parseEntry([]byte(in)); err == nil && !isOID(e.Head) {
			t.Errorf("head %q", e.Head)
		}
	})
}
