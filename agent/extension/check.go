package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"muntin/agent/llm"
)

// A Check is one rule of the protocol, and whether an extension keeps it.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Note string `json:"note,omitempty"`
}

// CheckOptions say how an extension is checked. The extension of Options is not looked at.
type CheckOptions struct {
	Options
	Tools bool // call its tools and commands, too, with made-up arguments
}

// Conformance starts an extension and checks that it keeps to the protocol. The error
// is why it could not be checked at all.
func Conformance(ctx context.Context, e Extension, o CheckOptions) ([]Check, error) {
	o.Extensions = []Extension{e}
	h, err := New(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	c := &checker{ctx: ctx, runner: h.runners[0], ui: &witness{}}
	h.Attach(Attachment{Session: "conformance", UI: c.ui})
	begun := time.Now()
	p, err := c.runner.running(ctx)
	c.add("it starts and is ready", err, fmt.Sprintf("within %d ms", time.Since(begun).Milliseconds()))
	if err != nil {
		return c.all, nil
	}
	c.process = p
	c.frames()
	for _, g := range e.Gates {
		c.gate(g)
	}
	if o.Tools {
		c.calls(e)
	}
	c.end()
	return c.all, nil
}

type checker struct {
	ctx     context.Context
	runner  *runner
	process *process
	ui      *witness
	all     []Check
}

func (c *checker) add(name string, err error, note string) {
	k := Check{Name: name, OK: err == nil, Note: note}
	if err != nil {
		k.Note = err.Error()
	}
	c.all = append(c.all, k)
}

// alive asks for something that there is not: the answer is an error in words, and
// soon.
func (c *checker) alive() error {
	_, err := c.process.request(c.ctx, order{method: "conformance.unknown", params: struct{}{}, deadline: DefaultGate})
	switch {
	case err == nil:
		return errors.New("it answered a request that does not exist without an error")
	case errors.Is(err, errDeadline) || c.process.ending() != nil:
		return err
	}
	return nil
}

func (c *checker) frames() {
	c.add("a request that does not exist is answered with an error", c.alive(), "")
	c.process.send(Frame{Type: TypeEvent, Method: "conformance_unknown", Params: json.RawMessage(`{"a":[1,{"b":"\u2028 \" \\ ü"}]}`)})
	c.add("an event that it does not know is ignored", c.alive(), "")
	c.process.send(Frame{Type: "conformance"})
	c.add("a frame of an unknown type is ignored", c.alive(), "")
	c.process.send(Frame{Type: TypeCancel, ID: 1})
	c.add("the cancelling of what was answered is ignored", c.alive(), "")
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { errs[i] = c.alive() })
	}
	wg.Wait()
	c.add("requests at the same time are all answered", errors.Join(errs...), "")
}

// gate asks a gate about a made-up case.
func (c *checker) gate(g Gate) {
	params, result := sample(g)
	raw, err := c.process.request(c.ctx, order{method: g.On, params: params, deadline: g.Deadline.or(DefaultGate)})
	if err == nil && len(raw) > 0 {
		err = json.Unmarshal(raw, result)
	}
	c.add("gate "+g.On+" decides", err, string(raw))
}

// sample is a case for a gate, and what its answer is read into.
func sample(g Gate) (params, result any) {
	name := "bash"
	if len(g.Tools) > 0 {
		name = g.Tools[0]
	}
	call := ToolCall{ID: "call-1", Name: name, Args: json.RawMessage(`{"command":"true","path":"file","content":"","edits":[]}`)}
	talk := []llm.Message{llm.UserText("hello", 1)}
	text := []llm.Block{{Type: llm.BlockText, Text: "text"}}
	switch g.On {
	case GateInput:
		return Input{Text: "hello"}, &InputResult{}
	case GateStart:
		return Start{Prompt: "hello", System: "system"}, &StartResult{}
	case GateContext:
		return Context{Messages: talk}, &ContextResult{}
	case GateRequest:
		return Request{Model: "model", System: "system", Messages: talk, Tools: []Spec{{Name: "bash"}}}, &RequestResult{}
	case GateToolCall:
		return call, &ToolCallResult{}
	case GateToolResult:
		return ToolResult{ToolCall: call, Content: text}, &ToolResultResult{}
	case GateTurn:
		return Turn{Message: llm.Message{Role: llm.RoleAssistant, Content: text}}, &TurnResult{}
	case GateCompaction:
		return Compaction{Reason: "manual", Messages: talk}, &CompactionResult{}
	case GateSwitch:
		return Switch{Reason: "new"}, &SwitchResult{}
	}
	return UserBash{Command: "true"}, &UserBashResult{}
}

// calls calls the tools and commands. That one of them fails is no fault: the
// arguments are made up.
func (c *checker) calls(e Extension) {
	for _, t := range e.Tools {
		args, err := json.Marshal(made(t.Parameters))
		var raw json.RawMessage
		if err == nil {
			raw, err = c.process.request(c.ctx, order{
				method: MethodTool, params: ToolCall{ID: "call-1", Name: t.Name, Args: args}, deadline: t.Deadline.or(DefaultTool),
			})
		}
		c.answered("tool "+t.Name, raw, err, &ToolOutput{})
	}
	for _, k := range e.Commands {
		raw, err := c.process.request(c.ctx, order{method: MethodCommand, params: CommandCall{Name: k.Name}, deadline: k.Deadline.or(DefaultCommand)})
		c.answered("command "+k.Name, raw, err, &CommandResult{})
	}
}

func (c *checker) answered(name string, raw json.RawMessage, err error, result any) {
	note := string(raw)
	if err != nil && !errors.Is(err, errDeadline) && c.process.ending() == nil {
		note, err = "it fails: "+err.Error(), nil
	}
	if err == nil && len(raw) > 0 {
		err = json.Unmarshal(raw, result)
	}
	c.add(name+" answers", err, note)
}

// made are arguments that fit a schema of plain properties.
func made(schema map[string]any) map[string]any {
	args := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p, _ := properties[name].(map[string]any)
		if values, ok := p["enum"].([]any); ok && len(values) > 0 {
			args[name] = values[0]
			continue
		}
		switch p["type"] {
		case "integer", "number":
			args[name] = 1
		case "boolean":
			args[name] = false
		case "array":
			args[name] = []any{}
		case "object":
			args[name] = map[string]any{}
		default:
			args[name] = "example"
		}
	}
	return args
}

func (c *checker) end() {
	begun := time.Now()
	c.runner.close()
	took := time.Since(begun)
	var err error
	if took >= patience {
		err = fmt.Errorf("it had to be ended after %s", patience)
	}
	c.add("it ends with its input", err, fmt.Sprintf("within %d ms", took.Milliseconds()))
	err = nil
	if text := c.ui.complaint(); text != "" {
		err = errors.New(text)
	}
	c.add("it writes nothing but frames to standard output", err, "")
}

// witness keeps what the host complained of.
type witness struct {
	mu      sync.Mutex // guards garbled
	garbled string
}

// Ask implements UI: nobody is there.
func (w *witness) Ask(context.Context, Question) Answer { return Answer{} }

// Notify implements UI.
func (w *witness) Notify(n Notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.garbled == "" && n.garbage {
		w.garbled = n.Text
	}
}

// Status implements UI.
func (w *witness) Status(Status) {}

func (w *witness) complaint() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.garbled
}
