package checkpoint

import (
	"strings"
	"testing"
	"time"
)

// ids are the ids of a chain, newest first.
func ids(t *testing.T, s *Store) (list []int) {
	t.Helper()
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		list = append(list, c.ID)
	}
	return list
}

func same(a []int, b ...int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestGCPolicies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy Policy
		want   []int
	}{
		"no limit":        {Policy{}, []int{6, 5, 4, 3, 2, 1}},
		"count":           {Policy{MaxCount: 2}, []int{6, 5, 2}},
		"age":             {Policy{MaxAge: 90 * time.Minute}, []int{6, 5, 2}},
		"bytes":           {Policy{MaxBytes: 3500}, []int{6, 5, 4, 2}},
		"all":             {Policy{MaxCount: 4, MaxAge: 150 * time.Minute}, []int{6, 5, 4, 2}},
		"nothing fits":    {Policy{MaxBytes: 1}, []int{6, 2}},
		"only to be told": {Policy{MaxCount: 1, DryRun: true}, []int{6, 5, 4, 3, 2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			now := time.Unix(1_800_000_000, 0)
			s := r.open(Options{CacheDir: t.TempDir(), Now: func() time.Time { return now }})
			var all []Checkpoint
			for range 6 {
				now = now.Add(time.Hour)
				r.write("f", noise(1000, now.Unix()))
				c, _ := r.save(s, Meta{Cause: CauseTurn, Turn: len(all) + 1})
				all = append(all, c)
			}
			must(r, s.moveRef(t.Context(), refMove{name: labels + "good", next: hashOf(t, all[1].Commit)}))
			rep, err := s.GC(t.Context(), tt.policy)
			if err != nil {
				t.Fatal(err)
			}
			if got := ids(t, s); !same(got, tt.want...) {
				t.Fatalf("kept %v, want %v; %+v", got, tt.want, rep)
			}
			if !tt.policy.DryRun && rep.Kept != len(tt.want) || rep.Kept+len(rep.Dropped) != 6 {
				t.Errorf("report %+v", rep)
			}
			checkCollected(r, s, all, tt.want)
		})
	}
}

// checkCollected looks at a chain after GC: all lists its checkpoints as they
// were saved, kept the ids that it has now.
func checkCollected(r *repo, s *Store, all []Checkpoint, kept []int) {
	r.t.Helper()
	for _, id := range kept {
		was := all[id-1]
		for _, spec := range []string{was.Commit, was.Commit[:12]} {
			c, err := s.Find(r.t.Context(), spec)
			if err != nil || c.ID != id || c.Tree != was.Tree || c.Time != was.Time || c.Meta != was.Meta {
				r.t.Errorf("%s: %+v, %v; it was %+v", spec, c, err, was)
			}
		}
	}
	label, err := s.readRef(labels + "good")
	if err != nil {
		r.t.Fatal(err)
	}
	if c, err := s.Find(r.t.Context(), "#2"); err != nil || c.Commit != label.String() {
		r.t.Errorf("the label is at %s, its checkpoint at %s, %v", label, c.Commit, err)
	}
	// Dropped ones go with git's gc, kept ones stay.
	r.git("gc", "-q", "--prune=now")
	whole(r, s, len(kept))
	r.git("fsck", "--strict", "--full", "--no-dangling")
	c, _ := r.save(s, Meta{})
	if c.ID != len(all)+1 || c.Tree != r.oracle() {
		r.t.Errorf("the next checkpoint: %+v", c)
	}
}

// noise is a text that does not get smaller.
func noise(n int, seed int64) string {
	var b strings.Builder
	for x := uint64(seed) | 1; b.Len() < n; {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b.WriteByte(byte(x>>32) | 1)
	}
	return b.String()
}

// TestGCKeepsUndo drops all but the newest, after a restore that can still be undone.
func TestGCKeepsUndo(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := r.open(Options{})
	for i := range 4 {
		r.write("f", strings.Repeat("x", i+1))
		r.save(s, Meta{Cause: CauseTurn, Turn: i + 1})
	}
	target, err := s.Find(t.Context(), "#2")
	if err != nil {
		t.Fatal(err)
	}
	r.write("f", "unsaved")
	if _, err := s.Restore(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GC(t.Context(), Policy{MaxCount: 1}); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, s); !same(got, 6, 5, 2) {
		t.Fatalf("kept %v", got)
	}
	// Twice, with a label that a killed gc left on the former commit.
	must(r, s.moveRef(t.Context(), refMove{name: labels + "late", next: hashOf(t, target.Commit)}))
	r.save(s, Meta{})
	r.git("gc", "-q", "--prune=now")
	if _, err := s.GC(t.Context(), Policy{MaxCount: 2}); err != nil {
		t.Fatal(err)
	}
	r.git("gc", "-q", "--prune=now")
	whole(r, r.open(Options{}), 4)
	if _, err := s.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.read("f") != "unsaved" {
		t.Errorf("undo restored %q", r.read("f"))
	}
}

// TestGCInSidecar frees room at once.
func TestGCInSidecar(t *testing.T) {
	t.Parallel()
	r := &repo{t: t, dir: t.TempDir()}
	s := r.open(Options{})
	for i := range 5 {
		r.write("f", noise(100_000, int64(i+1)))
		r.save(s, Meta{})
	}
	rep, err := s.GC(t.Context(), Policy{MaxCount: 2})
	if err != nil || rep.Kept != 2 {
		t.Fatalf("%+v, %v", rep, err)
	}
	whole(r, s, 2)
	whole(r, r.open(Options{}), 2)
	c, _ := r.save(s, Meta{})
	if c.ID != 6 {
		t.Errorf("%+v", c)
	}
}
