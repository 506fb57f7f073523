package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"muntin/internal/state"
)

func TestExtensions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]string{
		"":                           {},
		"[core]\n\tobjectformat = x": {},
		"[extensions]\n\tobjectFormat = SHA256 ; c\n# c\n[core]\n\trefStorage = reftable\n": {"objectformat": "sha256"},
		"[Extensions] refStorage = \"reftable\"\n\tworktreeConfig\n":                        {"refstorage": "reftable", "worktreeconfig": "true"},
	} {
		if got := extensions([]byte(text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func FuzzExtensions(f *testing.F) {
	f.Add([]byte("[extensions]\n\tobjectformat = sha256\n"))
	f.Fuzz(func(_ *testing.T, data []byte) { foreign(extensions(data)) })
}

// TestPlace decides for repositories of all kinds where their checkpoints are.
func TestPlace(t *testing.T) {
	t.Parallel()
	set := func(pairs ...string) func(*repo) {
		return func(r *repo) {
			f, err := os.OpenFile(r.path(".git/config"), os.O_APPEND|os.O_WRONLY, 0)
			must(r, err)
			_, err = f.WriteString("[core]\n\trepositoryformatversion = 1\n[extensions]\n\t" + strings.Join(pairs, "\n\t") + "\n")
			must(r, errors.Join(err, f.Close()))
		}
	}
	for name, tt := range map[string]struct {
		build  func(*repo)
		reason string // a part of it; "": in the repository
	}{
		"plain":             {func(*repo) {}, ""},
		"worktree config":   {set("worktreeConfig = true"), ""},
		"partial clone":     {set("partialClone = origin"), ""},
		"precious objects":  {set("preciousObjects"), ""},
		"relative worktree": {set("relativeWorktrees = true"), ""},
		"explicit defaults": {set("objectFormat = sha1", "refStorage = files"), ""},
		"sha256":            {set("objectFormat = sha256"), "named by sha256"},
		"reftable":          {set("refStorage = reftable"), "stored as reftable"},
		"of the future":     {set("holograms = true"), "extension holograms is not known"},
		"objects is a file": {func(r *repo) {
			r.remove(".git/objects")
			r.write(".git/objects", "")
		}, "objects is no folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			tt.build(r)
			h, err := place(r.dir, true)
			if err != nil {
				t.Fatal(err)
			}
			if h.where.Sidecar != (tt.reason != "") || !strings.Contains(h.where.Reason, tt.reason) || tt.reason == "" && h.where.Reason != "" {
				t.Errorf("%+v, want reason %q", h.where, tt.reason)
			}
		})
	}
}

func TestRefusedFolders(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	layout := state.Layout{State: filepath.Join(home, "elsewhere", "state")}
	bare := &repo{t: t, dir: filepath.Join(home, "bare.git")}
	must(bare, os.MkdirAll(bare.dir, 0o700))
	bare.git("init", "-q", "--bare")
	for _, dir := range []string{"/", os.Getenv("HOME"), filepath.Dir(os.Getenv("HOME")), layout.State, filepath.Dir(layout.State), filepath.Join(layout.State, "x"), bare.dir} {
		if err := refuseFolder(layout, dir); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := refuseFolder(layout, filepath.Join(home, "project")); err != nil {
		t.Errorf("an ordinary folder: %v", err)
	}
	if _, err := Open(t.Context(), Options{Worktree: "/", Ref: "refs/muntin/r/a"}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("the root: %v", err)
	}
}

// cycle saves, changes, restores and undoes on a store, with git's fsck of
// where it is.
func cycle(r *repo, s *Store) {
	r.t.Helper()
	first, rep := r.save(s, Meta{Cause: CauseTurn, Turn: 1})
	if len(rep.Skipped)+len(rep.Unconverted) > 0 {
		r.t.Fatalf("report: %+v", rep)
	}
	r.write("more/new", "2\n")
	r.write("a", "changed\n")
	second, _ := r.save(s, Meta{Cause: CauseTurn, Turn: 2})
	if second.ID != first.ID+1 || second.Files != 2 || second.Parent != first.Commit {
		r.t.Fatalf("first %+v\nsecond %+v", first, second)
	}
	if _, err := s.Restore(r.t.Context(), first); err != nil {
		r.t.Fatal(err)
	}
	if r.read("a") != "1\r\n" {
		r.t.Fatalf("restored %q", r.read("a"))
	}
	if _, err := os.Stat(r.path("more/new")); err == nil {
		r.t.Fatal("a new file was not removed")
	}
	all, err := s.List(r.t.Context())
	if err != nil || len(all) != first.ID+3 {
		r.t.Fatalf("%d checkpoints, %v", len(all), err)
	}
	chains, err := Chains(r.t.Context(), r.dir, "")
	if err != nil || len(chains) != 1 || chains[0].Newest.Commit != all[0].Commit {
		r.t.Fatalf("chains %+v, %v", chains, err)
	}
	store := &repo{t: r.t, dir: s.Where().Path}
	if _, err := store.try([]string{"GIT_DIR=" + store.dir}, "fsck", "--strict", "--full", "--no-dangling"); err != nil {
		r.t.Fatal("fsck of the store")
	}
}

// TestSidecarOfSHA256 saves a repository that names objects otherwise.
func TestSidecarOfSHA256(t *testing.T) {
	t.Parallel()
	r := &repo{t: t, dir: filepath.Join(t.TempDir(), "long")}
	must(r, os.Mkdir(r.dir, 0o755))
	if _, err := r.try(nil, "init", "-q", "--object-format=sha256"); err != nil {
		t.Skip("this git knows no SHA-256")
	}
	twin := newRepo(t) // the same worktree in a SHA-1 repository is the oracle
	for _, r := range []*repo{r, twin} {
		r.git("config", "filter.up.clean", "tr a-z A-Z")
		r.git("config", "filter.up.smudge", "tr A-Z a-z")
		r.write(".gitattributes", "*.up filter=up\na text\n")
		r.write(".gitignore", "*.log\nhidden-ignored\n")
		r.write("a", "1\r\n")
		r.write("sub/b.up", "shout\n")
		r.write("tracked.log", "t\n")
		r.write("out/away", "not on disk\n")
		r.git("add", "-A")
		r.git("add", "-f", "tracked.log")
		r.git("commit", "-qm", "c")
		r.git("update-index", "--skip-worktree", "out/away")
		r.remove("out")
		r.write("x.log", "ignored\n")
		r.write("sub/new", "n\n")
	}
	s := r.open(Options{CacheDir: t.TempDir()})
	if w := s.Where(); !w.Sidecar || !strings.Contains(w.Reason, "sha256") {
		t.Fatalf("%+v", w)
	}
	c, _ := r.save(s, Meta{Cause: CauseStart})
	if want := twin.oracle(); c.Tree != want {
		t.Fatalf("tree %s, want %s", c.Tree, want)
	}
	if head := r.git("rev-parse", "HEAD"); c.Head != head {
		t.Errorf("head %q, want %q", c.Head, head)
	}
	if again, err := s.Find(t.Context(), "#1"); err != nil || again != c {
		t.Errorf("%+v, %v, want %+v", again, err, c)
	}
	cycle(r, s)
	if got := r.git("status", "--porcelain"); strings.Contains(got, "sub/b.up") {
		t.Errorf("status: %s", got)
	}
	must(r, s.Close())
	r.git("worktree", "add", "-q", "../linked")
	linked := &repo{t: t, dir: filepath.Join(filepath.Dir(r.dir), "linked")}
	other := linked.open(Options{Ref: "refs/muntin/run/other"})
	if other.Where() != s.Where() {
		t.Errorf("a linked worktree has another store: %+v", other.Where())
	}
	linked.save(other, Meta{})
	if birth(r.path(".git")) == 0 {
		t.Skip("this file system does not tell when a folder was made")
	}
	moved := &repo{t: t, dir: r.dir + "-moved"}
	must(r, os.Rename(r.dir, moved.dir))
	if got := ids(t, moved.open(Options{})); !same(got, 5, 4, 3, 2, 1) {
		t.Errorf("after a move: %v", got)
	}
}

// TestSidecarOfReftable opens a repository whose refs this git may not know.
func TestSidecarOfReftable(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write(".gitattributes", "a text\n")
	r.write("a", "1\r\n")
	r.git("config", "filter.up.clean", "tr a-z A-Z")
	r.git("add", "-A")
	r.git("config", "core.repositoryFormatVersion", "1")
	f, err := os.OpenFile(r.path(".git/config"), os.O_APPEND|os.O_WRONLY, 0)
	must(r, err)
	_, err = f.WriteString("[extensions]\n\trefStorage = reftable\n")
	must(r, errors.Join(err, f.Close()))
	r.write(".git/HEAD", "ref: refs/heads/.invalid\n")
	s := r.open(Options{})
	if w := s.Where(); !w.Sidecar || !strings.Contains(w.Reason, "reftable") {
		t.Fatalf("%+v", w)
	}
	if s.conf.values["filter.up.clean"] == "" {
		t.Error("the repository's configuration was not read")
	}
	cycle(r, s)
}

// TestFolderWithoutRepository saves a folder that is no repository, finds it
// from below, and follows it when it is moved.
func TestFolderWithoutRepository(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &repo{t: t, dir: filepath.Join(base, "folder")}
	if chains, err := Chains(t.Context(), base, ""); err != nil || len(chains) != 0 {
		t.Fatalf("chains before: %+v, %v", chains, err)
	}
	r.write("a", "1\r\n")
	r.write("node_modules/x", "made by a tool\n")
	r.write(".gitignore", "*.secret\n")
	r.write("k.secret", "s\n")
	s := r.open(Options{})
	if w := s.Where(); !w.Sidecar || !strings.Contains(w.Reason, "no git repository") {
		t.Fatalf("%+v", w)
	}
	cycle(r, s)
	c, err := s.Find(t.Context(), "latest")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"a": true, "node_modules/x": false, "k.secret": false} {
		e, err := s.odb.lookup(hashOf(t, c.Tree), path)
		if err != nil || (e.mode != 0) != want {
			t.Errorf("%s in the checkpoint: %v, %v; want %v", path, e.mode != 0, err, want)
		}
	}
	below := r.open(Options{Worktree: r.path("more/..")})
	if below.Where() != s.Where() || below.repo.Root != r.dir {
		t.Errorf("from below: %+v", below.repo)
	}
	if birth(r.dir) == 0 {
		t.Skip("this file system does not tell when a folder was made")
	}
	moved := &repo{t: t, dir: filepath.Join(base, "moved")}
	must(r, os.Rename(r.dir, moved.dir))
	must(r, os.MkdirAll(moved.path("deep"), 0o755))
	after := moved.open(Options{Worktree: moved.path("deep")})
	all, err := after.List(t.Context())
	if err != nil || len(all) != 4 || after.repo.Root != moved.dir {
		t.Errorf("after a move: %d checkpoints of %s, %v", len(all), after.repo.Root, err)
	}
	must(r, os.RemoveAll(moved.dir))
	list, err := Sidecars()
	if err != nil {
		t.Fatal(err)
	}
	lost := false
	for _, c := range list {
		lost = lost || c.Of == moved.dir && c.Lost
	}
	if !lost {
		t.Errorf("the sidecar of a removed folder is not listed as lost: %+v", list)
	}
}

func hashOf(t *testing.T, hex string) (h [20]byte) {
	t.Helper()
	got, ok := parseHash(hex)
	if !ok {
		t.Fatalf("%q is no hash", hex)
	}
	return got
}
