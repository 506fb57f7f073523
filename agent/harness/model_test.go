package harness_test

import (
	"context"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/session"
)

// asked is a provider that answers at once and remembers what it was asked.
type asked struct {
	mu   sync.Mutex
	reqs []llm.Request
}

func (p *asked) Stream(_ context.Context, req llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) {
		p.mu.Lock()
		p.reqs = append(p.reqs, req)
		p.mu.Unlock()
		m := llm.Message{
			Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockText, Text: "yes"}}, StopReason: llm.StopEnd,
			Usage: &llm.Usage{Input: 10, Output: 1, Total: 11, Cost: llm.Cost{Input: 0.5, Total: 0.5}},
		}
		yield(llm.Event{Type: llm.EventDone, Message: &m})
	}
}

func (p *asked) last(t *testing.T) llm.Request {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.reqs) == 0 {
		t.Fatal("the model was not asked")
	}
	return p.reqs[len(p.reqs)-1]
}

func TestModelAndThinkingChangeAndComeBack(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "s.jsonl")
	one, two := &asked{}, &asked{}
	var levels []llm.Level
	o := harness.Options{
		Provider: one, Model: "p/one", Known: llm.Model{ID: "one", Reasoning: true, ContextWindow: 1000}, Dir: t.TempDir(), Session: file, Thinking: llm.LevelMax,
		OnEvent: func(e agent.Event) {
			if e.Type == agent.EventThinkingLevel {
				levels = append(levels, e.Level)
			}
		},
	}
	h := openFree(t, o)
	out, err := h.Prompt(t.Context(), "hello")
	if err != nil || out.Usage.Cost.Total != 0.5 {
		t.Fatalf("%v, usage %+v", err, out.Usage)
	}
	if got := one.last(t).Thinking; got != llm.LevelHigh { // max is not among what it has
		t.Errorf("asked for %q", got)
	}
	if level, err := h.SetThinking(llm.LevelLow); err != nil || level != llm.LevelLow {
		t.Errorf("%q, %v", level, err)
	}
	if err := h.SetModel(harness.Model{Provider: two, Name: "q/x/two", Known: llm.Model{ID: "x/two"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Prompt(t.Context(), "and you"); err != nil {
		t.Fatal(err)
	}
	if r := two.last(t); r.Model != "x/two" || r.Thinking != llm.LevelOff || len(r.Messages) != 3 {
		t.Errorf("asked %+v", r)
	}
	if len(levels) != 2 || levels[0] != llm.LevelLow || levels[1] != llm.LevelOff {
		t.Errorf("told of %v", levels)
	}
	if err := h.SetModel(harness.Model{Name: "no/provider"}); err == nil {
		t.Error("a model that cannot be asked was taken")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(file, session.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if p, m := s.Model(); p != "q" || m != "x/two" || s.Thinking() != llm.LevelOff {
		t.Errorf("the session says %s/%s, %q", p, m, s.Thinking())
	}
	o.Model, o.Provider, o.Known, o.Thinking = "p/one", one, llm.Model{}, ""
	h = openFree(t, o)
	defer h.Close()
	if h.Thinking() != llm.LevelOff {
		t.Errorf("resumed with %q", h.Thinking())
	}
	if got := h.Messages()[3].Provider; got != "q" {
		t.Errorf("the answer is of %q", got)
	}
}

func TestTheWindowIsTheModels(t *testing.T) {
	t.Parallel()
	small := &asked{}
	var begun []string
	h := openFree(t, harness.Options{
		Provider: small, Model: "p/small", Known: llm.Model{ID: "small", ContextWindow: 4000}, Dir: t.TempDir(),
		OnEvent: func(e agent.Event) {
			if e.Type == agent.EventCompaction {
				begun = append(begun, e.Reason)
			}
		},
	})
	defer h.Close()
	h.SetAutoCompaction(false)
	for _, text := range []string{strings.Repeat("a", 20_000), "b", "c"} {
		if _, err := h.Prompt(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if len(begun) != 0 || h.AutoCompaction() {
		t.Errorf("compacted although that was off: %v", begun)
	}
	h.SetAutoCompaction(true)
	if _, err := h.Prompt(t.Context(), strings.Repeat("d", 20_000)); err != nil {
		t.Fatal(err)
	}
	if len(begun) == 0 || begun[0] != "threshold" {
		t.Errorf("not compacted: %v", begun)
	}
}

func TestBashOfTheUser(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "s.jsonl")
	p := &asked{}
	h := openFree(t, harness.Options{Provider: p, Model: "p/m", Dir: t.TempDir(), Session: file})
	defer h.Close()
	var seen strings.Builder
	b, err := h.Bash(t.Context(), harness.BashRequest{Command: "echo né; exit 3", OnOutput: func(s string) { seen.WriteString(s) }})
	if err != nil || b.ExitCode == nil || *b.ExitCode != 3 || strings.TrimSpace(b.Output) != "né" || seen.String() != "né\n" {
		t.Fatalf("%+v, %v, seen %q", b, err, seen.String())
	}
	if _, err := h.Bash(t.Context(), harness.BashRequest{Command: "echo secret", Exclude: true}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b, err = h.Bash(ctx, harness.BashRequest{Command: "echo up; sleep 100", OnOutput: func(string) { cancel() }})
	if err != nil || !b.Cancelled || b.ExitCode != nil {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := h.Prompt(t.Context(), "what was it?"); err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, m := range p.last(t).Messages {
		all += m.Text() + "\n"
	}
	if !strings.Contains(all, "né") || strings.Contains(all, "secret") {
		t.Errorf("the model saw %q", all)
	}
	lines, leaf, err := h.Session().Lines("")
	if err != nil || leaf != h.Session().Leaf() || len(lines) != 6 || !strings.Contains(string(lines[1]), `"role":"bashExecution","command":"echo né; exit 3"`) {
		t.Errorf("%s, %v", lines, err)
	}
}
