package worktree

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// lines is a file of n lines, with some of them changed.
func lines(n int, changed map[int]string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		if text, ok := changed[i]; ok {
			b.WriteString(text)
			continue
		}
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func (f *fixture) land(style Style, into, from string) MergeResult {
	f.t.Helper()
	res, err := f.m.Land(within(f.t), Landing{Into: into, From: from, Message: "Land " + from, Style: style})
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

// subjects are the commits of a branch since main, oldest first.
func (f *fixture) subjects(branch string) string {
	f.t.Helper()
	return strings.ReplaceAll(f.git(f.dir, "log", "--topo-order", "--reverse", "--format=%s", "main.."+branch), "\n", " | ")
}

func TestLandingStyles(t *testing.T) {
	t.Parallel()
	for style, want := range map[Style]string{
		StyleMerge:  "one | two | work on b.txt | Land muntin/r1/ada",
		StyleSquash: "Land muntin/r1/bob | Land muntin/r1/ada",
		StyleRebase: "work on b.txt | one | two",
	} {
		f := newFixture(t)
		into := f.integration()
		ada, bob := f.agent("ada"), f.agent("bob")
		f.work(bob, "b.txt", "bob\n")
		f.land(style, into, bob.Branch)
		for _, name := range []string{"one", "two"} {
			f.write(ada.Path, name+".txt", name)
			f.git(ada.Path, "add", "-A")
			env := []string{"GIT_AUTHOR_NAME=Ada Ünal", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_AUTHOR_DATE=2001-02-03T04:05:06+0700"}
			if out, err := f.tryGit(ada.Path, env, "commit", "-qm", name+"\n\nBody ✓\n"); err != nil {
				t.Fatal(out)
			}
		}
		old := f.git(ada.Path, "rev-parse", "HEAD")
		res := f.land(style, into, ada.Branch)
		if res.Commit != f.git(f.dir, "rev-parse", into) || res.Tree != f.git(f.dir, "rev-parse", into+"^{tree}") || res.UpToDate {
			t.Errorf("%s: %+v", style, res)
		}
		if got := f.subjects(into); got != want && !(style == StyleMerge && got == "work on b.txt | one | two | Land muntin/r1/ada") {
			t.Errorf("%s: %s", style, got)
		}
		f.git(f.dir, "cat-file", "-e", into+":b.txt")
		f.git(f.dir, "cat-file", "-e", into+":two.txt")
		if style == StyleRebase {
			if got := f.git(f.dir, "log", "-1", "--format=%an %ae %aI %b", into); got != "Ada Ünal ada@example.org 2001-02-03T04:05:06+07:00 Body ✓" {
				t.Errorf("the author became %s", got)
			}
		}
		// Again it does nothing, as after a crash.
		if again := f.land(style, into, ada.Branch); !again.UpToDate || again.Commit != res.Commit {
			t.Errorf("%s, again: %+v", style, again)
		}
		settled, err := f.m.Settle(within(t), ada, into)
		if err != nil || settled != (style != StyleMerge) {
			t.Errorf("%s: settled %v, %v", style, settled, err)
		}
		if settled {
			if head := f.git(ada.Path, "rev-parse", "HEAD"); head != res.Commit || f.read(ada.Path, "b.txt") != "bob\n" {
				t.Errorf("%s: the worktree is at %s", style, head)
			}
			f.wantClean(ada.Path)
			f.git(f.dir, "gc", "-q", "--prune=now")
			f.git(f.dir, "cat-file", "-e", old) // the agent's own commits are kept
		}
		// The next work lands without the old one in its way.
		f.work(ada, "one.txt", "again")
		f.git(f.dir, "cat-file", "-e", old)
		if next := f.land(style, into, ada.Branch); len(next.Conflicts) > 0 || next.UpToDate {
			t.Errorf("%s, next: %+v", style, next)
		}
		f.git(f.dir, "fsck", "--no-dangling")
	}
}

func TestRebaseOfASettledMergeIsOneCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ada, bob := f.agent("ada"), f.agent("bob")
	f.work(bob, "a.txt", "bob\n")
	f.land(StyleRebase, into, bob.Branch)
	f.work(ada, "a.txt", "ada\n")
	if res := f.land(StyleRebase, into, ada.Branch); len(res.Conflicts) != 1 || f.subjects(into) != "work on a.txt" {
		t.Fatalf("%+v", res)
	}
	if out, err := f.tryGit(ada.Path, nil, "merge", into); err == nil {
		t.Fatal(out)
	}
	f.work(ada, "a.txt", "both\n")
	if res := f.land(StyleRebase, into, ada.Branch); len(res.Conflicts) > 0 {
		t.Fatalf("%+v", res)
	}
	if got := f.subjects(into); got != "work on a.txt | Land muntin/r1/ada" || f.git(f.dir, "show", into+":a.txt") != "both" {
		t.Errorf("%s", got)
	}
}

func TestSettleLeavesWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ada, bob := f.agent("ada"), f.agent("bob")
	f.work(bob, "b.txt", "bob\n")
	f.land(StyleSquash, into, bob.Branch)
	f.work(ada, "one.txt", "1")
	f.land(StyleSquash, into, ada.Branch)
	f.write(ada.Path, "b.txt", "mine, in no commit\n")
	if ok, err := f.m.Settle(within(t), ada, into); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if f.read(ada.Path, "b.txt") != "mine, in no commit\n" {
		t.Error("a file was overwritten")
	}
}

func TestTryChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ada, bob := f.agent("ada"), f.agent("bob")
	f.work(ada, "a.txt", "ada\n")
	if res, err := f.m.Try(within(t), into, ada.Branch); err != nil || !res.FastForward {
		t.Errorf("%+v, %v", res, err)
	}
	f.land(StyleMerge, into, ada.Branch)
	f.work(bob, "a.txt", "bob\n")
	tip := f.git(f.dir, "rev-parse", into)
	if res, err := f.m.Try(within(t), into, bob.Branch); err != nil || len(res.Conflicts) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	if f.git(f.dir, "rev-parse", into) != tip {
		t.Error("the branch moved")
	}
}

