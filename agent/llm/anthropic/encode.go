package anthropic

import (
	"encoding/json"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// defaultMaxTokens bounds a response when neither the request nor the model does:
// the API wants a number.
const defaultMaxTokens = 8192

type body struct {
	Version      string        `json:"anthropic_version,omitempty"`
	Model        string        `json:"model,omitempty"`
	MaxTokens    int           `json:"max_tokens"`
	System       []block       `json:"system,omitempty"`
	Messages     []message     `json:"messages"`
	Tools        []tool        `json:"tools,omitempty"`
	Stream       bool          `json:"stream"`
	Thinking     *thinking     `json:"thinking,omitempty"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
}

type thinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// a block is one of any type; the pointers are fields that may be empty and
// still have to be there.
type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text,omitempty"`
	Thinking     *string         `json:"thinking,omitempty"`
	Signature    *string         `json:"signature,omitempty"`
	Data         string          `json:"data,omitempty"`
	Source       *source         `json:"source,omitempty"`
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	Content      []block         `json:"content,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type cacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	Schema       json.RawMessage `json:"input_schema"`
	Eager        bool            `json:"eager_input_streaming,omitempty"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

// encode gives the body of a request.
func (c *Client) encode(req llm.Request) ([]byte, error) {
	limit := c.maxTokens(req)
	b := body{
		Version: c.o.BodyVersion, Model: req.Model, MaxTokens: limit, Stream: true, Messages: c.messages(req),
	}
	if b.Version != "" {
		b.Model = ""
	}
	t := c.thinking(req, limit)
	b.Thinking, b.OutputConfig = t.thinking, t.config
	if strings.TrimSpace(req.System) != "" {
		b.System = []block{{Type: "text", Text: req.System}}
	}
	for _, t := range req.Tools {
		schema := t.Parameters
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		// Without eager input, what a token limit cuts off of an argument is lost.
		b.Tools = append(b.Tools, tool{Name: t.Name, Description: t.Description, Schema: schema, Eager: !c.quirks.NoEagerInput})
	}
	c.markCache(&b, req.Cache)
	text, err := wire.Marshal(b)
	if err != nil {
		return nil, err
	}
	return wire.Join(text, c.quirks.Extra), nil
}

func (c *Client) maxTokens(req llm.Request) int {
	switch {
	case req.MaxTokens > 0:
		return req.MaxTokens
	case c.o.Model.MaxTokens > 0:
		return c.o.Model.MaxTokens
	}
	return defaultMaxTokens
}

type thought struct {
	thinking *thinking
	config   *outputConfig
}

// thinking says how the level is asked for. The budget leaves room for the answer;
// where there is none, there is no thinking.
func (c *Client) thinking(req llm.Request, maxTokens int) thought {
	level, word := c.o.Model.Level(req.Thinking)
	switch {
	case level == "" || !c.o.Model.Reasoning:
		return thought{}
	case level == llm.LevelOff:
		return thought{thinking: &thinking{Type: "disabled"}}
	case c.quirks.Adaptive:
		if word == string(llm.LevelMinimal) {
			word = string(llm.LevelLow) // the least that there is
		}
		return thought{thinking: &thinking{Type: "adaptive", Display: "summarized"}, config: &outputConfig{Effort: word}}
	}
	budget := llm.Budget(level, maxTokens)
	if budget >= maxTokens {
		return thought{thinking: &thinking{Type: "disabled"}}
	}
	return thought{thinking: &thinking{Type: "enabled", Budget: budget}}
}

// markCache sets the points up to which the prompt is kept: the system prompt,
// the last tool, and the last two messages of the user. The one before the last
// is found again when a turn had more blocks than the API looks back.
func (c *Client) markCache(b *body, retention llm.Retention) {
	if retention == llm.CacheNone {
		return
	}
	mark := &cacheControl{Type: "ephemeral"}
	if retention == llm.CacheLong && !c.quirks.NoLongCache {
		mark.TTL = "1h"
	}
	if len(b.System) > 0 {
		b.System[len(b.System)-1].CacheControl = mark
	}
	if len(b.Tools) > 0 && !c.quirks.NoToolCache {
		b.Tools[len(b.Tools)-1].CacheControl = mark
	}
	left := 2
	for i := len(b.Messages) - 1; i >= 0 && left > 0; i-- {
		m := b.Messages[i]
		if m.Role == "user" && len(m.Content) > 0 {
			m.Content[len(m.Content)-1].CacheControl = mark
			left--
		}
	}
}

func (c *Client) messages(req llm.Request) []message {
	out := []message{}
	for _, s := range wire.Sides(llm.Convert(req.Messages, llm.Target{
		API: API, Provider: c.wire.Endpoint().Provider, Model: req.Model,
		NoImages: !c.o.Model.TakesImages(), Images: c.o.Model.InputLimits.Images, IDs: llm.IDRule{Word: true, Max: 64},
	}), wire.Pieces[block]{User: shown, Model: c.assistant, Result: toolResult}) {
		role := "user"
		if s.Model {
			role = "assistant"
		}
		out = append(out, message{Role: role, Content: s.Pieces})
	}
	return out
}

// shown gives texts and images. The API takes no text without a letter.
func shown(blocks []llm.Block) []block {
	var out []block
	for _, b := range blocks {
		switch {
		case b.Type == llm.BlockText && strings.TrimSpace(b.Text) != "":
			out = append(out, block{Type: "text", Text: b.Text})
		case b.Type == llm.BlockImage:
			out = append(out, block{Type: "image", Source: &source{Type: "base64", MediaType: b.MimeType, Data: b.Data}})
		}
	}
	return out
}

func toolResult(m llm.Message) (block, []block) {
	content := shown(m.Content)
	var images []block
	if m.IsError {
		var texts []block
		for _, b := range content {
			if b.Type == "image" {
				images = append(images, b)
			} else {
				texts = append(texts, b)
			}
		}
		content = texts
	}
	if len(images) > 0 {
		images = append([]block{{Type: "text", Text: "The images of the tool result above:"}}, images...)
	}
	if len(content) == 0 {
		content = []block{{Type: "text", Text: "(no output)"}}
	}
	return block{Type: "tool_result", ToolUseID: m.ToolCallID, Content: content, IsError: m.IsError}, images
}

// assistant gives a response as it is sent back, with its thinking and the
// signatures that prove it.
func (c *Client) assistant(m llm.Message) []block {
	var out []block
	for _, b := range m.Content {
		switch b.Type {
		case llm.BlockText:
			if strings.TrimSpace(b.Text) != "" {
				out = append(out, block{Type: "text", Text: b.Text})
			}
		case llm.BlockThinking:
			switch {
			case b.Redacted:
				out = append(out, block{Type: "redacted_thinking", Data: b.ThinkingSignature})
			case b.ThinkingSignature != "" || c.quirks.EmptySignature:
				out = append(out, block{Type: "thinking", Thinking: &b.Thinking, Signature: &b.ThinkingSignature})
			case strings.TrimSpace(b.Thinking) != "":
				out = append(out, block{Type: "text", Text: b.Thinking})
			}
		case llm.BlockToolCall:
			input := b.Arguments
			if len(input) == 0 {
				input = json.RawMessage("{}")
			}
			out = append(out, block{Type: "tool_use", ID: b.ID, Name: b.Name, Input: input})
		}
	}
	return out
}
