package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muntin/checkpoint/watch"
)

// oracleSteps is how many steps TestOracle makes in each mode with MUNTIN_SOAK=1.
const oracleSteps = 5000

// TestOracle changes a worktree at random, with one long-lived Store. After
// every step the tree must be the one git makes with an index without stat
// data: once looking everywhere, once only where a watcher saw something.
func TestOracle(t *testing.T) {
	t.Parallel()
	n, rounds := steps(t, 40), 1
	if os.Getenv("MUNTIN_SOAK") != "" {
		n, rounds = 500, oracleSteps/500
	}
	for _, mode := range []string{"full", "watched"} {
		for i := range rounds {
			seed := rand.Uint64()
			if v := os.Getenv("CHECKPOINT_TEST_SEED"); v != "" {
				seed, _ = strconv.ParseUint(v, 10, 64)
			}
			t.Run(fmt.Sprintf("%s/%d/%d", mode, i, seed), func(t *testing.T) {
				t.Parallel()
				runOracle(t, mode, seed, n)
			})
		}
	}
}

func runOracle(t *testing.T, mode string, seed uint64, n int) {
	w := &hostile{walker: walker{repo: newRepo(t), rand: rand.New(rand.NewPCG(seed, 11))}}
	opts := Options{CacheDir: t.TempDir()}
	if mode == "watched" {
		opts.Watcher = newWatcher(w.repo)
	}
	s := w.open(opts)
	partial := 0
	defer func() {
		if t.Failed() {
			t.Logf("%d partial scans since a full one, hidden %q, skipped %v, unstable %v, news %v", s.last.partial, s.last.hidden, s.last.report.Skipped, s.last.report.Unstable, s.news)
			t.Logf("on disk:\n%s", w.listing())
		}
	}()
	for step := range n {
		for range 1 + w.rand.IntN(6) {
			w.step()
		}
		w.check(s)
		if s.last.partial > 0 {
			partial++
		}
		if w.rand.IntN(25) == 0 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = w.open(s.opts) // from the cache file
		}
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
	if mode == "watched" && partial < n/4 {
		t.Errorf("only %d of %d snapshots rested on the watcher: %v", partial, n, s.last.report.Unwatched)
	}
	w.git("fsck", "--strict", "--no-dangling")
}

// listing is what is on disk at the root, and in what state git has it.
func (w *hostile) listing() string {
	list, err := os.ReadDir(w.dir)
	must(w.repo, err)
	var b strings.Builder
	for _, d := range list {
		info, err := d.Info()
		fmt.Fprintf(&b, "%v %q %v\n", d.Type(), d.Name(), err == nil && info.ModTime().After(time.Now().Add(-time.Second)))
	}
	out, _ := w.try(nil, "status", "--short", "--ignored")
	return b.String() + out
}

func newWatcher(r *repo) *watch.Watcher {
	r.t.Helper()
	w, err := watch.New(watch.Options{Root: r.dir, Dir: r.t.TempDir()})
	if errors.Is(err, watch.ErrUnsupported) {
		r.t.Skip(err)
	}
	must(r, err)
	r.t.Cleanup(func() { must(r, w.Close()) })
	return w
}

// hostile is a walker with worse manners.
type hostile struct {
	walker
	nested int
}

var hostileNames = []string{
	"a", "b", "c.log", "d", "e.txt", "build", "A", "a.b", "a-b", "a0", "x y", " lead", "trail ", "\xfe", "n\nl", "t\tq\"", "back\\slash",
	"é", "-dash", "#hash", "!bang", "*star", "[br]", "?q", ".hidden", "..two", "node_modules", "~tilde", "$v",
}

var hostilePatterns = []string{
	"*.log", "build/", "build", "!a", "/a", "a/", "a/b", "**/d", "d/**", "x*", "*", "!*", "!*/", ".gitignore", "[a-b]", "[!a]", "a?b", "\\#hash", "\\!bang",
	"\\*star", "#comment", "", "trail\\ ", "node_modules/", "/*", "!/d", "*/b", "a/**/b", "**", "é", "back\\\\slash", "[[:upper:]]", "A",
}

func (w *hostile) path(p string) string { return w.walker.path(p) }

func (w *hostile) pick() string {
	p := hostileNames[w.rand.IntN(len(hostileNames))]
	for range w.rand.IntN(4) {
		// os.RemoveAll of a name below a FIFO opens the FIFO, and waits.
		if info, err := os.Lstat(w.path(p)); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
			break
		}
		p = filepath.Join(p, hostileNames[w.rand.IntN(9)])
	}
	return p
}

