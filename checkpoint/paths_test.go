package checkpoint

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRestorePaths(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, f := range []string{"a", "b", "d/x", "d/y", "e/z", "swap/in"} {
		r.write(f, "old")
	}
	s := r.open(Options{})
	c, _ := r.save(s, Meta{Cause: CauseTurn, Turn: 1, Entry: "e1"})
	for _, f := range []string{"a", "b", "d/x", "d/new", "e/z"} {
		r.write(f, "new")
	}
	r.remove("d/y")
	r.remove("swap")
	r.write("swap", "a file now")
	r.save(s, Meta{Cause: CauseTurn, Turn: 2, Entry: "e2"})
	plan, err := s.Plan(t.Context(), c, "d", "swap/in")
	if want := []string{"d/x", "d/y", "swap/in"}; err != nil || !slices.Equal(plan.Write, want) {
		t.Errorf("plan %+v, %v", plan, err)
	}
	rep, err := s.Restore(t.Context(), c, "d", "swap/in")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"d/x", "d/y", "swap/in"}; !slices.Equal(rep.Written, want) {
		t.Errorf("written %q, want %q", rep.Written, want)
	}
	if want := []string{"d/new", "swap"}; !slices.Equal(rep.Deleted, want) {
		t.Errorf("deleted %q, want %q", rep.Deleted, want)
	}
	if len(rep.Conflicts)+len(rep.Protected) > 0 || r.read("a") != "new" || r.read("e/z") != "new" || r.read("swap/in") != "old" {
		t.Errorf("report %+v", rep)
	}
	if rep.Now.Turn != 2 || rep.Now.Entry != "e2" || rep.Now.Restored != c.Commit {
		t.Errorf("the conversation does not go back with some files: %+v", rep.Now)
	}
	r.write("a", "newer") // no business of the restore's
	if _, err := s.Undo(t.Context()); err != nil || r.read("a") != "newer" || r.read("swap") != "a file now" || r.read("d/new") != "new" {
		t.Errorf("undo: %v", err)
	}
	if _, err := s.Redo(t.Context()); err != nil || r.read("a") != "newer" || r.read("d/x") != "old" || r.read("swap/in") != "old" {
		t.Errorf("redo: %v", err)
	}
	for _, bad := range []string{"nosuch", "../x", "/etc", ""} {
		if _, err := s.Restore(t.Context(), c, bad); !errors.Is(err, ErrNoPath) {
			t.Errorf("path %q: %v", bad, err)
		}
	}
	r.check(s)
}

// TestRestorePathsProtects: a part obeys the ignore rules of the checkpoint
// and those of the present.
func TestRestorePathsProtects(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write(".gitignore", "*.log\n")
	r.write("d/x", "old")
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	r.write(".gitignore", "")
	r.write("d/x", "new")
	r.write("d/y.log", "may have been there then")
	rep, err := s.Restore(t.Context(), c, "d")
	if err != nil || r.read("d/x") != "old" || r.read("d/y.log") != "may have been there then" || !slices.Equal(paths(rep.Protected), []string{"d/y.log"}) {
		t.Errorf("report %+v, %v", rep, err)
	}
}

// TestUndoWalks takes several restores back and forth.
func TestUndoWalks(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := r.open(Options{})
	var saved []Checkpoint
	for _, text := range []string{"1", "2", "3", "4"} {
		r.write("a", text)
		c, _ := r.save(s, Meta{})
		saved = append(saved, c)
	}
	step := func(want string, walk func(context.Context) (RestoreReport, error)) {
		t.Helper()
		rep, err := walk(t.Context())
		if want == "" {
			if !errors.Is(err, ErrNothingToUndo) && !errors.Is(err, ErrNothingToRedo) {
				t.Errorf("a step too many: %v", err)
			}
			return
		}
		if err != nil || r.read("a") != want {
			t.Errorf("a is %s, want %s: %+v, %v", r.read("a"), want, rep, err)
		}
	}
	step("", s.Undo)
	r.restore(s, saved[0])
	r.restore(s, saved[1])
	r.restore(s, saved[2])
	step("", s.Redo)
	step("2", s.Undo)
	step("1", s.Undo)
	step("2", s.Redo)
	r.save(s, Meta{}) // changes nothing about it
	step("1", s.Undo)
	step("4", s.Undo)
	step("", s.Undo)
	step("1", s.Redo)
	step("2", s.Redo)
	step("3", s.Redo)
	step("", s.Redo)
	step("2", s.Undo)
	r.write("a", "by hand")
	step("1", s.Undo)
	step("by hand", s.Redo) // what was there when it was undone
	r.restore(s, saved[3])
	step("", s.Redo)
	step("by hand", s.Undo)
}

