package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

type body struct {
	Model          string    `json:"model"`
	Messages       []message `json:"messages"`
	Tools          *[]tool   `json:"tools,omitempty"`
	Stream         bool      `json:"stream"`
	StreamOptions  *options  `json:"stream_options,omitempty"`
	Store          *bool     `json:"store,omitempty"`
	ToolStream     bool      `json:"tool_stream,omitempty"`
	CacheKey       string    `json:"prompt_cache_key,omitempty"`
	CacheRetention string    `json:"prompt_cache_retention,omitempty"`

	Provider json.RawMessage `json:"provider,omitempty"` // OpenRouter's routing
}

type options struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role       string `json:"role"`
	Content    any    `json:"content"` // string, []part or null
	Name       string `json:"name,omitempty"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`

	Reasoning        *string         `json:"reasoning,omitempty"`
	ReasoningContent *string         `json:"reasoning_content,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
}

type part struct {
	Type         string        `json:"type"`
	Text         string        `json:"text,omitempty"`
	ImageURL     *imageURL     `json:"image_url,omitempty"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type tool struct {
	Type         string        `json:"type"`
	Function     toolSpec      `json:"function"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

type toolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// encode gives the body of a request.
func (c *Client) encode(req llm.Request) ([]byte, error) {
	q := c.quirks
	b := body{Model: cmp.Or(c.wire.Endpoint().WireName, req.Model), Messages: c.messages(req), Stream: true, ToolStream: q.ToolStream && len(req.Tools) > 0, Provider: q.Routing}
	if !q.NoUsage && !q.NoOptions {
		b.StreamOptions = &options{IncludeUsage: true}
	}
	if q.Store {
		b.Store = new(bool)
	}
	if q.CacheKey && req.Cache != llm.CacheNone {
		b.CacheKey = req.SessionID
		if req.Cache == llm.CacheLong && !q.NoLongCache {
			b.CacheRetention = "24h"
		}
	}
	var tools []tool
	for _, t := range req.Tools {
		tools = append(tools, tool{Type: "function", Function: toolSpec(t)})
	}
	if len(tools) > 0 || q.ToolsNeeded && hasCalls(req.Messages) {
		if tools == nil {
			tools = []tool{}
		}
		b.Tools = &tools
	}
	if q.CacheControl == "anthropic" && req.Cache != llm.CacheNone {
		markCache(b.Messages, tools, req.Cache)
	}
	text, err := wire.Marshal(b)
	if err != nil {
		return nil, err
	}
	more := append(c.thinking(req), c.model.SamplingFor(req.Thinking))
	if req.MaxTokens > 0 {
		more = append(more, json.RawMessage(fmt.Sprintf(`{%q:%d}`, q.MaxTokensField, req.MaxTokens)))
	}
	return wire.Join(text, append(more, q.Extra)...), nil
}

func hasCalls(messages []llm.Message) bool {
	for _, m := range messages {
		if len(m.ToolCalls()) > 0 {
			return true
		}
	}
	return false
}

// markCache sets the points up to which the prompt is kept, for gateways that
// hand them on to Anthropic: the system prompt, the tools, the last message.
func markCache(messages []message, tools []tool, retention llm.Retention) {
	mark := &cacheControl{Type: "ephemeral"}
	if retention == llm.CacheLong {
		mark.TTL = "1h"
	}
	if len(tools) > 0 {
		tools[len(tools)-1].CacheControl = mark
	}
	marked := func(m *message) bool {
		if text, ok := m.Content.(string); ok && text != "" {
			m.Content = []part{{Type: "text", Text: text, CacheControl: mark}}
			return true
		}
		parts, ok := m.Content.([]part)
		for i := len(parts) - 1; ok && i >= 0; i-- {
			if parts[i].Type == "text" {
				parts[i].CacheControl = mark
				return true
			}
		}
		return false
	}
	if len(messages) > 0 && (messages[0].Role == "system" || messages[0].Role == "developer") {
		marked(&messages[0])
	}
	for i := len(messages) - 1; i > 0; i-- {
		if (messages[i].Role == "user" || messages[i].Role == "assistant") && marked(&messages[i]) {
			return
		}
	}
}

func (c *Client) messages(req llm.Request) []message {
	e, q := c.wire.Endpoint(), c.quirks
	from := llm.Convert(req.Messages, llm.Target{
		API: API, Provider: e.Provider, Model: req.Model, NoImages: !c.model.TakesImages(), Images: c.model.InputLimits.Images,
		IDs: llm.IDRule{Word: q.IDs.Word, Alnum: q.IDs.Alnum, Max: q.IDs.Max, Exact: q.IDs.Exact},
	})
	out := make([]message, 0, len(from)+1)
	if req.System != "" {
		role := "system"
		if q.DeveloperRole && c.model.Reasoning {
			role = "developer"
		}
		out = append(out, message{Role: role, Content: req.System})
	}
	var images []part // of tool results, which may hold text only here
	for _, m := range from {
		if m.Role != llm.RoleTool {
			out, images = withImages(out, images), nil
		}
		switch m.Role {
		case llm.RoleUser:
			if q.AnswerToolResults && len(out) > 0 && out[len(out)-1].Role == "tool" {
				out = append(out, message{Role: "assistant", Content: "I have the results of the tools."})
			}
			out = append(out, message{Role: "user", Content: content(m.Content)})
		case llm.RoleAssistant:
			if a, ok := c.assistant(m); ok {
				out = append(out, a)
			}
		case llm.RoleTool:
			var more []part
			out, more = c.toolResult(out, m)
			images = append(images, more...)
		}
	}
	return withImages(out, images)
}

// toolResult adds a result. It gives back the images that cannot stand in it.
func (c *Client) toolResult(out []message, m llm.Message) ([]message, []part) {
	text := m.Text()
	found := imageParts(m.Content)
	r := message{Role: "tool", ToolCallID: m.ToolCallID}
	if c.quirks.ToolResultName {
		r.Name = m.ToolName
	}
	switch {
	case len(found) > 0 && c.quirks.TextImages:
		r.Content, found = content(m.Content), nil
	case text != "":
		r.Content = text
	case len(found) > 0:
		r.Content = "(see the attached image)"
	default:
		r.Content = "(no output)"
	}
	return append(out, r), found
}

// withImages adds the images of tool results as a message of the user.
func withImages(out []message, images []part) []message {
	if len(images) == 0 {
		return out
	}
	parts := append([]part{{Type: "text", Text: "The images of the tool results above:"}}, images...)
	return append(out, message{Role: "user", Content: parts})
}

// content gives plain text as a string, which every server takes.
func content(blocks []llm.Block) any {
	images := imageParts(blocks)
	text := llm.Message{Content: blocks}.Text()
	if len(images) == 0 {
		return text
	}
	var parts []part
	for _, b := range blocks {
		switch {
		case b.Type == llm.BlockText && b.Text != "":
			parts = append(parts, part{Type: "text", Text: b.Text})
		case b.Type == llm.BlockImage:
			parts = append(parts, imagePart(b))
		}
	}
	return parts
}

func imageParts(blocks []llm.Block) []part {
	var parts []part
	for _, b := range blocks {
		if b.Type == llm.BlockImage {
			parts = append(parts, imagePart(b))
		}
	}
	return parts
}

func imagePart(b llm.Block) part {
	return part{Type: "image_url", ImageURL: &imageURL{URL: "data:" + b.MimeType + ";base64," + b.Data}}
}

// assistant gives a response as it is sent back. Its thinking goes with it only
// as the server asks for it: the API has no field of its own for it. One with
// nothing else is left out.
func (c *Client) assistant(m llm.Message) (message, bool) {
	out := message{Role: "assistant"}
	text, thought, details := m.Text(), "", []json.RawMessage{}
	for _, b := range m.Content {
		if b.Type == llm.BlockThinking {
			thought += b.Thinking
			var list []json.RawMessage
			if json.Unmarshal([]byte(b.ThinkingSignature), &list) == nil {
				details = append(details, list...)
			}
		}
	}
	if c.quirks.ThinkingAsText && thought != "" {
		text = strings.TrimSpace("<thinking>\n" + thought + "\n</thinking>\n\n" + text)
	}
	if text != "" || c.quirks.ContentNeeded {
		out.Content = text
	}
	for _, b := range m.ToolCalls() {
		args := string(b.Arguments)
		if args == "" {
			args = "{}"
		}
		out.ToolCalls = append(out.ToolCalls, call{ID: b.ID, Type: "function", Function: function{Name: b.Name, Arguments: args}})
	}
	if text == "" && len(out.ToolCalls) == 0 {
		return out, false
	}
	switch {
	case len(details) > 0:
		out.ReasoningDetails, _ = wire.Marshal(details) // what was valid JSON still is
	case c.quirks.ReasoningNeeded || c.quirks.ReplayField == "reasoning_content" && thought != "":
		out.ReasoningContent = &thought
	case c.quirks.ReplayField == "reasoning" && thought != "":
		out.Reasoning = &thought
	}
	return out, true
}
