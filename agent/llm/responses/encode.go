package responses

import (
	"cmp"
	"encoding/json"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// leastMaxTokens is the least that the API takes for max_output_tokens.
const leastMaxTokens = 16

type body struct {
	Model          string     `json:"model"`
	Instructions   string     `json:"instructions,omitempty"`
	Input          []any      `json:"input"`
	Tools          []tool     `json:"tools,omitempty"`
	Stream         bool       `json:"stream"`
	Store          bool       `json:"store"`
	MaxTokens      int        `json:"max_output_tokens,omitempty"`
	Reasoning      *reasoning `json:"reasoning,omitempty"`
	Include        []string   `json:"include,omitempty"`
	CacheKey       string     `json:"prompt_cache_key,omitempty"`
	CacheRetention string     `json:"prompt_cache_retention,omitempty"`
}

type reasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type message struct {
	Type    string `json:"type"`
	ID      string `json:"id,omitempty"`
	Role    string `json:"role"`
	Status  string `json:"status,omitempty"`
	Content []part `json:"content"`
	Phase   string `json:"phase,omitempty"`
}

type part struct {
	Type        string  `json:"type"`
	Text        *string `json:"text,omitempty"`
	Annotations *[]any  `json:"annotations,omitempty"`
	Detail      string  `json:"detail,omitempty"`
	ImageURL    string  `json:"image_url,omitempty"`
}

type call struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type output struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"` // string or []part
}

// a textSignature is what a text's signature holds: where the API put it.
type textSignature struct {
	V     int    `json:"v"`
	ID    string `json:"id,omitempty"`
	Phase string `json:"phase,omitempty"`
}

// encode gives the body of a request.
func (c *Client) encode(req llm.Request) ([]byte, error) {
	q := c.quirks
	b := body{Model: cmp.Or(c.o.WireName, req.Model), Instructions: req.System, Input: c.input(req), Stream: true}
	for _, t := range req.Tools {
		schema := t.Parameters
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		b.Tools = append(b.Tools, tool{Type: "function", Name: t.Name, Description: t.Description, Parameters: schema})
	}
	if req.MaxTokens > 0 && !q.NoMaxTokens {
		b.MaxTokens = max(req.MaxTokens, leastMaxTokens)
	}
	if req.Cache != llm.CacheNone && q.CacheKeyMode != "disabled" {
		b.CacheKey = req.SessionID
		if req.Cache == llm.CacheLong && !q.NoLongCache {
			b.CacheRetention = "24h"
		}
	}
	c.think(&b, req.Thinking)
	text, err := wire.Marshal(b)
	if err != nil {
		return nil, err
	}
	return wire.Join(text, c.o.Model.SamplingFor(req.Thinking), q.Extra), nil
}

// think asks for a level. Encrypted reasoning is always asked for: without it, the
// model would begin anew after each tool call.
func (c *Client) think(b *body, want llm.Level) {
	if !c.o.Model.Reasoning {
		return
	}
	b.Include = []string{"reasoning.encrypted_content"}
	level, word := c.o.Model.Level(want)
	r := reasoning{}
	if !c.quirks.NoEffort && level != "" {
		r.Effort = word
		if level == llm.LevelOff && word == "" {
			r.Effort = "none"
		}
	}
	if level != llm.LevelOff && !c.quirks.NoSummary {
		r.Summary = "auto"
	}
	if r != (reasoning{}) {
		b.Reasoning = &r
	}
}

func (c *Client) input(req llm.Request) []any {
	out := []any{}
	for _, m := range llm.Convert(req.Messages, llm.Target{
		API: c.o.API, Provider: c.wire.Endpoint().Provider, Model: req.Model,
		NoImages: !c.o.Model.TakesImages(), Images: c.o.Model.InputLimits.Images, IDs: llm.IDRule{Word: true, Max: 64},
	}) {
		switch m.Role {
		case llm.RoleUser:
			if parts := shown(m.Content); len(parts) > 0 {
				out = append(out, message{Type: "message", Role: "user", Content: parts})
			}
		case llm.RoleAssistant:
			out = append(out, assistant(m)...)
		case llm.RoleTool:
			out = append(out, toolOutput(m))
		}
	}
	return out
}

func shown(blocks []llm.Block) []part {
	var parts []part
	for _, b := range blocks {
		switch {
		case b.Type == llm.BlockText && b.Text != "":
			parts = append(parts, part{Type: "input_text", Text: &b.Text})
		case b.Type == llm.BlockImage:
			parts = append(parts, part{Type: "input_image", Detail: "auto", ImageURL: "data:" + b.MimeType + ";base64," + b.Data})
		}
	}
	return parts
}

func toolOutput(m llm.Message) output {
	o := output{Type: "function_call_output", CallID: m.ToolCallID}
	text, images := m.Text(), false
	for _, b := range m.Content {
		images = images || b.Type == llm.BlockImage
	}
	switch {
	case images:
		o.Output = shown(m.Content)
	case text == "":
		o.Output = "(no output)"
	default:
		o.Output = text
	}
	return o
}

// assistant gives a response as it is sent back. The API rejects reasoning that
// nothing follows.
func assistant(m llm.Message) []any {
	var out, waiting []any
	for _, b := range m.Content {
		switch b.Type {
		case llm.BlockThinking:
			if json.Valid([]byte(b.ThinkingSignature)) && b.ThinkingSignature[0] == '{' {
				waiting = append(waiting, json.RawMessage(b.ThinkingSignature))
			}
			continue
		case llm.BlockText:
			if b.Text == "" {
				continue
			}
			var at textSignature
			_ = json.Unmarshal([]byte(b.TextSignature), &at) // of an old form, or none
			waiting = append(waiting, message{
				Type: "message", ID: at.ID, Role: "assistant", Status: "completed", Phase: at.Phase,
				Content: []part{{Type: "output_text", Text: &b.Text, Annotations: &[]any{}}},
			})
		case llm.BlockToolCall:
			args := string(b.Arguments)
			if args == "" {
				args = "{}"
			}
			waiting = append(waiting, call{Type: "function_call", CallID: b.ID, Name: b.Name, Arguments: args})
		default:
			continue
		}
		out, waiting = append(out, waiting...), nil
	}
	return out
}
