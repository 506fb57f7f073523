package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func paths(notes []PathNote) []string {
	var all []string
	for _, n := range notes {
		all = append(all, n.Path)
	}
	slices.Sort(all)
	return all
}

func (r *repo) restore(s *Store, c Checkpoint) RestoreReport {
	r.t.Helper()
	rep, err := s.Restore(r.t.Context(), c)
	if err != nil {
		r.t.Fatal(err)
	}
	return rep
}

func TestRestoreUndoRedo(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("same", "1")
	r.write("changed", "old")
	r.write("gone", "1")
	r.write("dir/a", "1")
	r.write("file", "1")
	r.commit()
	s := r.open(Options{})
	first, _ := r.save(s, Meta{Run: "r", Agent: "a", Turn: 1, Cause: CauseTurn, Message: "m1", Entry: "e1"})
	r.write("changed", "new")
	r.remove("gone")
	r.remove("dir")
	must(r, os.Symlink("/etc", r.path("dir")))
	r.remove("file")
	r.write("file/x", "1")
	must(r, os.Chmod(r.path("same"), 0o755))
	r.write("new/deep", "1")
	old := time.Unix(1_000_000, 5)
	r.write("kept", "1")
	must(r, os.Chtimes(r.path("kept"), old, old))
	second, _ := r.save(s, Meta{Run: "r", Agent: "a", Turn: 2, Cause: CauseTurn})
	index, head := r.read(".git/index"), r.read(".git/HEAD")
	r.write("new/deep", "unsaved work")

	rep := r.restore(s, first)
	if want := []string{"changed", "dir/a", "file", "gone", "same"}; !slices.Equal(rep.Written, want) {
		t.Errorf("written %q, want %q", rep.Written, want)
	}
	if want := []string{"dir", "file/x", "kept", "new/deep"}; !slices.Equal(rep.Deleted, want) {
		t.Errorf("deleted %q, want %q", rep.Deleted, want)
	}
	if rep.Now.Tree != first.Tree || rep.Now.Cause != CauseRestored || rep.Now.Turn != 1 || rep.Now.Entry != "e1" || rep.Undo.Cause != CauseUndo || rep.Undo.Turn != 2 {
		t.Errorf("report %+v", rep)
	}
	if r.read("changed") != "old" || r.read("dir/a") != "1" {
		t.Error("contents were not restored")
	}
	if _, err := os.Lstat(r.path("new")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a folder that became empty is still there")
	}
	undo, err := s.Undo(t.Context())
	if err != nil || r.read("new/deep") != "unsaved work" || undo.Now.Tree != rep.Undo.Tree {
		t.Errorf("undo: %v, tree %s, want %s", err, undo.Now.Tree, rep.Undo.Tree)
	}
	redo, err := s.Redo(t.Context())
	if err != nil || redo.Now.Tree != first.Tree {
		t.Errorf("redo: %v, tree %s, want %s", err, redo.Now.Tree, first.Tree)
	}
	r.restore(s, second)
	if r.read("new/deep") != "1" {
		t.Error("the second checkpoint was not restored")
	}
	if index != r.read(".git/index") || head != r.read(".git/HEAD") {
		t.Error("index or HEAD were changed")
	}
}

func TestRestoreKeepsUnchangedFiles(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "1")
	r.write("b", "1")
	must(r, os.Chmod(r.path("b"), 0o640))
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	r.write("b", "2")
	before, err := os.Stat(r.path("a"))
	must(r, err)
	r.restore(s, c)
	after, err := os.Stat(r.path("a"))
	must(r, err)
	if !os.SameFile(before, after) || before.ModTime() != after.ModTime() {
		t.Error("an unchanged file was touched")
	}
	if info, err := os.Stat(r.path("b")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("permissions of a rewritten file are %v, want 0640", info.Mode())
	}
}

// TestRestoreProtects makes sure that nothing is lost that is in no checkpoint.
func TestRestoreProtects(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write(".gitignore", "*.log\nsecret\n")
	r.write("dirfile", "a file now")
	r.write("nest", "a file now")
	r.write("fifo", "a file now")
	r.write("big", "small now")
	r.commit()
	s := r.open(Options{SizeCap: 100})
	c, _ := r.save(s, Meta{})

	r.write("x.log", "ignored")
	r.write("secret", "ignored")
	r.git("add", "-f", "secret") // in checkpoints from now on, ignored in the target
	for _, f := range []string{"dirfile", "nest", "fifo", "big"} {
		r.remove(f)
	}
	r.write("dirfile/precious.log", "ignored, in the way of a file")
	sub := &repo{t: t, dir: r.path("nest")}
	must(r, os.Mkdir(sub.dir, 0o755))
	sub.git("init", "-q")
	sub.write("inner", "1")
	sub.commit()
	must(r, syscall.Mkfifo(r.path("fifo"), 0o600))
	r.write("big", strings.Repeat("x", 101))
	outside := t.TempDir()
	must(r, os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o600))
	must(r, os.Symlink(outside, r.path("link")))

	rep := r.restore(s, c)
	want := []string{"big", "dirfile", "fifo", "nest", "secret"}
	if got := paths(rep.Protected); !slices.Equal(got, want) {
		t.Errorf("protected %q, want %q", got, want)
	}
	for name, content := range map[string]string{"x.log": "ignored", "secret": "ignored", "dirfile/precious.log": "ignored, in the way of a file",
		"nest/inner": "1", "big": strings.Repeat("x", 101)} {
		if got := r.read(name); got != content {
			t.Errorf("%s: %q, want %q", name, got, content)
		}
	}
	if b, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(b) != "outside" {
		t.Errorf("the file behind a symlink: %q, %v", b, err)
	}
	if _, err := os.Lstat(r.path("link")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the symlink itself should be gone")
	}
}

