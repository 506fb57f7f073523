package worktree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muntin/internal/state"
)

func TestHead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := f.git(f.dir, "rev-parse", "HEAD")
	if got := f.head(); got != want {
		t.Errorf("Head = %s, want %s", got, want)
	}
	f.git(f.dir, "checkout", "-q", "--detach")
	if got := f.head(); got != want {
		t.Errorf("detached Head = %s, want %s", got, want)
	}
	if b, err := f.m.HeadBranch(within(t)); err != nil || b != "" {
		t.Errorf("HeadBranch = %q, %v", b, err)
	}
	f.agent("ann") // a detached HEAD is a start like any other
}

func TestUnbornHead(t *testing.T) {
	t.Parallel()
	f := emptyFixture(t)
	f.open()
	oid, unborn, err := f.m.Head(within(t))
	if oid != "" || !unborn || err != nil {
		t.Errorf("Head = %q, %v, %v", oid, unborn, err)
	}
	_, err = f.m.Add(within(t), f.path("ann"), AgentBranch("r1", "ann"), oid)
	if !errors.Is(err, ErrUnborn) || !strings.Contains(err.Error(), "hint: git commit") {
		t.Errorf("Add = %v", err)
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wt := f.agent("ann")
	want := Worktree{Path: f.path("ann"), Branch: "muntin/r1/ann", Head: f.head()}
	if wt != want {
		t.Errorf("Add = %+v, want %+v", wt, want)
	}
	f.wantClean(wt.Path)
	if got := f.read(wt.Path, "dir/ü b.txt"); got != "x\n" {
		t.Errorf("file = %q", got)
	}
	if cfg := f.git(f.dir, "config", "--local", "--list"); strings.Contains(cfg, "branch.muntin") {
		t.Errorf("tracking was configured:\n%s", cfg)
	}
	list, err := f.m.List(within(t))
	if err != nil || len(list) != 2 || !list[0].Main || list[1] != want {
		t.Errorf("List = %+v, %v", list, err)
	}
}

func TestAddRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.agent("ann")
	f.write(f.path("full"), "file", "x")
	outside := filepath.Join(f.base, "outside")
	if err := os.Symlink(f.base, filepath.Join(f.root(), "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path, branch string
		want               error
	}{
		{"branch exists", f.path("bob"), AgentBranch("r1", "ann"), ErrExists},
		{"folder exists", f.path("full"), AgentBranch("r1", "full"), ErrExists},
		{"outside", outside, AgentBranch("r1", "out"), nil},
		{"outside by link", filepath.Join(f.root(), "link", "x"), AgentBranch("r1", "link"), nil},
		{"bad branch", f.path("bad"), "muntin/r1/a..b", nil},
	} {
		_, err := f.m.Add(within(t), tt.path, tt.branch, f.head())
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: Add = %v", tt.name, err)
		}
	}
	if out := f.git(f.dir, "branch", "--list", "muntin/*", "--format=%(refname:short)"); out != "muntin/r1/ann" {
		t.Errorf("branches left: %s", out)
	}
}

