package checkpoint

import (
	"fmt"
	"strings"
	"testing"
)

// benchRepo makes a repository of n committed files of 4 KB, nine a folder.
func benchRepo(b *testing.B, n int) *repo {
	b.Helper()
	r := newRepo(b)
	for i := range n {
		r.write(benchName(i), fmt.Sprintf("%d\n%s", i, strings.Repeat("some text of a source file\n", 150)))
	}
	r.write(".gitignore", "*.o\nbuild/\n")
	r.commit()
	return r
}

func benchName(i int) string {
	return fmt.Sprintf("d%d/d%d/d%d/f%d.go", i/729%9, i/81%9, i/9%9, i)
}

// benchChange changes k files so that each round is another change.
func benchChange(b *testing.B, r *repo, n, k, round int) {
	b.Helper()
	for i := range k {
		r.write(benchName(i*(n/k)), fmt.Sprintf("round %d\n%s", round, strings.Repeat("some text of a source file\n", 150)))
	}
}

func benchSizes(b *testing.B, run func(b *testing.B, r *repo, n, k int)) {
	for _, n := range []int{1000, 10_000} {
		r := benchRepo(b, n)
		for _, k := range []int{1, 10, 1000} {
			b.Run(fmt.Sprintf("files=%d/changed=%d", n, k), func(b *testing.B) { run(b, r, n, k) })
		}
	}
}

// BenchmarkSave takes a durable checkpoint after k files changed.
func BenchmarkSave(b *testing.B) {
	benchSizes(b, func(b *testing.B, r *repo, n, k int) {
		s := r.open(Options{})
		r.save(s, Meta{})
		round := 0
		b.ResetTimer()
		for b.Loop() {
			b.StopTimer()
			round++
			benchChange(b, r, n, k, round)
			b.StartTimer()
			r.save(s, Meta{Cause: CauseTurn})
		}
	})
}

// BenchmarkSaveGit does the same with git and a warm index of its own.
func BenchmarkSaveGit(b *testing.B) {
	benchSizes(b, func(b *testing.B, r *repo, n, k int) {
		env := []string{"GIT_INDEX_FILE=" + r.path(".git/bench.index")}
		git := func(args ...string) string {
			out, err := r.try(env, args...)
			if err != nil {
				b.Fatal(err)
			}
			return out
		}
		save := func() {
			git("add", "-A")
			commit := git("commit-tree", "-m", "c", git("write-tree"))
			git("update-ref", "refs/muntin/bench/git", commit)
		}
		save()
		round := 0
		b.ResetTimer()
		for b.Loop() {
			b.StopTimer()
			round++
			benchChange(b, r, n, k, -round)
			b.StartTimer()
			save()
		}
	})
}

// BenchmarkRestore goes back over k changed files, with the undo checkpoint.
func BenchmarkRestore(b *testing.B) {
	benchSizes(b, func(b *testing.B, r *repo, n, k int) {
		s := r.open(Options{})
		c, _ := r.save(s, Meta{})
		round := 0
		b.ResetTimer()
		for b.Loop() {
			b.StopTimer()
			round++
			benchChange(b, r, n, k, 1000+round)
			b.StartTimer()
			if _, err := s.Restore(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOpen opens a store and saves an unchanged worktree, as a command does.
func BenchmarkOpen(b *testing.B) {
	benchSizes(b, func(b *testing.B, r *repo, _, k int) {
		if k > 1 {
			b.Skip("nothing is changed here")
		}
		opts := Options{CacheDir: b.TempDir()}
		r.save(r.open(opts), Meta{})
		for b.Loop() {
			r.save(r.open(opts), Meta{})
		}
	})
}
