package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"muntin/agent/llm"
)

// What the model is told of calls that did not run, or not to their end.
const (
	textAborted   = "Operation aborted"
	textTruncated = "Not run: the response was cut off by its output limit, so the arguments of this call may be incomplete. " +
		"Make the call again, in smaller parts if it is long."
)

// a call is one tool call on its way through a batch.
type call struct {
	index   int
	block   llm.Block
	message llm.Message
	tool    Tool
	begun   time.Time
	result  ToolResult
}

// batch runs the tool calls of a response and adds their results to the
// transcript, in the order of the calls. terminate is true when every result
// asks for the end of the run.
func (r *run) batch(m llm.Message) (results []llm.Message, terminate bool, err error) {
	blocks := m.ToolCalls()
	if len(blocks) == 0 {
		return nil, false, nil
	}
	tools := r.agent.settings().tools
	calls := make([]*call, len(blocks))
	sequential := false
	for i, b := range blocks {
		calls[i] = &call{index: i, block: b, message: m}
		sequential = sequential || tools.byName[b.Name].sequential
	}
	if sequential {
		for _, c := range calls {
			if err := r.runCalls([]*call{c}, tools); err != nil {
				return nil, false, err
			}
		}
	} else if err := r.runCalls(calls, tools); err != nil {
		return nil, false, err
	}
	terminate = true
	for _, c := range calls {
		res := c.asMessage(r.agent.now().UnixMilli())
		if err := r.commit(res); err != nil {
			return results, false, err
		}
		results = append(results, res)
		terminate = terminate && c.result.Terminate
	}
	return results, terminate, nil
}

func (c *call) asMessage(unixMilli int64) llm.Message {
	return llm.Message{
		Role: llm.RoleTool, Content: c.result.Content, Timestamp: unixMilli,
		ToolCallID: c.block.ID, ToolName: c.block.Name, Details: c.result.Details, IsError: c.result.IsError,
	}
}

// runCalls prepares the calls in order, then runs those that may run at once.
func (r *run) runCalls(calls []*call, tools toolSet) error {
	out := make(chan outcome)
	gone := make(chan struct{})
	defer close(gone)
	var ready []*call
	for _, c := range calls {
		c.begun = time.Now() // not the agent's clock: a duration needs the monotonic one
		err := r.emit(Event{Type: EventToolStart, ToolCallID: c.block.ID, ToolName: c.block.Name, Args: c.block.Arguments})
		if err != nil {
			return err
		}
		if refused := r.prepare(c, tools); refused != nil {
			if err := r.endCall(c, *refused); err != nil {
				return err
			}
			continue
		}
		ready = append(ready, c)
	}
	byIndex := map[int]*call{}
	for _, c := range ready {
		byIndex[c.index] = c
		go work(r.ctx, *c, outlet{out: out, gone: gone})
	}
	return r.collect(byIndex, out)
}

// prepare decides whether a call may run. It gives the result of one that may not.
func (r *run) prepare(c *call, tools toolSet) *ToolResult {
	named, known := tools.byName[c.block.Name]
	switch {
	case r.ctx.Err() != nil:
		return errorResult(textAborted)
	case c.message.StopReason == llm.StopLength:
		return errorResult(textTruncated)
	case !known:
		return errorResult(fmt.Sprintf("Tool %s not found", c.block.Name))
	case c.block.ArgumentsError != "":
		return errorResult(invalid(c.block.Name, []string{c.block.ArgumentsError}, c.block.Arguments).Error())
	}
	args, err := named.schema.validate(c.block.Name, c.block.Arguments)
	if err != nil {
		return errorResult(err.Error())
	}
	c.tool, c.block.Arguments = named.tool, args
	hook := r.agent.hooks.BeforeTool
	if hook == nil {
		return nil
	}
	verdict, err := hook(r.ctx, c.forHook())
	switch {
	case err != nil:
		return errorResult(err.Error())
	case verdict.Block:
		if verdict.Reason == "" {
			verdict.Reason = "The call was blocked."
		}
		res := errorResult(verdict.Reason)
		res.Terminate = verdict.Terminate
		return res
	case verdict.Args != nil:
		c.block.Arguments = verdict.Args
	}
	return nil
}

