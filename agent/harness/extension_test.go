package harness_test

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"muntin/agent/extension"
	"muntin/agent/extension/examples"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/resource"
)

const everything = `protocol: 1
name: own
command: [sh, ./main.sh]
gates:
  - {on: tool_call, tools: [bash]}
  - on: input
  - on: before_start
  - on: context
  - on: request
  - on: compaction
  - on: session_switch
  - on: user_bash
  - {on: tool_result, tools: [ls]}
events: [agent_settled]
tools:
  - {name: ls, description: lists otherwise}
  - {name: extra, description: one more}
commands:
  - {name: say}
  - {name: work}
`

const everyGate = `. "$(dirname "$0")/muntin.sh"
on_tool_call() { case $(get args.command) in *forbidden*) block "not this one" ;; esac; }
on_input() { case $(get text) in swallow) reply '{"action":"handled","message":"swallowed"}' ;; short) reply '{"action":"transform","text":"something longer"}' ;; esac; }
on_before_start() { reply "{\"system\":$(quote "$(get system) AND MINE"),\"append\":\"(added)\"}"; }
on_context() { :; }
on_request() { reply '{"maxTokens":77}'; }
on_compaction() { reply '{"summary":"what I say it was"}'; }
on_session_switch() { reply '{"cancel":true,"reason":"stay here"}'; }
on_user_bash() { case $(get command) in *forbidden*) block "not you either" ;; esac; }
on_tool_result() { reply '{"content":[{"type":"text","text":"changed after"}]}'; }
on_tool_ls() { text "my own list"; }
on_tool_extra() { text extra; }
on_command_say() { text "said $(get args)"; }
on_command_work() { reply "{\"prompt\":$(quote "do $(get args)")}"; }
on_event_agent_settled() { [ -e "$(dirname "$0")/once" ] && rm "$(dirname "$0")/once" && send_message "one thing more"; }
muntin_run
`

// ownExtension writes an extension in a folder of its own and loads it.
func ownExtension(t *testing.T, manifest, main string) extension.Extension {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "own")
	if err := examples.Write(dir, "own", "hello-sh"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{extension.ManifestName: manifest, "main.sh": main} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, problems := extension.Load(extension.Place{Dir: dir, One: true})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return all[0]
}

// calls is a model that makes the calls it is given, one a turn, and then answers.
type calls struct {
	mu   sync.Mutex
	todo []llm.Block
	reqs []llm.Request
}

func (c *calls) Stream(_ context.Context, req llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) {
		c.mu.Lock()
		c.reqs = append(c.reqs, req)
		m := llm.Message{Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockText, Text: "done"}}, StopReason: llm.StopEnd}
		if len(c.todo) > 0 {
			m.Content, m.StopReason = []llm.Block{c.todo[0]}, llm.StopToolUse
			c.todo = c.todo[1:]
		}
		c.mu.Unlock()
		yield(llm.Event{Type: llm.EventDone, Message: &m})
	}
}

// last is the last request.
func (c *calls) last() llm.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reqs[len(c.reqs)-1]
}

func toolCall(id, name string, args map[string]any) llm.Block {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return llm.Block{Type: llm.BlockToolCall, ID: id, Name: name, Arguments: raw}
}

