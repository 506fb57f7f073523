package anthropic

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
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message json.RawMessage `json:"message"` // an object in message_start
	Block   *struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta *struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Thinking    string          `json:"thinking"`
		Signature   string          `json:"signature"`
		PartialJSON string          `json:"partial_json"`
		StopReason  string          `json:"stop_reason"`
		StopDetails json.RawMessage `json:"stop_details"`
	} `json:"delta"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// usage has what has been counted so far; what is missing is as it was.
type usage struct {
	Input      *int `json:"input_tokens"`
	Output     *int `json:"output_tokens"`
	CacheRead  *int `json:"cache_read_input_tokens"`
	CacheWrite *int `json:"cache_creation_input_tokens"`
	Creation   *struct {
		Hour int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Details *struct {
		Thinking int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// a decoder turns the events of one response into those of the contract.
type decoder struct {
	*wire.Answer
	blocks map[int]*opened // by the API's index
	stop   llm.StopReason  // the reason, until message_stop says that all has come
	failed error           // the reason is one that fails
}

// opened is a block that has begun.
type opened struct {
	tool    int             // the contract's index of a tool call, or -1
	initial json.RawMessage // arguments that came with the start of the call
	grown   bool            // arguments came after it
	ignored bool            // of a type that was not asked for
}

func newDecoder(a *wire.Answer) *decoder { return &decoder{Answer: a, blocks: map[int]*opened{}} }

// event takes one event. It returns io.EOF at message_stop.
func (d *decoder) event(sse wire.SSEvent) error {
	data := bytes.TrimSpace(sse.Data)
	if len(data) == 0 {
		return nil
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return wire.Broken(data, err)
	}
	if e.Type == "" {
		e.Type = sse.Name
	}
	switch e.Type {
	case "message_start":
		var m struct {
			ID    string `json:"id"`
			Usage *usage `json:"usage"`
		}
		if err := json.Unmarshal(e.Message, &m); err != nil {
			return wire.Broken(data, err)
		}
		d.Out.Identify(m.ID)
		d.count(m.Usage)
		d.Out.Start()
	case "content_block_start":
		d.begin(e)
	case "content_block_delta":
		return d.delta(data, e)
	case "content_block_stop":
		d.end(e.Index)
	case "message_delta":
		d.count(e.Usage)
		if e.Delta != nil && e.Delta.StopReason != "" {
			d.finish(e.Delta.StopReason, e.Delta.StopDetails)
		}
	case "message_stop":
		if d.failed != nil {
			return d.failed
		}
		d.Stop = d.stop // none: the end is taken for a cut
		return io.EOF
	case "error":
		if len(e.Error) == 0 {
			e.Error = json.RawMessage(data)
		}
		return d.Failed(e.Error)
	}
	return nil // ping, and what is new
}

func (d *decoder) count(u *usage) {
	if u == nil {
		return
	}
	if d.Usage == nil {
		d.Usage = &llm.Usage{}
	}
	set := func(to, from *int) {
		if from != nil && *from > 0 {
			*to = *from
		}
	}
	set(&d.Usage.Input, u.Input)
	set(&d.Usage.Output, u.Output)
	set(&d.Usage.CacheRead, u.CacheRead)
	set(&d.Usage.CacheWrite, u.CacheWrite)
	if u.Creation != nil {
		set(&d.Usage.CacheWrite1h, &u.Creation.Hour)
	}
	if u.Details != nil {
		set(&d.Usage.Reasoning, &u.Details.Thinking)
	}
	d.Usage.Total = d.Usage.Input + d.Usage.Output + d.Usage.CacheRead + d.Usage.CacheWrite
}

func (d *decoder) begin(e event) {
	if e.Block == nil {
		return
	}
	o := &opened{tool: -1}
	d.blocks[e.Index] = o
	switch b := e.Block; b.Type {
	case "text":
		d.Out.BeginText()
		d.Out.Text(b.Text)
	case "thinking":
		d.Out.BeginThinking()
		d.Out.Thinking(b.Thinking)
		d.Out.Sign(b.Signature)
	case "redacted_thinking":
		d.Out.Redacted(b.Data)
	case "tool_use":
		id := b.ID
		if id == "" {
			id = fmt.Sprintf("call_%d_%d", d.Head.Timestamp, e.Index)
		}
		o.tool, o.initial = d.Out.Tool(id, b.Name), b.Input
	default:
		o.ignored = true
	}
}

func (d *decoder) delta(data []byte, e event) error {
	if e.Delta == nil {
		return nil
	}
	o := d.blocks[e.Index]
	if o != nil && o.ignored {
		return nil
	}
	switch e.Delta.Type {
	case "text_delta":
		d.Out.Text(e.Delta.Text)
	case "thinking_delta":
		d.Out.Thinking(e.Delta.Thinking)
	case "signature_delta":
		if d.Out.OpenThinking() {
			d.Out.Sign(e.Delta.Signature)
		}
	case "input_json_delta":
		if o == nil || o.tool < 0 {
			return wire.Broken(data, fmt.Errorf("arguments for block %d, which is no tool call", e.Index))
		}
		o.grown = o.grown || e.Delta.PartialJSON != ""
		d.Out.ToolArguments(o.tool, e.Delta.PartialJSON)
	}
	return nil
}

func (d *decoder) end(index int) {
	o := d.blocks[index]
	if o == nil || o.tool < 0 {
		return
	}
	if !o.grown && len(o.initial) > 2 && string(o.initial) != "null" {
		d.Out.ToolArguments(o.tool, string(o.initial)) // a server that sends them at once
	}
	d.Out.EndTool(o.tool)
}

// finish notes why the answer ended.
func (d *decoder) finish(reason string, details json.RawMessage) {
	d.Out.Reason(reason)
	switch reason {
	case "end_turn", "stop_sequence", "pause_turn":
		d.stop = llm.StopEnd
	case "tool_use":
		d.stop = llm.StopToolUse
	case "max_tokens", "model_context_window_exceeded":
		d.stop = llm.StopLength
	case "refusal":
		var why struct {
			Explanation string `json:"explanation"`
		}
		_ = json.Unmarshal(details, &why) // most refusals have no details
		d.failed = &llm.Error{Class: llm.ClassOther, Message: "the model refused to answer"}
		if why.Explanation != "" {
			d.failed = &llm.Error{Class: llm.ClassOther, Message: "the model refused to answer: " + why.Explanation}
		}
	default:
		d.failed = &llm.Error{Class: llm.ClassOther, Message: fmt.Sprintf("the answer ended with the unknown reason %q", reason)}
	}
}
