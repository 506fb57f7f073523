package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// saveMany makes n checkpoints of a few changed files each.
func saveMany(r *repo, s *Store, n int) {
	r.t.Helper()
	for i := range n {
		for j := range 5 {
			r.write(fmt.Sprintf("d%d/e/f%d", j, i%7), fmt.Sprintf("%s%d %d\n", strings.Repeat("a line of text\n", 50), i, j))
		}
		r.save(s, Meta{Cause: CauseTurn, Turn: i + 1})
	}
}

// whole reads everything that the chain reaches.
func whole(r *repo, s *Store, n int) {
	r.t.Helper()
	all, err := s.List(r.t.Context())
	if err != nil || len(all) != n {
		r.t.Fatalf("%d checkpoints, %v; want %d", len(all), err, n)
	}
	for _, c := range all {
		err := s.odb.diffTrees([20]byte{}, hashOfHex(r.t, c.Tree), func(d pathDiff) error {
			_, err := s.odb.content(plumbing.BlobObject, d.new.hash)
			return err
		})
		if err != nil {
			r.t.Fatalf("checkpoint %d: %v", c.ID, err)
		}
	}
}

func hashOfHex(t testing.TB, hex string) [20]byte {
	t.Helper()
	h, ok := parseHash(hex)
	if !ok {
		t.Fatalf("%q is no hash", hex)
	}
	return h
}

func ownPacks(t *testing.T, s *Store) []ownPack {
	t.Helper()
	f := folder{dir: filepath.Join(s.where.Path, "objects", "pack")}
	list, err := f.own()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestMaintain(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("d0/x", "1\n")
	r.commit()
	s := r.open(Options{})
	if rep, err := s.Maintain(t.Context()); err != nil || rep.Folded != 0 {
		t.Fatalf("%+v, %v: there is nothing to fold", rep, err)
	}
	saveMany(r, s, foldFrom+4)
	before := diskUse(filepath.Join(s.where.Path, "objects"))
	rep, err := s.Maintain(t.Context())
	if err != nil || rep.Folded < foldFrom || rep.Freed <= 0 {
		t.Fatalf("%+v, %v", rep, err)
	}
	if n := len(ownPacks(t, s)); n != rep.Packs || n > 3 {
		t.Errorf("%d packs, %+v", n, rep)
	}
	if after := diskUse(filepath.Join(s.where.Path, "objects")); after > before/2 {
		t.Errorf("%d bytes became %d", before, after)
	}
	whole(r, s, foldFrom+4)
	whole(r, r.open(Options{}), foldFrom+4)
	r.git("fsck", "--strict", "--full", "--no-dangling")
	// A second fold takes the small ones, and the first result only if it must.
	saveMany(r, s, foldFrom)
	if rep, err = s.Maintain(t.Context()); err != nil || rep.Folded < foldFrom-1 {
		t.Errorf("%+v, %v", rep, err)
	}
	whole(r, s, 2*foldFrom+4)
	// Where nothing may be deleted, nothing is.
	saveMany(r, s, foldFrom)
	r.git("config", "core.repositoryFormatVersion", "1")
	r.git("config", "extensions.preciousObjects", "true")
	if rep, err := r.open(Options{}).Maintain(t.Context()); err != nil || rep.Folded != 0 || rep.Why == "" {
		t.Errorf("precious objects: %+v, %v", rep, err)
	}
}

func TestSmallPacks(t *testing.T) {
	t.Parallel()
	list := func(sizes ...int64) (l []ownPack) {
		for _, n := range sizes {
			l = append(l, ownPack{size: n})
		}
		return l
	}
	for _, tt := range []struct {
		sizes []int64
		want  int
	}{
		{[]int64{5, 5, 5, 5}, 4},
		{[]int64{1000, 5, 5, 5}, 3},
		{[]int64{25, 5, 5, 5}, 4},
		{[]int64{1, 100}, 2},
		{[]int64{1000, 5, 5, 3000, 6}, 3},
	} {
		if got := len(smallPacks(list(tt.sizes...))); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.sizes, got, tt.want)
		}
	}
}

// TestUsersGc runs what a user may run on the repository, between and after
// folds. Nothing that a chain reaches may be lost.
func TestUsersGc(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"gc", "-q", "--prune=now"},
		{"repack", "-q", "-a", "-d"},
		{"repack", "-q", "-a", "-d", "-l", "-F"},
		{"repack", "-q", "--geometric=2", "-d"},
		{"prune", "--expire=now"},
		{"prune-packed", "-q"},
		{"multi-pack-index", "write"},
		{"pack-refs", "--all"},
	} {
		t.Run(strings.Join(args[:min(3, len(args))], " "), func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			r.write("a", "1\n")
			r.commit()
			s := r.open(Options{})
			saveMany(r, s, 3)
			r.write("a", "2\n") // few objects: loose ones
			r.save(s, Meta{})
			r.git(args...)
			whole(r, s, 4)
			saveMany(r, s, 2)
			r.git(args...)
			whole(r, s, 6)
			whole(r, r.open(Options{}), 6)
			r.git("fsck", "--strict", "--full", "--no-dangling")
		})
	}
}

// TestGuards looks at the .keep files: they are gone after a save, and those
// of killed processes after Maintain.
func TestGuards(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := r.open(Options{})
	saveMany(r, s, 1)
	keeps, err := filepath.Glob(filepath.Join(s.where.Path, "objects", "pack", "*.keep"))
	if err != nil || len(keeps) != 0 {
		t.Fatalf("guards %v, %v", keeps, err)
	}
	pack := filepath.Join(s.where.Path, "objects", "pack", ownPacks(t, s)[0].name)
	other := filepath.Join(filepath.Dir(pack), "pack-"+strings.Repeat("1", 40)+".keep")
	must(r, os.WriteFile(pack+".keep", []byte(keepText), 0o600))
	must(r, os.WriteFile(other, nil, 0o600))
	r.git("repack", "-q", "-a", "-d")
	if !exists(pack + ".pack") {
		t.Fatal("a guarded pack was repacked")
	}
	if _, err := s.Maintain(t.Context()); err != nil || !exists(pack+".keep") {
		t.Fatalf("a young guard was removed: %v", err)
	}
	old := time.Now().Add(-2 * leftover)
	must(r, os.Chtimes(pack+".keep", old, old))
	must(r, os.Chtimes(other, old, old))
	if _, err := s.Maintain(t.Context()); err != nil || exists(pack+".keep") || !exists(other) {
		t.Errorf("an old guard of ours stayed, or a person's went: %v", err)
	}
}
