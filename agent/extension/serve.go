package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"muntin/agent"
	"muntin/agent/llm"
)

// Tools are the tools of all extensions. Of two with one name the first counts.
func (h *Host) Tools() []agent.Tool {
	var all []agent.Tool
	seen := map[string]bool{}
	for _, r := range h.all() {
		for _, def := range r.ext.Tools {
			if !seen[def.Name] {
				seen[def.Name] = true
				all = append(all, extTool{r, def})
			}
		}
	}
	return all
}

// extTool is a tool that an extension runs.
type extTool struct {
	r   *runner
	def ToolDef
}

func (t extTool) Spec() llm.Tool   { return t.def.Spec() }
func (t extTool) Sequential() bool { return t.def.Sequential }

func (t extTool) Run(ctx context.Context, args json.RawMessage, update func(agent.ToolResult)) (agent.ToolResult, error) {
	raw, err := t.r.request(ctx, order{
		method: MethodTool, params: ToolCall{Name: t.def.Name, Args: args}, deadline: t.def.Deadline.or(DefaultTool),
		update: func(raw json.RawMessage) {
			var out ToolOutput
			if json.Unmarshal(raw, &out) == nil {
				update(out.result())
			}
		},
	})
	if ctx.Err() != nil {
		return agent.ToolResult{}, context.Cause(ctx)
	}
	var out ToolOutput
	if err == nil && len(raw) > 0 {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return agent.ToolResult{}, fmt.Errorf("extension %s: %w", t.r.ext.Name, err)
	}
	return out.result(), nil
}

func (o ToolOutput) result() agent.ToolResult {
	res := agent.ToolResult{Content: o.Content, Details: o.Details, IsError: o.IsError, Terminate: o.Terminate}
	if o.Text != "" {
		res.Content = append(res.Content, llm.Block{Type: llm.BlockText, Text: o.Text})
	}
	return res
}

// Commands are the commands of all extensions. Of two with one name the first counts.
func (h *Host) Commands() []Command {
	var all []Command
	for _, r := range h.all() {
		for _, c := range r.ext.Commands {
			if !slices.ContainsFunc(all, func(o Command) bool { return o.Name == c.Name }) {
				all = append(all, c)
			}
		}
	}
	return all
}

// Has reports whether a text, such as "/name args", calls a command of an extension.
func (h *Host) Has(text string) bool {
	name, ok := strings.CutPrefix(text, "/")
	name, _, _ = strings.Cut(name, " ")
	return ok && slices.ContainsFunc(h.Commands(), func(c Command) bool { return c.Name == name })
}

// Command runs the command that a text such as "/name args" calls. known is false
// when no extension has it.
func (h *Host) Command(ctx context.Context, text string) (res CommandResult, known bool, err error) {
	name, ok := strings.CutPrefix(text, "/")
	if !ok {
		return res, false, nil
	}
	name, args, _ := strings.Cut(name, " ")
	for _, r := range h.all() {
		i := slices.IndexFunc(r.ext.Commands, func(c Command) bool { return c.Name == name })
		if i < 0 {
			continue
		}
		raw, err := r.request(ctx, order{
			method: MethodCommand, params: CommandCall{Name: name, Args: strings.TrimSpace(args)},
			deadline: r.ext.Commands[i].Deadline.or(DefaultCommand),
		})
		if err == nil && len(raw) > 0 {
			err = json.Unmarshal(raw, &res)
		}
		if err != nil {
			return res, true, fmt.Errorf("command /%s of extension %s: %w", name, r.ext.Name, err)
		}
		return res, true, nil
	}
	return res, false, nil
}

// Provider finds a model "provider/id" that an extension serves.
func (h *Host) Provider(name string) (llm.Provider, llm.Model, bool) {
	provider, id, _ := strings.Cut(name, "/")
	for _, r := range h.all() {
		for _, p := range r.ext.Providers {
			i := slices.IndexFunc(p.Models, func(m Model) bool { return m.ID == id })
			if p.ID == provider && i >= 0 {
				return served{r, provider}, p.Models[i].known(provider), true
			}
		}
	}
	return nil, llm.Model{}, false
}

func (m Model) known(provider string) llm.Model {
	return llm.Model{
		Provider: provider, ID: m.ID, Name: m.Name, ContextWindow: m.ContextWindow, MaxTokens: m.MaxTokens,
		Reasoning: m.Reasoning, Input: m.Input,
	}
}

// served is a provider in an extension.
type served struct {
	r    *runner
	name string
}

// Stream implements llm.Provider.
func (s served) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		b := llm.NewBuilder(llm.Message{API: "extension", Provider: s.name, Model: req.Model}, yield)
		b.Start()
		calls := map[int]int{}
		raw, err := s.r.request(ctx, order{
			method: MethodModel, params: ModelRequest{Provider: s.name, Request: wire(req)}, deadline: llm.Deadlines{}.WithDefaults().Whole,
			update: func(raw json.RawMessage) {
				piece(b, calls, raw)
				if b.Stopped() {
					cancel()
				}
			},
		})
		var res ModelResult
		if err == nil && len(raw) > 0 {
			err = json.Unmarshal(raw, &res)
		}
		switch {
		case b.Stopped():
		case ctx.Err() != nil:
			b.Fail(&llm.Error{Class: llm.ClassAborted, Message: "Request was aborted", Err: context.Cause(ctx)}, nil)
		case err != nil:
			b.Fail(&llm.Error{Class: llm.ClassOther, Message: fmt.Sprintf("extension %s: %v", s.r.ext.Name, err), Err: err}, nil)
		case res.Error != "":
			b.Fail(&llm.Error{Class: res.class(), Message: res.Error, Err: errors.New(res.Error)}, res.Usage)
		default:
			stop := res.Stop
			if stop == "" {
				stop = llm.StopEnd
			}
			b.Done(stop, res.Usage)
		}
	}
}

func (r ModelResult) class() llm.Class {
	if r.Class == "" {
		return llm.ClassOther
	}
	return r.Class
}

// piece adds an update to a response. calls leads from the extension's numbers of
// tool calls to the builder's.
func piece(b *llm.Builder, calls map[int]int, raw json.RawMessage) {
	var e llm.Event
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	at, open := calls[e.Index]
	switch e.Type {
	case llm.EventTextDelta:
		b.Text(e.Delta)
	case llm.EventThinkingDelta:
		b.Thinking(e.Delta)
	case llm.EventToolStart:
		if e.Block != nil {
			calls[e.Index] = b.Tool(e.Block.ID, e.Block.Name)
		}
	case llm.EventToolDelta:
		if open {
			b.ToolArguments(at, e.Delta)
		}
	case llm.EventToolEnd:
		if open {
			b.EndTool(at)
		}
	}
}
