package bedrock

import (
	"encoding/json"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

type body struct {
	System     []block         `json:"system,omitempty"`
	Messages   []message       `json:"messages"`
	Tools      *toolConfig     `json:"toolConfig,omitempty"`
	Inference  *inference      `json:"inferenceConfig,omitempty"`
	Additional json.RawMessage `json:"additionalModelRequestFields,omitempty"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// a block has exactly one field.
type block struct {
	Text       string      `json:"text,omitempty"`
	Image      *image      `json:"image,omitempty"`
	ToolUse    *toolUse    `json:"toolUse,omitempty"`
	ToolResult *toolResult `json:"toolResult,omitempty"`
	Reasoning  *reasoning  `json:"reasoningContent,omitempty"`
	CachePoint *cachePoint `json:"cachePoint,omitempty"`
}

type image struct {
	Format string `json:"format"`
	Source struct {
		Bytes string `json:"bytes"`
	} `json:"source"`
}

type toolUse struct {
	ID    string          `json:"toolUseId"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResult struct {
	ID      string  `json:"toolUseId"`
	Content []block `json:"content"`
	Status  string  `json:"status,omitempty"`
}

type reasoning struct {
	Text     *reasoningText `json:"reasoningText,omitempty"`
	Redacted string         `json:"redactedContent,omitempty"`
}

type reasoningText struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"`
}

type cachePoint struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

type toolConfig struct {
	Tools []tool `json:"tools"`
}

type tool struct {
	Spec       *toolSpec   `json:"toolSpec,omitempty"`
	CachePoint *cachePoint `json:"cachePoint,omitempty"`
}

type toolSpec struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Schema      struct {
		JSON json.RawMessage `json:"json"`
	} `json:"inputSchema"`
}

type inference struct {
	MaxTokens int `json:"maxTokens,omitempty"`
}

// encode gives the body of a request.
func (c *Client) encode(req llm.Request) ([]byte, error) {
	b := body{Messages: c.messages(req), Additional: c.thinking(req)}
	if strings.TrimSpace(req.System) != "" {
		b.System = []block{{Text: req.System}}
	}
	var tools []tool
	for _, t := range named(req) {
		spec := &toolSpec{Name: t.Name, Description: t.Description}
		if spec.Schema.JSON = t.Parameters; len(t.Parameters) == 0 {
			spec.Schema.JSON = json.RawMessage(`{"type":"object"}`)
		}
		tools = append(tools, tool{Spec: spec})
	}
	if limit := c.maxTokens(req); limit > 0 {
		b.Inference = &inference{MaxTokens: limit}
	}
	if mark := c.mark(req.Cache); mark != nil {
		if len(b.System) > 0 {
			b.System = append(b.System, block{CachePoint: mark})
		}
		if len(tools) > 0 {
			tools = append(tools, tool{CachePoint: mark})
		}
		if n := len(b.Messages); n > 0 && b.Messages[n-1].Role == "user" {
			b.Messages[n-1].Content = append(b.Messages[n-1].Content, block{CachePoint: mark})
		}
	}
	if len(tools) > 0 {
		b.Tools = &toolConfig{Tools: tools}
	}
	text, err := wire.Marshal(b)
	if err != nil {
		return nil, err
	}
	return wire.Join(text, c.quirks.Extra), nil
}

func (c *Client) maxTokens(req llm.Request) int {
	if req.MaxTokens > 0 {
		return req.MaxTokens
	}
	return c.o.Model.MaxTokens
}

func (c *Client) mark(retention llm.Retention) *cachePoint {
	switch {
	case retention == llm.CacheNone || !c.quirks.Cache:
		return nil
	case retention == llm.CacheLong && c.quirks.LongCache:
		return &cachePoint{Type: "default", TTL: "1h"}
	}
	return &cachePoint{Type: "default"}
}

// named gives the tools. The API rejects a conversation that has calls of tools
// that are not named, so those that are no longer offered are, without a word.
func named(req llm.Request) []llm.Tool {
	tools, have := append([]llm.Tool{}, req.Tools...), map[string]bool{}
	for _, t := range tools {
		have[t.Name] = true
	}
	if len(tools) > 0 {
		return tools
	}
	for _, m := range req.Messages {
		for _, call := range m.ToolCalls() {
			if !have[call.Name] {
				have[call.Name] = true
				tools = append(tools, llm.Tool{Name: call.Name, Description: "No longer there."})
			}
		}
	}
	return tools
}

