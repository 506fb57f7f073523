package trust

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muntin/internal/gittest"
	"muntin/internal/state"
)

func canonicalTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func store(t *testing.T) *Store {
	t.Helper()
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	return NewStore(filepath.Join(canonicalTemp(t), "state", "trust.json"), func() time.Time { return at })
}

func decide(t *testing.T, s *Store, dir string, trusted bool) {
	t.Helper()
	if _, err := s.Decide(t.Context(), dir, trusted); err != nil {
		t.Fatal(err)
	}
}

// verdict is "?" without a decision, else +folder or -folder, relative to root.
func verdict(t *testing.T, s *Store, root string, p Place) string {
	t.Helper()
	v, err := s.Lookup(p)
	if err != nil {
		t.Fatal(err)
	}
	if !v.Known {
		if v != (Verdict{}) {
			t.Errorf("unknown, but %+v", v)
		}
		return "?"
	}
	rel, err := filepath.Rel(root, v.Folder)
	if err != nil {
		t.Fatal(err)
	}
	if v.Trusted {
		return "+" + rel
	}
	return "-" + rel
}

func TestNearestDecisionCounts(t *testing.T) {
	t.Parallel()
	s, root := store(t), canonicalTemp(t)
	for _, dir := range []string{"src/mine/deep", "src/theirs/sub", "src-other"} {
		mkdir(t, filepath.Join(root, dir))
	}
	if err := os.Symlink(filepath.Join(root, "src"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if got := verdict(t, s, root, Place{Dir: root}); got != "?" {
		t.Errorf("without a file: %s", got)
	}
	decide(t, s, filepath.Join(root, "link"), true) // is kept as src
	decide(t, s, filepath.Join(root, "src", "theirs"), false)
	for dir, want := range map[string]string{
		".": "?", "src": "+src", "src/mine/deep": "+src", "src/theirs": "-src/theirs", "src/theirs/sub": "-src/theirs",
		"src-other": "?", "link/mine": "+src", "link/theirs/sub": "-src/theirs", "src/missing/x": "+src",
	} {
		if got := verdict(t, s, root, Place{Dir: filepath.Join(root, dir)}); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
	list, err := s.List()
	if err != nil || len(list) != 2 || list[0].Folder != filepath.Join(root, "src") || list[0].At.Year() != 2026 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := os.RemoveAll(filepath.Join(root, "src", "theirs")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} { // the folder is gone, the decision need not stay
		if was, err := s.Forget(t.Context(), filepath.Join(root, "link", "theirs")); err != nil || was != want {
			t.Errorf("forgot %v, %v; want %v", was, err, want)
		}
	}
	if got := verdict(t, s, root, Place{Dir: filepath.Join(root, "src", "theirs")}); got != "+src" {
		t.Errorf("after forgetting: %s", got)
	}
	if _, err := s.Decide(t.Context(), filepath.Join(root, "nowhere"), true); err == nil {
		t.Error("a folder that is not there was trusted")
	}
}

func TestLinkedWorktreeFollowsItsRepository(t *testing.T) {
	t.Parallel()
	root := canonicalTemp(t)
	layout := state.Layout{State: filepath.Join(root, "home", "state")}
	main := filepath.Join(root, "src", "proj")
	repo := gittest.Init(t, main)
	repo.Write("vendor/x", "x")
	repo.Commit("start")
	linked := filepath.Join(layout.State, "proj-1", "worktrees", "demo", "ada")
	byHand := filepath.Join(root, "by-hand")
	repo.Git("worktree", "add", "-q", linked)
	repo.Git("worktree", "add", "-q", byHand)
	s := store(t)
	look := func(dir string) string { return verdict(t, s, root, PlaceOf(layout, dir)) }

	decide(t, s, filepath.Join(root, "home"), true)
	if got := look(linked); got != "?" {
		t.Errorf("that the home folder is trusted trusts a worktree below it: %s", got)
	}
	decide(t, s, filepath.Join(root, "src"), true)
	decide(t, s, filepath.Join(main, "vendor"), false)
	for dir, want := range map[string]string{
		linked: "+src", filepath.Join(linked, "vendor"): "-src/proj/vendor", main: "+src", byHand: "?",
	} {
		if got := look(dir); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
	decide(t, s, linked, false)
	if got := look(linked); !strings.HasPrefix(got, "-home/state") {
		t.Errorf("its own decision: %s", got)
	}
}

// A folder cannot make itself part of a trusted repository.
func TestForgedWorktrees(t *testing.T) {
	t.Parallel()
	root := canonicalTemp(t)
	layout := state.Layout{State: filepath.Join(root, "state")}
	main := filepath.Join(root, "proj")
	repo := gittest.Init(t, main)
	repo.Commit("start")
	real := filepath.Join(layout.State, "worktrees", "real")
	repo.Git("worktree", "add", "-q", real)
	s := store(t)
	decide(t, s, main, true)
	if got := verdict(t, s, root, PlaceOf(layout, real)); got != "+proj" {
		t.Fatalf("the real one: %s", got)
	}
	link, err := os.ReadFile(filepath.Join(real, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	copied := mkdir(t, filepath.Join(layout.State, "worktrees", "copied"))
	folder := mkdir(t, filepath.Join(layout.State, "worktrees", "folder"))
	inside := mkdir(t, filepath.Join(layout.State, "worktrees", "inside"))
	mkdir(t, filepath.Join(folder, ".git"))
	mkdir(t, filepath.Join(inside, "x"))
	for path, text := range map[string]string{
		filepath.Join(copied, ".git"):              string(link),
		filepath.Join(folder, ".git", "HEAD"):      "ref: refs/heads/main\n",
		filepath.Join(folder, ".git", "commondir"): filepath.Join(main, ".git") + "\n",
		filepath.Join(folder, ".git", "gitdir"):    filepath.Join(folder, ".git") + "\n",
		filepath.Join(inside, ".git"):              "gitdir: x\n",
		filepath.Join(inside, "x", "HEAD"):         "ref: refs/heads/main\n",
		filepath.Join(inside, "x", "commondir"):    filepath.Join(main, ".git") + "\n",
		filepath.Join(inside, "x", "gitdir"):       filepath.Join(inside, ".git") + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{copied, folder, inside} {
		if r, err := state.FindRepo(dir); err != nil || r.Main != main {
			t.Fatalf("%s does not pretend: %+v, %v", dir, r, err)
		}
		if got := verdict(t, s, root, PlaceOf(layout, dir)); got != "?" {
			t.Errorf("%s: %s", dir, got)
		}
	}
}

func TestBrokenStoreIsNoEmptyStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"text":     {"nonsense", 0o600, "invalid character"},
		"version":  {`{"version": 2, "folders": {}}`, 0o600, "version 2"},
		"field":    {`{"version": 1, "folder": {}}`, 0o600, "unknown field"},
		"relative": {`{"version": 1, "folders": {"a/b": {"trusted": true}}}`, 0o600, "not a clean absolute path"},
		"two":      {`{"version": 1, "folders": {}} {}`, 0o600, "more than one"},
		"mode":     {`{"version": 1, "folders": {}}`, 0o622, "others can write it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := store(t)
			mkdir(t, filepath.Dir(s.file))
			if err := os.WriteFile(s.file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(s.file, c.mode); err != nil { // against the umask
				t.Fatal(err)
			}
			_, lookup := s.Lookup(Place{Dir: "/"})
			_, decide := s.Decide(t.Context(), t.TempDir(), true)
			_, forget := s.Forget(t.Context(), "/")
			_, list := s.List()
			for _, err := range []error{lookup, decide, forget, list} {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), s.file) {
					t.Errorf("got %v", err)
				}
			}
			if text, err := os.ReadFile(s.file); err != nil || string(text) != c.text {
				t.Errorf("it was changed: %s, %v", text, err)
			}
		})
	}
}

func TestManyDecideAtOnce(t *testing.T) {
	t.Parallel()
	s, root := store(t), canonicalTemp(t)
	var all sync.WaitGroup
	for i := range 20 {
		dir := mkdir(t, filepath.Join(root, fmt.Sprint(i)))
		all.Go(func() {
			if _, err := s.Decide(t.Context(), dir, i%2 == 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	list, err := s.List()
	if err != nil || len(list) != 20 {
		t.Errorf("%d decisions, %v", len(list), err)
	}
	if info, err := os.Stat(s.file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"version":1,"folders":{"/a":{"trusted":true,"at":"2026-01-02T03:04:05Z"}}}`,
		`{"version":1,"folders":null}`, `{"version":1,"folders":{"/a/../b":{}}}`, `{"version":1}x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parse(text)
		if err != nil {
			return
		}
		for folder := range all.Folders {
			if !filepath.IsAbs(folder) || filepath.Clean(folder) != folder {
				t.Errorf("folder %q", folder)
			}
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	dir := b.TempDir()
	s := NewStore(filepath.Join(dir, "trust.json"), time.Now)
	if _, err := s.Decide(b.Context(), dir, true); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Lookup(Place{Dir: dir}); err != nil {
			b.Fatal(err)
		}
	}
}
