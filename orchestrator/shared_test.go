package orchestrator

import (
	"slices"
	"strings"
	"testing"

	"muntin/agent/pty"
	"muntin/orchestrator/worktree"
)

func sharedWorld(t *testing.T, tasks ...Task) *world {
	t.Helper()
	w := newWorld(Settings{Branch: "muntin/r/merged"}, []string{"ada", "bob"}, tasks...)
	for name, a := range w.state.Agents {
		a.Shared = true
		w.state.Agents[name] = a
	}
	w.ready("ada", "bob")
	w.checkpointed("ada", "before")
	w.checkpointed("bob", "before")
	w.readBoard()
	w.drive()
	return w
}

func TestTasksOfASharedWorktreeTakeTurns(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t, Task{ID: "a", State: TaskOpen}, Task{ID: "b", State: TaskOpen})
	if len(w.state.Works) != 1 || w.on("a").Start != "before" {
		t.Fatalf("%+v", w.state.Works)
	}
	w.turn("ada", "a", pty.TurnDone)
	merge := w.take(t, EffectMerge)
	if merge.Base != "before" || merge.Tree != "tree-a" {
		t.Errorf("%+v", merge)
	}
	w.do(merge, Result{OK: true})
	w.drive()
	if _, ok := w.state.workOn("b"); !ok || len(w.state.Works) != 1 {
		t.Errorf("%+v", w.state.Works)
	}
}

func TestClaimsThatDoNotMeetWorkAtOnce(t *testing.T) {
	t.Parallel()
	for bodies, want := range map[[2]string]int{
		{"files: api/ docs/api.md", "Do it.\n  files: web, ./cmd/"}: 2,
		{"files: api", "files: api/users.go"}:                       1,
		{"files: api", "no claim"}:                                  1,
		{"files: ../out", "files: web"}:                             1,
	} {
		w := sharedWorld(t, Task{ID: "a", State: TaskOpen, Body: bodies[0]}, Task{ID: "b", State: TaskOpen, Body: bodies[1]})
		if len(w.state.Works) != want {
			t.Errorf("%q: %+v", bodies, w.state.Works)
		}
	}
	got := Task{Body: "files: api/ a/b.go,c\nprofiles: no\n"}.Files()
	if !slices.Equal(got, []string{"api", "a/b.go", "c"}) {
		t.Errorf("%q", got)
	}
}

func TestATasksCommitHasItsOwnChangesOnly(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "- [/] one @ada ^a\n- [/] two @bob ^b\n")
	shared := tm.Members["ada"]
	tm.Members["bob"] = shared
	dir := shared.WorkDir
	tm.write(dir, "blocked.txt", "what a blocked task left\n")
	before := tm.tree("ada")
	tm.write(dir, "one.txt", "1\n")
	tm.write(dir, "two.txt", "2\n")
	tree := tm.tree("ada")
	files := func(commit string) string {
		return strings.ReplaceAll(tm.repo.Git("diff-tree", "-r", "--name-only", "--no-commit-id", commit), "\n", " ")
	}
	one := tm.do(Effect{Kind: EffectMerge, Agent: "ada", Task: "a", Text: "one", Tree: tree, Base: before, Paths: []string{"one.txt"}})
	if !one.Result.OK || files(one.Result.Commit) != "one.txt" {
		t.Errorf("%+v: %s", one.Result, files(one.Result.Commit))
	}
	two := tm.do(Effect{Kind: EffectMerge, Agent: "bob", Task: "b", Text: "two", Tree: tree, Base: before})
	if !two.Result.OK || files(two.Result.Commit) != "two.txt" {
		t.Errorf("%+v: %s", two.Result, files(two.Result.Commit))
	}
	// A removal, and a file that becomes a folder.
	tm.repo.Git("-C", dir, "rm", "-q", "--cached", "two.txt")
	tm.repo.Git("-C", dir, "clean", "-qf", "two.txt")
	end, err := tm.Git.Graft(t.Context(), worktree.Graft{Onto: two.Result.Commit, From: two.Result.Commit, To: tm.tree("ada"), Take: func(p string) bool { return p == "two.txt" }})
	if err != nil || strings.Contains(tm.repo.Git("ls-tree", "--name-only", end), "two.txt") {
		t.Errorf("%s, %v", end, err)
	}
	if got := tm.repo.Git("-C", dir, "status", "--porcelain"); !strings.Contains(got, "?? blocked.txt") {
		t.Errorf("status:\n%s", got)
	}
}
