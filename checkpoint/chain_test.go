package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"muntin/internal/state"
)

func TestSaveMeta(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "1")
	r.commit()
	now := time.Date(2024, 5, 6, 7, 8, 9, 10, time.UTC)
	s := r.open(Options{Now: func() time.Time { return now }})
	meta := Meta{Run: "r", Agent: "a", Turn: 3, Message: "m", Entry: "e", Cause: CauseTurn, Note: "two\nlines: \"x\" "}
	c, _ := r.save(s, meta)
	if c.Meta != meta || c.ID != 1 || c.Files != 0 || !c.Time.Equal(now.Truncate(time.Second)) || c.Head != r.git("rev-parse", "HEAD") {
		t.Errorf("saved %+v", c)
	}
	d, _ := r.save(s, Meta{})
	if d.Tree != c.Tree || d.Parent != c.Commit || d.ID != 2 || d.Cause != CauseManual {
		t.Errorf("saved %+v", d)
	}
	all, err := s.List(t.Context())
	if err != nil || len(all) != 2 || all[1] != c || all[0] != d {
		t.Errorf("listed %+v, %v", all, err)
	}
	if got := r.git("log", "--format=%an <%ae> %ct %P", "-1", "refs/muntin/run/agent"); got != fmt.Sprintf("%s %d %s %s", identity, now.Unix(), c.Commit, c.Head) {
		t.Errorf("commit: %s", got)
	}
	if got := r.git("log", "-1", "--format=%(trailers:key=Muntin-Agent,valueonly)", c.Commit); strings.TrimSpace(got) != "a" {
		t.Errorf("trailer: %q", got)
	}
	b, err := json.Marshal(c)
	if err != nil || !bytes.Contains(b, []byte(`"id":1,"commit":"`)) || !bytes.Contains(b, []byte(`"run":"r"`)) {
		t.Errorf("JSON %s, %v", b, err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := r.open(Options{})
	var all []Checkpoint
	for _, m := range []Meta{{Turn: 1, Cause: CauseTurn}, {Turn: 2, Cause: CauseTurn}, {Turn: 2, Cause: CauseTurn}, {Turn: 2, Cause: CauseUndo}} {
		c, _ := r.save(s, m)
		all = append(all, c)
	}
	for spec, want := range map[string]int{"1": 1, "#2": 2, "latest": 4, "turn:1": 1, "turn:2": 3, all[1].Commit: 2, all[2].Commit[:12]: 3, strings.ToUpper(all[0].Commit): 1} {
		if c, err := s.Find(t.Context(), spec); err != nil || c != all[want-1] {
			t.Errorf("%s: #%d, %v; want #%d", spec, c.ID, err, want)
		}
	}
	for _, spec := range []string{"", "0", "9", "#x", "turn:7", "turn:", "abc", "zzzz", strings.Repeat("a", 41)} {
		if _, err := s.Find(t.Context(), spec); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v, want not found", spec, err)
		}
	}
}

// TestFindAmbiguous makes a chain so long that four digits are not enough.
func TestFindAmbiguous(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := r.open(Options{})
	first, _ := r.save(s, Meta{})
	rec := *mustRecord(t, s, first)
	seen := map[string]bool{}
	prefix := ""
	for prefix == "" || strings.Trim(prefix, "0123456789") == "" {
		rec.previous, rec.seq = rec.hash, rec.seq+1
		var err error
		rec.hash, err = s.odb.write(plumbing.CommitObject, rec.encode())
		must(r, err)
		if p := rec.hash.String()[:minPrefix]; seen[p] {
			prefix = p
		} else {
			seen[p] = true
		}
	}
	must(r, moveRef(t.Context(), s.repo.CommonDir, refMove{name: s.Ref(), old: plumbing.NewHash(first.Commit), next: rec.hash}))
	if _, err := s.Find(t.Context(), prefix); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("%s: %v, want ambiguous", prefix, err)
	}
	if all, err := s.List(t.Context()); err != nil || len(all) != rec.seq || all[0].ID != rec.seq {
		t.Errorf("%d checkpoints, %v; want %d", len(all), err, rec.seq)
	}
}

