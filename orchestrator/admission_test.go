package orchestrator

import (
	"strings"
	"testing"

	"muntin/internal/gittest"
	"muntin/internal/state"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

func TestWeigh(t *testing.T) {
	t.Parallel()
	agents := []recipes.Agent{
		{Name: "ours", Isolation: recipes.IsolationWorktree},
		{Name: "claude", Command: []string{"/usr/bin/claude"}, Isolation: recipes.IsolationShared},
		{Name: "codex", Adapter: "codex", Isolation: recipes.IsolationShared},
		{Name: "shell", Command: []string{"bash"}, Isolation: recipes.IsolationNone},
	}
	size := worktree.Size{Bytes: 1e9, Files: watchFrom, Folders: 100}
	has := Machine{Memory: 1 << 30, Disk: 2e9, PTYs: 10, Processes: -1, Files: 100, Watches: 1000, Watchers: 8}
	got := map[string]Resource{}
	for _, r := range Weigh(agents, size, has) {
		got[r.Name] = r
	}
	for name, want := range map[string]struct {
		need         int64
		tight, lacks bool
	}{
		"memory":                        {(4*14+12+202+370+8)<<20 + reserveMemory, true, false},
		"disk":                          {2e9 + reserveDisk, true, true},
		"terminals":                     {9, true, false},
		"processes":                     {14, false, false},
		"open files of the tmux server": {96, true, false},
		"watched folders":               {400, false, false},
		"watchers":                      {9, true, true},
	} {
		r := got[name]
		if r.Need != want.need || r.Tight() != want.tight || r.Lacks() != want.lacks {
			t.Errorf("%s: need %d, tight %v, lacks %v; want %+v", name, r.Need, r.Tight(), r.Lacks(), want)
		}
	}
	if text := got["disk"].String(); text != "disk: 2.3 GB of 2.0 GB free" {
		t.Errorf("disk is shown as %q", text)
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	layout := state.Layout{State: t.TempDir()}
	m := ThisMachine(layout.RepoAt(layout.State + "/not/yet/there"))
	if m.Memory < 1<<20 || m.Disk < 1<<20 || m.Files < 64 {
		t.Errorf("measured %+v", m)
	}
}

func TestSizeOfACommit(t *testing.T) {
	t.Parallel()
	repo := gittest.New(t)
	repo.Write("a.txt", "a\n")
	repo.Write("dir/sub/b.bin", strings.Repeat("x", 10_000))
	repo.Commit("start")
	found, err := state.FindRepo(repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	git, err := worktree.Open(t.Context(), worktree.Options{Repo: found, Root: dir + "/wt", Trash: dir + "/trash"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := git.SizeOf(t.Context(), "HEAD")
	if want := (worktree.Size{Bytes: (1 + 3 + 2) * 4096, Files: 2, Folders: 2}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}
