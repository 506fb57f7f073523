package session

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"muntin/agent/llm"
	"muntin/internal/durable"
)

func fixedNow() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC) }

func open(t *testing.T, path string) *Session {
	t.Helper()
	s, err := Open(path, Options{Dir: "/project", Now: fixedNow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func say(t *testing.T, s *Session, m llm.Message) string {
	t.Helper()
	id, err := s.AppendMessage(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func user(text string) llm.Message { return llm.UserText(text, 1) }

func answer(text string) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockText, Text: text}}, Timestamp: 2, StopReason: llm.StopEnd}
}

func texts(ms []llm.Message) string {
	var all []string
	for _, m := range ms {
		all = append(all, string(m.Role)+":"+m.Text())
	}
	return strings.Join(all, " ")
}

func expect(t *testing.T, s *Session, want string) {
	t.Helper()
	if got := texts(s.Messages()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "s.jsonl")
	s := open(t, path)
	if s.Resumed() || s.Leaf() != "" {
		t.Errorf("a new session is resumed, or has leaf %q", s.Leaf())
	}
	if _, err := s.AppendModel("openai", "gpt"); err != nil {
		t.Fatal(err)
	}
	sent := []llm.Message{
		user("hi"),
		{
			Role: llm.RoleAssistant, Timestamp: 3, StopReason: llm.StopToolUse, Usage: &llm.Usage{Input: 1, Output: 2, Total: 3},
			Content: []llm.Block{{Type: llm.BlockToolCall, ID: "c1", Name: "bash", Arguments: json.RawMessage(`{"command":"ls b"}`)}},
		},
		{
			Role: llm.RoleTool, Timestamp: 4, ToolCallID: "c1", ToolName: "bash", IsError: true, Details: json.RawMessage(`{"exitCode":1}`),
			Content: []llm.Block{{Type: llm.BlockText, Text: "a\u2028b"}},
		},
	}
	for _, m := range sent {
		say(t, s, m)
	}
	leaf := s.Leaf()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendMessage(user("late"), nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("append after close: %v", err)
	}

	again := open(t, path)
	if got := again.Messages(); !reflect.DeepEqual(got, sent) {
		t.Errorf("got  %+v\nwant %+v", got, sent)
	}
	if p, m := again.Model(); p != "openai" || m != "gpt" || !again.Resumed() || again.Leaf() != leaf || len(again.Problems()) != 0 {
		t.Errorf("model %s/%s, resumed %v, leaf %s (was %s), problems %v", p, m, again.Resumed(), again.Leaf(), leaf, again.Problems())
	}
	if again.Header() != s.Header() || again.Header().Cwd != "/project" || again.Header().Timestamp != "2026-03-04T05:06:07.089Z" {
		t.Errorf("header %+v", again.Header())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestOneWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	open(t, path)
	if _, err := Open(path, Options{}); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("the second opener got %v", err)
	}
}

func TestMoveIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	say(t, s, user("a"))
	b := say(t, s, answer("b"))
	say(t, s, user("c"))
	if err := s.Move(b); err != nil {
		t.Fatal(err)
	}
	if err := s.Move("ffffffff"); err == nil {
		t.Error("moved to an entry that is not there")
	}
	if s.Leaf() != b {
		t.Errorf("leaf %s, want %s", s.Leaf(), b)
	}
	expect(t, s, "user:a assistant:b")
	s.Close()

	s = open(t, path)
	if s.Leaf() != b {
		t.Errorf("after opening: leaf %s, want %s", s.Leaf(), b)
	}
	say(t, s, user("d"))
	expect(t, s, "user:a assistant:b user:d")
	if err := s.Move(""); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "")
	s.Close()
	s = open(t, path)
	expect(t, s, "")
	say(t, s, user("e"))
	expect(t, s, "user:e")
}

// Pi takes the last line for the leaf and walks up its parents. For every state
// that we leave behind, that must give the conversation we mean.
func TestPiSeesTheSameLeaf(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	a := say(t, s, user("a"))
	say(t, s, answer("b"))
	check := func() {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		entries := map[string]Entry{}
		var last Entry
		for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n")[1:] {
			var e Entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			entries[e.ID], last = e, e
		}
		var got []llm.Message
		for e := last; ; e = entries[*e.ParentID] {
			if e.Message != nil {
				got = append([]llm.Message{*e.Message}, got...)
			}
			if e.ParentID == nil {
				break
			}
		}
		if texts(got) != texts(s.Messages()) {
			t.Errorf("Pi sees %q, we see %q", texts(got), texts(s.Messages()))
		}
	}
	check()
	if err := s.Move(a); err != nil {
		t.Fatal(err)
	}
	check()
	say(t, s, answer("c"))
	check()
	if err := s.Move(""); err != nil {
		t.Fatal(err)
	}
	check()
}

