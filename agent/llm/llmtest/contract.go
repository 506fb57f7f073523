package llmtest

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"muntin/agent/llm"
)

// patience is how long a test waits for what must come at once.
const patience = 10 * time.Second

// TestProvider runs the contract suite. setup makes a provider that answers what
// the script says, as far as its kind can; it cleans up with t.Cleanup.
func TestProvider(t *testing.T, setup func(t *testing.T, s Script) llm.Provider) {
	t.Helper()
	t.Run("answers", func(t *testing.T) { testAnswers(t, setup) })
	t.Run("failures", func(t *testing.T) { testFailures(t, setup) })
	t.Run("abort", func(t *testing.T) { testAbort(t, setup) })
	t.Run("deadContext", func(t *testing.T) { testDeadContext(t, setup) })
	t.Run("stoppedReader", func(t *testing.T) { testStoppedReader(t, setup) })
	t.Run("concurrent", func(t *testing.T) { testConcurrent(t, setup) })
}

type setup = func(t *testing.T, s Script) llm.Provider

// request is one that any provider takes.
func request() llm.Request {
	return llm.Request{
		Model: "model-1", System: "Be brief.", Messages: []llm.Message{llm.UserText("Go on.", 1)},
		Tools: []llm.Tool{{Name: "write", Description: "Writes.", Parameters: json.RawMessage(`{"type":"object"}`)}},
	}
}

// ExactArguments are hard to carry unchanged: a big integer, a long fraction,
// odd spacing, escapes, and characters of several bytes.
const ExactArguments = `{"n": 12345678901234567,  "f":0.10000000000000000555,"s":"a\u00e9\"\\ <&> \ud83d\ude00 é😀"}`

func testAnswers(t *testing.T, setup setup) {
	wires := map[string]Wire{
		"plain": {},
		"bytes": {Split: 1, CRLF: true, Comments: true, Flush: 1},
		"turns": {Split: 3, Parallel: true, NoDone: true},
	}
	tests := map[string]struct {
		reply Reply
		stop  llm.StopReason
	}{
		"text":     {Reply{Text: "Grüße, 世界 😀.\n\nTwo lines."}, llm.StopEnd},
		"thinking": {Reply{Thinking: "Hm, 世界.", Text: "Yes."}, llm.StopEnd},
		"usage": {
			Reply{Text: "x", Usage: &llm.Usage{Input: 100, Output: 20, CacheRead: 30, Reasoning: 5, Total: 150}}, llm.StopEnd,
		},
		"tools": {Reply{Text: "Writing.", Tools: []ToolCall{
			{ID: "a1", Name: "write", Arguments: ExactArguments}, {ID: "a2", Name: "write", Arguments: `{"k":[1,2,{"x":null}]}`},
		}}, llm.StopToolUse},
		"onlyTool": {Reply{Tools: []ToolCall{{ID: "a1", Name: "write", Arguments: `{}`}}}, llm.StopToolUse},
		"length": {
			Reply{Text: "half", Stop: llm.StopLength, Tools: []ToolCall{{ID: "a1", Name: "write", Arguments: `{"a":1}`}}}, llm.StopLength,
		},
		"empty": {Reply{}, llm.StopEnd},
	}
	for wireName, wire := range wires {
		for name, tt := range tests {
			t.Run(name+"/"+wireName, func(t *testing.T) {
				t.Parallel()
				tt.reply.Wire = wire
				p := setup(t, Script{Replies: []Reply{tt.reply}})
				events := Collect(t, p.Stream(t.Context(), request()))
				last := events[len(events)-1]
				if last.Type != llm.EventDone {
					t.Fatalf("terminal event %s (%v), want done", last.Type, last.Err)
				}
				checkAnswer(t, *last.Message, tt.reply, tt.stop)
			})
		}
	}
}

func checkAnswer(t *testing.T, m llm.Message, r Reply, stop llm.StopReason) {
	t.Helper()
	if m.Role != llm.RoleAssistant || m.Model != "model-1" || m.Provider == "" || m.API == "" || m.Timestamp == 0 {
		t.Errorf("head of the message is not filled in: %+v", m)
	}
	if m.StopReason != stop {
		t.Errorf("stop reason %s, want %s", m.StopReason, stop)
	}
	if m.Text() != r.Text {
		t.Errorf("text %q, want %q", m.Text(), r.Text)
	}
	thinking := ""
	for _, b := range m.Content {
		thinking += b.Thinking
	}
	if thinking != r.Thinking {
		t.Errorf("thinking %q, want %q", thinking, r.Thinking)
	}
	if r.Usage != nil {
		want := *r.Usage
		if m.API == "bedrock-converse-stream" {
			want.Reasoning = 0 // that API does not count it apart
		}
		if m.Usage == nil || *m.Usage != want {
			t.Errorf("usage %+v, want %+v", m.Usage, want)
		}
	}
	calls := m.ToolCalls()
	if len(calls) != len(r.Tools) {
		t.Fatalf("%d tool calls, want %d", len(calls), len(r.Tools))
	}
	seen := map[string]bool{}
	for i, c := range calls {
		if c.Name != r.Tools[i].Name || c.ID == "" || seen[c.ID] || c.ArgumentsError != "" {
			t.Errorf("call %d: %+v", i, c)
		}
		seen[c.ID] = true
		if string(c.Arguments) != r.Tools[i].Arguments {
			t.Errorf("call %d: arguments %s, want %s, byte for byte", i, c.Arguments, r.Tools[i].Arguments)
		}
	}
}