func TestAddConcurrently(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := f.head()
	var wg sync.WaitGroup
	errs := make([]error, 10)
	for i := range errs {
		wg.Go(func() {
			name := fmt.Sprintf("a%d", i)
			_, errs[i] = f.m.Add(within(t), f.path(name), AgentBranch("r1", name), at)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i := range errs {
		f.wantClean(f.path(fmt.Sprintf("a%d", i)))
	}
}

// A file that the checkout cannot write makes the worktree incomplete.
func TestAddIncomplete(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(f.dir, ".gitattributes", "*.bin filter=broken\n")
	f.write(f.dir, "x.bin", "x\n")
	f.git(f.dir, "add", "-A")
	f.git(f.dir, "commit", "-qm", "filter")
	f.git(f.dir, "config", "filter.broken.smudge", "cat; echo more")
	f.git(f.dir, "config", "filter.broken.clean", "cat")
	_, err := f.m.Add(within(t), f.path("ann"), AgentBranch("r1", "ann"), f.head())
	if !errors.Is(err, ErrUnclean) || !strings.Contains(err.Error(), "x.bin") {
		t.Errorf("Add = %v", err)
	}
	f.git(f.dir, "config", "filter.broken.smudge", "false")
	f.git(f.dir, "config", "filter.broken.required", "true")
	if _, err = f.m.Add(within(t), f.path("ann"), AgentBranch("r1", "ann"), f.head()); err == nil {
		t.Error("Add with a failing filter: no error")
	}
	if _, err := os.Stat(f.path("ann")); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	if list, _ := f.m.List(within(t)); len(list) != 1 {
		t.Errorf("List = %+v", list)
	}
	if tip, _ := f.m.Tip(within(t), AgentBranch("r1", "ann")); tip != "" {
		t.Error("the branch is left")
	}
}

// Line endings that contradict .gitattributes show as modified in every clone.
func TestAddLineEndings(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(f.dir, "crlf.txt", "a\r\nb\r\n")
	f.git(f.dir, "add", "-A")
	f.git(f.dir, "commit", "-qm", "crlf")
	f.write(f.dir, ".gitattributes", "*.txt text\n")
	f.git(f.dir, "add", ".gitattributes")
	f.git(f.dir, "commit", "-qm", "attributes")
	if f.git(f.agent("ann").Path, "status", "--porcelain") == "" {
		t.Error("git does not show the file as modified: the test tests nothing")
	}
}

func TestHooksDoNotRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marker := filepath.Join(f.base, "hook-ran")
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-merge-commit", "post-merge"} {
		path := filepath.Join(f.dir, ".git", "hooks", hook)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+hook+" >>'"+marker+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	into := f.integration()
	wt := f.agent("ann")
	if b, err := os.ReadFile(marker); err == nil {
		t.Errorf("hooks ran for the worktree: %s", b)
	}
	f.write(wt.Path, "n.txt", "n")
	tree := f.snapshot(wt.Path) // the test's own git runs hooks
	if err := os.RemoveAll(marker); err != nil {
		t.Fatal(err)
	}
	if _, err := f.m.Commit(within(t), wt, CommitRequest{Tree: tree, Message: "m"}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.m.Merge(within(t), into, wt.Branch, "m"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.m.Update(within(t), wt, into); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(marker); err == nil {
		t.Errorf("hooks ran: %s", b)
	}
}

func TestBareLayout(t *testing.T) {
	t.Parallel()
	src := newFixture(t)
	f := &fixture{t: t, base: src.base, dir: filepath.Join(src.base, "bare layout")}
	f.git(src.base, "clone", "-q", "--bare", src.dir, filepath.Join(f.dir, ".bare"))
	f.write(f.dir, ".git", "gitdir: ./.bare\n")
	f.open()
	wt := f.agent("ann")
	f.work(wt, "n.txt", "n\n")
	into := f.integration()
	res, err := f.m.Merge(within(t), into, wt.Branch, "m")
	if err != nil || !res.FastForward {
		t.Errorf("Merge = %+v, %v", res, err)
	}
	if _, err := f.m.Remove(within(t), RemoveRequest{Path: wt.Path, Branch: wt.Branch}); err != nil {
		t.Error(err)
	}
	if _, err := f.m.Remove(within(t), RemoveRequest{Path: f.dir}); !errors.Is(err, ErrRefused) {
		t.Errorf("Remove of the bare folder = %v", err)
	}
}

// From inside a linked worktree HEAD is that worktree's, and new worktrees are
// siblings of it.
func TestFromLinkedWorktree(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tip := f.work(f.agent("ann"), "n.txt", "n\n")
	f.dir = f.path("ann")
	f.open()
	if got := f.head(); got != tip {
		t.Errorf("Head = %s, want %s", got, tip)
	}
	wt := f.agent("bob")
	if got := f.read(wt.Path, "n.txt"); got != "n\n" {
		t.Errorf("n.txt = %q", got)
	}
}

func TestEnvironmentIsIgnored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	repo, err := state.FindRepo(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GIT_DIR=/nowhere", "GIT_WORK_TREE=/nowhere", "GIT_INDEX_FILE=/nowhere",
		"GIT_OBJECT_DIRECTORY=/nowhere", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.bare", "GIT_CONFIG_VALUE_0=true",
		"GIT_NAMESPACE=x", "GIT_TRACE=1", "LC_ALL=de_DE.UTF-8", "LANGUAGE=de")
	m, err := Open(within(t), Options{Repo: repo, Root: f.root(), Trash: filepath.Join(f.base, "trash"), Env: env,
		Now: func() time.Time { return time.Unix(1, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Add(within(t), f.path("ann"), AgentBranch("r1", "ann"), f.head()); err != nil {
		t.Error(err)
	}
}

func TestGitVersions(t *testing.T) {
	f := newFixture(t)
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	opts := Options{Root: f.root(), Trash: f.root()}
	if _, err := Open(within(t), opts); !errors.Is(err, ErrNoGit) {
		t.Errorf("without git: %v", err)
	}
	fake := filepath.Join(bin, "git")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho git version 2.37.9\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(within(t), opts); !errors.Is(err, ErrTooOld) || !strings.Contains(err.Error(), "2.37") {
		t.Errorf("with an old git: %v", err)
	}
}

func TestCheckNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		run, agent string
		ok         bool
	}{{"r1", "ann", true}, {"r1", "", true}, {"r1", "merged", false}, {"", "ann", false}, {"r1", "Ann", false}, {"a/b", "x", false}} {
		if err := CheckNames(tt.run, tt.agent); (err == nil) != tt.ok {
			t.Errorf("CheckNames(%q, %q) = %v", tt.run, tt.agent, err)
		}
	}
}
