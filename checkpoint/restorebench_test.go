package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muntin/internal/durable"
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

// BenchmarkExchange puts a new file in the place of an old one, in folders of
// nine: by exchanging names, looking at what came out and removing it, as a restore does, and
// by renaming over it, in turn. Medians in microseconds.
func BenchmarkExchange(b *testing.B) {
	dir := b.TempDir()
	root, err := openRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(root)
	ways := map[string]func(name, temp string) error{
		"rename": func(name, temp string) error { return unix.Renameat(root, temp, root, name) },
		"exchange": func(name, temp string) error {
			err := durable.SwapAt(root, temp, name)
			if err == nil {
				_, err = lstatAt(root, temp)
			}
			return errors.Join(err, unix.Unlinkat(root, temp, 0))
		},
	}
	content := make([]byte, 4096)
	took := map[string][]float64{}
	for i := 0; b.Loop(); i++ {
		for who, put := range ways {
			name := filepath.Join(dir, who+strconv.Itoa(i%9))
			err := errors.Join(os.WriteFile(name, content, 0o600), os.WriteFile(name+".new", content, 0o600))
			start := time.Now()
			if err = errors.Join(err, put(filepath.Base(name), filepath.Base(name)+".new")); err != nil {
				b.Fatal(err)
			}
			took[who] = append(took[who], float64(time.Since(start).Nanoseconds())/1000)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(took["exchange"]), "exchange-us")
	b.ReportMetric(median(took["rename"]), "rename-us")
}
