package session

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"muntin/internal/durable"
)

// forked is a session with two branches below b; the leaf is on the first.
func forked(t *testing.T, path string) (s *Session, ids map[string]string) {
	t.Helper()
	s = open(t, path)
	ids = map[string]string{}
	ids["a"] = say(t, s, user("a"))
	ids["b"] = say(t, s, answer("b"))
	ids["c"] = say(t, s, user("c"))
	ids["d"] = say(t, s, answer("d"))
	if err := s.Move(ids["b"]); err != nil {
		t.Fatal(err)
	}
	ids["e"] = say(t, s, user("e"))
	for entry, label := range map[string]string{"a": "begin", "c": "tried"} {
		if err := s.SetLabel(ids[entry], label); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Move(ids["d"]); err != nil {
		t.Fatal(err)
	}
	return s, ids
}

func labels(s *Session) map[string]string {
	m := map[string]string{}
	for _, n := range s.Nodes() {
		if n.Label != "" {
			m[n.ID] = n.Label
		}
	}
	return m
}

func TestForkOfAllAndOfABranch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, ids := forked(t, filepath.Join(dir, "s.jsonl"))
	whole, branch := filepath.Join(dir, "w.jsonl"), filepath.Join(dir, "b.jsonl")
	if err := errors.Join(
		s.Fork(ForkOptions{Path: whole, Now: fixedNow}),
		s.Fork(ForkOptions{Path: branch, Entry: ids["c"], Now: fixedNow}),
	); err != nil {
		t.Fatal(err)
	}
	w, b := open(t, whole), open(t, branch)
	expect(t, w, "user:a assistant:b user:c assistant:d")
	expect(t, b, "user:a assistant:b user:c")
	if w.Header().ID == s.Header().ID || w.Header().ParentSession != s.Path() || w.Header().Cwd != "/project" {
		t.Errorf("header %+v", w.Header())
	}
	if l := labels(w); l[ids["a"]] != "begin" || l[ids["c"]] != "tried" {
		t.Errorf("labels of all: %v", l)
	}
	if l := labels(b); len(l) != 2 || l[ids["a"]] != "begin" || l[ids["c"]] != "tried" {
		t.Errorf("labels of the branch: %v", l)
	}
	if err := w.Move(ids["e"]); err != nil {
		t.Error(err)
	}
	if err := b.Move(ids["e"]); !errors.Is(err, ErrNoEntry) {
		t.Errorf("the other branch was taken along: %v", err)
	}
	say(t, b, answer("on"))
	expect(t, b, "user:a assistant:b user:c assistant:on")
	expect(t, s, "user:a assistant:b user:c assistant:d")
	if err := s.Fork(ForkOptions{Path: filepath.Join(dir, "x.jsonl"), Entry: "none"}); !errors.Is(err, ErrNoEntry) {
		t.Errorf("of no entry: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x.jsonl")); err == nil {
		t.Error("it left a file behind")
	}
}

func TestNewSessionIsNamedByItsFile(t *testing.T) {
	t.Parallel()
	const name = "01KC0V2Q8Z5T9M4R7X1YB3DCEF"
	if s := open(t, filepath.Join(t.TempDir(), name+".jsonl")); s.Header().ID != name {
		t.Errorf("got %q", s.Header().ID)
	}
}

func TestAbandoned(t *testing.T) {
	t.Parallel()
	s, ids := forked(t, "")
	var got string
	for _, it := range s.Abandoned(ids["e"]) {
		got += it.Message.Text()
	}
	if got != "cd" {
		t.Errorf("got %q", got)
	}
	old := s.Leaf()
	id, err := s.MoveWithSummary(ids["b"], Entry{Summary: "tried c"})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := s.Entry(id); err != nil || e.FromID != old || *e.ParentID != ids["b"] || s.Leaf() != id {
		t.Errorf("got %+v, %v", e, err)
	}
}

// A second opener may read, also while lines are added.
func TestReadOnlyBesideTheWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	say(t, s, user("a"))
	if _, err := Open(path, Options{}); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("a second writer: %v", err)
	}
	r := openRO(t, path)
	say(t, s, answer("b"))
	expect(t, r, "user:a")
	if err := r.Move(""); !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	fork := filepath.Join(t.TempDir(), "f.jsonl")
	if err := r.Fork(ForkOptions{Path: fork}); err != nil {
		t.Fatal(err)
	}
	expect(t, open(t, fork), "user:a")
	if _, err := Open(path+"-none", Options{ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestReadOnlyLeavesATornLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	torn := head + msg("a", "", "user", "1") + msg("b", "a", "user", "2")[:30]
	if err := os.WriteFile(path, []byte(torn), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openRO(t, path)
	expect(t, s, "user:1")
	if p := s.Problems(); len(p) != 1 || p[0].Line != 3 {
		t.Errorf("problems %v", p)
	}
	if string(bytesOf(t, path)) != torn {
		t.Error("the file was changed")
	}
}

// Pi takes no lock. What it adds to a session that is open here must not be
// overrun.
func TestForeignWriterIsSeen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	a := say(t, s, user("a"))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(msg("zz", a, "assistant", "foreign")); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := s.AppendMessage(answer("b"), nil); !errors.Is(err, ErrForeignWriter) {
		t.Errorf("got %v", err)
	}
	s.Close()
	expect(t, open(t, path), "user:a assistant:foreign")
}