func TestAConflictNamesItsHunks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(f.dir, "f.txt", lines(30, nil))
	f.git(f.dir, "add", "-A")
	f.git(f.dir, "commit", "-qm", "f")
	// What a person configured must not change what is read.
	f.git(f.dir, "config", "merge.conflictStyle", "zdiff3")
	f.git(f.dir, "config", "diff.noprefix", "true")
	f.git(f.dir, "config", "color.ui", "always")
	f.git(f.dir, "config", "diff.external", "false")
	into := f.integration()
	ada, bob := f.agent("ada"), f.agent("bob")
	f.work(ada, "f.txt", lines(30, map[int]string{1: "top\nmore\n", 10: "ada\n", 20: "", 30: "same\n"}))
	f.work(bob, "f.txt", lines(30, map[int]string{10: "bob\nbob\n", 20: "twenty\n", 30: "same\n"}))
	f.land(StyleMerge, into, ada.Branch)
	res := f.land(StyleMerge, into, bob.Branch)
	want := []Hunk{
		{Ours: Lines{11, 1}, Theirs: Lines{10, 2}, OursText: "ada\n", TheirsText: "bob\nbob\n"},
		{Ours: Lines{21, 0}, Theirs: Lines{21, 1}, TheirsText: "twenty\n"},
	}
	if len(res.Conflicts) != 1 || !reflect.DeepEqual(res.Conflicts[0].Hunks, want) {
		t.Errorf("%+v", res.Conflicts)
	}
}

