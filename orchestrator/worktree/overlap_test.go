package worktree

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestClashLeavesNoTrace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	into := f.integration()
	ada, bob, cyd := f.agent("ada"), f.agent("bob"), f.agent("cyd")
	tips := map[string]Side{}
	for _, c := range []struct {
		wt         Worktree
		name, text string
	}{{ada, "a.txt", "one\nADA\nthree\n"}, {bob, "a.txt", "one\nBOB\nthree\n"}, {cyd, "c.txt", "c"}} {
		f.write(c.wt.Path, c.name, c.text)
		commit, err := f.rescue(t.Context(), c.wt.Path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(c.wt.Branch, "muntin/r1/")
		f.git(f.dir, "update-ref", "refs/muntin/checkpoints/r1/"+name, commit)
		tips[name] = Side{Tip: f.head(), Tree: f.git(f.dir, "rev-parse", commit+"^{tree}")}
	}
	got, err := f.m.Standings(within(t), "r1", "refs/muntin/checkpoints/r1")
	if err != nil || len(got) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, want := range tips {
		if got[name] != want {
			t.Errorf("%s: %+v", name, got[name])
		}
	}
	before := f.git(f.dir, "count-objects", "-v")
	q, err := f.m.Quarantine()
	if err != nil {
		t.Fatal(err)
	}
	clash, err := q.Clash(within(t), got["ada"], got["bob"])
	if err != nil || len(clash) != 1 || clash[0].Path != "a.txt" || len(clash[0].Hunks) != 1 || clash[0].Hunks[0].Ours != (Lines{2, 1}) {
		t.Errorf("%+v, %v", clash, err)
	}
	for _, pair := range [][2]string{{"ada", "cyd"}, {"ada", Merged}, {"cyd", Merged}} {
		if clash, err := q.Clash(within(t), got[pair[0]], got[pair[1]]); err != nil || len(clash) != 0 {
			t.Errorf("%v: %+v, %v", pair, clash, err)
		}
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if after := f.git(f.dir, "count-objects", "-v"); after != before {
		t.Errorf("objects before\n%s\nafter\n%s", before, after)
	}
	if _, err := os.Stat(q.tmp); err == nil {
		t.Error("the quarantine is still there")
	}
	touched, err := f.m.Touched(within(t), got["ada"], into)
	if err != nil || !slices.Equal(touched, []string{"a.txt"}) {
		t.Errorf("%q, %v", touched, err)
	}
}

func TestMeet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, want string }{
		{"x y", "y z", "y"},
		{"x", "z", ""},
		{"dir/a", "dir/b", ""},
		{"dir", "dir/b/c", "dir dir/b/c"},
		{"dir/b/c", "dir", "dir dir/b/c"},
		{"dirs", "dir/b", ""},
		{"", "a", ""},
	} {
		if got := strings.Join(Meet(strings.Fields(c.a), strings.Fields(c.b)), " "); got != c.want {
			t.Errorf("%q and %q: %q", c.a, c.b, got)
		}
	}
}

// BenchmarkClash is one trial merge of two agents' work, with a conflict.
func BenchmarkClash(b *testing.B) {
	f := newFixture(b)
	for i := range 500 {
		f.write(f.dir, fmt.Sprintf("src/d%d/f%d.txt", i%20, i), lines(50, nil))
	}
	f.git(f.dir, "add", "-A")
	f.git(f.dir, "commit", "-qm", "files")
	var sides []Side
	for _, who := range []string{"ada", "bob"} {
		wt := f.agent(who)
		f.write(wt.Path, "src/d1/f1.txt", lines(50, map[int]string{10: who + "\n"}))
		sides = append(sides, Side{Tip: f.head(), Tree: f.snapshot(wt.Path)})
	}
	q, err := f.m.Quarantine()
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	for b.Loop() {
		if clash, err := q.Clash(b.Context(), sides[0], sides[1]); err != nil || len(clash) != 1 {
			b.Fatal(clash, err)
		}
	}
}