// thinking gives the model's own fields that ask for a level.
func (c *Client) thinking(req llm.Request) json.RawMessage {
	m := c.o.Model
	level, word := m.Level(req.Thinking)
	if !m.Reasoning || level == "" || level == llm.LevelOff && word == "" {
		return nil // not asked: these models think only when they are
	}
	fields := map[string]any{}
	least := func(word string) string {
		if word == string(llm.LevelMinimal) {
			return string(llm.LevelLow)
		}
		return word
	}
	switch c.quirks.Thinking {
	case "adaptive":
		thinking := map[string]any{"type": "adaptive"}
		if !strings.HasPrefix(c.o.Region, "us-gov-") {
			thinking["display"] = "summarized"
		}
		fields["thinking"], fields["output_config"] = thinking, map[string]any{"effort": least(word)}
	case "budget":
		limit := c.maxTokens(req)
		budget := llm.Budget(level, limit)
		if limit > 0 && budget >= limit {
			return nil
		}
		fields["thinking"] = map[string]any{"type": "enabled", "budget_tokens": budget}
		if len(req.Tools) > 0 {
			fields["anthropic_beta"] = []string{"interleaved-thinking-2025-05-14"}
		}
	case "effort":
		fields["reasoning_effort"] = capped(least(word))
	case "nested-effort":
		fields["reasoning"] = map[string]any{"effort": least(word)}
	case "nova":
		fields["reasoningConfig"] = map[string]any{"type": "enabled", "maxReasoningEffort": capped(least(word))}
	default:
		return nil
	}
	out, err := wire.Marshal(fields)
	if err != nil {
		return nil // texts and numbers can always be written
	}
	return out
}

// capped is for models whose highest effort is high.
func capped(word string) string {
	if word == string(llm.LevelXHigh) || word == string(llm.LevelMax) {
		return string(llm.LevelHigh)
	}
	return word
}

func (c *Client) messages(req llm.Request) []message {
	out := []message{}
	for _, s := range wire.Sides(llm.Convert(req.Messages, llm.Target{
		API: API, Provider: c.wire.Endpoint().Provider, Model: req.Model,
		NoImages: !c.o.Model.TakesImages(), Images: c.o.Model.InputLimits.Images, IDs: llm.IDRule{Word: true, Max: 64},
	}), wire.Pieces[block]{User: shown, Model: c.assistant, Result: resultOf}) {
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
			out = append(out, block{Text: b.Text})
		case b.Type == llm.BlockImage:
			img := &image{Format: strings.Replace(strings.TrimPrefix(b.MimeType, "image/"), "jpg", "jpeg", 1)}
			img.Source.Bytes = b.Data
			out = append(out, block{Image: img})
		}
	}
	return out
}

func resultOf(m llm.Message) (block, []block) {
	r := &toolResult{ID: m.ToolCallID}
	var images []block
	for _, b := range shown(m.Content) {
		if m.IsError && b.Image != nil {
			images = append(images, b)
			continue
		}
		r.Content = append(r.Content, b)
	}
	if len(images) > 0 {
		images = append([]block{{Text: "The images of the tool result above:"}}, images...)
	}
	if len(r.Content) == 0 {
		r.Content = []block{{Text: "(no output)"}}
	}
	if m.IsError {
		r.Status = "error"
	}
	return block{ToolResult: r}, images
}

// assistant gives a response as it is sent back, with its thinking and the
// signatures that prove it, where the model takes them.
func (c *Client) assistant(m llm.Message) []block {
	var out []block
	for _, b := range m.Content {
		switch b.Type {
		case llm.BlockText:
			if strings.TrimSpace(b.Text) != "" {
				out = append(out, block{Text: b.Text})
			}
		case llm.BlockThinking:
			switch {
			case !c.quirks.Signed && strings.TrimSpace(b.Thinking) != "":
				out = append(out, block{Reasoning: &reasoning{Text: &reasoningText{Text: b.Thinking}}})
			case b.Redacted:
				out = append(out, block{Reasoning: &reasoning{Redacted: b.ThinkingSignature}})
			case b.ThinkingSignature != "":
				out = append(out, block{Reasoning: &reasoning{Text: &reasoningText{Text: b.Thinking, Signature: b.ThinkingSignature}}})
			case strings.TrimSpace(b.Thinking) != "":
				out = append(out, block{Text: b.Thinking})
			}
		case llm.BlockToolCall:
			input := b.Arguments
			if len(input) == 0 {
				input = json.RawMessage("{}")
			}
			out = append(out, block{ToolUse: &toolUse{ID: b.ID, Name: b.Name, Input: input}})
		}
	}
	return out
}
