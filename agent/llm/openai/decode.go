package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// maxCalls bounds the tool calls of one response.
const maxCalls = 1000

// A chunk is one event of the stream, with the variants that servers use.
type chunk struct {
	ID      string          `json:"id"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Groq    *struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        delta  `json:"delta"`
	FinishReason string `json:"finish_reason"`
	Usage        *usage `json:"usage"` // Moonshot
}

type delta struct {
	Content          parts       `json:"content"`
	ReasoningContent string      `json:"reasoning_content"` // DeepSeek, vLLM, llama.cpp and others
	Reasoning        string      `json:"reasoning"`         // OpenRouter, Groq, Ollama
	ReasoningDetails []detail    `json:"reasoning_details"` // OpenRouter
	Refusal          string      `json:"refusal"`
	ToolCalls        []callDelta `json:"tool_calls"`
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string  `json:"name"`
		Arguments rawText `json:"arguments"`
	} `json:"function"`
}

// parts is a string, or a list of parts, of which texts and thinking count.
type parts struct{ text, thinking string }

func (p *parts) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		return json.Unmarshal(data, &p.text)
	}
	var list []struct {
		Text     string `json:"text"`
		Thinking parts  `json:"thinking"` // Mistral: a list of its own
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, x := range list {
		p.text += x.Text
		p.thinking += x.Thinking.text
	}
	return nil
}

// rawText is a string, or, from servers that send arguments unquoted, an object.
type rawText string

func (t *rawText) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		*t = rawText(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	CacheHit         int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached           int `json:"cached_tokens"`           // Moonshot
	PromptDetails    struct {
		Cached int `json:"cached_tokens"`
		Write  int `json:"cache_write_tokens"` // OpenRouter
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Cost float64 `json:"cost"` // OpenRouter: what was charged, in dollars
}

// counts gives the usage in the terms of the contract: the API counts cached
// tokens as part of the prompt, and we do not. A server that counts more cached
// tokens than the prompt has does not count them in it.
func (u usage) counts() *llm.Usage {
	cached, write := max(u.PromptDetails.Cached, u.CacheHit, u.Cached, 0), max(u.PromptDetails.Write, 0)
	input := max(0, u.PromptTokens)
	if cached+write <= input {
		input -= cached + write
	}
	return &llm.Usage{
		Input: input, Output: u.CompletionTokens, CacheRead: cached, CacheWrite: write,
		Reasoning: u.CompletionDetails.Reasoning, Total: input + cached + write + u.CompletionTokens,
		Cost: llm.Cost{Total: u.Cost},
	}
}

// a decoder turns the events of one response into those of the contract.
type decoder struct {
	*wire.Answer
	quirks  Quirks
	prefix  string // of the ids of calls that come without one
	details []detail

	calls   []callState // in the order of their start
	byIndex map[int]int // the API's index of a tool call → its place in calls
}

type callState struct {
	block int    // the contract's index
	id    string // as the server gave it
}

func newDecoder(a *wire.Answer, q Quirks) *decoder {
	return &decoder{Answer: a, quirks: q, prefix: fmt.Sprintf("call_%d_", a.Head.Timestamp), byIndex: map[int]int{}}
}

// event takes one event. It returns io.EOF at the end mark.
func (d *decoder) event(e wire.SSEvent) error {
	data := bytes.TrimSpace(e.Data)
	if string(data) == "[DONE]" {
		if d.Stop == "" && d.quirks.NoFinishReason {
			d.Stop = llm.StopEnd
		}
		return io.EOF
	}
	if len(data) == 0 {
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
	d.count(c)
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue // only one answer was asked for
		}
		if err := d.delta(ch.Delta); err != nil {
			return err
		}
		if err := d.finish(ch.FinishReason); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) count(c chunk) {
	all := []*usage{c.Usage}
	if c.Groq != nil {
		all = append(all, c.Groq.Usage)
	}
	for _, ch := range c.Choices {
		all = append(all, ch.Usage)
	}
	for _, u := range all {
		if u != nil {
			d.Usage = u.counts()
		}
	}
}

func (d *decoder) delta(x delta) error {
	thought := x.ReasoningContent
	if thought == "" {
		thought = x.Reasoning // some servers send both, with the same text
	}
	d.Out.Thinking(thought + x.Content.thinking)
	d.addDetails(x.ReasoningDetails)
	if x.Content.text != "" || x.Refusal != "" || len(x.ToolCalls) > 0 {
		d.sign()
	}
	d.Out.Text(x.Content.text)
	d.Out.Text(x.Refusal)
	for _, c := range x.ToolCalls {
		if err := d.call(c); err != nil {
			return err
		}
	}
	return nil
}

// call takes a piece of a tool call.
func (d *decoder) call(c callDelta) error {
	at := d.find(c)
	if at < 0 {
		if len(d.calls) >= maxCalls {
			return &llm.Error{Class: llm.ClassOther, Message: fmt.Sprintf("more than %d tool calls in one response", maxCalls)}
		}
		at = d.begin(c)
	} else {
		d.Out.NameTool(d.calls[at].block, c.ID, c.Function.Name)
		if d.calls[at].id == "" {
			d.calls[at].id = c.ID
		}
	}
	if c.Index != nil {
		d.byIndex[*c.Index] = at
	}
	d.Out.ToolArguments(d.calls[at].block, string(c.Function.Arguments))
	return nil
}

// find gives the place of the call that a piece belongs to, or -1 for a new one.
// The index tells. Servers are known to leave it out, and to give one index to
// several calls; then another id begins another call.
func (d *decoder) find(c callDelta) int {
	if c.Index == nil {
		if c.ID == "" {
			return len(d.calls) - 1
		}
		return slices.IndexFunc(d.calls, func(s callState) bool { return s.id == c.ID })
	}
	at, known := d.byIndex[*c.Index]
	if !known {
		return -1
	}
	if id := d.calls[at].id; c.ID != "" && id != "" && id != c.ID {
		return -1
	}
	return at
}

// begin starts a call. An id that is missing, or taken by another call of the
// response, is replaced: results find their calls by it.
func (d *decoder) begin(c callDelta) int {
	id := c.ID
	taken := slices.ContainsFunc(d.calls, func(s callState) bool { return s.id == c.ID })
	if id == "" || taken {
		id = fmt.Sprintf("%s%d", d.prefix, len(d.calls))
	}
	d.calls = append(d.calls, callState{block: d.Out.Tool(id, c.Function.Name), id: c.ID})
	return len(d.calls) - 1
}

// finish notes why the answer ended. The words are those of the API and of
// servers that have their own.
func (d *decoder) finish(reason string) error {
	if reason != "" {
		d.Out.Reason(reason)
		d.sign()
	}
	switch reason {
	case "":
	case "stop", "end", "eos", "end_turn", "stop_sequence":
		d.Stop = llm.StopEnd
	case "tool_calls", "function_call", "tool_use":
		d.Stop = llm.StopToolUse
	case "length", "max_tokens", "model_length":
		d.Stop = llm.StopLength
	case "content_filter":
		return &llm.Error{Class: llm.ClassOther, Message: "the provider's content filter stopped the answer"}
	case "error", "network_error", "insufficient_system_resource":
		return &llm.Error{Class: llm.ClassRetryable, Message: "the provider stopped the answer: " + reason}
	default:
		return &llm.Error{Class: llm.ClassOther, Message: fmt.Sprintf("the answer ended with the unknown reason %q", reason)}
	}
	return nil
}