// TestRestoreBusy changes a file under a restore, as an agent would.
func TestRestoreBusy(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, f := range []string{"a", "b", "c"} {
		r.write(f, "old")
	}
	meddle := func(times int) func(Progress) {
		return func(p Progress) {
			if p.What == "restoring" && p.Done == 1 && times > 0 {
				times--
				r.write("c", "meddled "+strings.Repeat("x", times))
			}
		}
	}
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	for _, f := range []string{"a", "b", "c", "extra"} { // deletions come first
		r.write(f, "new")
	}
	s.opts.Progress = meddle(1)
	rep, err := s.Restore(t.Context(), c)
	if err != nil || rep.Now.Tree != c.Tree || rep.Undo.Tree == c.Tree {
		t.Fatalf("once: %+v, %v", rep, err)
	}
	if _, err := s.Undo(t.Context()); err != nil || r.read("c") != "meddled " {
		t.Errorf("what the other process wrote is in no checkpoint: %q, %v", r.read("c"), err)
	}
	s.opts.Progress = meddle(100)
	rep, err = s.Restore(t.Context(), c)
	if !errors.Is(err, ErrBusy) || !rep.RolledBack || !slices.Equal(paths(rep.Conflicts), []string{"c"}) || r.read("a") != "new" || r.read("extra") != "new" {
		t.Errorf("always: %+v, %v", rep, err)
	}
	if s.interrupted() {
		t.Error("a journal is left")
	}
}

// TestRestoreCaseRename brings a name back that differs in its case only,
// with the rules of a system that folds cases.
func TestRestoreCaseRename(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.git("config", "core.ignoreCase", "true")
	r.write("Readme", "text")
	r.write("Dir/File", "text")
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	must(r, os.Rename(r.path("Readme"), r.path("tmp")))
	must(r, os.Rename(r.path("tmp"), r.path("README")))
	r.remove("Dir")
	r.write("dir/file", "text")
	r.restore(s, c)
	names := map[string]bool{}
	list, err := os.ReadDir(r.dir)
	must(r, err)
	for _, d := range list {
		names[d.Name()] = true
	}
	if !maps.Equal(names, map[string]bool{".git": true, "Readme": true, "Dir": true}) || r.read("Dir/File") != "text" {
		t.Errorf("names %v", names)
	}
}

// TestRestoreFileMode: with core.fileMode off the executable bit is no change,
// and is left as it is on disk.
func TestRestoreFileMode(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "old")
	r.write("b", "old")
	r.git("config", "core.fileMode", "false")
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	must(r, os.Chmod(r.path("a"), 0o755))
	must(r, os.Chmod(r.path("b"), 0o755))
	r.write("b", "new")
	must(r, os.Chmod(r.path("b"), 0o755))
	rep := r.restore(s, c)
	if !slices.Equal(rep.Written, []string{"b"}) || r.read("b") != "old" {
		t.Errorf("written %q", rep.Written)
	}
	for _, f := range []string{"a", "b"} {
		if info, err := os.Stat(r.path(f)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: mode %v, %v", f, info.Mode(), err)
		}
	}
}

// TestRestoreLeavesRepositories: a nested repository and a submodule stay as they are, whatever the checkpoint has.
func TestRestoreLeavesRepositories(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "old")
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	sub := &repo{t: t, dir: r.path("sub")}
	must(r, os.Mkdir(sub.dir, 0o755))
	sub.git("init", "-q")
	sub.write("inner", "1")
	sub.commit()
	withSub, _ := r.save(s, Meta{})
	sub.write("inner", "2")
	sub.commit()
	head := sub.git("rev-parse", "HEAD")
	r.write("a", "new")
	rep := r.restore(s, c)
	if r.read("a") != "old" || r.read("sub/inner") != "2" || !slices.Equal(paths(rep.Protected), []string{"sub"}) {
		t.Errorf("report %+v", rep)
	}
	r.restore(s, withSub)
	if r.read("sub/inner") != "2" || sub.git("rev-parse", "HEAD") != head || sub.git("status", "--porcelain") != "" {
		t.Error("the nested repository was touched")
	}
}

