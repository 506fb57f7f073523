package google

import (
	"bytes"
	"encoding/json"
	"fmt"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// maxCalls bounds the tool calls of one response.
const maxCalls = 1000

// A chunk is one event of the stream.
type chunk struct {
	ID         string `json:"responseId"`
	Candidates []struct {
		Index   int `json:"index"`
		Content struct {
			Parts []answerPart `json:"parts"`
		} `json:"content"`
		FinishReason  string `json:"finishReason"`
		FinishMessage string `json:"finishMessage"`
	} `json:"candidates"`
	Feedback *struct {
		BlockReason string `json:"blockReason"`
		Message     string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage *usage          `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

type answerPart struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought"`
	Signature string `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// usage is what has been counted so far: each chunk that has it repeats the sums.
type usage struct {
	Prompt     int `json:"promptTokenCount"`
	Cached     int `json:"cachedContentTokenCount"`
	ToolPrompt int `json:"toolUsePromptTokenCount"`
	Candidates int `json:"candidatesTokenCount"`
	Thoughts   int `json:"thoughtsTokenCount"`
}

// a decoder turns the events of one response into those of the contract.
type decoder struct {
	*wire.Answer
	ids map[string]bool // of the calls so far
}

func newDecoder(a *wire.Answer) *decoder { return &decoder{Answer: a, ids: map[string]bool{}} }

// event takes one event.
func (d *decoder) event(sse wire.SSEvent) error {
	data := bytes.TrimSpace(sse.Data)
	if len(data) == 0 || string(data) == "[DONE]" {
		return nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return wire.Broken(data, err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return d.Failed(c.Error)
	}
	d.Out.Identify(c.ID)
	d.Out.Start()
	if u := c.Usage; u != nil {
		cached := min(max(0, u.Cached), max(0, u.Prompt))
		input, output := max(0, u.Prompt)-cached+u.ToolPrompt, u.Candidates+u.Thoughts
		d.Usage = &llm.Usage{Input: input, Output: output, CacheRead: cached, Reasoning: u.Thoughts, Total: input + cached + output}
	}
	if f := c.Feedback; f != nil && f.BlockReason != "" {
		return blocked("the prompt", f.BlockReason, f.Message)
	}
	for _, candidate := range c.Candidates {
		if candidate.Index != 0 {
			continue // only one answer was asked for
		}
		for _, p := range candidate.Content.Parts {
			if err := d.part(p); err != nil {
				return err
			}
		}
		if err := d.finish(candidate.FinishReason, candidate.FinishMessage); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) part(p answerPart) error {
	if p.Call != nil {
		return d.call(p)
	}
	if p.Thought {
		d.Out.Thinking(p.Text)
	} else {
		d.Out.Text(p.Text)
	}
	if p.Signature == "" {
		return nil
	}
	if !d.Out.OpenThinking() && !d.Out.OpenText() {
		d.Out.BeginText() // a signature on a part without text still has to go back
	}
	d.Out.SignOver(p.Signature)
	return nil
}

// call takes a tool call, which comes whole. An id that is missing or taken is
// replaced: results find their calls by it.
func (d *decoder) call(p answerPart) error {
	id := p.Call.ID
	if id == "" || d.ids[id] {
		id = fmt.Sprintf("call_%d_%d", d.Head.Timestamp, len(d.ids))
	}
	d.ids[id] = true
	if len(d.ids) > maxCalls {
		return &llm.Error{Class: llm.ClassOther, Message: fmt.Sprintf("more than %d tool calls in one response", maxCalls)}
	}
	i := d.Out.Tool(id, p.Call.Name)
	d.Out.SignTool(i, p.Signature)
	if string(p.Call.Args) != "null" {
		d.Out.ToolArguments(i, string(p.Call.Args))
	}
	d.Out.EndTool(i)
	return nil
}

// finish notes why the answer ended.
func (d *decoder) finish(reason, message string) error {
	if reason == "" {
		return nil
	}
	d.Out.Reason(reason)
	switch reason {
	case "STOP":
		d.Stop = llm.StopEnd
	case "MAX_TOKENS", "CONTINUATION":
		d.Stop = llm.StopLength
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		return &llm.Error{Class: llm.ClassRetryable, Message: "the model made a tool call that cannot be read: " + reason + " " + message}
	default:
		return blocked("the answer", reason, message)
	}
	return nil
}

func blocked(what, reason, message string) error {
	text := what + " was stopped by the provider: " + reason
	if message != "" {
		text += ": " + message
	}
	return &llm.Error{Class: llm.ClassOther, Message: text}
}
