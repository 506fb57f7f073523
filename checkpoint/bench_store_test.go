package checkpoint

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// BenchmarkSync makes n objects of 4 KB durable, in files of their own and in
// a pack: from where on the pack is cheaper is packFrom.
func BenchmarkSync(b *testing.B) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 8, 12, 24, 100} {
		for _, packed := range []bool{false, true} {
			b.Run(fmt.Sprintf("objects=%d/packed=%v", n, packed), func(b *testing.B) {
				r := newRepo(b)
				odb := openObjects(r.path(".git"))
				defer odb.read.close()
				seed := int64(0)
				for b.Loop() {
					if packed {
						if err := odb.startPack(); err != nil {
							b.Fatal(err)
						}
					}
					for range n {
						seed++
						content := []byte(noise(4000, seed))
						h := plumbing.ComputeHash(plumbing.BlobObject, content)
						write := odb.writeAs
						if !packed {
							write = func(h plumbing.Hash, kind plumbing.ObjectType, content []byte) error {
								return odb.writeLoose(h, kind, content)
							}
						}
						if err := write(h, plumbing.BlobObject, content); err != nil {
							b.Fatal(err)
						}
					}
					if err := odb.sync(); err != nil {
						b.Fatal(err)
					}
					if err := odb.settle(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkList lists a chain of 1000 checkpoints as a command does, with a
// store that was just opened: as they were saved, folded between turns, and
// after the user's gc.
func BenchmarkList(b *testing.B) {
	r := benchRepo(b, 100)
	s := r.open(Options{})
	list := func(b *testing.B) {
		b.Helper()
		defer reportCPU(b)()
		for b.Loop() {
			odb := openObjects(s.where.Path)
			h, err := s.readRef(s.Ref())
			n := 0
			for ; err == nil && !h.IsZero(); n++ {
				var rec *record
				if rec, err = odb.record(h); err == nil {
					h = rec.previous
				}
			}
			odb.read.close()
			if err != nil || n != 1000 {
				b.Fatalf("%d checkpoints, %v", n, err)
			}
		}
	}
	for i := range 1000 {
		benchChange(b, r, 100, 5, i)
		r.save(s, Meta{Run: "run", Agent: "agent", Turn: i + 1, Cause: CauseTurn})
		if i%foldFrom == 0 {
			if _, err := s.Maintain(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("folded", list)
	r.git("gc", "-q")
	b.Run("gc", list)
	loose := r.open(Options{Ref: "refs/muntin/run/loose"})
	for range 1000 { // nothing changed: a commit each
		r.save(loose, Meta{Run: "run", Agent: "agent", Turn: 1, Cause: CauseTurn})
	}
	s = loose
	b.Run("loose", list)
}

// reportCPU reports the processor time, since other programs run here too.
func reportCPU(b *testing.B) func() {
	b.Helper()
	used := func() int64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	start := used()
	return func() { b.ReportMetric(float64(used()-start)/float64(b.N)/1e6, "cpu-ms/op") }
}

// BenchmarkGrowth makes 1000 checkpoints of five changed files and tells how
// much the repository grew, by KB on disk, against git's objects for the same commits.
func BenchmarkGrowth(b *testing.B) {
	const saves, files, changed = 1000, 1000, 5
	use := func(r *repo) float64 { return float64(diskUse(filepath.Join(r.dir, ".git", "objects"))) / 1024 }
	for range b.N {
		r := benchRepo(b, files)
		s := r.open(Options{})
		r.save(s, Meta{})
		start := use(r)
		most := 0
		for i := range saves {
			benchChange(b, r, files, changed, i)
			r.save(s, Meta{Cause: CauseTurn, Turn: i + 1})
			if i%foldFrom == foldFrom-1 {
				rep, err := s.Maintain(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				most = max(most, rep.Packs+foldFrom)
			}
		}
		ours := use(r) - start
		g := benchRepo(b, files)
		start = use(g)
		for i := range saves {
			benchChange(b, g, files, changed, i)
			g.git("add", "-A")
			g.git("commit", "-q", "-m", "c")
		}
		gits := use(g) - start
		b.ReportMetric(ours, "ours-KB")
		b.ReportMetric(gits, "git-loose-KB")
		r.git("gc", "-q")
		g.git("-c", "gc.auto=0", "gc", "-q")
		b.ReportMetric(use(r), "ours-after-gc-KB")
		b.ReportMetric(use(g), "git-after-gc-KB")
		b.ReportMetric(float64(most), "most-packs")
	}
}
