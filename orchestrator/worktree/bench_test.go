package worktree

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"
)

// BenchmarkAdd10 is the bring-up of ten agents' worktrees in a repository of
// 500 files, and its floor: ten bare calls of git worktree add.
func BenchmarkAdd10(b *testing.B) {
	b.Run("floor", func(b *testing.B) { benchAdd(b, floor) })
	b.Run("muntin", func(b *testing.B) { benchAdd(b, ours) })
}

func floor(b *testing.B, f *fixture, round int, _ string) {
	for i := range 10 {
		name := fmt.Sprintf("n%d-%d", round, i)
		if out, err := benchGit(b, f, "worktree", "add", "-q", "-b", "floor/"+name, filepath.Join(f.base, name)); err != nil {
			b.Fatal(out, err)
		}
	}
}

func ours(b *testing.B, f *fixture, round int, at string) {
	g, ctx := errgroup.WithContext(b.Context())
	for i := range 10 {
		g.Go(func() error {
			name := fmt.Sprintf("n%d-%d", round, i)
			_, err := f.m.Add(ctx, f.path(name), AgentBranch("r1", name), at)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}

func benchAdd(b *testing.B, add func(*testing.B, *fixture, int, string)) {
	f := newFixture(b)
	for i := range 500 {
		f.write(f.dir, fmt.Sprintf("src/p%d/f%d.go", i/20, i), fmt.Sprintf("package p%d\n// %d\n", i/20, i))
	}
	f.git(f.dir, "add", "-A")
	f.git(f.dir, "commit", "-qm", "files")
	at := f.head()
	round := 0
	for b.Loop() {
		add(b, f, round, at)
		round++
	}
}

func benchGit(b *testing.B, f *fixture, args ...string) (string, error) {
	b.Helper()
	return f.tryGit(f.dir, nil, args...)
}