func (c *call) forHook() ToolCall {
	return ToolCall{ID: c.block.ID, Name: c.block.Name, Args: c.block.Arguments, Message: c.message}
}

func errorResult(text string) *ToolResult {
	res := TextResult(text)
	res.IsError = true
	return &res
}

// endCall fixes the result of a call and tells of it.
func (r *run) endCall(c *call, res ToolResult) error {
	if res.Content == nil {
		res.Content = []llm.Block{}
	}
	c.result = res
	return r.emit(Event{
		Type: EventToolEnd, ToolCallID: c.block.ID, ToolName: c.block.Name,
		Result: &res, IsError: res.IsError, DurationMS: time.Since(c.begun).Milliseconds(),
	})
}

// an outcome is what a tool's goroutine tells the run.
type outcome struct {
	index  int
	result ToolResult
	final  bool // else an update
	err    error
}

// an outlet leads from a tool's goroutine to the run.
type outlet struct {
	out  chan<- outcome
	gone <-chan struct{} // closed when the run no longer listens
}

func (o outlet) send(x outcome) {
	select {
	case o.out <- x:
	case <-o.gone:
	}
}

// collect takes updates and results until every call has ended. After an abort,
// or an error of OnEvent, the calls that do not end soon are abandoned.
func (r *run) collect(open map[int]*call, out <-chan outcome) error {
	done := r.ctx.Done()
	var abandon <-chan time.Time
	for len(open) > 0 {
		select { // after an error, which r.broken keeps, emit does nothing more, and the loop only waits
		case x := <-out:
			r.take(open, x)
		case <-r.agent.kick:
			_ = r.emitQueue()
		case <-done:
			done = nil
			timer := time.NewTimer(grace)
			defer timer.Stop()
			abandon = timer.C
		case <-abandon:
			r.abandon(open)
		}
	}
	return r.broken
}

func (r *run) take(open map[int]*call, x outcome) {
	c := open[x.index]
	switch {
	case c == nil: // an update after the end
		return
	case !x.final:
		_ = r.emit(Event{ // see collect
			Type: EventToolUpdate, ToolCallID: c.block.ID, ToolName: c.block.Name,
			Args: c.block.Arguments, Partial: &x.result,
		})
		return
	}
	delete(open, x.index)
	res := withError(x.result, x.err)
	if hook := r.agent.hooks.AfterTool; hook != nil && r.broken == nil {
		changed, err := hook(r.ctx, c.forHook(), res)
		if res = changed; err != nil {
			res = *errorResult(err.Error())
		}
	}
	_ = r.endCall(c, res) // see collect
}

// withError turns an error that came with a result into a part of the result.
func withError(res ToolResult, err error) ToolResult {
	if err == nil {
		return res
	}
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		text = textAborted
	}
	res.Content = append(res.Content[:len(res.Content):len(res.Content)], llm.Block{Type: llm.BlockText, Text: text})
	res.IsError = true
	return res
}

// abandon ends the calls whose tools do not heed the abort, in their order.
func (r *run) abandon(open map[int]*call) {
	for _, i := range slices.Sorted(maps.Keys(open)) {
		_ = r.endCall(open[i], *errorResult(textAborted + ". The tool did not stop in time; what it did is not known."))
	}
	clear(open)
}

// work runs one call in a goroutine of its own. Whatever becomes of it, one final
// outcome is sent.
func work(ctx context.Context, c call, o outlet) {
	end := outcome{index: c.index, final: true, err: errors.New("the tool ended without a result")}
	defer func() {
		if v := recover(); v != nil {
			end.result, end.err = ToolResult{Details: stackDetails(debug.Stack())}, fmt.Errorf("the tool panicked: %v", v)
		}
		o.send(end)
	}()
	end.result, end.err = c.tool.Run(ctx, c.block.Arguments, func(partial ToolResult) {
		o.send(outcome{index: c.index, result: partial})
	})
}

// stackDetails keeps a stack for people, short enough for a session.
func stackDetails(stack []byte) json.RawMessage {
	const limit = 8000
	if len(stack) > limit {
		stack = stack[:limit]
	}
	details, err := encode(map[string]string{"stack": string(stack)})
	if err != nil {
		return nil
	}
	return details
}