// TestHunksAreWhereGitConflicts compares with git's own merge of random edits.
func TestHunksAreWhereGitConflicts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	rng := rand.New(rand.NewPCG(1, 2))
	edit := func() string {
		changed := map[int]string{}
		for range 1 + rng.IntN(4) {
			changed[1+rng.IntN(20)] = []string{"", "X\n", "Y\n", "X\nY\n"}[rng.IntN(4)]
		}
		return lines(20, changed)
	}
	conflicts := 0
	for i := range 40 {
		dir := filepath.Join(f.base, fmt.Sprint("case", i))
		sides := []string{edit(), lines(20, nil), edit()}
		var oids []string
		for k, text := range sides {
			name := filepath.Join(dir, fmt.Sprint(k))
			f.write(dir, fmt.Sprint(k), text)
			oids = append(oids, f.git(f.dir, "hash-object", "-w", name))
		}
		merged, _ := f.tryGit(f.dir, nil, "merge-file", "-p", "-q", "--diff-algorithm=histogram",
			filepath.Join(dir, "0"), filepath.Join(dir, "1"), filepath.Join(dir, "2"))
		if strings.Contains(merged, "usage:") { // this git's merge-file has one algorithm only
			merged, _ = f.tryGit(f.dir, nil, "merge-file", "-p", "-q", filepath.Join(dir, "0"), filepath.Join(dir, "1"), filepath.Join(dir, "2"))
		}
		list := []Conflict{{Path: "x", stages: [3]string{oids[1], oids[0], oids[2]}}}
		if err := f.m.git.fillHunks(within(t), f.dir, list); err != nil {
			t.Fatal(err)
		}
		if got, want := len(list[0].Hunks) > 0, strings.Contains(merged, "<<<<<<<"); got != want {
			t.Errorf("case %d: hunks %+v, git says\n%s", i, list[0].Hunks, merged)
		}
		for _, h := range list[0].Hunks {
			conflicts++
			ours := splitLines(sides[0])
			if got := strings.Join(ours[h.Ours.First-1:h.Ours.First-1+h.Ours.Count], ""); got != h.OursText {
				t.Errorf("case %d: %q is not %q", i, got, h.OursText)
			}
		}
	}
	if conflicts == 0 {
		t.Error("no case had a conflict")
	}
}

func TestConflictsWithoutLines(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(f.dir, "bin", "a\x00b")
	f.write(f.dir, "gone.txt", "x\n")
	f.git(f.dir, "add", "-A")
	f.git(f.dir, "commit", "-qm", "more")
	into := f.integration()
	ada, bob := f.agent("ada"), f.agent("bob")
	for wt, text := range map[Worktree]string{ada: "c\x00", bob: "d\x00"} {
		f.write(wt.Path, "bin", text)
		f.write(wt.Path, "new.txt", text)
		if wt == ada {
			if err := os.Remove(filepath.Join(wt.Path, "gone.txt")); err != nil {
				t.Fatal(err)
			}
		}
		f.work(wt, map[bool]string{true: "z.txt", false: "gone.txt"}[wt == ada], text)
	}
	f.land(StyleMerge, into, ada.Branch)
	var got []string
	for _, c := range f.land(StyleMerge, into, bob.Branch).Conflicts {
		got = append(got, c.Path+" "+c.Kind)
		if len(c.Hunks) > 0 {
			t.Errorf("%+v", c)
		}
	}
	slices.Sort(got)
	if want := "bin binary,gone.txt modify/delete,new.txt binary"; !strings.Contains(strings.Join(got, ","), "gone.txt modify/delete") || len(got) != 3 {
		t.Errorf("%v, not %s", got, want)
	}
}

func FuzzParseChanges(f *testing.F) {
	f.Add("@@ -1 +1,2 @@\n-a\n+b\n+c\n@@ -5,0 +7 @@ func\n+x\n")
	f.Add("@@ -0,0 +1 @@\n")
	f.Add("@@ -99999999999999999999 +1 @@\n")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := parseChanges(s)
		if err != nil {
			return
		}
		for _, h := range clashes(list, list, nil, nil) {
			if h.Ours.Count < 0 || h.Ours.First < 0 {
				t.Errorf("%+v", h)
			}
		}
	})
}
