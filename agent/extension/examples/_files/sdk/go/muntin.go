// Extensions for muntin in Go: copy this file beside your main.go. It needs the
// standard library and nothing else. The protocol is described in docs/extensions.md
// of muntin.
//
//	func main() {
//		ext := NewExtension()
//		ext.Gate("tool_call", func(r *Request) (any, error) { … })
//		ext.Tool("greet", func(r *Request) (any, error) { … })
//		ext.Run()
//	}
//
// Handlers run in goroutines of their own. One that returns an error fails its
// request: a gate that fails counts as a no.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// A Handler answers a request: with a value that JSON can hold, a string for a text,
// or nil for nothing.
type Handler func(r *Request) (any, error)

// A Request is what muntin asks for. Its context ends when nobody waits any more.
type Request struct {
	context.Context
	Params json.RawMessage // of a tool, its arguments; of a command, the text behind it
	id     int64
	ext    *Extension
}

// Update gives a part of the answer, before the answer.
func (r *Request) Update(part any) { r.ext.send(frame{Type: "update", ID: r.id, Params: object(part)}) }

// Read reads the parameters.
func (r *Request) Read(into any) error { return json.Unmarshal(r.Params, into) }

// An Extension is the conversation with muntin.
type Extension struct {
	Hello struct {
		Dir, State, Session, Mode string
		Dialogs                   bool
		Flags                     map[string]any
	}
	handlers map[string]Handler

	mu      sync.Mutex // guards all below, and is held while a line is written
	last    int64
	answers map[int64]chan frame
	cancels map[int64]context.CancelFunc
}

type frame struct {
	Type   string          `json:"type"`
	ID     int64           `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// NewExtension makes one that does nothing yet.
func NewExtension() *Extension {
	return &Extension{handlers: map[string]Handler{}, answers: map[int64]chan frame{}, cancels: map[int64]context.CancelFunc{}}
}

// Gate, Tool, Command and Event say what the extension does; "provider" is a gate too.
func (e *Extension) Gate(name string, h Handler)    { e.handlers[name] = h }
func (e *Extension) Tool(name string, h Handler)    { e.handlers["tool "+name] = h }
func (e *Extension) Command(name string, h Handler) { e.handlers["command "+name] = h }
func (e *Extension) Event(name string, h Handler)   { e.handlers["event "+name] = h }

// Notify, Status and Send say something unasked: a line for people, a text that stays
// on the screen, a message for the model.
func (e *Extension) Notify(text string) { e.say("notify", map[string]string{"text": text}) }
func (e *Extension) Status(text string) { e.say("status", map[string]string{"text": text}) }
func (e *Extension) Send(text string)   { e.say("send", map[string]string{"text": text}) }

func (e *Extension) say(method string, params any) {
	e.send(frame{Type: "event", Method: method, Params: object(params)})
}

// An Answer is what came of a question. Without Answered, nobody did.
type Answer struct {
	Answered, Confirmed bool
	Value               string
}

// Ask asks the user: kind is confirm, select (of the options) or input.
func (e *Extension) Ask(ctx context.Context, kind, title string, options ...string) (a Answer, err error) {
	answered := make(chan frame, 1)
	e.mu.Lock()
	e.last++
	id := e.last
	e.answers[id] = answered
	e.mu.Unlock()
	e.send(frame{Type: "request", ID: id, Method: "ask", Params: object(map[string]any{"kind": kind, "title": title, "options": options})})
	select {
	case f := <-answered:
		if f.Error != "" {
			return a, fmt.Errorf("asking the user: %s", f.Error)
		}
		return a, json.Unmarshal(f.Result, &a)
	case <-ctx.Done():
		return a, ctx.Err()
	}
}

// Run answers until the input ends.
func (e *Extension) Run() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var f frame
		if err := json.Unmarshal(in.Bytes(), &f); err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		e.take(f)
	}
}

func (e *Extension) take(f frame) {
	switch f.Type {
	case "hello":
		if err := json.Unmarshal(f.Params, &e.Hello); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		e.send(frame{Type: "ready", Params: object(map[string]int{"protocol": 1})})
	case "request":
		ctx, cancel := context.WithCancel(context.Background())
		e.mu.Lock()
		e.cancels[f.ID] = cancel
		e.mu.Unlock()
		go e.answer(ctx, f)
	case "response":
		e.mu.Lock()
		waiting := e.answers[f.ID]
		delete(e.answers, f.ID)
		e.mu.Unlock()
		if waiting != nil {
			waiting <- f
		}
	case "cancel":
		e.mu.Lock()
		cancel := e.cancels[f.ID]
		e.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case "event":
		if h := e.handlers["event "+f.Method]; h != nil {
			go h(&Request{Context: context.Background(), Params: f.Params, ext: e})
		}
	}
}

func (e *Extension) answer(ctx context.Context, f frame) {
	key, params := f.Method, f.Params
	switch f.Method {
	case "tool":
		var call struct {
			ToolName string          `json:"toolName"`
			Args     json.RawMessage `json:"args"`
		}
		_ = json.Unmarshal(f.Params, &call)
		key, params = "tool "+call.ToolName, call.Args
	case "command":
		var call struct{ Name, Args string }
		_ = json.Unmarshal(f.Params, &call)
		key, params = "command "+call.Name, must(call.Args)
	}
	response := frame{Type: "response", ID: f.ID}
	if h := e.handlers[key]; h == nil {
		response.Error = "no handler for " + key
	} else if result, err := h(&Request{Context: ctx, Params: params, id: f.ID, ext: e}); err != nil {
		response.Error = err.Error()
	} else {
		response.Result = object(result)
	}
	e.send(response)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancels[f.ID]()
	delete(e.cancels, f.ID)
}

// object is a value as the object that the protocol wants.
func object(v any) json.RawMessage {
	switch v := v.(type) {
	case nil:
		return json.RawMessage("{}")
	case string:
		return must(map[string]string{"text": v})
	}
	return must(v)
}

func must(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a handler gave what no JSON can hold
	}
	return b
}

func (e *Extension) send(f frame) {
	line := append(must(f), '\n')
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := os.Stdout.Write(line); err != nil {
		os.Exit(0) // muntin has gone
	}
}
