package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"muntin/agent"
	"muntin/agent/llm"
)

func TestNew(t *testing.T) {
	t.Parallel()
	p := &fake{}
	tests := map[string]agent.Options{
		"no provider":    {Model: "m"},
		"no model":       {Provider: p},
		"no name":        {Provider: p, Model: "m", Tools: []agent.Tool{tool{}}},
		"named \"echo\"": {Provider: p, Model: "m", Tools: []agent.Tool{echo(), echo()}},
		"not a JSON obj": {Provider: p, Model: "m", Tools: []agent.Tool{tool{name: "x", schema: "[]"}}},
		"cannot unmarsh": {Provider: p, Model: "m", Tools: []agent.Tool{tool{name: "x", schema: `{"required":1}`}}},
	}
	for says, o := range tests {
		if _, err := agent.New(o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one with %q", err, says)
		}
	}
}

func TestEventOrder(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil, calls(llm.StopToolUse, `echo {"a":1}`, `echo {"a":2}`), says("done"))
	// The order of ends is that of completion; here it must be fixed.
	if err := k.SetTools([]agent.Tool{tool{name: "echo", sequential: true, run: echo().run}}); err != nil {
		t.Fatal(err)
	}
	if err := k.prompt(t, "go"); err != nil {
		t.Fatal(err)
	}
	equal(t, "events", k.types(), []string{
		"agent_start", "turn_start", "message_start user", "message_end user",
		"message_start assistant", "message_end assistant",
		"tool_execution_start 1", "tool_execution_end 1", "tool_execution_start 2", "tool_execution_end 2",
		"message_start toolResult", "message_end toolResult", "message_start toolResult", "message_end toolResult", "turn_end",
		"turn_start", "message_start assistant", "message_end assistant", "turn_end", "agent_end", "agent_settled",
	})
	k.checkGrammar(t)
	equal(t, "transcript", outline(k.Messages()), []string{"u:go", "a:(echo)(echo)", `t:{"a":1}`, `t:{"a":2}`, "a:done"})
	if end := k.find(agent.EventAgentEnd)[0]; len(end.Messages) != 5 || end.WillRetry {
		t.Errorf("agent_end with %d messages, want 5", len(end.Messages))
	}
	if ends := k.find(agent.EventTurnEnd); len(ends[0].ToolResults) != 2 || ends[1].Message.Text() != "done" {
		t.Errorf("turn_end %+v", ends)
	}
	var streamed strings.Builder
	for _, e := range k.find(agent.EventMessageUpdate) {
		if e.Stream.Type == llm.EventTextDelta {
			streamed.WriteString(e.Stream.Delta)
		}
	}
	if streamed.String() != "done" {
		t.Errorf("streamed %q", streamed.String())
	}
	for i, m := range k.Messages() {
		if m.Timestamp == 0 || m.Content == nil {
			t.Errorf("message %d is not whole: %+v", i, m)
		}
	}
	req := k.provider.sent()[1]
	if req.Model != "model-1" || req.System != "sys" || req.SessionID != "s1" || len(req.Tools) != 1 || len(req.Messages) != 4 {
		t.Errorf("request %+v", req)
	}
}

func TestSteeringAndFollowUp(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mode agent.QueueMode
		want []string
	}{
		"one at a time": {agent.OneAtATime, []string{
			"u:go", "a:(echo)", "t:{}", "u:s1", "a:r2", "u:s2", "a:r3", "u:f1", "a:r4", "u:f2", "a:r5",
		}},
		"all": {agent.All, []string{"u:go", "a:(echo)", "t:{}", "u:s1", "u:s2", "a:r2", "u:f1", "u:f2", "a:r3"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, func(o *agent.Options) { o.SteeringMode, o.FollowUpMode = tt.mode, tt.mode },
				calls(llm.StopToolUse, "echo {}"), says("r2"), says("r3"), says("r4"), says("r5"))
			k.on = func(e agent.Event) error {
				if e.Type == agent.EventToolStart { // from within the run
					for _, s := range []string{"s1", "s2"} {
						k.Steer(llm.UserText(s, 0))
						k.FollowUp(llm.UserText(strings.Replace(s, "s", "f", 1), 0))
					}
				}
				return nil
			}
			if err := k.prompt(t, "go"); err != nil {
				t.Fatal(err)
			}
			equal(t, "transcript", outline(k.Messages()), tt.want)
			k.checkGrammar(t)
			queues := k.find(agent.EventQueue)
			if len(queues) == 0 {
				t.Fatal("no queue_update")
			}
			if end := queues[len(queues)-1]; len(end.Steering)+len(end.FollowUp) != 0 {
				t.Errorf("the last queue_update tells of %v and %v", end.Steering, end.FollowUp)
			}
		})
	}
}

