package checkpoint

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestRestoreLosesNoWrite has another process write in the moment between the
// last look at a file and its replacement: what it wrote is there after the
// restore's undo, as it would be had it come a moment earlier.
func TestRestoreLosesNoWrite(t *testing.T) {
	t.Parallel()
	add := func(r *repo, name, text string) {
		f, err := os.OpenFile(r.path(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		must(r, err)
		_, err = f.WriteString(text)
		must(r, errors.Join(err, f.Close()))
	}
	for _, tt := range []struct {
		name     string
		old, now string                 // what the target has and what is there, "" for nothing
		at       map[string]func(*repo) // what happens at the named points of the restore
		want     string                 // what is there after the undo
		kept     string                 // what is there beside it
	}{
		{"written to", "old", "now", map[string]func(*repo){"looked": func(r *repo) { add(r, "f", "+") }}, "now+", ""},
		{"same size", "old", "now", map[string]func(*repo){"looked": func(r *repo) { r.write("f", "NOW") }}, "NOW", ""},
		{"renamed over", "old", "now", map[string]func(*repo){"looked": func(r *repo) {
			r.write("g", "other")
			must(r, os.Rename(r.path("g"), r.path("f")))
		}}, "other", ""},
		{"made a symlink", "old", "now", map[string]func(*repo){"looked": func(r *repo) {
			r.remove("f")
			must(r, os.Symlink("target", r.path("f")))
		}}, "-> target", ""},
		{"made executable", "old", "now", map[string]func(*repo){"looked": func(r *repo) { must(r, os.Chmod(r.path("f"), 0o755)) }}, "now", ""},
		{"removed", "old", "now", map[string]func(*repo){"looked": func(r *repo) { r.remove("f") }}, "now", ""}, // a removal may be taken back
		{"made", "old", "", map[string]func(*repo){"looked": func(r *repo) { r.write("f", "other") }}, "other", ""},
		{"written to and to be deleted", "", "now", map[string]func(*repo){"looked": func(r *repo) { add(r, "f", "+") }}, "now+", ""},
		{"removed and to be deleted", "", "now", map[string]func(*repo){"looked": func(r *repo) { r.remove("f") }}, "now", ""},
		{"written to before and after", "old", "now", map[string]func(*repo){
			"looked":    func(r *repo) { add(r, "f", "+1") },
			"exchanged": func(r *repo) { add(r, "f", "+2") },
		}, "old+2", "now+1"},
		{"removed after", "old", "now", map[string]func(*repo){
			"looked":    func(r *repo) { add(r, "f", "+1") },
			"exchanged": func(r *repo) { r.remove("f") },
		}, "now", "now+1"},
		{"made anew after", "", "now", map[string]func(*repo){
			"looked":     func(r *repo) { add(r, "f", "+1") },
			"taken away": func(r *repo) { add(r, "f", "+2") },
		}, "+2", "now+1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			set := func(content string) {
				if r.remove("f"); content != "" {
					r.write("f", content)
				}
			}
			set(tt.old)
			done := map[string]*sync.Once{"looked": {}, "exchanged": {}, "taken away": {}}
			s := r.open(Options{reached: func(point string) {
				if do := tt.at[point]; do != nil {
					done[point].Do(func() { do(r) })
				}
			}})
			target, _ := r.save(s, Meta{})
			set(tt.now)
			rep, err := s.Restore(t.Context(), target)
			if err != nil {
				t.Fatalf("%+v, %v", rep, err)
			}
			if got := r.state("f"); got != tt.old {
				t.Errorf("restored %q, want %q", got, tt.old)
			}
			if rep.Now.ID != 0 { // else it had become what the target has
				if _, err := s.Undo(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := r.state("f"); got != tt.want {
					t.Errorf("%q after the undo, want %q", got, tt.want)
				}
			}
			if got := r.state("f" + keptSuffix); got != tt.kept {
				t.Errorf("%q was kept, want %q", got, tt.kept)
			}
			if out := r.git("status", "--porcelain", "--ignored"); strings.Contains(out, tempPrefix) {
				t.Errorf("temporary files are left: %s", out)
			}
		})
	}
}

// state is the content of a file, the target of a symlink, "" for nothing.
func (r *repo) state(name string) string {
	r.t.Helper()
	if target, err := os.Readlink(r.path(name)); err == nil {
		return "-> " + target
	}
	if !exists(r.path(name)) {
		return ""
	}
	return r.read(name)
}

// TestRestoreGivesUp has another process write in that moment each time: the
// restore ends with ErrBusy, and what was written is in its place.
func TestRestoreGivesUp(t *testing.T) {
	t.Parallel()
	for _, old := range []string{"old", ""} {
		r := newRepo(t)
		if old != "" {
			r.write("f", old)
		}
		n := 0
		s := r.open(Options{reached: func(point string) {
			if point == "looked" {
				n++
				r.write("f", strings.Repeat("x", n))
			}
		}})
		target, _ := r.save(s, Meta{})
		r.write("f", "now")
		rep, err := s.Restore(t.Context(), target)
		if !errors.Is(err, ErrBusy) || len(rep.Conflicts) != 1 || n != busyTries {
			t.Errorf("%+v, %v after %d writes", rep, err, n)
		}
		if got := r.read("f"); got != strings.Repeat("x", n) {
			t.Errorf("%q is left of the last write", got)
		}
	}
}