func testFailures(t *testing.T, setup setup) {
	tests := map[string]struct {
		reply   Reply
		class   llm.Class
		after   time.Duration
		partial string
	}{
		"rateLimit":  {Reply{Fail: &Failure{Status: 429, Message: "slow down", RetryAfter: "3"}}, llm.ClassRetryable, 3 * time.Second, ""},
		"overloaded": {Reply{Fail: &Failure{Status: 529, Message: "overloaded"}}, llm.ClassRetryable, 0, ""},
		"auth":       {Reply{Fail: &Failure{Status: 401, Message: "bad key"}}, llm.ClassAuth, 0, ""},
		"quota":      {Reply{Fail: &Failure{Status: 429, Message: "insufficient_quota"}}, llm.ClassQuota, 0, ""},
		"overflow":   {Reply{Fail: &Failure{Status: 400, Message: "maximum context length is 8192 tokens"}}, llm.ClassOverflow, 0, ""},
		"invalid":    {Reply{Fail: &Failure{Status: 400, Message: "no such field"}}, llm.ClassInvalid, 0, ""},
		"cut":        {Reply{Text: "The first part", Cut: true}, llm.ClassRetryable, 0, "The first part"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, Script{Replies: []Reply{tt.reply}})
			events := Collect(t, p.Stream(t.Context(), request()))
			last := events[len(events)-1]
			if last.Type != llm.EventError || last.Err == nil {
				t.Fatalf("terminal event %s (%v), want an error", last.Type, last.Err)
			}
			if class := llm.Classify(last.Err); class != tt.class {
				t.Errorf("class %s, want %s: %v", class, tt.class, last.Err)
			}
			if after := llm.RetryAfter(last.Err); after != tt.after {
				t.Errorf("retry after %s, want %s", after, tt.after)
			}
			if m := last.Message; m.StopReason != llm.StopError || m.ErrorMessage == "" || m.Text() != tt.partial {
				t.Errorf("message %+v, want an error with the text %q", m, tt.partial)
			}
		})
	}
}

// testAbort ends the context while the answer is held back.
func testAbort(t *testing.T, setup setup) {
	p := setup(t, Script{Replies: []Reply{{Hold: true}}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var events []llm.Event
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range p.Stream(ctx, request()) {
			events = append(events, e)
			cancel()
		}
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the stream goes on after its context has ended")
	}
	checkOrder(t, events)
	last := events[len(events)-1]
	if last.Type != llm.EventError || llm.Classify(last.Err) != llm.ClassAborted || last.Message.StopReason != llm.StopAborted {
		t.Fatalf("terminal event %+v (%v), want an abort", last, last.Err)
	}
}

func testDeadContext(t *testing.T, setup setup) {
	p := setup(t, Script{Replies: []Reply{{Text: "never"}}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	events := Collect(t, p.Stream(ctx, request()))
	if last := events[len(events)-1]; last.Type != llm.EventError || llm.Classify(last.Err) != llm.ClassAborted {
		t.Fatalf("terminal event %s (%v), want an abort", last.Type, last.Err)
	}
}

// testStoppedReader stops after each possible number of events.
func testStoppedReader(t *testing.T, setup setup) {
	reply := Reply{Thinking: "a", Text: "b", Tools: []ToolCall{{ID: "1", Name: "write", Arguments: "{}"}}}
	for stop := 1; stop <= 4; stop++ {
		p := setup(t, Script{Replies: []Reply{reply}})
		n := 0
		for range p.Stream(t.Context(), request()) {
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Fatalf("%d events, want %d", n, stop)
		}
	}
}

func testConcurrent(t *testing.T, setup setup) {
	const streams = 8
	p := setup(t, Script{Choose: func(int, Request) Reply {
		return Reply{Text: strings.Repeat("word ", 50), Wire: Wire{Split: 5}}
	}, Replies: []Reply{{Text: strings.Repeat("word ", 50)}}})
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			var last llm.Event
			for e := range p.Stream(t.Context(), request()) {
				last = e
			}
			if last.Type != llm.EventDone || last.Message.Text() != strings.Repeat("word ", 50) {
				t.Errorf("terminal event %+v (%v)", last, last.Err)
			}
		})
	}
	all.Wait()
}
