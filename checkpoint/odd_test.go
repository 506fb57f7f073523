package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStoresOfOddRepositories saves, restores and collects in repositories
// that are put together in unusual ways, and lets git look at the result.
func TestStoresOfOddRepositories(t *testing.T) {
	t.Parallel()
	// origin has two commits that the clones start from.
	origin := func(r *repo) {
		r.write("a", "1\r\n")
		r.write("in/x", "1\n")
		r.write("out/y", "1\n")
		r.write("out/.gitignore", "*.o\n")
		r.commit()
		r.write("in/x", "2\n")
		r.commit()
		r.git("config", "uploadpack.allowFilter", "true")
		r.git("config", "uploadpack.allowAnySHA1InWant", "true")
	}
	clone := func(args ...string) func(*repo) {
		return func(r *repo) {
			origin(r)
			r.git(append(append([]string{"clone", "-q"}, args...), "file://"+r.dir, r.path("../clone"))...)
			r.dir = filepath.Join(filepath.Dir(r.dir), "clone")
		}
	}
	for name, build := range map[string]func(*repo){
		"shallow clone":       clone("--depth=1"),
		"partial clone":       clone("--filter=blob:none"),
		"partial of trees":    clone("--filter=tree:0"),
		"sparse and partial":  clone("--filter=tree:0", "--sparse"),
		"shared clone":        func(r *repo) { origin(r); sharedClone(r, false) },
		"relative alternates": func(r *repo) { origin(r); sharedClone(r, true) },
		"bare with worktrees": bareLayout(origin),
		"only packs":          func(r *repo) { origin(r); r.git("gc", "-q") },
		"commit graph and midx": func(r *repo) {
			origin(r)
			r.git("gc", "-q")
			r.git("commit-graph", "write", "--reachable")
			r.git("multi-pack-index", "write", "--bitmap")
		},
		"packed refs": func(r *repo) { origin(r); r.git("pack-refs", "--all") },
		"precious objects": func(r *repo) {
			origin(r)
			r.git("config", "core.repositoryFormatVersion", "1")
			r.git("config", "extensions.preciousObjects", "true")
		},
		"reflogs always": func(r *repo) { origin(r); r.git("config", "core.logAllRefUpdates", "always") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			build(r)
			if !exists(r.path("a")) {
				t.Fatal("no worktree")
			}
			s := r.open(Options{})
			if w := s.Where(); w.Sidecar || w.Reason != "" {
				t.Fatalf("%+v", w)
			}
			c := r.check(s)
			if c.Files != 0 {
				t.Errorf("%d files differ from HEAD in a fresh clone", c.Files)
			}
			cycle(r, s)
			head := r.git("rev-parse", "HEAD")
			if _, err := s.GC(t.Context(), Policy{MaxCount: 1}); err != nil {
				t.Fatal(err)
			}
			if name != "precious objects" { // git refuses
				r.git("gc", "-q", "--prune=now")
			}
			left := ids(t, s)
			if c := r.check(s); c.ID != left[0]+1 || c.Head != head {
				t.Errorf("%+v after %v", c, left)
			}
			if logs := filepath.Join(s.where.Path, "logs", "refs", "muntin"); exists(logs) {
				t.Error("reflogs were written")
			}
			r.git("fsck", "--strict", "--no-dangling")
		})
	}
}

func sharedClone(r *repo, relative bool) {
	from := r.path(".git/objects")
	r.git("clone", "-q", "--shared", r.dir, r.path("../clone"))
	r.dir = filepath.Join(filepath.Dir(r.dir), "clone")
	if relative {
		rel, err := filepath.Rel(r.path(".git/objects"), from)
		must(r, err)
		must(r, os.WriteFile(r.path(".git/objects/info/alternates"), []byte("# borrowed\n"+rel+"\n"), 0o600))
	}
}

func bareLayout(origin func(*repo)) func(*repo) {
	return func(r *repo) {
		origin(r)
		base := filepath.Dir(r.dir)
		bare := filepath.Join(base, "project", ".bare")
		r.git("clone", "-q", "--bare", r.dir, bare)
		(&repo{t: r.t, dir: bare}).git("worktree", "add", "-q", filepath.Join(base, "project", "main"))
		r.dir = filepath.Join(base, "project", "main")
	}
}

// TestPartialCloneFetches restores a content that the clone never had.
func TestPartialCloneFetches(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("f", "old\n")
	r.write("sub/.gitignore", "*.o\n")
	r.commit()
	r.write("f", "new\n")
	r.commit()
	r.git("config", "uploadpack.allowFilter", "true")
	r.git("config", "uploadpack.allowAnySHA1InWant", "true")
	from := r.dir
	r.git("clone", "-q", "--filter=blob:none", "file://"+r.dir, r.path("../clone"))
	r.dir = filepath.Join(filepath.Dir(r.dir), "clone")
	s := r.open(Options{})
	r.save(s, Meta{})
	old := r.git("rev-parse", "HEAD~1^{tree}")
	// A checkpoint of a state whose blobs are not here.
	rec := &record{tree: hashOf(t, old), seq: 2, meta: Meta{Cause: CauseTurn}}
	rec.previous, _ = s.readRef(s.Ref())
	h, err := s.odb.write(1, rec.encode())
	must(r, err)
	must(r, s.odb.sync())
	must(r, s.moveRef(t.Context(), refMove{name: s.Ref(), old: rec.previous, next: h}))
	c, err := s.Find(t.Context(), "#2")
	must(r, err)
	must(r, os.Rename(from, from+"-away"))
	if _, err := s.Restore(t.Context(), c); err == nil || r.read("f") != "new\n" {
		t.Errorf("without the origin: %v, f is %q", err, r.read("f"))
	} else if !strings.Contains(err.Error(), "f") {
		t.Errorf("the error does not name the path: %v", err)
	}
	must(r, os.Rename(from+"-away", from))
	if _, err := s.Restore(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if r.read("f") != "old\n" {
		t.Errorf("restored %q", r.read("f"))
	}
}
