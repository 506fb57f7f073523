package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"muntin/agent"
	"muntin/agent/llm"
)

type (
	raw    = json.RawMessage
	result = agent.ToolResult
	update = func(agent.ToolResult)
)

func TestCallsThatCannotRun(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`
	tests := map[string]struct {
		call reply
		want string
	}{
		"unknown":    {calls(llm.StopToolUse, "nope {}"), "Tool nope not found"},
		"invalid":    {calls(llm.StopToolUse, `strict {"x":1}`), "Validation failed for tool \"strict\":\n  - path: missing\n\nReceived arguments:\n{\"x\":1}"},
		"not JSON":   {calls(llm.StopToolUse, `strict {"pa`), "Validation failed for tool \"strict\":\n  - the arguments are not valid JSON"},
		"length":     {calls(llm.StopLength, `strict {"path":"x"}`), "Not run: the response was cut off by its output limit"},
		"panic":      {calls(llm.StopToolUse, "panics {}"), "the tool panicked: oh no"},
		"exit":       {calls(llm.StopToolUse, "exits {}"), "the tool ended without a result"},
		"error":      {calls(llm.StopToolUse, "errs {}"), "half\nno such file"},
		"stop, call": {calls(llm.StopEnd, "nope {}"), "Tool nope not found"},
	}
	ran := false
	tools := []agent.Tool{
		tool{name: "strict", schema: schema, run: func(context.Context, raw, update) (result, error) { ran = true; return result{}, nil }},
		tool{name: "panics", run: func(context.Context, raw, update) (result, error) { panic("oh no") }},
		tool{name: "exits", run: func(context.Context, raw, update) (result, error) { runtime.Goexit(); return result{}, nil }},
		tool{name: "errs", run: func(context.Context, raw, update) (result, error) {
			return agent.TextResult("half\n"), errors.New("no such file")
		}},
	}
	for name, tt := range tests {
		k := newKit(t, func(o *agent.Options) { o.Tools = tools }, tt.call, says("r"))
		if err := k.prompt(t, "go"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m := k.Messages()[2]
		if !m.IsError || !strings.HasPrefix(m.Text(), tt.want) || m.ToolCallID != "1" {
			t.Errorf("%s: result %q, want %q", name, m.Text(), tt.want)
		}
		ends := k.find(agent.EventToolEnd)
		if len(ends) != 1 || !ends[0].IsError || len(k.find(agent.EventToolStart)) != 1 {
			t.Errorf("%s: ends %+v", name, ends)
		}
		k.checkGrammar(t)
	}
	if ran {
		t.Error("a call with bad arguments ran")
	}
}

// TestParallel holds the first call until the second has ended.
func TestParallel(t *testing.T) {
	t.Parallel()
	second := make(chan struct{})
	k := newKit(t, func(o *agent.Options) {
		o.Tools = []agent.Tool{tool{name: "t", run: func(ctx context.Context, args raw, _ update) (result, error) {
			if string(args) == `{"n":1}` {
				select {
				case <-second:
				case <-ctx.Done():
					return result{}, ctx.Err()
				}
			} else {
				defer close(second)
			}
			return agent.TextResult(string(args)), nil
		}}}
	}, calls(llm.StopToolUse, `t {"n":1}`, "nope {}", `t {"n":2}`), says("r"))
	if err := k.prompt(t, "go"); err != nil {
		t.Fatal(err)
	}
	equal(t, "results", outline(k.Messages())[2:5], []string{`t:{"n":1}`, "t:!Tool nope not found", `t:{"n":2}`})
	types := k.types()
	starts := slices.Index(types, "tool_execution_start 3")
	if starts < 0 || slices.Index(types, "tool_execution_end 1") < starts || slices.Index(types, "tool_execution_end 2") > starts {
		t.Errorf("events %v", types)
	}
	k.checkGrammar(t)
}

