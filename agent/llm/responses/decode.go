package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// An event is one of the stream, of any type.
type event struct {
	Type      string          `json:"type"`
	Index     int             `json:"output_index"`
	Part      int             `json:"summary_index"`
	Delta     string          `json:"delta"`
	Arguments string          `json:"arguments"`
	Item      json.RawMessage `json:"item"`
	Response  *response       `json:"response"`
	Error     json.RawMessage `json:"error"`
}

type item struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Phase     string `json:"phase"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type response struct {
	ID         string          `json:"id"`
	Status     string          `json:"status"`
	Error      json.RawMessage `json:"error"`
	Usage      *usage          `json:"usage"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

type usage struct {
	Input   int `json:"input_tokens"`
	Output  int `json:"output_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
		Write  int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// a decoder turns the events of one response into those of the contract.
type decoder struct {
	*wire.Answer
	calls map[int]*toolCall // by the API's output index
}

// a toolCall is a tool call that has begun.
type toolCall struct {
	block int  // the contract's index
	grown bool // arguments have come
}

func newDecoder(a *wire.Answer) *decoder { return &decoder{Answer: a, calls: map[int]*toolCall{}} }

// event takes one event. It returns io.EOF at the event that ends the response.
func (d *decoder) event(sse wire.SSEvent) error {
	data := bytes.TrimSpace(sse.Data)
	if len(data) == 0 || string(data) == "[DONE]" {
		return nil
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		if sse.Name != "error" {
			return wire.Broken(data, err)
		}
		return d.Failed(json.RawMessage(`{}`))
	}
	switch e.Type {
	case "response.created", "response.in_progress", "response.queued":
		if e.Response != nil {
			d.Out.Identify(e.Response.ID)
		}
		d.Out.Start()
	case "response.output_item.added":
		return d.begin(data, e)
	case "response.output_item.done":
		return d.end(data, e)
	case "response.reasoning_summary_part.added":
		if e.Part > 0 && d.Out.OpenThinking() {
			d.Out.Thinking("\n\n")
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		d.Out.Thinking(e.Delta)
	case "response.output_text.delta", "response.refusal.delta":
		d.Out.Text(e.Delta)
	case "response.function_call_arguments.delta":
		return d.arguments(data, e.Index, e.Delta)
	case "response.function_call_arguments.done":
		if c := d.calls[e.Index]; c != nil && !c.grown {
			return d.arguments(data, e.Index, e.Arguments)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		return d.finish(e)
	case "error":
		if len(e.Error) > 0 && string(e.Error) != "null" {
			return d.Failed(e.Error)
		}
		return d.Failed(json.RawMessage(data))
	case "":
		if len(e.Error) > 0 && string(e.Error) != "null" {
			return d.Failed(e.Error)
		}
	}
	return nil
}

func (d *decoder) begin(data []byte, e event) error {
	var it item
	if err := json.Unmarshal(e.Item, &it); err != nil {
		return wire.Broken(data, err)
	}
	switch it.Type {
	case "reasoning":
		d.Out.BeginThinking()
	case "message":
		d.Out.BeginText()
	case "function_call":
		id := it.CallID
		if id == "" {
			id = fmt.Sprintf("call_%d_%d", d.Head.Timestamp, e.Index)
		}
		d.calls[e.Index] = &toolCall{block: d.Out.Tool(id, it.Name)}
		return d.arguments(data, e.Index, it.Arguments)
	}
	return nil
}

func (d *decoder) arguments(data []byte, index int, delta string) error {
	c := d.calls[index]
	if c == nil {
		return wire.Broken(data, fmt.Errorf("arguments for output %d, which is no tool call", index))
	}
	c.grown = c.grown || delta != ""
	d.Out.ToolArguments(c.block, delta)
	return nil
}

// end takes a whole item. What the API wants back of it becomes a signature.
func (d *decoder) end(data []byte, e event) error {
	var it item
	if err := json.Unmarshal(e.Item, &it); err != nil {
		return wire.Broken(data, err)
	}
	switch it.Type {
	case "reasoning":
		if d.Out.OpenThinking() {
			d.Out.SignOver(string(e.Item))
		}
	case "message":
		if it.ID != "" && d.Out.OpenText() {
			at, err := wire.Marshal(textSignature{V: 1, ID: it.ID, Phase: it.Phase})
			if err != nil {
				return err
			}
			d.Out.SignOver(string(at))
		}
	case "function_call":
		c := d.calls[e.Index]
		if c == nil {
			if err := d.begin(data, e); err != nil {
				return err
			}
			c = d.calls[e.Index]
		} else if !c.grown {
			d.Out.ToolArguments(c.block, it.Arguments)
		}
		d.Out.EndTool(c.block)
	}
	return nil
}

// finish takes the event that ends the response.
func (d *decoder) finish(e event) error {
	r := e.Response
	if r == nil {
		return nil // the end is taken for a cut
	}
	d.Out.Identify(r.ID)
	if u := r.Usage; u != nil {
		cached, write := max(0, u.Details.Cached), max(0, u.Details.Write)
		input := max(0, u.Input-cached-write)
		d.Usage = &llm.Usage{
			Input: input, Output: u.Output, CacheRead: cached, CacheWrite: write,
			Reasoning: u.OutputDetails.Reasoning, Total: input + cached + write + u.Output,
		}
	}
	status := r.Status
	if status == "" {
		status = e.Type[len("response."):]
	}
	if r.Incomplete != nil && r.Incomplete.Reason != "" {
		status += "." + r.Incomplete.Reason
	}
	d.Out.Reason(status)
	switch status {
	case "completed", "done":
		d.Stop = llm.StopEnd
	case "incomplete", "incomplete.max_output_tokens", "incomplete.max_tokens":
		d.Stop = llm.StopLength
	case "incomplete.content_filter":
		return &llm.Error{Class: llm.ClassOther, Message: "the provider's content filter stopped the answer"}
	case "failed":
		if len(r.Error) == 0 || string(r.Error) == "null" {
			return &llm.Error{Class: llm.ClassRetryable, Message: "the provider says that the response failed, and not why"}
		}
		return d.Failed(r.Error)
	case "cancelled":
		return &llm.Error{Class: llm.ClassRetryable, Message: "the provider cancelled the response"}
	default:
		return &llm.Error{Class: llm.ClassOther, Message: fmt.Sprintf("the answer ended with the unknown status %q", status)}
	}
	return io.EOF
}
