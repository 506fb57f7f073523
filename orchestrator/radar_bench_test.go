package orchestrator

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"muntin/internal/gittest"
	"muntin/internal/state"
	"muntin/orchestrator/worktree"
)

// BenchmarkRadar is one look over twenty agents in a repository of 1,000 files:
// the first one, one after the checkpoint of one agent, and one after nothing.
// Each has changed ten files, one of them the same for all.
func BenchmarkRadar(b *testing.B) {
	const agents = 20
	repo := gittest.New(b)
	for i := range 1000 {
		repo.Write(fmt.Sprintf("src/d%d/f%d.txt", i%50, i), strings.Repeat("line\n", 50))
	}
	repo.Commit("start")
	found, err := state.FindRepo(repo.Dir)
	if err != nil {
		b.Fatal(err)
	}
	top := filepath.Dir(repo.Dir)
	git, err := worktree.Open(b.Context(), worktree.Options{Repo: found, Root: filepath.Join(top, "wt"), Trash: filepath.Join(top, "trash")})
	if err != nil {
		b.Fatal(err)
	}
	head := repo.Git("rev-parse", "HEAD")
	members := map[string]Member{}
	change := func(name string, round int) {
		r := gittest.At(b, members[name].WorkDir)
		r.Write("src/d1/f1.txt", fmt.Sprintf("%s %d\n", name, round)+strings.Repeat("line\n", 49))
		for i := range 9 {
			r.Write(fmt.Sprintf("%s/new%d.txt", name, i), fmt.Sprint(round))
		}
		r.Git("add", "-A")
		commit := r.Git("commit-tree", "-m", "checkpoint", r.Git("write-tree"))
		r.Git("update-ref", CheckpointRef("r", name), commit)
	}
	for i := range agents {
		name := fmt.Sprint("a", i)
		wt, err := git.Add(b.Context(), filepath.Join(top, "wt", "r", name), worktree.AgentBranch("r", name), head)
		if err != nil {
			b.Fatal(err)
		}
		members[name] = Member{WorkDir: wt.Path, Worktree: &wt}
		change(name, 0)
	}
	if err := git.CreateBranch(b.Context(), worktree.Integration("r"), head); err != nil {
		b.Fatal(err)
	}
	look := func(b *testing.B, crew *Crew) {
		list, err := crew.overlap(b.Context())
		if err != nil || len(list) != agents*(agents-1)/2 {
			b.Fatal(len(list), err)
		}
	}
	fresh := func() *Crew { return NewCrew(CrewOptions{Git: git, Members: members, Run: "r"}) }
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			look(b, fresh())
		}
	})
	b.Run("one-agent", func(b *testing.B) {
		crew, round := fresh(), 0
		look(b, crew)
		for b.Loop() {
			b.StopTimer()
			round++
			change("a0", round)
			b.StartTimer()
			look(b, crew)
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		crew := fresh()
		look(b, crew)
		for b.Loop() {
			look(b, crew)
		}
	})
}
