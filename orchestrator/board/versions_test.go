package board

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func keptFile(t *testing.T, text string) File {
	t.Helper()
	f := newFile(t, text)
	f.Versions = filepath.Join(filepath.Dir(f.LockPath), "versions")
	if _, _, err := f.Update(t.Context(), func(*Board) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return f
}

// save writes the file as editors do that rename.
func save(t *testing.T, f File, text string) {
	t.Helper()
	temp := f.Path + "~"
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, f.Path); err != nil {
		t.Fatal(err)
	}
}

func (f File) mustUpdate(t *testing.T, fn func(*Board) error) {
	t.Helper()
	if _, _, err := f.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func nothing(*Board) error { return nil }

func TestStaleSave(t *testing.T) {
	t.Parallel()
	f := keptFile(t, "# To do\n\n- [ ] a ^a\n- [ ] b ^b\n")
	loaded := content(t, f)
	f.mustUpdate(t, add(NewTask{Text: "c"}))
	f.mustUpdate(t, func(b *Board) error { return b.SetState("b", Done) })
	save(t, f, strings.Replace(loaded, "[ ] a", "[x] a", 1))
	f.mustUpdate(t, nothing)
	if got, want := content(t, f), "# To do\n\n- [x] a ^a\n- [x] b ^b\n- [ ] c ^c\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	// The editor goes on from the text that it has.
	save(t, f, strings.Replace(loaded, "[ ] a", "[x] all of a", 1))
	f.mustUpdate(t, nothing)
	if got, want := content(t, f), "# To do\n\n- [x] all of a ^a\n- [x] b ^b\n- [ ] c ^c\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestDeletedTwice: a text that looks old may be meant. Saved once more, it is believed.
func TestDeletedTwice(t *testing.T) {
	t.Parallel()
	f := keptFile(t, "- [ ] a ^a\n")
	old := content(t, f)
	f.mustUpdate(t, add(NewTask{Text: "b"}))
	save(t, f, old)
	f.mustUpdate(t, nothing)
	if got := content(t, f); got != "- [ ] a ^a\n- [ ] b ^b\n" {
		t.Errorf("an old text wiped out what was added:\n%s", got)
	}
	save(t, f, old)
	f.mustUpdate(t, nothing)
	if got := content(t, f); got != old {
		t.Errorf("a task cannot be deleted:\n%s", got)
	}
}

func TestFreshSaveStands(t *testing.T) {
	t.Parallel()
	f := keptFile(t, "- [ ] a ^a\n- [ ] b ^b\n- [ ] c ^c\n")
	f.mustUpdate(t, func(b *Board) error { return b.SetState("a", Done) })
	save(t, f, "- [x] a ^a\n- [ ] c ^c\n")
	f.mustUpdate(t, nothing)
	if got := content(t, f); got != "- [x] a ^a\n- [ ] c ^c\n" {
		t.Errorf("got\n%s", got)
	}
}

// TestCrashBeforeTheWrite: a version was kept and the process died before it stood
// in the file.
func TestCrashBeforeTheWrite(t *testing.T) {
	t.Parallel()
	f := keptFile(t, "- [ ] a ^a\n")
	all, err := f.versions()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.keepAs(all, []byte("- [ ] a ^a\n- [ ] b ^b\n"), version{by: Agent, pending: true}); err != nil {
		t.Fatal(err)
	}
	f.mustUpdate(t, nothing)
	if got := content(t, f); got != "- [ ] a ^a\n- [ ] b ^b\n" {
		t.Errorf("got\n%s", got)
	}
}

func TestVersionsAreFew(t *testing.T) {
	t.Parallel()
	f := keptFile(t, "- [ ] a ^a\n")
	if err := os.WriteFile(filepath.Join(f.Versions, "README"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range keepVersions + 5 {
		f.mustUpdate(t, add(NewTask{Text: fmt.Sprint("task ", i)}))
	}
	all, err := f.versions()
	if err != nil || len(all) != keepVersions {
		t.Errorf("%d versions, %v", len(all), err)
	}
	if _, err := os.Stat(filepath.Join(f.Versions, "README")); err != nil {
		t.Error("a file that is not ours is gone")
	}
}

// A fleet is four writers of one board at work at once.
type fleet struct {
	*testing.T
	f       File
	r       *rand.Rand
	n       int
	notes   []string       // saved
	tasks   []string       // added
	ticks   map[string]int // by id: how many writers touched its state
	editors [2]*editor
}

// An editor holds a text that it loaded a while ago.
type editor struct {
	name string
	text string
	note []string // in the text, not saved
	tick []string
}

// TestManyWriters drives random interleavings of two editors, the command line and
// the orchestrator. Editors are killed with what they did not save, writers between
// keeping a version and writing the file. Nothing that was saved is lost.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	rounds := 60
	if os.Getenv("MUNTIN_SOAK") != "" {
		rounds = 5000
	}
	for seed := range rounds {
		w := &fleet{T: t, r: rand.New(rand.NewPCG(7, uint64(seed))), ticks: map[string]int{}}
		w.f = keptFile(t, "# To do\n\nprose\n\n- [ ] one ^one\n- [ ] two ^two\n  details\n- [ ] three ^three\n- [ ] four ^four\n")
		w.editors = [2]*editor{{name: "vim"}, {name: "code"}}
		for range 6 + w.r.IntN(12) {
			w.step()
		}
		w.f.mustUpdate(t, nothing)
		if !w.check() {
			t.Fatalf("seed %d:\n%s", seed, content(t, w.f))
		}
	}
}

func (w *fleet) step() {
	w.n++
	id := []string{"one", "two", "three", "four"}[w.r.IntN(4)]
	switch k := w.r.IntN(10); k {
	case 0, 1, 2, 3:
		w.editor(w.editors[k%2], id)
	case 4, 5:
		name := fmt.Sprint("cli", w.n)
		w.f.mustUpdate(w.T, add(NewTask{Text: "task " + name, ID: name}))
		w.tasks = append(w.tasks, name)
	case 6, 7:
		w.ticks[id]++
		f := w.f
		f.By = Agent
		f.mustUpdate(w.T, func(b *Board) error { return b.SetState(id, Done) })
	case 8:
		w.crash()
	case 9:
		w.editors[w.r.IntN(2)] = &editor{name: fmt.Sprint("ed", w.n)} // killed
	}
}

// editor loads, edits, or saves.
func (w *fleet) editor(e *editor, id string) {
	switch {
	case e.text == "":
		e.text = content(w.T, w.f)
	case w.r.IntN(3) > 0:
		if w.r.IntN(2) == 0 && strings.Contains(e.text, "- [ ] "+id) {
			e.text = strings.Replace(e.text, "- [ ] "+id, "- [x] "+id, 1)
			e.tick = append(e.tick, id)
			return
		}
		note := fmt.Sprintf("note %s %d", e.name, w.n)
		lines := strings.SplitAfter(e.text, "\n")
		at := w.r.IntN(len(lines))
		e.text = strings.Join(slices.Insert(lines, at, "  "+note+"\n"), "")
		e.note = append(e.note, note)
	default:
		if len(e.note) == 0 {
			return // two editors that save the same text in a row are taken for one that means it
		}
		save(w.T, w.f, e.text)
		w.notes = append(w.notes, e.note...)
		for _, id := range e.tick {
			w.ticks[id]++
		}
		e.note, e.tick = nil, nil
		if w.r.IntN(2) == 0 {
			e.text = ""
		}
		w.f.mustUpdate(w.T, nothing) // as the orchestrator does, which sees the save
	}
}

// crash is a writer that dies between keeping the version and writing the file.
func (w *fleet) crash() {
	w.f.mustUpdate(w.T, nothing)
	b, err := w.f.Read()
	if err != nil {
		w.Fatal(err)
	}
	name := fmt.Sprint("crash", w.n)
	if _, err := b.AddTask(NewTask{Text: "task " + name, ID: name}); err != nil {
		w.Fatal(err)
	}
	all, err := w.f.versions()
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.f.keepAs(all, b.Bytes(), version{by: Person, pending: true}); err != nil {
		w.Fatal(err)
	}
	w.tasks = append(w.tasks, name)
	w.f.mustUpdate(w.T, nothing)
}

func (w *fleet) check() bool {
	text := content(w.T, w.f)
	b, err := Parse([]byte(text))
	if err != nil {
		w.Error(err)
		return false
	}
	ok := true
	for _, note := range w.notes {
		if strings.Count(text, note+"\n") != 1 {
			w.Errorf("%q is there %d times", note, strings.Count(text, note+"\n"))
			ok = false
		}
	}
	for _, id := range append([]string{"one", "two", "three", "four"}, w.tasks...) {
		if strings.Count(text+"\n", "^"+id+"\n") != 1 {
			w.Errorf("^%s is there %d times", id, strings.Count(text+"\n", "^"+id+"\n"))
			ok = false
		}
	}
	for id, n := range w.ticks {
		if task, _ := b.Task(id); n > 0 && task.State != Done && task.State != Waiting {
			w.Errorf("the tick of ^%s is lost: %s", id, task.State)
			ok = false
		}
	}
	for _, line := range []string{"# To do\n", "prose\n", "  details\n"} {
		if !strings.Contains(text, line) {
			w.Errorf("%q is gone", line)
			ok = false
		}
	}
	return ok
}
