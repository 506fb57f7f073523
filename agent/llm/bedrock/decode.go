package bedrock

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// exception begins the name of an event that is a failure.
const exception = "exception:"

// events reads Amazon's event stream encoding: frames with headers and checksums.
type events struct {
	src     *bufio.Reader
	decoder *eventstream.Decoder
	payload []byte
}

func newEvents(r io.Reader) wire.Events {
	return &events{src: bufio.NewReader(r), decoder: eventstream.NewDecoder()}
}

// Next implements wire.Events. The end is clean only between two frames.
func (e *events) Next() (wire.SSEvent, error) {
	if _, err := e.src.Peek(1); err != nil {
		return wire.SSEvent{}, err
	}
	m, err := e.decoder.Decode(e.src, e.payload[:0])
	switch {
	case errors.Is(err, io.EOF):
		return wire.SSEvent{}, io.ErrUnexpectedEOF
	case err != nil:
		if broken(err) {
			err = &llm.Error{Class: llm.ClassRetryable, Message: "the stream is broken: " + err.Error()}
		}
		return wire.SSEvent{}, err
	}
	e.payload = m.Payload
	header := func(name string) string {
		if v := m.Headers.Get(name); v != nil {
			return v.String()
		}
		return ""
	}
	switch header(":message-type") {
	case "exception":
		return wire.SSEvent{Name: exception + header(":exception-type"), Data: m.Payload}, nil
	case "error":
		text, err := json.Marshal(map[string]string{"message": header(":error-message")})
		return wire.SSEvent{Name: exception + header(":error-code"), Data: text}, err
	}
	return wire.SSEvent{Name: header(":event-type"), Data: m.Payload}, nil
}

// broken tells an error of the encoding from one of the connection.
func broken(err error) bool {
	var length eventstream.LengthError
	var sum eventstream.ChecksumError
	return errors.As(err, &length) || errors.As(err, &sum)
}

// An event is one of the stream, of any type.
type event struct {
	Index int `json:"contentBlockIndex"`
	Start *struct {
		ToolUse *struct {
			ID   string `json:"toolUseId"`
			Name string `json:"name"`
		} `json:"toolUse"`
	} `json:"start"`
	Delta *struct {
		Text    string `json:"text"`
		ToolUse *struct {
			Input string `json:"input"`
		} `json:"toolUse"`
		Reasoning *struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
			Redacted  []byte `json:"redactedContent"`
		} `json:"reasoningContent"`
	} `json:"delta"`
	StopReason string `json:"stopReason"`
	Usage      *struct {
		Input      int `json:"inputTokens"`
		Output     int `json:"outputTokens"`
		Total      int `json:"totalTokens"`
		CacheRead  int `json:"cacheReadInputTokens"`
		CacheWrite int `json:"cacheWriteInputTokens"`
		Details    []struct {
			TTL   string `json:"ttl"`
			Input int    `json:"inputTokens"`
		} `json:"cacheDetails"`
	} `json:"usage"`
}

// a decoder turns the events of one response into those of the contract.
type decoder struct {
	*wire.Answer
	tools map[int]int // the contract's index of a call, by the API's
	block int         // the API's index of the open text or thinking, or -1

	redacted []byte // of the open block: it comes in pieces
}

func newDecoder(a *wire.Answer) *decoder {
	return &decoder{Answer: a, tools: map[int]int{}, block: -1}
}

