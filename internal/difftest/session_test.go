package difftest

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muntin/agent/llm"
	"muntin/agent/session"
)

// view is what somebody sees of a session.
type view struct {
	Messages []string          `json:"messages"`
	Entries  [][3]string       `json:"entries"` // id, parent, type
	Labels   map[string]string `json:"labels"`
	Leaf     string            `json:"leaf"`
	Name     string            `json:"name"`
	ID       string            `json:"id"`
	Model    *struct {
		Provider string `json:"provider"`
		ModelID  string `json:"modelId"`
	} `json:"model"`
	Listed [][2]any `json:"listed"`
	Cost   float64  `json:"cost"` // it is there: a missing one would be no number
}

type command struct {
	Do   string `json:"do"`
	Args []any  `json:"args"`
}

// pi opens the file with Pi, runs commands on it and gives what Pi then sees.
func pi(t *testing.T, file string, commands ...command) view {
	t.Helper()
	modules := os.Getenv("MUNTIN_PI")
	if modules == "" {
		t.Skip("MUNTIN_PI does not say where Pi is")
	}
	node := os.Getenv("MUNTIN_NODE")
	if node == "" {
		node = "node"
	}
	if commands == nil {
		commands = []command{}
	}
	args, err := json.Marshal(commands)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "session.mjs"), modules, file, string(args))
	cmd.Env = append(os.Environ(), "PI_OFFLINE=1", "PI_CODING_AGENT_DIR="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderrOf(err))
	}
	var v view
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return v
}

func stderrOf(err error) []byte {
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as exec gives it
		return exit.Stderr
	}
	return nil
}