// tracked tells that the index has the path or something below it: git add
// fails where a tracked path is neither file nor folder.
func (w *hostile) tracked(p string) bool {
	out, err := w.try([]string{"GIT_LITERAL_PATHSPECS=1"}, "ls-files", "-z", "--", p)
	return err != nil || out != ""
}

func (w *hostile) ignoreFile() string {
	var b strings.Builder
	for range w.rand.IntN(4) {
		b.WriteString(hostilePatterns[w.rand.IntN(len(hostilePatterns))] + "\n")
	}
	return b.String()
}

func (w *hostile) step() {
	p := w.pick()
	file := w.path(p)
	info, err := os.Lstat(file)
	regular := err == nil && info.Mode().IsRegular()
	switch w.rand.IntN(24) {
	case 0, 1, 2, 3, 4, 5:
		w.put(p, w.content())
	case 6, 7:
		_ = os.RemoveAll(file)
	case 8: // file and folder take each other's place
		if w.clear(p) {
			if regular {
				w.put(filepath.Join(p, "under"), w.content())
			} else {
				w.put(p, w.content())
			}
		}
	case 9:
		// No loops: git keeps what it tracks below a symlink that leads to itself, since it cannot tell that it is gone.
		if target := []string{"a", "../..", "/etc", "nowhere"}[w.rand.IntN(4)]; target != filepath.Base(p) && w.clear(p) {
			_ = os.Symlink(target, file)
		}
	case 10:
		if regular {
			must(w.repo, os.Chmod(file, []os.FileMode{0o644, 0o755, 0o600}[w.rand.IntN(3)]))
		}
	case 11:
		if !w.tracked(p) && err != nil && w.clear(p) {
			_ = syscall.Mkfifo(file, 0o644)
		}
	case 12: // the same size
		if regular {
			w.put(p, strings.Repeat("z", int(info.Size())))
		}
	case 13: // the same size, and the old time
		if regular {
			w.put(p, strings.Repeat("y", int(info.Size())))
			_ = os.Chtimes(file, time.Now(), info.ModTime())
		}
	case 14: // a time in the future
		if regular {
			later := time.Now().Add(time.Hour)
			_ = os.Chtimes(file, later, later)
		}
	case 15, 16:
		w.put(filepath.Join(filepath.Dir(p), ".gitignore"), w.ignoreFile())
	case 17:
		w.move(p, w.pick())
	default:
		w.stepGit(p, err == nil)
	}
}

func (w *hostile) stepGit(p string, exists bool) {
	literal := []string{"GIT_LITERAL_PATHSPECS=1"}
	switch w.rand.IntN(9) {
	case 0, 1:
		if exists {
			_, _ = w.try(literal, "add", "-f", "--", p)
		}
	case 2:
		_, _ = w.try(literal, "rm", "-rq", "--cached", "--ignore-unmatch", "--", p)
	case 3:
		w.git("commit", "-qam", "c", "--allow-empty")
	case 4:
		w.write(".git/info/exclude", w.ignoreFile())
	case 5:
		w.repository(p)
	case 6:
		w.git("update-index", "--index-version", []string{"2", "3", "4"}[w.rand.IntN(3)])
	case 7:
		w.git("config", "core.fileMode", strconv.FormatBool(w.rand.IntN(3) > 0))
	case 8:
		// Refreshes the index and changes nothing in it. It fails where a symlink took a repository's place.
		_, _ = w.try(nil, "status", "--short")
	}
}

// move renames a file or folder into a place that is free.
func (w *hostile) move(from, to string) {
	if strings.HasPrefix(to+"/", from+"/") || strings.HasPrefix(from+"/", to+"/") || !w.realDir(from) || !w.realDir(to) {
		return
	}
	if info, err := os.Lstat(w.path(from)); err != nil || !info.IsDir() && w.tracked(to) {
		return // a FIFO must not come where something is tracked
	}
	if w.clear(to) {
		_ = os.Rename(w.path(from), w.path(to))
	}
}

// repository makes a repository with a commit, or a new commit in one.
func (w *hostile) repository(p string) {
	if !w.realDir(p) {
		return
	}
	sub := &repo{t: w.t, dir: w.path(p)}
	if _, err := os.Stat(sub.path(".git")); err == nil {
		_, _ = sub.try(nil, "commit", "-q", "--allow-empty", "-m", strconv.Itoa(w.rand.IntN(1000)))
		return
	}
	if w.nested++; w.nested > 40 || w.rand.IntN(2) > 0 || !w.clear(p) {
		return
	}
	must(w.repo, os.Mkdir(sub.dir, 0o755))
	sub.git("init", "-q")
	sub.git("commit", "-q", "--allow-empty", "-m", "c")
}