// event takes one event. It returns io.EOF at the counts, which come last.
func (d *decoder) event(sse wire.SSEvent) error {
	if len(sse.Name) > len(exception) && sse.Name[:len(exception)] == exception {
		return d.exception(sse.Name[len(exception):], sse.Data)
	}
	var e event
	if err := json.Unmarshal(sse.Data, &e); err != nil {
		return wire.Broken(sse.Data, err)
	}
	switch sse.Name {
	case "messageStart":
		d.Out.Start()
	case "contentBlockStart":
		if e.Start != nil && e.Start.ToolUse != nil {
			id := e.Start.ToolUse.ID
			if id == "" {
				id = fmt.Sprintf("call_%d_%d", d.Head.Timestamp, e.Index)
			}
			d.tools[e.Index] = d.Out.Tool(id, e.Start.ToolUse.Name)
		}
	case "contentBlockDelta":
		return d.delta(sse.Data, e)
	case "contentBlockStop":
		d.flush()
		if i, ok := d.tools[e.Index]; ok {
			d.Out.EndTool(i)
		}
	case "messageStop":
		return d.finish(e.StopReason)
	case "metadata":
		d.count(e)
		if d.Stop != "" {
			return io.EOF
		}
	}
	return nil // what is new
}

func (d *decoder) delta(data []byte, e event) error {
	if e.Delta == nil {
		return nil
	}
	if e.Delta.Reasoning != nil && len(e.Delta.Reasoning.Redacted) > 0 {
		d.redacted = append(d.redacted, e.Delta.Reasoning.Redacted...)
		return nil
	}
	d.flush()
	if use := e.Delta.ToolUse; use != nil {
		i, ok := d.tools[e.Index]
		if !ok {
			return wire.Broken(data, fmt.Errorf("arguments for block %d, which is no tool call", e.Index))
		}
		d.Out.ToolArguments(i, use.Input)
		return nil
	}
	if r := e.Delta.Reasoning; r != nil {
		if !d.Out.OpenThinking() || e.Index != d.block {
			d.Out.BeginThinking()
		}
		d.block = e.Index
		d.Out.Thinking(r.Text)
		d.Out.Sign(r.Signature)
		return nil
	}
	if e.Delta.Text != "" {
		if !d.Out.OpenText() || e.Index != d.block {
			d.Out.BeginText() // texts have no start of their own
		}
		d.block = e.Index
		d.Out.Text(e.Delta.Text)
	}
	return nil
}

// flush ends thinking that only the provider can read.
func (d *decoder) flush() {
	if len(d.redacted) > 0 {
		d.Out.Redacted(base64.StdEncoding.EncodeToString(d.redacted))
		d.redacted = nil
	}
}

// finish notes why the answer ended.
func (d *decoder) finish(reason string) error {
	d.flush()
	d.Out.Reason(reason)
	switch reason {
	case "end_turn", "stop_sequence":
		d.Stop = llm.StopEnd
	case "tool_use":
		d.Stop = llm.StopToolUse
	case "max_tokens", "model_context_window_exceeded":
		d.Stop = llm.StopLength
	case "malformed_model_output", "malformed_tool_use":
		return &llm.Error{Class: llm.ClassRetryable, Message: "the model's answer cannot be read: " + reason}
	case "guardrail_intervened", "content_filtered":
		return &llm.Error{Class: llm.ClassOther, Message: "the answer was stopped by the provider: " + reason}
	default:
		return &llm.Error{Class: llm.ClassOther, Message: fmt.Sprintf("the answer ended with the unknown reason %q", reason)}
	}
	return nil
}

func (d *decoder) count(e event) {
	u := e.Usage
	if u == nil {
		return
	}
	d.Usage = &llm.Usage{
		Input: max(0, u.Input), Output: max(0, u.Output), CacheRead: max(0, u.CacheRead), CacheWrite: max(0, u.CacheWrite),
	}
	for _, c := range u.Details {
		if c.TTL == "1h" {
			d.Usage.CacheWrite1h += max(0, c.Input)
		}
	}
	d.Usage.Total = d.Usage.Input + d.Usage.Output + d.Usage.CacheRead + d.Usage.CacheWrite
}

// exception is a failure within the stream. Its name tells more than its text.
func (d *decoder) exception(name string, data []byte) error {
	var said struct {
		Message string `json:"message"`
		Other   string `json:"Message"`
	}
	_ = json.Unmarshal(data, &said) // the name is enough
	object, err := json.Marshal(map[string]string{"message": said.Message + said.Other, "type": name})
	if err != nil {
		return wire.Broken(data, err)
	}
	return d.Failed(object)
}