// TestRestoreThroughSymlink: a folder of the target is a symlink now. What is behind it stays.
func TestRestoreThroughSymlink(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("d/f", "inside")
	r.write("d/g", "inside")
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	outside := t.TempDir()
	must(r, os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o600))
	r.remove("d")
	must(r, os.Symlink(outside, r.path("d")))
	r.write(".gitignore", "d\n") // and it is ignored
	rep := r.restore(s, c)
	if rep.Now.Tree != c.Tree || r.read("d/f") != "inside" {
		t.Errorf("restored to %s, want %s: %+v", rep.Now.Tree, c.Tree, rep)
	}
	if b, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(b) != "outside" {
		t.Errorf("the file behind the symlink: %q, %v", b, err)
	}
	if _, err := s.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.Readlink(r.path("d")); err != nil || got != outside {
		t.Errorf("after undo: %q, %v", got, err)
	}
}

// TestRestoreConverted: git's filters lose bytes, a restore does not.
func TestRestoreConverted(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.git("config", "filter.strip.clean", "sed /secret/d")
	r.git("config", "filter.bad.clean", "false")
	r.git("config", "filter.bad.required", "true")
	r.write(".gitattributes", "*.txt text\n*.nb filter=strip\n*.bad filter=bad\n")
	mixed, notebook := "one\r\ntwo\nthree\r\n", "output\nsecret\n"
	r.write("a.txt", mixed)
	r.write("b.nb", notebook)
	s := r.open(Options{})
	c := r.check(s)
	r.write("a.txt", "one\ntwo\nthree\n") // the same blob to git
	r.write("b.nb", "other\n")
	rep := r.restore(s, c)
	if r.read("a.txt") != mixed || r.read("b.nb") != notebook || rep.Now.Tree != c.Tree {
		t.Errorf("restored %q and %q", r.read("a.txt"), r.read("b.nb"))
	}
	if _, err := s.Undo(t.Context()); err != nil || r.read("a.txt") != "one\ntwo\nthree\n" {
		t.Errorf("undone %q, %v", r.read("a.txt"), err)
	}
	r.write("x.bad", "kept as it is")
	c, report := r.save(s, Meta{})
	if got := paths(report.Unconverted); !slices.Equal(got, []string{"x.bad"}) {
		t.Errorf("unconverted %q", got)
	}
	if got := r.git("cat-file", "-p", c.Tree+":x.bad"); got != "kept as it is" {
		t.Errorf("x.bad is %q", got)
	}
}