func TestQueuesWhileIdle(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil, says("r1"), says("r2"))
	k.Steer(llm.UserText("s", 0))
	k.FollowUp(llm.UserText("f", 0))
	steering, followUp := k.Queued()
	equal(t, "queued", outline(append(steering, followUp...)), []string{"u:s", "u:f"})
	if err := k.prompt(t, "go"); err != nil {
		t.Fatal(err)
	}
	equal(t, "transcript", outline(k.Messages()), []string{"u:go", "u:s", "a:r1", "u:f", "a:r2"})
	k.Steer(llm.UserText("late", 0))
	steering, followUp = k.ClearQueue()
	equal(t, "cleared", outline(append(steering, followUp...)), []string{"u:late"})
	if steering, followUp = k.Queued(); len(steering)+len(followUp) != 0 {
		t.Error("the queues are not empty")
	}
}

func TestContinue(t *testing.T) {
	t.Parallel()
	answered := []llm.Message{llm.UserText("u", 1), {Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockText, Text: "a"}}}}
	failed := append(answered[:1:1], llm.Message{Role: llm.RoleAssistant, StopReason: llm.StopError, Content: answered[1].Content})
	open := append(answered[:1:1], llm.Message{Role: llm.RoleAssistant, StopReason: llm.StopToolUse, Content: []llm.Block{
		{Type: llm.BlockToolCall, ID: "1", Name: "echo", Arguments: []byte("{}")},
	}})
	tests := map[string]struct {
		messages []llm.Message
		queue    func(*kit)
		want     []string // nil: nothing to continue
	}{
		"empty":            {nil, nil, nil},
		"after an answer":  {answered, nil, nil},
		"after a user":     {answered[:1], nil, []string{"u:u", "a:r"}},
		"after a failure":  {failed, nil, []string{"u:u", "a:a!error", "a:r"}},
		"after a crash":    {open, nil, []string{"u:u", "a:(echo)", "t:!" + llm.NoResult, "a:r"}},
		"with a steering":  {answered, func(k *kit) { k.Steer(llm.UserText("s", 0)) }, []string{"u:u", "a:a", "u:s", "a:r"}},
		"with a follow-up": {answered, func(k *kit) { k.FollowUp(llm.UserText("f", 0)) }, []string{"u:u", "a:a", "u:f", "a:r"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, func(o *agent.Options) { o.Messages = tt.messages }, says("r"))
			if tt.queue != nil {
				tt.queue(k)
			}
			err := k.Continue(t.Context())
			if tt.want == nil {
				if !errors.Is(err, agent.ErrNothingToContinue) || len(k.types()) != 0 || k.Running() {
					t.Fatalf("%v, events %v, want ErrNothingToContinue and no run", err, k.types())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "transcript", outline(k.Messages()), tt.want)
			k.checkGrammar(t)
		})
	}
}

// TestLoadedOrphans: a call that a crash cut off gets its result before anything
// else, as a message of the session.
func TestLoadedOrphans(t *testing.T) {
	t.Parallel()
	block := func(id string) llm.Block {
		return llm.Block{Type: llm.BlockToolCall, ID: id, Name: "echo", Arguments: []byte("{}")}
	}
	loaded := []llm.Message{
		llm.UserText("u", 1),
		{Role: llm.RoleAssistant, StopReason: llm.StopToolUse, Content: []llm.Block{block("1"), block("2")}},
		{Role: llm.RoleTool, ToolCallID: "2", Content: []llm.Block{{Type: llm.BlockText, Text: "two"}}},
	}
	k := newKit(t, func(o *agent.Options) { o.Messages = loaded }, says("r"))
	if err := k.prompt(t, "next"); err != nil {
		t.Fatal(err)
	}
	equal(t, "transcript", outline(k.Messages()), []string{"u:u", "a:(echo)(echo)", "t:two", "t:!" + llm.NoResult, "u:next", "a:r"})
	equal(t, "request", outline(k.provider.sent()[0].Messages), []string{"u:u", "a:(echo)(echo)", "t:!" + llm.NoResult, "t:two", "u:next"})
	if start := k.find(agent.EventMessageEnd)[0]; start.Message.ToolCallID != "1" {
		t.Errorf("the first message is %+v, want the result of call 1", start.Message)
	}
	k.checkGrammar(t)
}