// extended opens an agent with the extension, in a folder.
func extended(t *testing.T, p llm.Provider, e extension.Extension, change func(*harness.Options)) *harness.Harness {
	t.Helper()
	host, err := extension.New(t.Context(), extension.Options{Extensions: []extension.Extension{e}, State: t.TempDir(), Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	o := harness.Options{Provider: p, Model: "p/m", Dir: t.TempDir(), Extensions: host}
	if change != nil {
		change(&o)
	}
	h := openFree(t, o)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func TestExtensionsDecideOnRuns(t *testing.T) {
	t.Parallel()
	p := &calls{todo: []llm.Block{
		toolCall("1", "bash", map[string]any{"command": "echo forbidden > made"}), toolCall("2", "bash", map[string]any{"command": "echo fine > made2"}),
		toolCall("3", "ls", map[string]any{}), toolCall("4", "extra", map[string]any{}),
	}}
	dir := t.TempDir()
	h := extended(t, p, ownExtension(t, everything, everyGate), func(o *harness.Options) { o.Dir, o.System = dir, "THE SYSTEM" })
	out, err := h.Prompt(t.Context(), "short")
	if err != nil || out.Text != "done" || out.Handled {
		t.Fatalf("%+v, %v", out, err)
	}
	var results []string
	for _, m := range h.Messages() {
		if m.Role == llm.RoleTool {
			results = append(results, m.Text())
		}
	}
	if len(results) != 4 || results[0] != "extension own: not this one" || results[2] != "changed after" || results[3] != "extra" {
		t.Errorf("%q", results)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("the forbidden command ran")
	}
	if _, err := os.Stat(filepath.Join(dir, "made2")); err != nil {
		t.Error(err)
	}
	req := p.last()
	if req.MaxTokens != 77 || !strings.Contains(req.System, "THE SYSTEM") || !strings.HasSuffix(req.System, "AND MINE") {
		t.Errorf("asked with %d, %q", req.MaxTokens, req.System)
	}
	if got := req.Messages[0].Text(); got != "something longer\n\n(added)" {
		t.Errorf("%q", got)
	}
}

func TestExtensionsAnswerInPlaceOfTheModel(t *testing.T) {
	t.Parallel()
	p := &calls{}
	h := extended(t, p, ownExtension(t, everything, everyGate), nil)
	for text, want := range map[string]string{"swallow": "swallowed", "/say a b": "said a b"} {
		if out, err := h.Prompt(t.Context(), text); err != nil || !out.Handled || out.Text != want {
			t.Errorf("%s: %+v, %v", text, out, err)
		}
	}
	if len(p.reqs) != 0 || len(h.Messages()) != 0 {
		t.Errorf("the model was asked %d times", len(p.reqs))
	}
	if out, err := h.Prompt(t.Context(), "/work hard"); err != nil || out.Text != "done" {
		t.Errorf("%+v, %v", out, err)
	}
	if got := p.last().Messages[0].Text(); got != "do hard\n\n(added)" {
		t.Errorf("%q", got)
	}
	if names := h.Commands(); len(names) != 2 || h.Extensions()[0] != "own" {
		t.Errorf("%v", names)
	}
}

func TestExtensionsDecideBesideRuns(t *testing.T) {
	t.Parallel()
	p := &calls{}
	h := extended(t, p, ownExtension(t, everything, everyGate), nil)
	for _, text := range []string{"one", "two " + strings.Repeat("x", 200_000), "three"} {
		if _, err := h.Prompt(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Bash(t.Context(), harness.BashRequest{Command: "echo forbidden"}); err == nil || !strings.Contains(err.Error(), "not you either") {
		t.Error(err)
	}
	if _, err := h.Navigate(t.Context(), harness.Navigation{}); err == nil || !strings.Contains(err.Error(), "stay here") {
		t.Error(err)
	}
	asked := len(p.reqs)
	if c, err := h.Compact(t.Context(), ""); err != nil || !strings.HasPrefix(c.Summary, "what I say it was") {
		t.Errorf("%+v, %v", c, err)
	}
	if len(p.reqs) != asked {
		t.Error("the model was asked for a summary")
	}
}

func TestAMessageOfAnExtensionBeginsARun(t *testing.T) {
	t.Parallel()
	p := &calls{}
	e := ownExtension(t, everything, everyGate)
	if err := os.WriteFile(filepath.Join(e.Dir, "once"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan struct{}, 1)
	h := extended(t, p, e, func(o *harness.Options) { o.OnWaiting = func() { waiting <- struct{}{} } })
	if _, err := h.Prompt(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	if h.Queued() == 0 { // else it came before the run was over
		<-waiting
	}
	if _, err := h.Continue(t.Context()); err != nil {
		t.Fatal(err)
	}
	ms := p.last().Messages
	if got := ms[len(ms)-1].Text(); got != "one thing more" {
		t.Errorf("%q", got)
	}
}

func TestReloadTakesWhatIsThereNow(t *testing.T) {
	t.Parallel()
	p := &calls{}
	e := ownExtension(t, everything, everyGate)
	next := ownExtension(t, strings.Replace(everything, "name: extra", "name: newer", 1), everyGate)
	h := extended(t, p, e, func(o *harness.Options) {
		o.Reload = func(context.Context) (harness.Loaded, error) {
			return harness.Loaded{
				Extensions: []extension.Extension{next}, Tools: o.Tools, Problems: []string{"a note"},
				Resources: &resource.Set{Append: resource.File{Path: "a", Text: "AND BE BRIEF"}},
			}, nil
		}
	})
	problems, err := h.Reload(t.Context())
	if err != nil || len(problems) != 1 {
		t.Fatalf("%q, %v", problems, err)
	}
	if _, err := h.Prompt(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range p.last().Tools {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "read bash edit write ls newer" || !strings.Contains(p.last().System, "newer") ||
		!strings.Contains(p.last().System, "AND BE BRIEF") {
		t.Errorf("%s", got)
	}
}

func TestABrokenGateStopsWhatItGates(t *testing.T) {
	t.Parallel()
	for gate, want := range map[string]string{"input": "(input)", "before_start": "(before_start)", "request": "(request)", "context": "(context)"} {
		t.Run(gate, func(t *testing.T) {
			t.Parallel()
			p := &calls{}
			e := ownExtension(t, "protocol: 1\nname: own\ncommand: [sh, ./main.sh]\ngates: [{on: "+gate+"}]\n", "echo no >&2; exit 3\n")
			h := extended(t, p, e, nil)
			if _, err := h.Prompt(t.Context(), "hello"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
			if len(p.reqs) != 0 {
				t.Error("the model was asked")
			}
		})
	}
}
