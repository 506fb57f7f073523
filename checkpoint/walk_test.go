package checkpoint

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// soakSteps is how far a randomized test goes with MUNTIN_SOAK=1.
const soakSteps = 200

// steps is how far a randomized test goes: n, or soakSteps, or what CHECKPOINT_TEST_STEPS says.
func steps(t *testing.T, n int) int {
	t.Helper()
	if os.Getenv("MUNTIN_SOAK") == "1" {
		n = soakSteps
	}
	if v := os.Getenv("CHECKPOINT_TEST_STEPS"); v != "" {
		m, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return n
}

// A walker changes a worktree at random.
type walker struct {
	*repo
	rand  *rand.Rand
	saved []Checkpoint
	disks []map[string]string // the worktree as it was then
}

// TestRandomWalk changes a worktree step by step. After each step the
// checkpoint's tree must be git's; now and then an old checkpoint is restored,
// which must give its tree, and taken back, which must give every byte of before.
func TestRandomWalk(t *testing.T) {
	t.Parallel()
	for range 2 {
		seed := rand.Uint64()
		if v := os.Getenv("CHECKPOINT_TEST_SEED"); v != "" {
			seed, _ = strconv.ParseUint(v, 10, 64)
		}
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := &walker{repo: newRepo(t), rand: rand.New(rand.NewPCG(seed, 7))}
			if w.rand.IntN(3) == 0 {
				w.git("config", "core.autocrlf", "true")
			}
			w.git("config", "filter.up.clean", "tr a-z A-Z")
			s := w.open(Options{CacheDir: t.TempDir()})
			for i := range steps(t, 20) {
				for range 1 + w.rand.IntN(4) {
					w.change()
				}
				w.saved = append(w.saved, w.check(s))
				w.disks = append(w.disks, w.disk())
				switch w.rand.IntN(8) {
				case 0, 1:
					w.restore(s)
				case 2:
					w.partial(s)
				case 3:
					w.revert(s)
				}
				if w.rand.IntN(12) == 0 {
					s = w.open(s.opts)
				}
				if t.Failed() {
					t.Fatalf("step %d", i)
				}
			}
			w.git("fsck", "--strict", "--no-dangling")
		})
	}
}

func (w *walker) restore(s *Store) {
	w.t.Helper()
	ctx := w.t.Context()
	i := w.rand.IntN(len(w.saved))
	before := w.disk()
	plan, err := s.Plan(ctx, w.saved[i])
	if err != nil {
		w.t.Fatal(err)
	}
	if !maps.Equal(before, w.disk()) {
		w.t.Error("planning changed the worktree")
	}
	rep, err := s.Restore(ctx, w.saved[i])
	if err != nil {
		w.t.Fatal(err)
	}
	if len(rep.Conflicts) > 0 {
		w.t.Errorf("conflicts: %v", rep.Conflicts)
	}
	if len(plan.Write) != len(rep.Written) || len(plan.Delete) != len(rep.Deleted) {
		w.t.Errorf("plan: %v, %v; done: %v, %v", plan.Write, plan.Delete, rep.Written, rep.Deleted)
	}
	// The index may have got another idea of modes and conversions; bytes count.
	after := w.disk()
	protected := map[string]bool{}
	for _, n := range rep.Protected {
		protected[n.Path] = true
	}
	saved := map[string]bool{}
	for line := range strings.SplitSeq(w.git("ls-tree", "-r", "-z", "--name-only", w.saved[i].Tree), "\x00") {
		saved[line] = true
	}
	for p := range saved {
		if p != "" && !protected[p] && after[p] != w.disks[i][p] {
			w.t.Errorf("%q: %q after restoring #%d, was %q", p, after[p], w.saved[i].ID, w.disks[i][p])
		}
	}
	for _, p := range rep.Deleted {
		if saved[p] {
			w.t.Errorf("%q was deleted and is in the target", p)
		}
	}
	for p, content := range before {
		if got, ok := after[p]; (!ok || got != content) && !contains(rep.Deleted, p) && !contains(rep.Written, p) {
			w.t.Errorf("%q was changed and is not in the report", p)
		}
	}
	if w.rand.IntN(2) == 0 || rep.Now.ID == 0 {
		return
	}
	w.undo(s, before, rep)
}

// partial restores some paths of an old checkpoint: all others stay, and an
// undo gives every byte of before.
func (w *walker) partial(s *Store) {
	w.t.Helper()
	i := w.rand.IntN(len(w.saved))
	before := w.disk()
	names := []string{w.somePath(), w.somePath(), walkNames[w.rand.IntN(len(walkNames))]}[w.rand.IntN(3):]
	rep, err := s.Restore(w.t.Context(), w.saved[i], names...)
	if errors.Is(err, ErrNoPath) {
		if !maps.Equal(before, w.disk()) {
			w.t.Error("a refused restore changed the worktree")
		}
		return
	}
	if err != nil {
		w.t.Fatalf("restoring %q of #%d: %v", names, w.saved[i].ID, err)
	}
	after := w.disk()
	chosen := inFolders(names)
	for _, p := range slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after))) {
		if before[p] != after[p] && !chosen(p) && !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, p+"/") }) {
			w.t.Errorf("%q was changed by a restore of %q", p, names)
		}
	}
	if rep.Now.ID != 0 {
		w.undo(s, before, rep)
	}
}