func TestMemory(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	say(t, s, user("a"))
	expect(t, s, "user:a")
	if s.Path() != "" || s.Header().ID == "" || s.Close() != nil || s.Close() != nil {
		t.Errorf("header %+v", s.Header())
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, path)
	if _, err := s.AppendMessage(user("a"), &Origin{ID: "m1", From: "orchestrator"}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, path)
	if !s.Knows("m1") || s.Knows("m2") {
		t.Error("the origin is not known, or one that never came is")
	}
	if o := s.Branch()[0].Origin; o == nil || o.From != "orchestrator" {
		t.Errorf("got %+v", o)
	}
}

const head = `{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}` + "\n"

func msg(id, parent, role, text string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return `{"type":"message","id":"` + id + `","parentId":` + p + `,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"` + role + `","content":[{"type":"text","text":"` + text + `"}],"timestamp":1}}` + "\n"
}

func load(t *testing.T, content string) *Session {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

func TestBadLinesCostThemselvesOnly(t *testing.T) {
	t.Parallel()
	a, b, c := msg("a", "", "user", "1"), msg("b", "a", "assistant", "2"), msg("c", "b", "user", "3")
	for _, tc := range []struct {
		name, content, want string
		problems            []string
	}{
		{"all well", head + a + b + c, "user:1 assistant:2 user:3", nil},
		{"torn end", head + a + b + c[:40], "user:1 assistant:2", []string{"line 4: the line was cut off"}},
		{"no newline at the end", head + a + b + strings.TrimSpace(c), "user:1 assistant:2 user:3", nil},
		{"garbage between", head + a + "%%\x00\xff\n" + b + c, "user:1 assistant:2 user:3", []string{"line 3: "}},
		{"a lost parent", head + a + b[:30] + "\n" + c, "user:1 user:3", []string{"line 3: ", `line 4: the parent "b" is missing`}},
		{"blank lines", head + "\n" + a + "\n  \n" + b + c, "user:1 assistant:2 user:3", nil},
		{"no entry", head + a + `{"foo":1}` + "\n" + b, "user:1 assistant:2", []string{"line 3: it is no entry"}},
		{"an id twice", head + a + b + msg("a", "b", "user", "x") + c, "user:1 assistant:2 user:3", []string{`line 4: the id "a" is used a second time`}},
		{"its own parent", head + a + msg("z", "z", "user", "x"), "user:1 user:x", []string{`line 3: the parent "z"`}},
		{"no message", head + a + `{"type":"message","id":"q","parentId":"a"}` + "\n" + b, "user:1 assistant:2", []string{"line 3: the message is missing"}},
		{"an unknown type", head + a + `{"type":"hologram","id":"h","parentId":"a","x":[1]}` + "\n" + msg("b", "h", "assistant", "2"), "user:1 assistant:2", nil},
		{"header only", head, "", nil},
		{"torn header", head[:30], "", []string{"line 1: the line was cut off"}},
		{"empty", "", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := load(t, tc.content)
			expect(t, s, tc.want)
			got := s.Problems()
			if len(got) != len(tc.problems) {
				t.Fatalf("problems %v, want %v", got, tc.problems)
			}
			for i, p := range got {
				if !strings.HasPrefix(p.String(), tc.problems[i]) {
					t.Errorf("problem %q, want %q", p, tc.problems[i])
				}
			}
			say(t, s, user("more")) // and it can be gone on with
			s.Close()
			expect(t, open(t, s.Path()), strings.TrimSpace(tc.want+" user:more"))
		})
	}
}

