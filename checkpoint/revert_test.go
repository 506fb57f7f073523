package checkpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

func TestRevertTurn(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	lines := func(changed map[int]string) string {
		var b strings.Builder
		for i := range 20 {
			text := fmt.Sprintf("line %d", i)
			if c, ok := changed[i]; ok {
				text = c
			}
			b.WriteString(text + "\n")
		}
		return b.String()
	}
	r.write("both.txt", lines(nil))
	r.write("only.txt", "old")
	r.write("gone/x", "was here")
	r.write("mode.sh", "#!/bin/sh\n")
	must(r, os.Symlink("old", r.path("link")))
	s := r.open(Options{})
	r.save(s, Meta{Cause: CauseStart})
	r.write("both.txt", lines(map[int]string{2: "by the turn"}))
	r.write("only.txt", "new")
	r.remove("gone")
	r.write("added", "by the turn")
	must(r, os.Chmod(r.path("mode.sh"), 0o755))
	r.remove("link")
	must(r, os.Symlink("new", r.path("link")))
	turn, _ := r.save(s, Meta{Cause: CauseTurn, Turn: 1, Agent: "ada", Entry: "e1"})
	r.write("both.txt", lines(map[int]string{2: "by the turn", 15: "later"}))
	r.write("mode.sh", "#!/bin/sh\nexit 1\n")
	must(r, os.Chmod(r.path("mode.sh"), 0o755))
	r.write("later", "kept")
	r.save(s, Meta{Cause: CauseTurn, Turn: 2, Agent: "ada", Entry: "e2"})

	rep, err := s.RevertTurn(t.Context(), turn, RevertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"both.txt": lines(map[int]string{15: "later"}), "only.txt": "old", "gone/x": "was here", "later": "kept", "mode.sh": "#!/bin/sh\nexit 1\n"} {
		if got := r.read(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, err := os.Lstat(r.path("added")); !errors.Is(err, os.ErrNotExist) {
		t.Error("what the turn added is still there")
	}
	if got, _ := os.Readlink(r.path("link")); got != "old" {
		t.Errorf("link to %q", got)
	}
	if info, err := os.Stat(r.path("mode.sh")); err != nil || info.Mode()&0o100 != 0 {
		t.Errorf("mode.sh is still executable: %v", err)
	}
	if rep.Now.Cause != CauseRestored || rep.Now.Entry != "e2" || rep.Target.ID != turn.ID {
		t.Errorf("report %+v", rep)
	}
	r.write("much later", "kept by undo")
	if _, err := s.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.read("added") != "by the turn" || r.read("only.txt") != "new" || r.read("much later") != "kept by undo" {
		t.Error("the undo of a revert must bring back what it changed, and nothing else")
	}
	if _, err := s.Redo(t.Context()); err != nil || r.read("only.txt") != "old" || r.read("much later") != "kept by undo" {
		t.Errorf("redo of a revert: %v", err)
	}
	r.check(s)
}

func TestRevertConflicts(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("text", "one\ntwo\nthree\n")
	r.write("bin", "\x00old")
	r.write("deleted", "old\n")
	r.write("fine", "old\n")
	r.write("dir", "a file\n")
	s := r.open(Options{})
	r.save(s, Meta{})
	r.write("text", "one\nTURN\nthree\n")
	r.write("bin", "\x00turn")
	r.write("deleted", "turn\n")
	r.write("fine", "turn\n")
	r.write("added", "turn\n")
	r.remove("dir")
	turn, _ := r.save(s, Meta{Cause: CauseTurn, Turn: 1})
	r.write("text", "one\nLATER\nthree\n")
	r.write("bin", "\x00later")
	r.remove("deleted")
	r.write("added", "later\n")
	r.write("dir/x", "in its place\n")
	before := r.oracle()
	rep, err := s.RevertTurn(t.Context(), turn, RevertOptions{})
	want := []string{"added", "bin", "deleted", "dir", "text"}
	if !errors.Is(err, ErrConflict) || !slices.Equal(paths(rep.Conflicts), want) || r.oracle() != before {
		t.Errorf("conflicts %q, want %q; %v", paths(rep.Conflicts), want, err)
	}
	all, err := s.List(t.Context())
	if err != nil || len(all) != 2 {
		t.Errorf("a refused revert made checkpoints: %d, %v", len(all), err)
	}
	if _, err := s.RevertTurn(t.Context(), turn, RevertOptions{Paths: []string{"fine"}}); err != nil || r.read("fine") != "old\n" {
		t.Errorf("revert of one path: %v", err)
	}
	rep, err = s.RevertTurn(t.Context(), turn, RevertOptions{Markers: true})
	if err != nil || !slices.Equal(paths(rep.Conflicts), want) {
		t.Errorf("conflicts %q, want %q; %v", paths(rep.Conflicts), want, err)
	}
	if got, want := r.read("text"), "one\n<<<<<<< now\nLATER\n=======\ntwo\n>>>>>>> before #2\nthree\n"; got != want {
		t.Errorf("text is\n%s\nwant\n%s", got, want)
	}
	if r.read("bin") != "\x00later" || r.read("added") != "later\n" || r.read("dir/x") != "in its place\n" {
		t.Error("a path with a conflict that has no lines must be left alone")
	}
	first, err := s.Find(t.Context(), "#1")
	must(r, err)
	if _, err := s.RevertTurn(t.Context(), first, RevertOptions{}); err == nil {
		t.Error("the first checkpoint has no change to take back")
	}
}

// TestRevertAgainstGit compares whole reverts of random text changes with
// what git merge-file makes of each file.
func TestRevertAgainstGit(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	text := func(old string) string {
		list := strings.SplitAfter(old, "\n")
		for range 1 + random.IntN(3) {
			at := random.IntN(len(list))
			switch random.IntN(3) {
			case 0:
				list = slices.Insert(list, at, fmt.Sprintf("new %d\n", random.IntN(50)))
			case 1:
				list[at] = fmt.Sprintf("other %d\n", random.IntN(50))
			case 2:
				if len(list) > 1 {
					list = slices.Delete(list, at, at+1)
				}
			}
		}
		return strings.Join(list, "")
	}
	const files = 12
	r := newRepo(t)
	s := r.open(Options{})
	var states [3][files]string
	for step := range states {
		for i := range files {
			old := strings.Repeat("a line\nanother\n", 8)
			if step > 0 {
				old = text(states[step-1][i])
			}
			states[step][i] = old
			r.write(fmt.Sprint(i), old)
		}
		if step < 2 {
			r.save(s, Meta{Cause: CauseTurn, Turn: step})
		}
	}
	turn, err := s.Find(t.Context(), "#2")
	must(r, err)
	if _, err = s.RevertTurn(t.Context(), turn, RevertOptions{Markers: true}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i := range files {
		args := []string{"merge-file", "-p", "-q", "-L", "now", "-L", "after #2", "-L", "before #2"}
		for _, step := range []int{2, 1, 0} {
			file := filepath.Join(dir, fmt.Sprint(step))
			must(r, os.WriteFile(file, []byte(states[step][i]), 0o600))
			args = append(args, file)
		}
		want, _ := exec.Command("git", args...).Output() // its exit status counts conflicts
		if got := r.read(fmt.Sprint(i)); got != string(want) {
			t.Errorf("file %d is\n%s\ngit makes\n%s", i, got, want)
		}
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := r.open(Options{})
	r.write("a", "1")
	first, _ := r.save(s, Meta{})
	r.write("a", "2")
	second, _ := r.save(s, Meta{})
	must(r, s.Label(t.Context(), first, "before-lunch"))
	must(r, s.Label(t.Context(), first, "before-lunch")) // the same again
	if err := s.Label(t.Context(), second, "before-lunch"); !errors.Is(err, ErrExists) {
		t.Errorf("a label that is taken: %v", err)
	}
	for _, bad := range []string{"", "7", "#7", "latest", "turn:1", "abcd", "a/b", "a b", "-x", "x.lock", "@{"} {
		if err := s.Label(t.Context(), first, bad); err == nil {
			t.Errorf("label %q was taken", bad)
		}
	}
	other := r.open(Options{Ref: "refs/muntin/run/other"})
	c, err := other.Find(t.Context(), "before-lunch")
	if err != nil || c.Commit != first.Commit {
		t.Errorf("found %+v, %v", c, err)
	}
	r.git("pack-refs", "--all")
	labels, err := s.Labels(t.Context())
	if err != nil || len(labels) != 1 || labels[0].Name != "before-lunch" || labels[0].Checkpoint.ID != 1 {
		t.Errorf("labels %+v, %v", labels, err)
	}
	chains, err := Chains(t.Context(), r.dir, "")
	if err != nil || len(chains) != 1 {
		t.Errorf("chains %+v, %v", chains, err)
	}
	must(r, s.Unlabel(t.Context(), "before-lunch"))
	if err := s.Unlabel(t.Context(), "before-lunch"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such label: %v", err)
	}
	if _, err := s.Find(t.Context(), "before-lunch"); !errors.Is(err, ErrNotFound) {
		t.Errorf("found: %v", err)
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.git("config", "user.name", "Bob")
	r.git("config", "user.email", "bob@example.org")
	r.write("a", "0")
	r.commit()
	s := r.open(Options{})
	for i := 1; i <= 3; i++ {
		r.write("a", fmt.Sprint(i))
		r.save(s, Meta{Cause: CauseTurn, Agent: "ada", Turn: i})
	}
	r.save(s, Meta{Cause: CauseTurn, Agent: "ada", Turn: 4}) // changed nothing
	c, err := s.Find(t.Context(), "latest")
	must(r, err)
	head, index := r.git("rev-parse", "HEAD"), r.read(".git/index")
	out, err := s.Export(t.Context(), c, "work/ada", ExportOptions{Message: "All of it\n"})
	if err != nil || out.Commits != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := r.git("log", "--format=%an|%P|%T|%B", "-1", "work/ada"); got != "Bob|"+head+"|"+c.Tree+"|All of it\n" && got != "Bob|"+head+"|"+c.Tree+"|All of it" {
		t.Errorf("exported %q", got)
	}
	if _, err := s.Export(t.Context(), c, "work/ada", ExportOptions{}); !errors.Is(err, ErrExists) {
		t.Errorf("a branch that is there: %v", err)
	}
	if _, err := s.Export(t.Context(), c, "bad..name", ExportOptions{}); err == nil {
		t.Error("a bad name was taken")
	}
	out, err = s.Export(t.Context(), c, "chain", ExportOptions{Chain: true})
	if err != nil || out.Commits != 3 {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := strings.Split(r.git("log", "--format=%s", "chain"), "\n"); !reflect.DeepEqual(got, []string{"ada, turn 3", "ada, turn 2", "ada, turn 1", "c"}) {
		t.Errorf("log %q", got)
	}
	if r.git("rev-parse", "HEAD") != head || r.read(".git/index") != index {
		t.Error("HEAD or index were changed")
	}
	r.git("fsck", "--strict", "--no-dangling")
}

func TestVerify(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.git("config", "core.autocrlf", "true")
	r.write("a/b", "content\r\nof b\r\n")
	r.write("c", "content")
	r.commit()
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	r.write("c", "other")
	r.save(s, Meta{})
	if _, err := s.Restore(t.Context(), c, "c"); err != nil {
		t.Fatal(err)
	}
	must(r, s.Label(t.Context(), c, "kept"))
	rep, err := s.Verify(t.Context(), true)
	if err != nil || !rep.OK() || rep.Chains != 1 || rep.Labels != 1 || rep.Checkpoints != 4 || rep.Files != 2 {
		t.Fatalf("%+v, %v", rep, err)
	}
	blob := r.git("rev-parse", c.Tree+":c")
	file := r.path(".git/objects/" + blob[:2] + "/" + blob[2:])
	must(r, os.Remove(file))
	rep, err = s.Verify(t.Context(), false)
	if err != nil || len(rep.Broken) != 1 || rep.Broken[0].Hash != blob || rep.Broken[0].Path != "c" || rep.Broken[0].Why != "is missing" {
		t.Errorf("%+v, %v", rep, err)
	}
	e := s.last.root.lookup("c") // as a cache that is wrong
	e.hash, e.racy = plumbing.NewHash(c.Tree), false
	rep, err = s.Verify(t.Context(), true)
	if err != nil || len(rep.Stale) != 1 || rep.Stale[0].Path != "c" {
		t.Errorf("%+v, %v", rep, err)
	}
}