// ours is what muntin sees of the file.
func ours(t *testing.T, file string) view {
	t.Helper()
	s, err := session.Open(file, session.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v := view{Labels: map[string]string{}, Leaf: s.Leaf(), Name: s.Name(), ID: s.Header().ID}
	for _, m := range s.Messages() {
		text := m.Text()
		if _, after, ok := strings.Cut(text, "<summary>\n"); ok {
			text = "summary:" + strings.TrimSuffix(after, "\n</summary>")
		} else {
			text = string(m.Role) + ":" + text
		}
		v.Messages = append(v.Messages, text)
	}
	for _, n := range s.Nodes() {
		e, err := s.Entry(n.ID)
		if err != nil {
			t.Fatal(err)
		}
		v.Entries = append(v.Entries, [3]string{n.ID, n.Parent, e.Type})
		if n.Label != "" {
			v.Labels[n.ID] = n.Label
		}
	}
	if len(s.Problems()) > 0 {
		t.Errorf("problems %v", s.Problems())
	}
	return v
}

// same compares what both see. Pi's leaf is the last line, ours the entry that
// this line stands for: below it nothing may count.
func same(t *testing.T, piSees, weSee view) {
	t.Helper()
	if !slices.Equal(piSees.Messages, weSee.Messages) {
		t.Errorf("messages: Pi sees\n%q\nwe see\n%q", piSees.Messages, weSee.Messages)
	}
	if !slices.Equal(piSees.Entries, weSee.Entries) {
		t.Errorf("entries: Pi sees\n%v\nwe see\n%v", piSees.Entries, weSee.Entries)
	}
	if !maps.Equal(piSees.Labels, weSee.Labels) || piSees.Name != weSee.Name || piSees.ID != weSee.ID {
		t.Errorf("Pi sees %v %q %s, we see %v %q %s", piSees.Labels, piSees.Name, piSees.ID, weSee.Labels, weSee.Name, weSee.ID)
	}
}

func answer(text string) llm.Message {
	return llm.Message{
		Role: llm.RoleAssistant, Provider: "openai", Model: "gpt", Timestamp: 5, StopReason: llm.StopEnd,
		Content: []llm.Block{{Type: llm.BlockText, Text: text}}, Usage: &llm.Usage{Input: 5, Output: 1, Total: 6},
	}
}

// write fills a session with all that muntin writes.
func write(t *testing.T, file string) {
	t.Helper()
	s, err := session.Open(file, session.Options{Dir: filepath.Dir(file)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	say := func(m llm.Message) string {
		id, err := s.AppendMessage(m, &session.Origin{ID: "m1"})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.AppendModel("openai", "gpt")
	check(err)
	first := say(llm.UserText("one", 1))
	call := answer("I look")
	call.StopReason = llm.StopToolUse
	call.Content = append(call.Content, llm.Block{Type: llm.BlockToolCall, ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"x.png"}`)})
	say(call)
	result := say(llm.Message{Role: llm.RoleTool, ToolCallID: "c1", ToolName: "read", Timestamp: 3, Content: []llm.Block{{Type: llm.BlockText, Text: "long result"}}})
	second := say(answer("seen"))
	say(llm.UserText("two, left behind", 6))
	say(answer("two answered"))
	_, err = s.MoveWithSummary(second, session.Entry{Summary: "tried two"})
	check(err)
	kept := say(llm.UserText("three", 7))
	say(answer("three answered"))
	check(s.SetLabel(first, "begin"))
	check(s.Rename("A name"))
	_, err = s.Append(session.Entry{Type: session.TypeContextEdit, TargetID: result, Replacement: json.RawMessage(`{"content":[{"type":"text","text":"short"}]}`)})
	check(err)
	_, err = s.Append(session.Entry{Type: session.TypeCompaction, Summary: "they did one", FirstKept: kept, TokensBefore: 99, Details: json.RawMessage(`{"readFiles":["x"],"modifiedFiles":[]}`)})
	check(err)
	say(llm.UserText("four", 8))
	say(answer("left again"))
	check(s.Move(kept))
}

func TestPiReadsWhatWeWrite(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "s.jsonl")
	write(t, file)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v := pi(t, file)
	same(t, v, ours(t, file))
	if v.Model == nil || v.Model.Provider != "openai" || len(v.Listed) != 1 || v.Listed[0][0] != v.ID {
		t.Errorf("model %v, listed %v", v.Model, v.Listed)
	}
	after, err := os.ReadFile(file)
	if err != nil || string(after) != string(before) {
		t.Errorf("Pi has changed the file (%v)", err)
	}
}

// Pi goes on with ours, we with Pi's, Pi with that.
func TestTurnsAreTaken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "s.jsonl")
	write(t, file)
	say := func(text string) command {
		return command{"appendMessage", []any{map[string]any{"role": "user", "content": text, "timestamp": 9}}}
	}
	same(t, pi(t, file, say("from Pi")), ours(t, file))
	s, err := session.Open(file, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendMessage(answer("from us"), nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	v := pi(t, file, say("and Pi again"))
	same(t, v, ours(t, file))
	if n := len(v.Messages); n < 3 || v.Messages[n-1] != "user:and Pi again" || v.Messages[n-2] != "assistant:from us" {
		t.Errorf("got %q", v.Messages)
	}
}

func TestWeReadWhatPiWrites(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "s.jsonl")
	usage := map[string]any{"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": map[string]any{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.5}}
	user := func(text string) command {
		return command{"appendMessage", []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": text}}, "timestamp": 1}}}
	}
	assistant := func(text string) command {
		return command{"appendMessage", []any{map[string]any{
			"role": "assistant", "content": []any{map[string]any{"type": "text", "text": text}}, "api": "x", "provider": "p", "model": "m", "usage": usage, "stopReason": "stop", "timestamp": 2,
		}}}
	}
	v := pi(t, file,
		command{"appendModelChange", []any{"p", "m"}}, command{"appendThinkingLevelChange", []any{"high"}},
		user("one"), assistant("1"), user("two"), assistant("2"), // 2 to 5
		command{"appendLabelChange", []any{"$2", "start"}}, command{"appendSessionInfo", []any{"Pi's name"}},
		command{"branch", []any{"$3"}}, user("three"), assistant("3"), // 9, 10
		command{"branchWithSummary", []any{"$5", "three was tried"}},
		command{"appendCustomMessageEntry", []any{"x", "from an extension", true}},
		command{"appendCustomEntry", []any{"x", map[string]any{"a": 1}}},
		command{"appendContextEdit", []any{"$4", nil}},
		command{"appendCompaction", []any{"all so far", "$5", 100}},
		user("four"), assistant("4"),
	)
	same(t, v, ours(t, file))
	if len(v.Messages) < 4 {
		t.Errorf("Pi sees only %q", v.Messages)
	}
}

// Pi brings old files to its present version in place; we read them as they are
// and must see the same.
func TestOldVersions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"v1.jsonl", "v2.jsonl", "v3.jsonl"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "agent", "session", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		old := ours(t, file)
		v := pi(t, file)
		if !slices.Equal(v.Messages, old.Messages) || len(v.Entries) != len(old.Entries) {
			t.Errorf("%s: Pi sees\n%q\nwe see\n%q", name, v.Messages, old.Messages)
		}
		same(t, v, ours(t, file)) // and as Pi has rewritten it
	}
}

// What is in blobs is a text for Pi, and itself again in an export.
func TestExportIsWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := session.Open(filepath.Join(dir, "s.jsonl"), session.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	image := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("picture!", 4000)))
	m := llm.UserText("see", 1)
	m.Content = append(m.Content, llm.Block{Type: llm.BlockImage, Data: image, MimeType: "image/png"})
	if _, err := s.AppendMessage(m, nil); err != nil {
		t.Fatal(err)
	}
	if v := pi(t, s.Path()); len(v.Messages) != 1 || !strings.Contains(v.Messages[0], "blobs/") {
		t.Errorf("Pi sees %q", v.Messages)
	}
	whole := filepath.Join(t.TempDir(), "whole.jsonl")
	if err := s.Fork(session.ForkOptions{Path: whole, Inline: true, Import: true}); err != nil {
		t.Fatal(err)
	}
	if v := pi(t, whole); len(v.Messages) != 1 || v.Messages[0] != "user:see" {
		t.Errorf("Pi sees %q", v.Messages)
	}
}
