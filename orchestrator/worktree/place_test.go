package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlaceLeavesNothingAndLosesNothing(t *testing.T) {
	t.Parallel()
	for name, mess := range map[string]func(f *fixture, dir string){
		"clean": func(*fixture, string) {},
		"changed and new files": func(f *fixture, dir string) {
			f.write(dir, "a.txt", "changed\n")
			f.write(dir, "new dir/new.txt", "new\n")
		},
		"staged": func(f *fixture, dir string) {
			f.write(dir, "staged.txt", "staged\n")
			f.git(dir, "add", "-A")
		},
		"commits of its own": func(f *fixture, dir string) {
			f.write(dir, "mine.txt", "mine\n")
			f.git(dir, "add", "-A")
			f.git(dir, "commit", "-qm", "mine")
		},
		"another branch": func(f *fixture, dir string) {
			f.git(dir, "switch", "-qc", "elsewhere")
			f.write(dir, "mine.txt", "mine\n")
			f.git(dir, "add", "-A")
			f.git(dir, "commit", "-qm", "mine")
		},
	} {
		f := newFixture(t)
		wt, err := f.m.Add(within(t), f.path("ada"), AgentBranch("r1", "ada"), "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		f.write(wt.Path, "kept.log", "ignored\n")
		mess(f, wt.Path)
		tip := f.git(wt.Path, "rev-parse", "HEAD")
		f.write(f.dir, "b.txt", "b\n")
		f.git(f.dir, "add", "-A")
		f.git(f.dir, "commit", "-qm", "second")
		want := f.git(f.dir, "rev-parse", "main")
		for range 2 {
			got, err := f.m.Place(within(t), wt, "main")
			if err != nil || got != want {
				t.Fatalf("%s: %s, %v", name, got, err)
			}
		}
		if on := f.git(wt.Path, "symbolic-ref", "--short", "HEAD"); on != wt.Branch || f.git(wt.Path, "rev-parse", "HEAD") != want {
			t.Errorf("%s: it is on %s", name, on)
		}
		if status := f.git(wt.Path, "status", "--porcelain"); status != "" {
			t.Errorf("%s: left over:\n%s", name, status)
		}
		if _, err := os.Stat(filepath.Join(wt.Path, "kept.log")); err != nil {
			t.Errorf("%s: an ignored file is gone: %v", name, err)
		}
		if refs := f.git(f.dir, "for-each-ref", "--contains", tip, "--format=%(refname)"); !strings.Contains(refs, "refs/") {
			t.Errorf("%s: its commits are lost", name)
		}
		if strings.Contains(name, "files") || name == "staged" {
			if out := f.git(f.dir, "log", "--all", "--format=", "--name-only"); !strings.Contains(out, "new.txt") && !strings.Contains(out, "staged.txt") {
				t.Errorf("%s: its files are lost", name)
			}
		}
	}
}

func TestPlaceAtNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt, err := f.m.Add(within(t), f.path("ada"), AgentBranch("r1", "ada"), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.m.Place(within(t), wt, "nowhere"); err == nil {
		t.Error("it went nowhere without a word")
	}
}