func TestChainsAndDrop(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	ctx := t.Context()
	for _, ref := range []string{"refs/muntin/one/a", "refs/muntin/one/b", "refs/muntin/two/a"} {
		r.save(r.open(Options{Ref: ref}), Meta{Agent: "agent-" + ref[len(ref)-1:]})
	}
	r.git("pack-refs", "--all", "--prune")
	b := r.open(Options{Ref: "refs/muntin/one/b"})
	newest, _ := r.save(b, Meta{Agent: "agent-b"}) // packed and loose
	chains, err := Chains(ctx, r.dir, "refs/muntin/one/")
	if err != nil || len(chains) != 2 || chains[1].Ref != "refs/muntin/one/b" || chains[1].Agent != "agent-b" || chains[1].Newest != newest {
		t.Fatalf("chains %+v, %v", chains, err)
	}
	if err := Drop(ctx, r.dir, "refs/muntin/one/b"); err != nil {
		t.Fatal(err)
	}
	if err := Drop(ctx, r.dir, "refs/muntin/one/b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("dropped twice: %v", err)
	}
	if got := r.git("for-each-ref", "--format=%(refname)"); got != "refs/muntin/one/a\nrefs/muntin/two/a" {
		t.Errorf("refs left: %q", got)
	}
	// The dropped chain's stat cache must not vouch for objects that are gone.
	r.git("gc", "-q", "--prune=now")
	r.write("new", "1")
	r.check(b)
	r.git("fsck", "--strict")
	for _, ref := range []string{"refs/heads/main", "refs/muntin/", "refs/muntin/a/../b", "refs/muntin/a.lock", "refs/muntin/.a", "refs/muntin/a b", "refs/muntin/a//b"} {
		if _, err := Open(ctx, Options{Worktree: r.dir, Ref: ref}); err == nil {
			t.Errorf("ref %q was accepted", ref)
		}
	}
}

// TestNothingElseChanges looks at everything of git's that must stay as it is.
func TestNothingElseChanges(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "1\r\n")
	r.write("f.up", "x")
	r.commit()
	r.write("a", "2")
	r.git("stash")
	r.git("branch", "other")
	for _, hook := range []string{"post-index-change", "reference-transaction", "pre-commit", "post-commit", "post-checkout", "pre-auto-gc"} {
		must(r, os.WriteFile(r.path(".git/hooks/"+hook), []byte("#!/bin/sh\necho "+hook+" >> \"$(git rev-parse --git-common-dir)/hook-ran\"\n"), 0o755))
	}
	r.git("config", "core.logAllRefUpdates", "always")
	r.git("config", "filter.up.clean", "tr a-z A-Z")
	r.git("config", "core.autocrlf", "input")
	r.write(".gitattributes", "*.up filter=up\n")
	r.write("a", "3\r\n")
	// Writing a file of the same content and size makes the index stat-dirty, which a careless git would repair.
	r.write("f.up", "y")
	before := r.gitState()
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	r.write("a", "4\r\n")
	r.restore(s, c)
	if _, err := s.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := r.gitState(); before != after {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// gitState lists all files of the git folder that are not objects or ours.
func (r *repo) gitState() string {
	r.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(r.path(".git"), func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(r.path(".git"), path)
		if rel == "objects" || rel == "muntin" || rel == "refs/muntin" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %d %x\n", rel, info.ModTime(), inode(info), plumbing.ComputeHash(plumbing.BlobObject, []byte(r.read(".git/"+rel))))
		return nil
	})
	must(r, err)
	return b.String()
}