// revert takes one old turn back, if nothing is in the way: an undo gives every byte of before.
func (w *walker) revert(s *Store) {
	w.t.Helper()
	i := w.rand.IntN(len(w.saved))
	if i == 0 {
		return // there is no change to take back
	}
	before := w.disk()
	rep, err := s.RevertTurn(w.t.Context(), w.saved[i], RevertOptions{Markers: w.rand.IntN(2) == 0})
	if errors.Is(err, ErrConflict) {
		if !maps.Equal(before, w.disk()) {
			w.t.Error("a refused revert changed the worktree")
		}
		return
	}
	if err != nil {
		w.t.Fatalf("reverting #%d: %v", w.saved[i].ID, err)
	}
	if rep.Now.ID != 0 {
		w.undo(s, before, rep)
	}
}

// undo takes a restore back and compares the worktree with the one before it.
func (w *walker) undo(s *Store, before map[string]string, rep RestoreReport) {
	w.t.Helper()
	undone, err := s.Undo(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if got := w.disk(); !maps.Equal(got, before) {
		w.t.Logf("restored: %+v\nundone: %+v", rep, undone)
		for p := range before {
			if got[p] != before[p] {
				w.t.Errorf("%q: %q after undo, was %q", p, got[p], before[p])
			}
		}
		for p := range got {
			if _, ok := before[p]; !ok {
				w.t.Errorf("%q: there after undo, was not", p)
			}
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// disk reads all files of the worktree, with their kind and executable bit.
func (w *walker) disk() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == w.path(".git") {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		rel, _ := filepath.Rel(w.dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			all[rel] = "-> " + target
			return err
		case d.Type().IsRegular():
			b, err := os.ReadFile(path)
			all[rel] = strconv.FormatBool(info.Mode()&0o100 != 0) + " " + string(b)
			return err
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

var walkNames = []string{"a", "b", "c.log", "d", "e.txt", "f.up", "x y", "\xfe", "n\nl", "build", "A"}

func (w *walker) somePath() string {
	p := walkNames[w.rand.IntN(len(walkNames))]
	for range w.rand.IntN(3) {
		p = filepath.Join(p, walkNames[w.rand.IntN(len(walkNames))])
	}
	return p
}

func (w *walker) content() string {
	return []string{"", "a", "b", "1\n2\n", "1\r\n2\r\n", "$Id$\n", "\x00\r\n", strings.Repeat("x\n", 50)}[w.rand.IntN(8)] + strconv.Itoa(w.rand.IntN(5))
}

// change makes one random change. Changes that are not possible are left out.
func (w *walker) change() {
	p := w.somePath()
	file := w.path(p)
	switch w.rand.IntN(16) {
	case 0, 1, 2, 3, 4:
		w.put(p, w.content())
	case 5:
		_ = os.RemoveAll(w.path(p))
	case 6:
		_ = os.RemoveAll(w.path(p))
		w.put(p, w.content())
	case 7:
		if w.clear(p) {
			_ = os.Symlink([]string{"a", "../..", "/etc", "nowhere"}[w.rand.IntN(4)], file)
		}
	case 8:
		if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() {
			must(w.repo, os.Chmod(file, []os.FileMode{0o644, 0o755, 0o600}[w.rand.IntN(3)]))
		}
	case 9:
		w.put(filepath.Join(filepath.Dir(p), ".gitignore"), []string{"*.log\n", "build/\n", "build\n!a\n", "", "x*\n/a\n", ".gitignore\n"}[w.rand.IntN(6)])
	case 10: // the same size, and the old time
		info, err := os.Lstat(file)
		if err == nil && info.Mode().IsRegular() {
			w.put(p, strings.Repeat("z", int(info.Size())))
			_ = os.Chtimes(file, time.Now(), info.ModTime())
		}
	case 11:
		if _, err := os.Lstat(file); err == nil {
			_, _ = w.try(nil, "add", "-f", "--", p)
		}
	case 12:
		_, _ = w.try(nil, "rm", "-rq", "--cached", "--ignore-unmatch", "--", p)
	case 13:
		w.git("commit", "-qam", "c", "--allow-empty")
	case 14:
		w.put(".gitattributes", []string{"*.txt text\n", "*.up filter=up\n", "* text=auto\n", "a ident\n", ""}[w.rand.IntN(5)])
	case 15:
		w.put(".git/info/exclude", []string{"d\n", "", "*.txt\n"}[w.rand.IntN(3)])
	}
}

// clear makes room for a new name, if its folder can be made.
func (w *walker) clear(p string) bool {
	_ = os.RemoveAll(w.path(p))
	dir := filepath.Dir(w.path(p))
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
		return false // never through a symlink
	}
	return os.MkdirAll(dir, 0o755) == nil
}

func (w *walker) put(p, content string) {
	if info, err := os.Lstat(w.path(p)); err == nil && !info.Mode().IsRegular() || !w.realDir(p) {
		return
	}
	if err := os.MkdirAll(filepath.Dir(w.path(p)), 0o755); err == nil {
		must(w.repo, os.WriteFile(w.path(p), []byte(content), 0o644))
	}
}

// realDir tells that no symlink is above p.
func (w *walker) realDir(p string) bool {
	for dir := filepath.Dir(w.path(p)); dir != w.dir; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return false
		}
	}
	return true
}