func TestBusy(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil, says("r"))
	var within []error
	k.on = func(e agent.Event) error {
		if e.Type == agent.EventSettled {
			within = append(within, k.prompt(t, "x"), k.Continue(t.Context()), k.SetMessages(nil))
		}
		return nil
	}
	if err := k.prompt(t, "go"); err != nil {
		t.Fatal(err)
	}
	for _, err := range within {
		if !errors.Is(err, agent.ErrBusy) {
			t.Errorf("%v, want ErrBusy", err)
		}
	}
	if len(within) != 3 || k.Running() || len(k.Messages()) != 2 {
		t.Errorf("%d errors, running %v, %d messages", len(within), k.Running(), len(k.Messages()))
	}
	if err := k.Prompt(t.Context(), llm.Message{Role: llm.RoleAssistant}); err == nil {
		t.Error("an assistant's message was taken as a prompt")
	}
}

// TestEventErrors fails each event of a run in turn: the run ends at once, what
// was not written is not in the transcript, and nothing irrevocable follows.
func TestEventErrors(t *testing.T) {
	t.Parallel()
	replies := []reply{calls(llm.StopToolUse, "echo {}"), says("done")}
	whole := newKit(t, nil, replies...)
	if err := whole.prompt(t, "go"); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	for at := range whole.events {
		ran := false
		k := newKit(t, func(o *agent.Options) {
			o.Tools = []agent.Tool{tool{name: "echo", run: func(context.Context, json.RawMessage, func(agent.ToolResult)) (agent.ToolResult, error) {
				ran = true
				return agent.TextResult("{}"), nil
			}}}
		}, replies...)
		written := []llm.Message{}
		k.on = func(e agent.Event) error {
			if len(k.events) > at {
				return full
			}
			if e.Type == agent.EventMessageEnd {
				written = append(written, *e.Message)
			}
			return nil
		}
		err := k.prompt(t, "go")
		var event *agent.EventError
		if !errors.As(err, &event) || !errors.Is(err, full) || event.Type != whole.events[at].Type {
			t.Fatalf("event %d, %s: error %v", at, whole.events[at].Type, err)
		}
		equal(t, "transcript", outline(k.Messages()), outline(written))
		for _, e := range k.events[at+1:] {
			if e.Type != agent.EventAgentEnd && e.Type != agent.EventSettled {
				t.Errorf("event %d failed, and then came %s", at, e.Type)
			}
		}
		if ended := len(k.find(agent.EventSettled)); ended != 1 {
			t.Errorf("event %d failed: settled %d times", at, ended)
		}
		if len(written) == 0 && len(k.provider.sent()) != 0 {
			t.Errorf("event %d failed: a request was made before the prompt was written", at)
		}
		if len(written) < 2 && ran {
			t.Errorf("event %d failed: a tool ran before its intent was written", at)
		}
	}
}

// TestUndeliveredGoesBack: what OnEvent does not take stays queued.
func TestUndeliveredGoesBack(t *testing.T) {
	t.Parallel()
	for _, at := range []agent.EventType{agent.EventAgentStart, agent.EventTurnStart, agent.EventMessageStart, agent.EventMessageEnd} {
		k := newKit(t, func(o *agent.Options) { o.SteeringMode = agent.All }, says("r"))
		k.Steer(llm.UserText("s1", 0))
		k.Steer(llm.UserText("s2", 0))
		seen := 0
		k.on = func(e agent.Event) error {
			if e.Type == at {
				if seen++; seen == 2 || at == agent.EventAgentStart || at == agent.EventTurnStart {
					return errors.New("no")
				}
			}
			return nil
		}
		if err := k.prompt(t, "go"); err == nil {
			t.Fatal("no error")
		}
		steering, _ := k.Queued()
		equal(t, string(at), outline(steering), []string{"u:s1", "u:s2"})
	}
}

func TestChangesInARun(t *testing.T) {
	t.Parallel()
	other := &fake{replies: []reply{says("from the other")}}
	k := newKit(t, nil, calls(llm.StopToolUse, "echo {}"))
	k.on = func(e agent.Event) error {
		if e.Type == agent.EventToolEnd {
			k.SetModel(other, "model-2")
			k.SetSystem("other system")
			return k.SetTools(nil)
		}
		return nil
	}
	if err := k.prompt(t, "go"); err != nil {
		t.Fatal(err)
	}
	req := other.sent()[0]
	if req.Model != "model-2" || req.System != "other system" || len(req.Tools) != 0 || k.Model() != "model-2" {
		t.Errorf("request %+v", req)
	}
}