func TestForeignFilesStayUntouched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"text": "hello", "json": `{"a":1}` + "\n",
		"v4": strings.Replace(head, "3", "4", 1), "list": "[]\n{", "almost": `{"type":"sessions"`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, Options{}); !errors.Is(err, ErrNotSession) {
			t.Errorf("%s: got %v", name, err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != content {
			t.Errorf("%s: it holds %q now, %v", name, b, err)
		}
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(fifo, Options{}); !errors.Is(err, ErrNotSession) {
		t.Errorf("fifo: got %v", err)
	}
}

func TestPiEntries(t *testing.T) {
	t.Parallel()
	entry := func(s string) string { return s + "\n" }
	s := load(t, head+
		msg("m1", "", "user", "old")+
		msg("m2", "m1", "assistant", "old answer")+
		msg("m3", "m2", "user", "kept")+
		entry(`{"type":"compaction","id":"k","parentId":"m3","timestamp":"2026-01-01T00:00:00.000Z","summary":"they greeted","firstKeptEntryId":"m3","tokensBefore":9}`)+
		entry(`{"type":"message","id":"m4","parentId":"k","message":{"role":"user","content":"plain string","timestamp":1}}`)+
		entry(`{"type":"message","id":"s1","parentId":"m4","message":{"role":"system","content":"be nice"}}`)+
		entry(`{"type":"message","id":"b1","parentId":"s1","message":{"role":"bashExecution","command":"ls","output":"f","exitCode":2}}`)+
		entry(`{"type":"message","id":"b2","parentId":"b1","message":{"role":"bashExecution","command":"secret","output":"f","excludeFromContext":true}}`)+
		entry(`{"type":"custom_message","id":"c1","parentId":"b2","customType":"x","content":"from an extension","display":true}`)+
		entry(`{"type":"branch_summary","id":"r1","parentId":"c1","fromId":"m2","summary":"tried it"}`)+
		msg("e1", "r1", "user", "to be hidden")+
		msg("e2", "e1", "user", "to be changed")+
		entry(`{"type":"context_edit","id":"x1","parentId":"e2","targetId":"e1","replacement":null}`)+
		entry(`{"type":"context_edit","id":"x2","parentId":"x1","targetId":"e2","replacement":{"content":"changed"}}`)+
		entry(`{"type":"message","id":"t1","parentId":"x2","message":{"role":"toolResult","toolCallId":"lost","content":[{"type":"text","text":"orphan"}]}}`)+
		entry(`{"type":"label","id":"l1","parentId":"t1","targetId":"m4","label":"here"}`))
	var got []string
	for _, m := range s.Messages() {
		got = append(got, string(m.Role)+":"+strings.Join(strings.Fields(m.Text()), " "))
	}
	want := []string{
		"user:The conversation before this point was compacted to this summary: <summary> they greeted </summary>",
		"user:kept", "user:plain string", "user:The user ran `ls`: f It exited with code 2.", "user:from an extension",
		"user:This is a summary of a branch that the conversation came back from: <summary> tried it </summary>",
		"user:changed",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if p := s.Problems(); len(p) != 0 {
		t.Errorf("problems %v", p)
	}
}

// Whatever a file holds, it opens or is refused untouched; what opened can be
// gone on with, and the next opener sees the same.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(head + msg("a", "", "user", "1") + msg("b", "a", "assistant", "2")))
	f.Add([]byte(head + `{"type":"custom","customType":"muntin.leaf","id":"a","parentId":null}` + "\n"))
	f.Add([]byte(head + `{"type":"compaction","id":"k","parentId":"m3","summary":[],"firstKeptEntryId":7}` + "\n"))
	f.Add([]byte(head + `{"type":"message","id":"k","message":{"role":"user","content":{"a":1}}}`))
	f.Add([]byte(head[:20]))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		reader, readErr := Open(path, Options{ReadOnly: true})
		if readErr == nil {
			texts(reader.Messages())
			to := filepath.Join(t.TempDir(), "fork.jsonl")
			if err := reader.Fork(ForkOptions{Path: to, Now: fixedNow}); err != nil {
				t.Fatal(err)
			}
			f, err := Open(to, Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := texts(f.Messages()), texts(reader.Messages()); got != want {
				t.Fatalf("the fork shows %q, want %q", got, want)
			}
			f.Close()
			reader.Close()
		}
		s, err := Open(path, Options{Now: fixedNow})
		if err != nil {
			known := errors.Is(err, ErrNotSession) || errors.Is(err, ErrOldVersion)
			if b, _ := os.ReadFile(path); !known || string(b) != string(content) {
				t.Fatalf("error %v, and the file holds %q", err, b)
			}
			return
		}
		before := texts(s.Messages())
		if _, err := s.AppendMessage(user("more"), nil); err != nil {
			t.Fatal(err)
		}
		want := strings.TrimSpace(before + " user:more")
		if got := texts(s.Messages()); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		s.Close()
		s, err = Open(path, Options{Now: fixedNow})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := texts(s.Messages()); got != want {
			t.Fatalf("after opening: got %q, want %q", got, want)
		}
	})
}
