package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/internal/gittest"
)

// shapes are the kinds of repositories that people have. Each makes one of the
// fixture's: it has a.txt with three lines, and what is special.
var shapes = map[string]func(*fixture){
	"plain":    func(*fixture) {},
	"detached": func(f *fixture) { f.git(f.dir, "checkout", "-q", "--detach") },
	"signing": func(f *fixture) {
		f.git(f.dir, "config", "commit.gpgSign", "true")
		f.git(f.dir, "config", "gpg.program", "/bin/false")
	},
	"zdiff3":  func(f *fixture) { f.git(f.dir, "config", "merge.conflictStyle", "zdiff3") },
	"no ff":   func(f *fixture) { f.git(f.dir, "config", "merge.ff", "false") },
	"rebase":  func(f *fixture) { f.git(f.dir, "config", "pull.rebase", "true") },
	"renames": func(f *fixture) { f.git(f.dir, "config", "diff.renames", "copies") },
	"autocrlf": func(f *fixture) {
		f.git(f.dir, "config", "core.autocrlf", "true")
		f.write(f.dir, "unix.sh", "echo\n")
		f.commitAll("unix")
	},
	"hooks": func(f *fixture) {
		for _, name := range []string{"post-checkout", "pre-commit", "commit-msg", "reference-transaction", "post-merge", "pre-merge-commit"} {
			f.write(f.base, "hooks/"+name, "#!/bin/sh\necho "+name+" >> \"$HOOKLOG\"\nexit 1\n")
			if err := os.Chmod(filepath.Join(f.base, "hooks", name), 0o755); err != nil {
				f.t.Fatal(err)
			}
		}
		f.git(f.dir, "config", "core.hooksPath", filepath.Join(f.base, "hooks"))
	},
	"filter": func(f *fixture) {
		// As LFS does: what is stored is not what is in the folder.
		f.git(f.dir, "config", "filter.rot.clean", "tr a-z n-za-m")
		f.git(f.dir, "config", "filter.rot.smudge", "tr a-z n-za-m")
		f.git(f.dir, "config", "filter.rot.required", "true")
		f.write(f.dir, ".gitattributes", "*.big filter=rot\n")
		f.write(f.dir, "data.big", "secret data\n")
		f.commitAll("filter")
		if got := f.git(f.dir, "show", "HEAD:data.big"); got != "frperg qngn" {
			f.t.Fatalf("the filter is not at work: %q", got)
		}
	},
	"sparse": func(f *fixture) {
		f.write(f.dir, "in/x", "x")
		f.write(f.dir, "out/y", "y")
		f.commitAll("folders")
		f.git(f.dir, "sparse-checkout", "set", "in")
	},
	"submodule": func(f *fixture) {
		lib := gittest.Init(f.t, filepath.Join(f.base, "lib"))
		lib.Commit("lib")
		f.git(f.dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.Dir, "vendor/lib")
		f.commitAll("submodule")
	},
	"nested": func(f *fixture) {
		f.write(f.dir, ".gitignore", "*.log\nbuild/\ntools/\n")
		f.commitAll("ignore")
		gittest.Init(f.t, filepath.Join(f.dir, "tools", "own")).Commit("a repository of its own")
	},
	"symlinks": func(f *fixture) {
		if err := os.Symlink("a.txt", filepath.Join(f.dir, "link")); err != nil {
			f.t.Fatal(err)
		}
		f.commitAll("link")
	},
	"shallow": func(f *fixture) {
		f.write(f.dir, "second", "2")
		f.commitAll("second")
		clone := filepath.Join(f.base, "shallow 'clone' \"of\" $(it)")
		f.git(f.base, "clone", "-q", "--depth=1", "file://"+strings.ReplaceAll(f.dir, " ", "%20"), clone)
		f.dir = clone
	},
	"bare": func(f *fixture) {
		bare, linked := filepath.Join(f.base, "bare.git"), filepath.Join(f.base, "of bare")
		f.git(f.base, "clone", "-q", "--bare", f.dir, bare)
		f.git(bare, "worktree", "add", "-q", linked, "main")
		f.dir = linked
	},
}

func (f *fixture) commitAll(message string) {
	f.t.Helper()
	f.git(f.dir, "add", "-A")
	f.git(f.dir, "commit", "-qm", message)
}

// TestShapes takes two agents through all that happens to their worktrees, in
// each kind of repository.
func TestShapes(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := emptyFixture(t)
			f.write(f.dir, "a.txt", "one\ntwo\nthree\n")
			f.write(f.dir, ".gitignore", "*.log\nbuild/\n")
			f.commitAll("first")
			shape(f)
			f.write(f.dir, "copied.log", "log")
			f.open()
			f.course()
		})
	}
}