// TestSequential has one tool that must not run beside others.
func TestSequential(t *testing.T) {
	t.Parallel()
	running := make(chan struct{}, 1)
	alone := func(context.Context, raw, update) (result, error) {
		select {
		case running <- struct{}{}:
			runtime.Gosched()
			<-running
			return agent.TextResult("ok"), nil
		default:
			return result{}, errors.New("not alone")
		}
	}
	k := newKit(t, func(o *agent.Options) {
		o.Tools = []agent.Tool{tool{name: "free", run: alone}, tool{name: "seq", run: alone, sequential: true}}
	}, calls(llm.StopToolUse, "free {}", "free {}", "seq {}", "free {}"), says("r"))
	if err := k.prompt(t, "go"); err != nil {
		t.Fatal(err)
	}
	for _, m := range k.Messages()[2:6] {
		if m.IsError {
			t.Error(m.Text())
		}
	}
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	late := make(chan update, 1)
	k := newKit(t, func(o *agent.Options) {
		o.Tools = []agent.Tool{tool{name: "t", run: func(_ context.Context, _ raw, up update) (result, error) {
			for i := range 3 {
				up(agent.TextResult(fmt.Sprint(i)))
			}
			late <- up
			return agent.TextResult("end"), nil
		}}}
	}, calls(llm.StopToolUse, "t {}"), says("r"))
	if err := k.prompt(t, "go"); err != nil {
		t.Fatal(err)
	}
	(<-late)(agent.TextResult("too late")) // must not block and must not show
	var got []string
	for _, e := range k.find(agent.EventToolUpdate) {
		got = append(got, e.Partial.Content[0].Text)
	}
	equal(t, "updates", got, []string{"0", "1", "2"})
	k.checkGrammar(t)
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	ends := tool{name: "ends", run: func(context.Context, raw, update) (result, error) {
		r := agent.TextResult("bye")
		r.Terminate = true
		return r, nil
	}}
	tools := func(o *agent.Options) { o.Tools = []agent.Tool{ends, echo()} }
	all := newKit(t, tools, calls(llm.StopToolUse, "ends {}", "ends {}"))
	if err := all.prompt(t, "go"); err != nil || len(all.provider.sent()) != 1 {
		t.Errorf("%v, %d requests, want 1", err, len(all.provider.sent()))
	}
	for _, batch := range [][]string{{"ends {}", "echo {}"}, {"echo {}", "ends {}"}} {
		one := newKit(t, tools, calls(llm.StopToolUse, batch...), says("r"))
		if err := one.prompt(t, "go"); err != nil || len(one.provider.sent()) != 2 {
			t.Errorf("%v: %v, %d requests, want 2", batch, err, len(one.provider.sent()))
		}
	}
}

func TestToolHooks(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(o *agent.Options) {
		o.Hooks.BeforeTool = func(_ context.Context, c agent.ToolCall) (agent.Verdict, error) {
			switch c.ID {
			case "1":
				return agent.Verdict{Block: true, Reason: "not allowed"}, nil
			case "2":
				return agent.Verdict{Args: raw(`{"changed":true}`)}, nil
			case "3":
				return agent.Verdict{}, errors.New("hook failed")
			}
			return agent.Verdict{}, nil
		}
		o.Hooks.AfterTool = func(_ context.Context, c agent.ToolCall, r agent.ToolResult) (agent.ToolResult, error) {
			if c.ID == "5" {
				return r, errors.New("after failed")
			}
			r.Content = append(r.Content, llm.Block{Type: llm.BlockText, Text: " seen " + c.ID})
			return r, nil
		}
	}, calls(llm.StopToolUse, "echo {}", "echo {}", "echo {}", "echo {}", "echo {}"), says("r"))
	if err := k.prompt(t, "go"); err != nil {
		t.Fatal(err)
	}
	equal(t, "results", outline(k.Messages())[2:7], []string{
		"t:!not allowed", `t:{"changed":true} seen 2`, "t:!hook failed", "t:{} seen 4", "t:!after failed",
	})
}
