package checkpoint

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muntin/checkpoint/watch"
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
	name := fmt.Sprintf("f%d.go", i)
	for at := i / 9; at > 0; at /= 9 {
		name = fmt.Sprintf("d%d/%s", at%9, name)
	}
	return name
}

// benchChange changes k files so that each round is another change.
func benchChange(b *testing.B, r *repo, n, k, round int) {
	b.Helper()
	for i := range k {
		r.write(benchName(i*(n/k)), fmt.Sprintf("round %d\n%s", round, strings.Repeat("some text of a source file\n", 150)))
	}
}

func benchSizes(b *testing.B, run func(b *testing.B, r *repo, n, k int)) {
	sizes := []int{1000, 10_000}
	if os.Getenv("MUNTIN_SOAK") != "" {
		sizes = append(sizes, 100_000)
	}
	for _, n := range sizes {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			r := benchRepo(b, n)
			for _, k := range []int{0, 1, 10, 1000} {
				b.Run(fmt.Sprintf("changed=%d", k), func(b *testing.B) { run(b, r, n, k) })
			}
		})
	}
}

// BenchmarkSnapshot compares what a turn costs, in turn in one run, so that
// the noise of the machine is the same for all: a durable checkpoint (ours,
// and with a watcher), the look at the worktree alone (scan, watchscan), git
// with a warm index of its own, and a bare parallel lstat walk. It reports
// medians in milliseconds and ratios. 100,000 files with MUNTIN_SOAK=1.
func BenchmarkSnapshot(b *testing.B) {
	benchSizes(b, func(b *testing.B, r *repo, n, k int) {
		ways := snapshotWays(b, r)
		times := map[string][]float64{}
		round := int(time.Now().Unix() % 1_000_000)
		for b.Loop() {
			for _, w := range ways {
				round++
				benchChange(b, r, n, k, round)
				// What was written just now is racy: git and we would read it again.
				settle(b)
				start := time.Now()
				w.run()
				times[w.name] = append(times[w.name], float64(time.Since(start).Microseconds())/1000)
			}
		}
		mid := map[string]float64{}
		for name, t := range times {
			slices.Sort(t)
			mid[name] = t[len(t)/2]
			b.ReportMetric(mid[name], name+"-ms")
		}
		b.ReportMetric(mid["scan"]/mid["git"], "scan/git")
		b.ReportMetric(mid["ours"]/mid["git"], "ours/git")
		b.ReportMetric(mid["scan"]/mid["walk"], "scan/walk")
		b.ReportMetric(mid["git"]/mid["watchscan"], "git/watchscan")
		b.ReportMetric(mid["git"]/mid["watched"], "git/watched")
		b.ReportMetric(0, "ns/op")
	})
}

// settle waits until time stamps made before it are past their tick.
func settle(b *testing.B) {
	b.Helper()
	timer := time.NewTimer(tick + 10*time.Millisecond)
	defer timer.Stop()
	<-timer.C
}

type snapshotWay struct {
	name string
	run  func()
}

func snapshotWays(b *testing.B, r *repo) []snapshotWay {
	fail := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	open := func(ref string, w Watcher) *Store {
		s := r.open(Options{Ref: "refs/muntin/bench/" + ref, Watcher: w})
		r.save(s, Meta{})
		settle(b)
		r.save(s, Meta{}) // nothing is racy any more
		return s
	}
	watcher := func() Watcher {
		w, err := watch.New(watch.Options{Root: r.dir, Dir: b.TempDir()})
		fail(err)
		b.Cleanup(func() { fail(w.Close()) })
		return w
	}
	look := func(s *Store) func() {
		return func() {
			end, err := s.beginChange(b.Context())
			fail(err)
			snap, err := s.take(b.Context(), look{})
			fail(err)
			end()
			snap.ref, snap.commit = s.last.ref, s.last.commit // as if it had been committed
			s.last = snap
		}
	}
	ours, watched := open("ours", nil), open("watched", watcher())
	env := []string{"GIT_INDEX_FILE=" + r.path(".git/bench.index")}
	git := func(args ...string) string {
		out, err := r.try(env, args...)
		fail(err)
		return out
	}
	return []snapshotWay{
		{"git", func() {
			git("add", "-A")
			commit := git("commit-tree", "-m", "c", git("write-tree"))
			git("update-ref", "refs/muntin/bench/git", commit)
		}},
		{"walk", func() { fail(bareWalk(r.dir)) }},
		{"scan", look(open("scan", nil))},
		{"watchscan", look(open("watchscan", watcher()))},
		{"ours", func() { r.save(ours, Meta{Cause: CauseTurn}) }},
		{"watched", func() { r.save(watched, Meta{Cause: CauseTurn}) }},
	}
}

// bareWalk is the least that must be done to look at every file: list every
// folder and stat every name, with as many workers as a scan has.
func bareWalk(root string) error {
	top, err := openRoot(root)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	var failed atomic.Value
	var left sync.WaitGroup
	work := make(chan string, 1<<20)
	left.Add(1)
	work <- ""
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxWorkers) {
		workers.Go(func() {
			r := &reader{dirents: make([]byte, 32<<10)}
			for dir := range work {
				if err := bareFolder(top, dir, r, func(sub string) {
					left.Add(1)
					work <- sub
				}); err != nil {
					failed.Store(err)
				}
				left.Done()
			}
		})
	}
	left.Wait()
	close(work)
	workers.Wait()
	err, _ = failed.Load().(error)
	return err
}

func bareFolder(top int, dir string, r *reader, sub func(string)) error {
	fd, err := openDir(top, dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	l, err := r.list(fd)
	if err != nil {
		return err
	}
	for i := range l.names {
		name := string(l.name(i))
		if name == ".git" {
			continue
		}
		if l.names[i].kind == kindDir {
			sub(join(dir, name))
			continue
		}
		if _, err := lstatAt(fd, name); err != nil {
			return err
		}
	}
	return nil
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

// BenchmarkOpen opens a store and saves an unchanged worktree, as a command does.
func BenchmarkOpen(b *testing.B) {
	benchSizes(b, func(b *testing.B, r *repo, _, k int) {
		if k > 0 {
			b.Skip("nothing is changed here")
		}
		opts := Options{CacheDir: b.TempDir()}
		r.save(r.open(opts), Meta{})
		for b.Loop() {
			r.save(r.open(opts), Meta{})
		}
	})
}

// BenchmarkIgnored saves a worktree of 1,000 files with 200,000 ignored ones
// beside them, and one without, in turn, each after one change. Medians in milliseconds.
func BenchmarkIgnored(b *testing.B) {
	const files, folders, each = 1000, 2000, 100
	stores := map[string]*Store{}
	repos := map[string]*repo{}
	for _, who := range []string{"without", "with"} {
		r := benchRepo(b, files)
		r.write(".gitignore", "node_modules/\n")
		if who == "with" {
			for i := range folders {
				for k := range each {
					name := fmt.Sprintf("node_modules/%d/%d.js", i, k)
					if k == 0 {
						r.write(name, "")
					} else if err := os.WriteFile(r.path(name), nil, 0o600); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		repos[who], stores[who] = r, r.open(Options{})
		r.save(stores[who], Meta{})
		settle(b)
		r.save(stores[who], Meta{})
	}
	took := map[string][]float64{}
	for round := 0; b.Loop(); round++ {
		for who, r := range repos {
			benchChange(b, r, files, 1, round)
			took[who] = append(took[who], milliseconds(func() { r.save(stores[who], Meta{}) }))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(took["with"]), "with-ms")
	b.ReportMetric(median(took["without"]), "without-ms")
}