func (f *fixture) course() {
	t := f.t
	t.Helper()
	head, status := f.git(f.dir, "rev-parse", "HEAD"), f.git(f.dir, "status", "--porcelain")
	onBranch, _ := f.tryGit(f.dir, nil, "symbolic-ref", "-q", "HEAD")
	into := f.integration()
	var wts []Worktree
	for _, name := range []string{"ada", "bob"} {
		s, err := f.spawn(name, Preparation{Copy: []string{"copied.log"}, Setup: Commands{Lines: []string{"test -f a.txt"}}})
		if err != nil {
			t.Fatal(err)
		}
		wts = append(wts, s.Worktree)
	}
	ada, bob := wts[0], wts[1]
	if data, err := os.ReadFile(filepath.Join(ada.Path, "data.big")); err == nil && string(data) != "secret data\n" {
		t.Errorf("the worktree has %q", data)
	}
	f.write(ada.Path, "data.big", "other data\n")
	f.work(ada, "a.txt", "one\nada\nthree\n")
	f.work(bob, "a.txt", "one\nbob\nthree\n")
	q, err := f.m.Quarantine()
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	clash, err := q.Clash(within(t), Side{Tip: f.git(f.dir, "rev-parse", ada.Branch)}, Side{Tip: f.git(f.dir, "rev-parse", bob.Branch)})
	if err != nil || len(clash) != 1 || len(clash[0].Hunks) != 1 || clash[0].Hunks[0].Theirs != (Lines{2, 1}) {
		t.Errorf("clash: %+v, %v", clash, err)
	}
	if res := f.land(StyleSquash, into, ada.Branch); res.Commit == "" {
		t.Errorf("landing: %+v", res)
	}
	if ok, err := f.m.Settle(within(t), ada, into); err != nil || !ok {
		t.Errorf("settling: %v, %v", ok, err)
	}
	if res := f.land(StyleRebase, into, bob.Branch); len(res.Conflicts) != 1 || strings.TrimSpace(res.Conflicts[0].Hunks[0].OursText) != "ada" {
		t.Errorf("conflict: %+v", res)
	}
	f.write(bob.Path, "new file", "untracked")
	rep := f.remove(RemoveRequest{Path: bob.Path, Branch: bob.Branch})
	if rep.Untracked != 1 || rep.Ignored != 1 || !rep.Kept {
		t.Errorf("removed: %+v", rep)
	}
	if _, err := f.m.Restore(within(t), rep.ID); err != nil {
		t.Fatal(err)
	}
	if f.read(bob.Path, "new file") != "untracked" || f.read(bob.Path, "copied.log") != "log" {
		t.Error("something did not come back")
	}
	if got := f.git(bob.Path, "status", "--porcelain"); got != "?? \"new file\"" {
		t.Errorf("brought back, its status is\n%s", got)
	}
	stillOn, _ := f.tryGit(f.dir, nil, "symbolic-ref", "-q", "HEAD")
	if f.git(f.dir, "rev-parse", "HEAD") != head || f.git(f.dir, "status", "--porcelain") != status || stillOn != onBranch {
		t.Error("the person's worktree has changed")
	}
}

// TestStartFromWorkingFiles makes a start of files that are in no commit.
func TestStartFromWorkingFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	head := f.head()
	same, err := f.m.Start(within(t), "r1", head, f.git(f.dir, "rev-parse", "HEAD^{tree}"))
	if err != nil || same != head {
		t.Errorf("nothing is uncommitted: %s, %v", same, err)
	}
	f.write(f.dir, "a.txt", "changed\n")
	f.write(f.dir, "new.txt", "new\n")
	f.git(f.dir, "add", "new.txt")
	status := f.git(f.dir, "status", "--porcelain")
	start, err := f.m.Start(within(t), "r1", head, f.snapshot(f.dir))
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.m.Spawn(within(t), Spawn{Path: f.path("ada"), Branch: AgentBranch("r1", "ada"), At: start})
	if err != nil {
		t.Fatal(err)
	}
	if f.read(s.Path, "a.txt") != "changed\n" || f.read(s.Path, "new.txt") != "new\n" {
		t.Error("the worktree lacks what is not committed")
	}
	if f.git(f.dir, "status", "--porcelain") != status || f.head() != head {
		t.Error("the person's index or HEAD has changed")
	}
	// What only the start's ref holds is no loss.
	f.remove(RemoveRequest{Path: s.Path, Branch: s.Branch, Unused: true})
	if err := f.m.DropStart(within(t), "r1"); err != nil {
		t.Fatal(err)
	}
	f.wantNothing("ada")
	if refs := f.git(f.dir, "for-each-ref", "refs/muntin"); refs != "" {
		t.Errorf("refs are left:\n%s", refs)
	}
}
