package checkpoint

import (
	"fmt"
	"testing"
)

// What a commit on a ref of points pins is kept by gc, by the number that it has,
// however often gc gives it another commit; verify passes that ref over.
func TestGCKeepsWhatIsPinned(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := r.open(Options{CacheDir: t.TempDir()})
	save := func(text string) {
		r.write("a.txt", text)
		r.save(s, Meta{Cause: CauseTurn})
	}
	for i := range 6 {
		save(fmt.Sprint(i))
	}
	r.commit()
	message := "fleet point 1: manual\n\n" + PinTrailer + ": 2 " + s.opts.Ref + "\n" + PinTrailer + ": 3 refs/muntin/hand/other\n"
	r.git("update-ref", PointRefs+"r", r.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", message))
	for i := range 3 {
		if _, err := s.GC(t.Context(), Policy{MaxCount: 1}); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			save(fmt.Sprint("more", i))
		}
	}
	if got := ids(t, s); !same(got, 8, 2) {
		t.Errorf("kept %v", got)
	}
	report, err := s.Verify(t.Context(), false)
	if err != nil || !report.OK() || report.Chains != 1 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}