func TestRestoreNotes(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "1")
	r.commit()
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	r.write("a", "2")
	r.commit()
	must(r, os.WriteFile(r.path(".git/MERGE_HEAD"), []byte(r.git("rev-parse", "HEAD")+"\n"), 0o600))
	if rep := r.restore(s, c); len(rep.Notes) != 2 || !strings.HasPrefix(rep.Notes[0], "a merge is going on") || !strings.HasPrefix(rep.Notes[1], "HEAD was ") {
		t.Errorf("notes %q", rep.Notes)
	}
}

// TestRestoreTouchesNothingElse compares all of the git folder that is not
// ours, and runs no hook.
func TestRestoreTouchesNothingElse(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "1\n2\n3\n")
	r.write("kept", "1")
	r.commit()
	r.git("branch", "other")
	r.git("tag", "v1")
	hooks := t.TempDir()
	mark := hooks + "/ran"
	for _, h := range []string{"post-index-change", "reference-transaction", "post-checkout", "pre-commit", "post-commit", "pre-auto-gc"} {
		must(r, os.WriteFile(hooks+"/"+h, []byte("#!/bin/sh\necho "+h+" >>"+mark+"\n"), 0o755)) //nolint:gosec // a hook must be executable
	}
	r.git("config", "core.hooksPath", hooks)
	s := r.open(Options{})
	outside := func() map[string]string {
		all := map[string]string{"refs": r.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags", "refs/stash")}
		for _, f := range []string{"index", "HEAD", "config", "logs/HEAD"} {
			info, err := os.Lstat(r.path(".git/" + f))
			must(r, err)
			all[f] = r.read(".git/"+f) + info.ModTime().Format(time.RFC3339Nano)
		}
		info, err := os.Lstat(r.path("kept"))
		must(r, err)
		all["kept"] = info.ModTime().Format(time.RFC3339Nano)
		return all
	}
	_ = os.Remove(mark)
	before := outside()
	first, _ := r.save(s, Meta{})
	r.write("a", "turn\n2\n3\n")
	turn, _ := r.save(s, Meta{Cause: CauseTurn, Turn: 1})
	r.write("a", "turn\n2\nlater\n")
	for _, run := range []func() error{
		func() error { _, err := s.RevertTurn(t.Context(), turn, RevertOptions{}); return err },
		func() error { _, err := s.Undo(t.Context()); return err },
		func() error { _, err := s.Restore(t.Context(), first, "a"); return err },
		func() error { _, err := s.Redo(t.Context()); return unless(err, ErrNothingToRedo) },
		func() error { return s.Label(t.Context(), turn, "kept") },
		func() error { return s.Unlabel(t.Context(), "kept") },
		func() error { _, err := s.Verify(t.Context(), true); return err },
	} {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	if after := outside(); !maps.Equal(before, after) {
		t.Errorf("before %v\nafter %v", before, after)
	}
	if b, err := os.ReadFile(mark); err == nil {
		t.Errorf("hooks ran: %s", b)
	}
}

func unless(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

// TestCaseInsensitiveVolume brings names back that differ in their case only, on
// a volume that takes them for one (Linux 6.13 has one in memory, where its kernel was built with it).
func TestCaseInsensitiveVolume(t *testing.T) {
	t.Parallel()
	disk := mounted(t, "casefold,size=64m")
	r := &repo{t: t, dir: filepath.Join(disk, "repo")}
	must(r, os.Mkdir(r.dir, 0o755))
	if out, err := exec.Command("chattr", "+F", r.dir).CombinedOutput(); err != nil {
		t.Skipf("chattr: %v: %s", err, out)
	}
	r.git("init", "-q")
	if r.git("config", "core.ignoreCase") != "true" {
		t.Fatal("git sees no volume that folds cases")
	}
	r.write("Readme", "1")
	r.write("Dir/File", "1")
	r.write(".gitignore", "BUILD\n")
	r.write("build/x", "ignored")
	r.commit()
	s := r.open(Options{})
	c := r.check(s)
	must(r, os.Rename(r.path("Readme"), r.path("README")))
	must(r, os.Rename(r.path("Dir/File"), r.path("Dir/FILE")))
	r.write("README", "2")
	rep := r.restore(s, c)
	if got := r.check(s); got.Tree != c.Tree || len(rep.Conflicts) > 0 {
		t.Errorf("tree %s, want %s: %+v", got.Tree, c.Tree, rep)
	}
	if _, err := s.Undo(t.Context()); err != nil || r.read("README") != "2" || r.read("build/x") != "ignored" {
		t.Errorf("after the undo: %q, %v", r.read("README"), err)
	}
}