// TestRecover leaves a restore in the middle, as a crash would.
func TestRecover(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, f := range []string{"a", "b", "c", "d", "gone/x"} {
		r.write(f, "old")
	}
	s := r.open(Options{})
	target, _ := r.save(s, Meta{Turn: 4})
	for _, f := range []string{"a", "b", "c", "d", "extra"} {
		r.write(f, "new")
	}
	r.remove("gone")
	undo, _ := r.save(s, Meta{Cause: CauseUndo})
	must(r, s.writeJournal(journal{Ref: s.Ref(), Undo: undo.Commit, Goal: target.Commit, Target: target.Commit, Meta: Meta{Cause: CauseRestored, Turn: 4}}))
	r.write("a", "old")               // done
	r.remove("b")                     // between deletion and write
	r.write("c", "edited by someone") // after the crash
	r.write(tempPrefix+"1-1", "half")
	r.open(Options{})
	for name, want := range map[string]string{"a": "old", "b": "old", "c": "edited by someone", "d": "old", "gone/x": "old"} {
		if got := r.read(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"extra", tempPrefix + "1-1"} {
		if _, err := os.Lstat(r.path(name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", name)
		}
	}
	if s.interrupted() {
		t.Error("the journal is still there")
	}
	latest, err := s.Find(t.Context(), "latest")
	if err != nil || latest.Cause != CauseRestored || latest.Before != undo.Commit || latest.Restored != target.Commit {
		t.Errorf("latest %+v, %v", latest, err)
	}
	if rep, err := s.Recover(t.Context()); err != nil || rep != nil {
		t.Errorf("a second recovery did something: %v, %v", rep, err)
	}
}

// TestOddJournals: what a power loss leaves of a journal stands for nothing;
// one that is whole and not understood stops every change.
func TestOddJournals(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "old")
	s := r.open(Options{})
	target, _ := r.save(s, Meta{})
	r.write("a", "new")
	undo, _ := r.save(s, Meta{Cause: CauseUndo})
	j := journal{Ref: s.Ref(), Undo: undo.Commit, Goal: target.Commit, Target: target.Commit, Meta: Meta{Cause: CauseRestored}}
	must(r, s.writeJournal(j))
	whole := r.read(".git/muntin/restore.json")
	for n := range len(whole) {
		must(r, os.WriteFile(s.journalFile(), []byte(whole[:n]), 0o600))
		if j, err := s.readJournal(); j != nil || err != nil {
			t.Fatalf("%d bytes of %q: %+v, %v", n, whole, j, err)
		}
	}
	for _, text := range []string{"\x00\x00\x00", "{broken"} {
		must(r, os.WriteFile(s.journalFile(), []byte(text), 0o600))
		if _, _, err := s.Save(t.Context(), Meta{}); err != nil || r.read("a") != "new" {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{strings.Replace(whole, `"version":3`, `"version":2`, 1), strings.Replace(whole, target.Commit, undo.Commit, 1), `{"version":2}`} {
		must(r, os.WriteFile(s.journalFile(), []byte(text), 0o600))
		if _, _, err := s.Save(t.Context(), Meta{}); err == nil || r.read(".git/muntin/restore.json") != text {
			t.Errorf("%q must stop changes and stay: %v", text, err)
		}
	}
	// The crash came before the chain had the state before, so nothing was changed yet.
	j.Undo = strings.Repeat("12", 20)
	must(r, s.writeJournal(j))
	s.opts.Recovered = func(rep RestoreReport) { t.Errorf("%+v", rep) }
	if _, _, err := s.Save(t.Context(), Meta{}); err != nil || r.read("a") != "new" || s.interrupted() {
		t.Errorf("a restore that was not begun: %v, a is %q", err, r.read("a"))
	}
}

// TestRestoreFailure: an error in the middle takes everything back.
func TestRestoreFailure(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	r := newRepo(t)
	r.write("a", "old")
	r.write("locked/b", "old")
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	r.write("a", "new")
	r.write("locked/b", "new")
	must(r, os.Chmod(r.path("locked"), 0o555))
	rep, err := s.Restore(t.Context(), c)
	if err == nil || !rep.RolledBack || r.read("a") != "new" || r.read("locked/b") != "new" || s.interrupted() {
		t.Errorf("report %+v, error %v, a is %q", rep, err, r.read("a"))
	}
	must(r, os.Chmod(r.path("locked"), 0o755))
}

// endingContext ends after it was asked a number of times.
type endingContext struct {
	context.Context
	left *atomic.Int64
}

func (c endingContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

// TestRestoreCanceled ends a restore at each of its steps. It must be done, or taken back.
func TestRestoreCanceled(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, f := range []string{"a", "b", "c/d"} {
		r.write(f, "old")
	}
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	for _, f := range []string{"a", "b", "e/f"} {
		r.write(f, "new")
	}
	r.remove("c")
	before := r.oracle()
	rolledBack := 0
	for asked := int64(0); ; asked++ {
		var left atomic.Int64
		left.Store(asked)
		rep, err := s.Restore(endingContext{t.Context(), &left}, c)
		if err == nil {
			if rep.Now.Tree != c.Tree {
				t.Errorf("restored to %s, want %s", rep.Now.Tree, c.Tree)
			}
			break
		}
		if rep.RolledBack {
			rolledBack++
		}
		if got := r.oracle(); got != before || s.interrupted() {
			t.Fatalf("ended after %d: tree %s, want %s; %v", asked, got, before, err)
		}
	}
	if rolledBack < 3 {
		t.Errorf("%d restores were taken back, want one at each step", rolledBack)
	}
}

func TestRestoreNothing(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := r.open(Options{})
	if _, err := s.Undo(t.Context()); !errors.Is(err, ErrNothingToUndo) {
		t.Errorf("undo without a restore: %v", err)
	}
	if _, err := s.Restore(t.Context(), Checkpoint{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("restore of nothing: %v", err)
	}
	c, _ := r.save(s, Meta{})
	p, err := s.Plan(t.Context(), c)
	if err != nil || !reflect.DeepEqual(p, Plan{Target: c}) {
		t.Errorf("plan %+v, %v", p, err)
	}
}
