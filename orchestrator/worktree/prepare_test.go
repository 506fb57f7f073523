package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// spawn asks for the worktree of an agent of run r1.
func (f *fixture) spawn(name string, p Preparation) (Spawned, error) {
	f.t.Helper()
	return f.m.Spawn(within(f.t), Spawn{Path: f.path(name), Branch: AgentBranch("r1", name), At: f.head(), Preparation: p})
}

// wantNothing checks that a spawn that failed left nothing.
func (f *fixture) wantNothing(name string) {
	f.t.Helper()
	if _, err := os.Lstat(f.path(name)); !errors.Is(err, os.ErrNotExist) {
		f.t.Errorf("the folder of %s: %v", name, err)
	}
	if tip, err := f.m.Tip(f.t.Context(), AgentBranch("r1", name)); err != nil || tip != "" {
		f.t.Errorf("the branch of %s: %q, %v", name, tip, err)
	}
	if list, err := f.m.List(f.t.Context()); err != nil || len(list) != 1 {
		f.t.Errorf("worktrees: %+v, %v", list, err)
	}
	if list, err := f.m.Entries(); err != nil || len(list) != 0 {
		f.t.Errorf("trash: %+v, %v", list, err)
	}
}

func TestSpawnBringsIgnoredFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(f.dir, ".gitignore", "*.log\nbuild/\n.env\nnode modules/\ncache\n")
	f.git(f.dir, "commit", "-qam", "ignore")
	f.write(f.dir, ".env", "KEY=1\n")
	f.write(f.dir, "build/sub/ö.bin", "x")
	f.write(f.dir, "node modules/left/index.js", "js")
	f.write(f.dir, "cache/blob", "blob")
	if err := os.Symlink("sub/ö.bin", filepath.Join(f.dir, "build", "latest")); err != nil {
		t.Fatal(err)
	}
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := errors.Join(os.Chmod(filepath.Join(f.dir, ".env"), 0o600), os.Chtimes(filepath.Join(f.dir, "build/sub/ö.bin"), old, old)); err != nil {
		t.Fatal(err)
	}
	s, err := f.spawn("ada", Preparation{
		Copy: []string{".en*", ".env", "build", "not/there"}, Link: []string{"node modules", "cache"},
		Setup: Commands{Lines: []string{`test "$(cat .env)" = KEY=1`, "echo $WHO > setup.log"}, Env: append(os.Environ(), "WHO=ada")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(s.Missing, ",") != "not/there" {
		t.Errorf("missing: %v", s.Missing)
	}
	for name, want := range map[string]string{
		".env": "KEY=1\n", "build/sub/ö.bin": "x", "build/latest": "x", "node modules/left/index.js": "js", "cache/blob": "blob", "setup.log": "ada\n",
	} {
		if got := f.read(s.Path, name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if info, err := os.Stat(filepath.Join(s.Path, ".env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf(".env: %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(s.Path, "build/sub/ö.bin")); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("time: %v, %v", info, err)
	}
	for link, want := range map[string]string{"cache": "cache", "node modules/left": "node modules/left", "build/latest": ""} {
		target, err := os.Readlink(filepath.Join(s.Path, link))
		if err != nil || want != "" && target != filepath.Join(f.dir, want) || want == "" && target != "sub/ö.bin" {
			t.Errorf("link %s: %q, %v", link, target, err)
		}
	}
	f.wantClean(s.Path)

	// Neither checkpoint nor removal follows a link.
	if files := f.git(s.Path, "ls-tree", "-r", "--name-only", f.snapshot(s.Path)); strings.Contains(files, "cache") || strings.Contains(files, "modules") {
		t.Errorf("a snapshot holds\n%s", files)
	}
	rep, err := f.m.Remove(within(t), RemoveRequest{Path: s.Path, Branch: s.Branch})
	if err != nil || !rep.Kept {
		t.Fatalf("%+v, %v", rep, err)
	}
	if err := f.m.Purge(within(t), rep.ID); err != nil {
		t.Fatal(err)
	}
	if f.read(f.dir, "cache/blob") != "blob" || f.read(f.dir, "node modules/left/index.js") != "js" {
		t.Error("the removal followed a link")
	}
}

func TestSpawnThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	outside := filepath.Join(f.base, "outside")
	f.write(f.base, "outside/secret", "s")
	f.write(f.dir, "plain.txt", "not ignored")
	f.write(f.dir, "x.log", "log")
	for link, target := range map[string]string{"abs.log": filepath.Join(outside, "secret"), "up.log": "../outside/secret", "build": outside} {
		if err := os.Symlink(target, filepath.Join(f.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		p    Preparation
		want string
	}{
		"out":       {Preparation{Copy: []string{"../outside"}}, "inside the repository"},
		"absolute":  {Preparation{Link: []string{"/etc/passwd"}}, "inside the repository"},
		"git":       {Preparation{Copy: []string{"dir/.Git/config"}}, "git's own"},
		"abs":       {Preparation{Copy: []string{"abs.log"}}, "leads out of the repository"},
		"up":        {Preparation{Copy: []string{"up.log"}}, "leads out of the repository"},
		"through":   {Preparation{Copy: []string{"build/secret"}}, "escapes"},
		"unignored": {Preparation{Copy: []string{"plain.txt"}}, "does not ignore"},
		"linked":    {Preparation{Link: []string{"plain.txt"}}, "does not ignore"},
		"tracked":   {Preparation{Copy: []string{"a.txt"}}, "in the commit already"},
		"setup":     {Preparation{Copy: []string{"x.log"}, Setup: Commands{Lines: []string{"true", "echo oh; echo no >&2; exit 3"}}}, "exit status 3\noh\nno"},
		"slow":      {Preparation{Setup: Commands{Lines: []string{"sleep 30"}, Timeout: 50 * time.Millisecond}}, "stopped after"},
		"dirty":     {Preparation{Setup: Commands{Lines: []string{"echo >> a.txt"}}}, "not clean"},
		"extra":     {Preparation{Setup: Commands{Lines: []string{"echo > generated.txt"}}}, "not clean"},
	} {
		_, err := f.spawn(name, c.p)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		f.wantNothing(name)
	}
	var failed *CommandError
	if _, err := f.spawn("again", Preparation{Setup: Commands{Lines: []string{"exit 4"}}}); !errors.As(err, &failed) || failed.Ending != "exit status 4" {
		t.Errorf("%v", err)
	}
}

func TestRemovingAFreshWorktreeLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(f.dir, "x.log", "log")
	s, err := f.spawn("ada", Preparation{Copy: []string{"x.log"}})
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(f.base, "torn down")
	rep, err := f.m.Remove(within(t), RemoveRequest{
		Path: s.Path, Branch: s.Branch, Unused: true, Fresh: true,
		Teardown: Commands{Lines: []string{"cp x.log '" + mark + "'", "echo late; exit 9", "rm '" + mark + "'"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if f.read(f.base, "torn down") != "log" || len(rep.Notes) == 0 || !strings.Contains(rep.Notes[len(rep.Notes)-1], "exit status 9\nlate") {
		t.Errorf("teardown: %q", rep.Notes)
	}
	f.wantNothing("ada")
}

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{".env", "a/b", "../x", "a/../../x", "/x", "a//b", ".git/config", "a/.GIT", "", ".", "a\x00b", `a\..\b`} {
		f.Add(s)
	}
	top := f.TempDir()
	f.Fuzz(func(t *testing.T, s string) {
		if CheckPath(s) == nil && !inside(top, filepath.Join(top, filepath.FromSlash(s))) {
			t.Errorf("%q leads out", s)
		}
	})
}
