package harness_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/llm/scripted"
	"muntin/agent/session"
	"muntin/internal/durable"
)

// TestMain lets the test binary play an agent that is killed; see busy.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashEnv); dir != "" {
		fmt.Fprintln(os.Stderr, busy(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const script = `version: 1
rules:
  - match: '^make it'
    steps:
      - text: Writing it.
        tools:
          - name: write
            arguments: {path: lib/sum.sh, content: "echo $(($1+$2))\n"}
        usage: {input: 100, output: 10}
      - tools:
          - name: bash
            arguments: {command: sh lib/sum.sh 2 3}
        usage: {input: 200, output: 20}
      - text: It gives 5.
        usage: {input: 300, output: 30}
  - match: '^wait'
    steps:
      - tools: [{name: bash, arguments: {command: "echo up > up; sleep 300"}}]
      - text: waited
  - match: '^fail'
    steps:
      - error: {status: 401, message: no such key}
  - match: '^long'
    steps:
      - text: half of
        stop: length
  - match: '^hello'
    steps: [{text: hello yourself}]
  - match: '^steered'
    steps: [{text: I was steered.}]
`

func provider(t *testing.T) llm.Provider {
	t.Helper()
	s, err := scripted.Parse("test", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(s, scripted.Options{})
}

func open(t *testing.T, change func(*harness.Options)) *harness.Harness {
	t.Helper()
	o := harness.Options{Provider: provider(t), Model: "scripted/test", Dir: t.TempDir()}
	change(&o)
	h := openFree(t, o)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// openFree opens the agent when its session's lock is free. Another test's child
// process can hold it for a moment after Close: between fork and exec it has every
// open file.
func openFree(t *testing.T, o harness.Options) *harness.Harness {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		h, err := harness.Open(t.Context(), o)
		if err == nil {
			return h
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(err)
		}
		if !errors.Is(err, durable.ErrLocked) {
			t.Fatal(err)
		}
	}
}

func TestPromptWorksAndIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	var inFile []string // at each message's end, what the file holds of it
	options := func(o *harness.Options) {
		o.Dir, o.Session = work, path
		o.OnEvent = func(e agent.Event) {
			if e.Type == agent.EventMessageEnd {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Error(err)
				}
				lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
				var last session.Entry
				if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil || last.Message == nil {
					t.Errorf("the last line is no message: %s", lines[len(lines)-1])
					return
				}
				inFile = append(inFile, string(last.Message.Role))
			}
		}
	}
	h := open(t, options)
	out, err := h.PromptFrom(t.Context(), session.Origin{ID: "01", From: "orchestrator"}, "make it")
	if err != nil {
		t.Fatal(err)
	}
	if out.Text != "It gives 5." || out.Stop != llm.StopEnd || out.Usage.Input != 600 || out.Usage.Output != 60 || out.Entry == "" || out.Failure(err) != nil {
		t.Errorf("got %+v", out)
	}
	if want := "user assistant toolResult assistant toolResult assistant"; strings.Join(inFile, " ") != want {
		t.Errorf("got %q, want %q", inFile, want)
	}
	if got := h.Messages()[4].Text(); got != "5" {
		t.Errorf("the command gave %q", got)
	}
	if !h.Knows("01") || h.Resumed() {
		t.Errorf("knows %v, resumed %v", h.Knows("01"), h.Resumed())
	}
	before := len(h.Messages())
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Prompt(t.Context(), "hello"); !errors.Is(err, harness.ErrClosed) {
		t.Errorf("a closed agent answered: %v", err)
	}

	h = open(t, options)
	if !h.Resumed() || !h.Knows("01") || len(h.Messages()) != before {
		t.Errorf("resumed %v, knows %v, %d messages, want %d", h.Resumed(), h.Knows("01"), len(h.Messages()), before)
	}
	if _, err := harness.Open(t.Context(), harness.Options{Provider: provider(t), Model: "m", Dir: work, Session: path}); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if out, err := h.Prompt(t.Context(), "hello"); err != nil || out.Text != "hello yourself" {
		t.Errorf("got %+v, %v", out, err)
	}
}

// A crash between a tool call and its result: the next run answers the call and
// goes on.
func TestOrphanedCallIsAnswered(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s, err := session.Open(path, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	call := llm.Block{Type: llm.BlockToolCall, ID: "c1", Name: "bash", Arguments: json.RawMessage(`{"command":"true"}`)}
	for _, m := range []llm.Message{llm.UserText("x", 1), {Role: llm.RoleAssistant, Content: []llm.Block{call}, StopReason: llm.StopToolUse}} {
		if _, err := s.AppendMessage(m, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	h := open(t, func(o *harness.Options) { o.Session = path })
	if _, err := h.Prompt(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	if m := h.Messages()[2]; m.Role != llm.RoleTool || m.ToolCallID != "c1" || !m.IsError {
		t.Errorf("got %+v", m)
	}
}

func TestSteerAndAbort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	events := make(chan agent.Event, 1000)
	h := open(t, func(o *harness.Options) {
		o.Dir = dir
		o.Session = filepath.Join(dir, "s.jsonl")
		o.OnEvent = func(e agent.Event) { events <- e }
	})
	type ended struct {
		out harness.Outcome
		err error
	}
	done := make(chan ended, 1)
	go func() {
		out, err := h.Prompt(context.Background(), "wait")
		done <- ended{out, err}
	}()
	await(t, events, agent.EventToolStart)
	if _, err := h.Prompt(t.Context(), "hello"); !errors.Is(err, agent.ErrBusy) {
		t.Errorf("two runs at once: %v", err)
	}
	h.SteerFrom(session.Origin{ID: "02"}, "steered")
	h.Abort()
	select {
	case e := <-done:
		if !errors.Is(e.err, harness.ErrAborted) {
			t.Errorf("got %v", e.err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the abort was not heeded")
	}
	if h.Queued() != 1 || h.Knows("02") {
		t.Fatalf("%d messages wait, knows %v", h.Queued(), h.Knows("02"))
	}
	out, err := h.Continue(t.Context())
	if err != nil || !h.Knows("02") || h.Queued() != 0 {
		t.Errorf("got %+v, %v, knows %v", out, err, h.Knows("02"))
	}
}

func await(t *testing.T, events <-chan agent.Event, want agent.EventType) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case e := <-events:
			if e.Type == want {
				return
			}
		case <-deadline:
			t.Fatalf("no %s came", want)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	h := open(t, func(*harness.Options) {})
	out, err := h.Prompt(t.Context(), "fail")
	if failure := out.Failure(err); err == nil || failure == nil || !strings.Contains(failure.Error(), "no such key") || out.Stop != llm.StopError {
		t.Errorf("got %+v, %v, %v", out, err, failure)
	}
	out, err = h.Prompt(t.Context(), "long")
	if err != nil || out.Failure(err) == nil || out.Text != "half of" {
		t.Errorf("got %+v, %v", out, err)
	}
	for name, o := range map[string]harness.Options{
		"no folder":    {Provider: provider(t), Model: "m", Dir: "/nonexistent"},
		"unknown tool": {Provider: provider(t), Model: "m", Dir: t.TempDir(), Tools: []string{"fly"}},
		"no model":     {Provider: provider(t), Dir: t.TempDir()},
		"no provider":  {Model: "m", Dir: t.TempDir()},
	} {
		if h, err := harness.Open(t.Context(), o); err == nil {
			t.Errorf("%s: opened", name)
			h.Close()
		}
	}
}

// When the session cannot be written, nothing goes on: not even the request.
func TestNothingRunsThatIsNotKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := harness.Open(t.Context(), harness.Options{Provider: provider(t), Model: "m", Dir: dir, Session: filepath.Join(dir, "s.jsonl")})
	if err != nil {
		t.Fatal(err)
	}
	harness.BreakSession(h)
	_, err = h.Prompt(t.Context(), "make it")
	var broken *agent.EventError
	if !errors.As(err, &broken) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "lib")); err == nil {
		t.Error("a tool ran")
	}
}