// TestTwoSavers lets stores in one process and git itself work at once.
func TestTwoSavers(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "1")
	r.commit()
	r.git("worktree", "add", "-q", "../wt")
	const each = 8
	var wg sync.WaitGroup
	for _, dir := range []string{r.dir, r.dir, r.path("../wt")} { // the third shares the ref, not the lock
		wg.Go(func() {
			s, err := Open(t.Context(), Options{Worktree: dir, Ref: "refs/muntin/run/agent"})
			if err != nil {
				t.Error(err)
				return
			}
			for range each {
				if _, _, err := s.Save(t.Context(), Meta{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for range each {
			if _, err := r.try(nil, "pack-refs", "--all"); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	all, err := r.open(Options{}).List(t.Context())
	if err != nil || len(all) != 3*each || all[0].ID != 3*each {
		t.Errorf("%d checkpoints, %v; want %d", len(all), err, 3*each)
	}
}

func TestRefLocks(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := r.open(Options{})
	c, _ := r.save(s, Meta{})
	repo, err := state.FindRepo(r.dir)
	must(r, err)
	lock := filepath.Join(repo.CommonDir, s.Ref()+".lock")
	// A killed process of ours left the lock and its mark.
	must(r, writeSynced(filepath.Join(repo.CommonDir, "muntin", "ref.next"), "x"))
	must(r, os.Link(filepath.Join(repo.CommonDir, "muntin", "ref.next"), lock))
	r.save(s, Meta{})
	// An old lock of unknown origin.
	must(r, os.WriteFile(lock, nil, 0o600))
	old := time.Now().Add(-time.Minute)
	must(r, os.Chtimes(lock, old, old))
	r.save(s, Meta{})
	stale := refMove{name: s.Ref(), old: plumbing.NewHash(c.Commit), next: plumbing.NewHash(c.Commit)}
	if err := moveRef(t.Context(), repo.CommonDir, stale); !errors.Is(err, errMoved) {
		t.Errorf("a stale value was accepted: %v", err)
	}
	if _, err := os.Lstat(lock); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the lock is still there")
	}
	if got := r.git("rev-parse", s.Ref()+"^^"); got != c.Commit {
		t.Errorf("the chain goes back to %s, want %s", got, c.Commit)
	}
}

// TestGc: what a chain can reach survives the hardest gc, also from another worktree.
func TestGc(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "1\n")
	r.commit()
	r.git("worktree", "add", "-q", "../wt")
	main := r.dir
	r.dir = r.path("../wt")
	s := r.open(Options{})
	r.write("a", "2\n")
	r.write("untracked", "2\n")
	c, _ := r.save(s, Meta{})
	r.write("a", "3\n")
	other := &repo{t: t, dir: main}
	other.git("reflog", "expire", "--expire=now", "--all")
	other.git("gc", "-q", "--prune=now")
	r.restore(s, c) // the open store finds the objects in their pack
	if r.read("a") != "2\n" {
		t.Error("not restored")
	}
	other.git("fsck", "--strict", "--no-dangling")
}

func TestSkippedAndStable(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("big", strings.Repeat("x", 2000))
	r.write(".Git/x", "1")
	r.write("git~1", "1")
	must(r, os.Mkdir(r.path("empty-repo"), 0o755))
	(&repo{t: t, dir: r.path("empty-repo")}).git("init", "-q")
	want := []string{".Git", "big", "empty-repo", "git~1"}
	if os.Geteuid() != 0 {
		r.write("unreadable", "1")
		must(r, os.Chmod(r.path("unreadable"), 0))
		want = append(want, "unreadable")
	}
	s := r.open(Options{SizeCap: 1000})
	c, rep := r.save(s, Meta{})
	if got := paths(rep.Skipped); !slices.Equal(got, want) {
		t.Errorf("skipped %q, want %q", got, want)
	}
	if got := r.git("ls-tree", "-r", c.Tree); got != "" {
		t.Errorf("saved %q", got)
	}
	r.remove("git~1")
	r.write("git~1", "1")
	v, err := s.odb.saved(mustRecord(t, s, c))
	if err != nil || !slices.Equal(paths(v.skipped), want) {
		t.Errorf("the commit names %q as skipped, %v", paths(v.skipped), err)
	}
}

func mustRecord(t *testing.T, s *Store, c Checkpoint) *record {
	t.Helper()
	r, err := s.record(plumbing.NewHash(c.Commit))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDiffAndPatch(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("mod", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	r.write("no newline", "a\nb")
	r.write("del", "x\ny\n")
	r.write("bin", "\x00a")
	r.write("mode", "1\n")
	r.write("type", "1\n")
	r.write("\xff\n\"q\"", "1\n")
	s := r.open(Options{})
	a, _ := r.save(s, Meta{})
	r.write("mod", "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n")
	r.write("no newline", "a\nb\nc")
	r.remove("del")
	r.write("bin", "\x00bb")
	must(r, os.Chmod(r.path("mode"), 0o755))
	r.remove("type")
	must(r, os.Symlink("target", r.path("type")))
	r.write("\xff\n\"q\"", "2\n")
	r.write("add/ed", "1\n2\n")
	r.write("empty", "")
	now, err := s.Worktree(t.Context())
	if err != nil || now.ID != 0 || now.Tree != r.oracle() {
		t.Fatalf("worktree %+v, %v", now, err)
	}
	changes, err := s.Diff(t.Context(), a, now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, fmt.Sprintf("%q %s %v +%d -%d", c.Path, c.Kind, c.Binary, c.Additions, c.Deletions))
	}
	want := []string{`"add/ed" added false +2 -0`, `"bin" modified true +0 -0`, `"del" deleted false +0 -2`, `"empty" added false +0 -0`,
		`"mod" modified false +2 -1`, `"mode" modified false +0 -0`, `"no newline" modified false +2 -1`, `"type" type false +1 -1`, `"\xff\n\"q\"" modified false +1 -1`}
	if !slices.Equal(got, want) {
		t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	b, _ := r.save(s, Meta{})
	for _, pair := range [][2]Checkpoint{{a, b}, {b, a}} {
		r.applies(s, pair[0], pair[1])
	}
}

// applies lets git apply the patch between two checkpoints to the first one's tree.
func (r *repo) applies(s *Store, from, to Checkpoint) {
	r.t.Helper()
	var patch bytes.Buffer
	if err := s.Patch(r.t.Context(), &patch, from, to); err != nil {
		r.t.Fatal(err)
	}
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(r.t.TempDir(), "index")}
	if _, err := r.try(env, "read-tree", from.Tree); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command("git", "apply", "--cached", "-")
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, append(gitEnv(), env...), bytes.NewReader(patch.Bytes())
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git apply: %v\n%s\n%s", err, out, patch.String())
	}
	if tree, err := r.try(env, "write-tree"); err != nil || tree != to.Tree {
		r.t.Errorf("the patch makes tree %s, want %s\n%s", tree, to.Tree, patch.String())
	}
}

func TestStatCache(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "1")
	r.write("d/b", "1")
	dir := t.TempDir()
	s := r.open(Options{CacheDir: dir})
	r.check(s)
	data, err := os.ReadFile(s.cacheFile("stat"))
	if err != nil {
		t.Fatal(err)
	}
	worktree, snap, err := parseCache(data)
	if err != nil || worktree != s.repo.Root || snap.root.lookup("d/b").hash != s.last.root.lookup("d/b").hash || snap.root.hash != s.last.root.hash {
		t.Errorf("the cache holds %q, %+v, %v", worktree, snap, err)
	}
	for _, broken := range [][]byte{nil, []byte("nonsense"), data[:len(data)-1], append(slices.Clone(data[:40]), data[41:]...)} {
		must(r, os.WriteFile(s.cacheFile("stat"), broken, 0o600))
		again := r.open(Options{CacheDir: dir})
		r.write("a", "2")
		r.check(again)
	}
}
