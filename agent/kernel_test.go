package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/agent"
	"muntin/agent/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// a fake provider gives the replies in turn and keeps the requests.
type fake struct {
	replies []reply

	mu       sync.Mutex // guards requests
	requests []llm.Request
}

// a reply sends one response through the builder.
type reply func(ctx context.Context, b *llm.Builder)

func (f *fake) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) {
		f.mu.Lock()
		f.requests = append(f.requests, req)
		n := len(f.requests)
		f.mu.Unlock()
		b := llm.NewBuilder(llm.Message{API: "fake", Provider: "fake", Model: req.Model}, yield)
		if n > len(f.replies) {
			b.Fail(fmt.Errorf("no reply %d", n), nil)
			return
		}
		f.replies[n-1](ctx, b)
	}
}

func (f *fake) sent() []llm.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func says(text string) reply {
	return func(_ context.Context, b *llm.Builder) {
		b.Text(text)
		b.Done(llm.StopEnd, nil)
	}
}

func fails(err error) reply {
	return func(_ context.Context, b *llm.Builder) { b.Fail(err, nil) }
}

// calls makes tool calls with the ids 1, 2, …; each is "name arguments".
func calls(stop llm.StopReason, all ...string) reply {
	return func(_ context.Context, b *llm.Builder) {
		for i, c := range all {
			name, args, _ := strings.Cut(c, " ")
			b.ToolArguments(b.Tool(fmt.Sprint(i+1), name), args)
		}
		b.Done(stop, nil)
	}
}

// hangs sends a first word and then waits for the context.
func hangs(ctx context.Context, b *llm.Builder) {
	b.Text("first")
	<-ctx.Done()
	b.Fail(ctx.Err(), nil)
}

// a tool for tests; its schema asks for nothing.
type tool struct {
	name       string
	schema     string
	sequential bool
	run        func(ctx context.Context, args json.RawMessage, update func(agent.ToolResult)) (agent.ToolResult, error)
}

func (t tool) Spec() llm.Tool {
	return llm.Tool{Name: t.name, Description: t.name, Parameters: json.RawMessage(t.schema)}
}

func (t tool) Sequential() bool { return t.sequential }

func (t tool) Run(ctx context.Context, args json.RawMessage, update func(agent.ToolResult)) (agent.ToolResult, error) {
	return t.run(ctx, args, update)
}

// echo gives its arguments back.
func echo() tool {
	return tool{name: "echo", run: func(_ context.Context, args json.RawMessage, _ func(agent.ToolResult)) (agent.ToolResult, error) {
		return agent.TextResult(string(args)), nil
	}}
}

// a kit is an agent with all its events.
type kit struct {
	*agent.Agent
	provider *fake

	mu     sync.Mutex // guards events
	events []agent.Event
	on     func(e agent.Event) error // called after the event was kept
}

// newKit makes an agent with these replies; change may add to the options.
func newKit(t testing.TB, change func(*agent.Options), replies ...reply) *kit {
	t.Helper()
	k := &kit{provider: &fake{replies: replies}}
	o := agent.Options{
		Provider: k.provider, Model: "model-1", System: "sys", SessionID: "s1",
		Tools: []agent.Tool{echo()},
		Now:   func() time.Time { return time.UnixMilli(7) },
		Retry: agent.RetryPolicy{Rand: func() float64 { return 0 }},
		OnEvent: func(_ context.Context, e agent.Event) error {
			if !k.mu.TryLock() {
				t.Error("two events at once")
				k.mu.Lock()
			}
			defer k.mu.Unlock()
			k.events = append(k.events, e)
			if k.on != nil {
				return k.on(e)
			}
			return nil
		},
	}
	if change != nil {
		change(&o)
	}
	a, err := agent.New(o)
	if err != nil {
		t.Fatal(err)
	}
	k.Agent = a
	return k
}

func (k *kit) prompt(t testing.TB, text string) error {
	t.Helper()
	return k.Prompt(t.Context(), llm.UserText(text, 0))
}

// types gives the events in short, without updates of the message.
func (k *kit) types() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, e := range k.events {
		switch {
		case e.Type == agent.EventMessageUpdate:
		case e.Message != nil && e.Type != agent.EventTurnEnd:
			out = append(out, fmt.Sprintf("%s %s", e.Type, e.Message.Role))
		case e.ToolCallID != "":
			out = append(out, fmt.Sprintf("%s %s", e.Type, e.ToolCallID))
		default:
			out = append(out, string(e.Type))
		}
	}
	return out
}

// find gives the events of a type.
func (k *kit) find(typ agent.EventType) (found []agent.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.events {
		if e.Type == typ {
			found = append(found, e)
		}
	}
	return found
}

// outline gives a transcript in short.
func outline(ms []llm.Message) []string {
	var out []string
	for _, m := range ms {
		text := m.Text()
		for _, c := range m.ToolCalls() {
			text += "(" + c.Name + ")"
		}
		switch {
		case m.StopReason == llm.StopError || m.StopReason == llm.StopAborted:
			text += "!" + string(m.StopReason)
		case m.IsError:
			text = "!" + text
		}
		out = append(out, string(m.Role[0])+":"+text)
	}
	return out
}

func equal(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n  %s\nwant:\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// checkGrammar tells whether all events of an agent keep their order: runs end
// with one settled, turns and messages do not overlap, each call starts and ends
// once.
func checkGrammar(events []agent.Event) error {
	var inRun, inAttempt, inTurn, inMessage bool
	open := map[string]bool{}
	for i, e := range events {
		ok := true
		switch e.Type {
		case agent.EventAgentStart:
			ok = !inAttempt
			inRun, inAttempt = true, true
		case agent.EventTurnStart:
			ok = inAttempt && !inTurn
			inTurn = true
		case agent.EventMessageStart:
			ok = inTurn && !inMessage && len(open) == 0
			inMessage = true
		case agent.EventMessageUpdate:
			ok = inMessage
		case agent.EventMessageEnd:
			ok = inMessage
			inMessage = false
		case agent.EventToolStart:
			ok = inTurn && !inMessage && !open[e.ToolCallID]
			open[e.ToolCallID] = true
		case agent.EventToolUpdate:
			ok = open[e.ToolCallID]
		case agent.EventToolEnd:
			ok = open[e.ToolCallID]
			delete(open, e.ToolCallID)
		case agent.EventTurnEnd:
			ok = inTurn && !inMessage && len(open) == 0
			inTurn = false
		case agent.EventAgentEnd:
			ok = inAttempt && !inTurn
			inAttempt = false
		case agent.EventSettled:
			ok = inRun && !inAttempt
			inRun = false
		}
		if !ok {
			return fmt.Errorf("event %d, %s, is out of order", i, e.Type)
		}
		if _, err := json.Marshal(e); err != nil {
			return fmt.Errorf("event %d, %s: %w", i, e.Type, err)
		}
	}
	if inRun {
		return errors.New("the last run has not settled")
	}
	return nil
}

func (k *kit) checkGrammar(t testing.TB) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := checkGrammar(k.events); err != nil {
		t.Error(err)
	}
}
