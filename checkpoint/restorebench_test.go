package checkpoint

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkRestore goes back over k changed files, with the undo checkpoint
// and the one after: ours and git's (add -A, write-tree, read-tree -u
// --reset with a warm index of its own, which keeps nothing safe against a crash), in turn.
func BenchmarkRestore(b *testing.B) {
	benchSizes(b, func(b *testing.B, r *repo, n, k int) {
		s := r.open(Options{})
		c, _ := r.save(s, Meta{})
		env := []string{"GIT_INDEX_FILE=" + r.path(".git/bench.index")}
		git := func(args ...string) {
			if _, err := r.try(env, args...); err != nil {
				b.Fatal(err)
			}
		}
		git("add", "-A")
		round := 0
		timed := map[string]func(){
			"ours": func() {
				if _, err := s.Restore(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			},
			"git": func() {
				git("add", "-A")
				git("write-tree")
				git("read-tree", "-u", "--reset", c.Tree)
			},
		}
		took := map[string][]float64{}
		for b.Loop() {
			for _, who := range []string{"ours", "git"} {
				round++
				benchChange(b, r, n, k, 1000+round)
				took[who] = append(took[who], milliseconds(timed[who]))
			}
		}
		ours, theirs := median(took["ours"]), median(took["git"])
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(ours, "ours-ms")
		b.ReportMetric(theirs, "git-ms")
		b.ReportMetric(ours/theirs, "ratio")
	})
}

func milliseconds(run func()) float64 {
	start := time.Now()
	run()
	return float64(time.Since(start).Microseconds()) / 1000
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
