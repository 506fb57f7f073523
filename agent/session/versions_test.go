package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/agent/llm"
)

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openRO(t *testing.T, path string) *Session {
	t.Helper()
	s, err := Open(path, Options{ReadOnly: true, Now: fixedNow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func bytesOf(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func squeezed(s *Session) string {
	var all []string
	for _, m := range s.Messages() {
		all = append(all, string(m.Role)+":"+strings.Join(strings.Fields(m.Text()), " "))
	}
	return strings.Join(all, " | ")
}

const (
	v1Context = "user:The conversation before this point was compacted to this summary: <summary> they began </summary> | user:second | assistant: | toolResult:a b"
	v2Context = "user:first | assistant:answer one | user:from a hook | user:second"
)

func TestVersion1IsReadAndForked(t *testing.T) {
	t.Parallel()
	path := fixture(t, "v1.jsonl")
	before := bytesOf(t, path)
	if _, err := Open(path, Options{}); !errors.Is(err, ErrOldVersion) {
		t.Errorf("open to write: %v", err)
	}
	s := openRO(t, path)
	if got := squeezed(s); got != v1Context || len(s.Problems()) != 0 {
		t.Errorf("got %q, %v", got, s.Problems())
	}
	if p, m := s.Model(); p != "anthropic" || m != "claude" || s.Header().Version != 1 {
		t.Errorf("model %s/%s, version %d", p, m, s.Header().Version)
	}
	if _, err := s.AppendMessage(user("x"), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("append: %v", err)
	}
	to := filepath.Join(t.TempDir(), "fork.jsonl")
	if err := s.Fork(ForkOptions{Path: to, Dir: "/here", Now: fixedNow}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytesOf(t, path), before) {
		t.Error("the file was changed")
	}
	f := open(t, to)
	if got := squeezed(f); got != v1Context || f.Header().Version != 3 || f.Header().Cwd != "/here" || f.Header().ParentSession != path {
		t.Errorf("got %q, %+v", got, f.Header())
	}
	say(t, f, answer("more"))
	expectSuffix(t, f, "assistant:more")
}

func expectSuffix(t *testing.T, s *Session, want string) {
	t.Helper()
	if got := squeezed(s); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want it to end with %q", got, want)
	}
}

func TestVersion2IsGoneOnWith(t *testing.T) {
	t.Parallel()
	path := fixture(t, "v2.jsonl")
	before := bytesOf(t, path)
	s := open(t, path)
	if got := squeezed(s); got != v2Context {
		t.Errorf("got %q", got)
	}
	say(t, s, answer("more"))
	s.Close()
	if !bytes.HasPrefix(bytesOf(t, path), before) {
		t.Error("the file was rewritten")
	}
	s = openRO(t, path)
	if got := squeezed(s); got != v2Context+" | assistant:more" || s.Header().Version != 2 {
		t.Errorf("got %q, version %d", got, s.Header().Version)
	}
	to := filepath.Join(t.TempDir(), "fork.jsonl")
	if err := s.Fork(ForkOptions{Path: to}); err != nil {
		t.Fatal(err)
	}
	if data := string(bytesOf(t, to)); strings.Contains(data, "hookMessage") || !strings.Contains(data, `"role":"custom"`) {
		t.Error("the role was not renamed")
	}
	if got := squeezed(openRO(t, to)); got != v2Context+" | assistant:more" {
		t.Errorf("the fork: %q", got)
	}
}

func TestVersion3(t *testing.T) {
	t.Parallel()
	path := fixture(t, "v3.jsonl")
	s := open(t, path)
	if got := squeezed(s); got != "user:look at this | assistant:I will | toolResult:ok | assistant:done" {
		t.Errorf("got %q", got)
	}
	m := s.Messages()
	if m[0].Content[1].Data != "iVBORw0KGgo=" || m[1].Content[0].ThinkingSignature != "c2ln" || string(m[2].Details) != `{"diff":"-x\n+y","firstChangedLine":1}` || m[1].Usage.Reasoning != 2 {
		t.Errorf("got %+v", m)
	}
	if s.Name() != "The picture" {
		t.Errorf("named %q", s.Name())
	}
	for _, n := range s.Nodes() {
		if (n.Label != "") != (n.ID == "b0000004") || !n.OnBranch {
			t.Errorf("got %+v", n)
		}
	}
	// A fork has every line that the source has, as it was: also what is not
	// understood here.
	to := filepath.Join(t.TempDir(), "fork.jsonl")
	if err := s.Fork(ForkOptions{Path: to, Import: true}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytesOf(t, to), bytesOf(t, path)) {
		t.Errorf("the copy differs:\n%s", bytesOf(t, to))
	}
	if err := s.Fork(ForkOptions{Path: to}); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a file that is there: %v", err)
	}
}

// What Pi takes for granted of its entries must stand in ours.
func TestEntriesHaveWhatPiReads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	id := say(t, s, user("a"))
	say(t, s, answer("b"))
	for _, e := range []Entry{
		{Type: TypeCompaction, Summary: "s", FirstKept: id},
		{Type: TypeCustomMessage, CustomType: "x", Content: json.RawMessage(`"c"`)},
		{Type: TypeContextEdit, TargetID: id, Replacement: json.RawMessage("null")},
	} {
		if _, err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(string(bytesOf(t, path))), "\n")
	for i, want := range map[int]string{
		1: `"content":[{"type":"text","text":"a"}]`,
		2: `"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}`,
		3: `"tokensBefore":0`,
		4: `"display":true`,
		5: `"replacement":null`,
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d lacks %s: %s", i+1, want, lines[i])
		}
	}
	if got := s.Messages(); len(got) != 3 || got[1].Role != llm.RoleAssistant {
		t.Errorf("got %+v", got)
	}
}
