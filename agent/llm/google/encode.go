package google

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// unsigned stands for the signature of a call that another model made: without
// one, Gemini 3 rejects the conversation.
const unsigned = "skip_thought_signature_validator"

type body struct {
	System   *content  `json:"systemInstruction,omitempty"`
	Contents []content `json:"contents"`
	Tools    []tools   `json:"tools,omitempty"`
	Config   *config   `json:"generationConfig,omitempty"`
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

type part struct {
	Text             *string           `json:"text,omitempty"`
	Thought          bool              `json:"thought,omitempty"`
	Data             *data             `json:"inlineData,omitempty"`
	Call             *functionCall     `json:"functionCall,omitempty"`
	Response         *functionResponse `json:"functionResponse,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`
}

type data struct {
	MimeType string `json:"mimeType"`
	Data     string `json:"data"`
}

type functionCall struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type functionResponse struct {
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

type tools struct {
	Functions []function `json:"functionDeclarations"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type config struct {
	MaxTokens int             `json:"maxOutputTokens,omitempty"`
	Thinking  *thinkingConfig `json:"thinkingConfig,omitempty"`
}

type thinkingConfig struct {
	Include bool   `json:"includeThoughts,omitempty"`
	Level   string `json:"thinkingLevel,omitempty"`
	Budget  *int   `json:"thinkingBudget,omitempty"`
}

// encode gives the body of a request.
func (c *Client) encode(req llm.Request) ([]byte, error) {
	b := body{Contents: c.contents(req)}
	if req.System != "" {
		b.System = &content{Parts: []part{{Text: &req.System}}}
	}
	if len(req.Tools) > 0 {
		t := tools{}
		for _, f := range req.Tools {
			t.Functions = append(t.Functions, function{Name: f.Name, Description: f.Description, Schema: f.Parameters})
		}
		b.Tools = []tools{t}
	}
	if cfg := (config{MaxTokens: req.MaxTokens, Thinking: c.thinking(req.Thinking)}); cfg != (config{}) {
		b.Config = &cfg
	}
	text, err := wire.Marshal(b)
	if err != nil {
		return nil, err
	}
	return wire.Join(text, c.quirks.Extra), nil
}

// thinking says how the level is asked for.
func (c *Client) thinking(want llm.Level) *thinkingConfig {
	m := c.o.Model
	level, word := m.Level(want)
	switch {
	case !m.Reasoning:
		return nil
	case level == "":
		return &thinkingConfig{Include: true}
	case level == llm.LevelOff:
		return &thinkingConfig{Budget: new(int)}
	case c.quirks.Levels:
		return &thinkingConfig{Include: true, Level: strings.ToUpper(word)}
	}
	budget := llm.Budget(level, m.MaxTokens)
	return &thinkingConfig{Include: true, Budget: &budget}
}

func (c *Client) contents(req llm.Request) []content {
	out := []content{}
	for _, s := range wire.Sides(llm.Convert(req.Messages, llm.Target{
		API: c.o.API, Provider: c.wire.Endpoint().Provider, Model: req.Model,
		NoImages: !c.o.Model.TakesImages(), Images: c.o.Model.InputLimits.Images,
	}), wire.Pieces[part]{User: shown, Model: c.assistant, Result: response}) {
		role := "user"
		if s.Model {
			role = "model"
		}
		out = append(out, content{Role: role, Parts: s.Pieces})
	}
	return out
}

// response answers a call; its pictures cannot be in it.
func response(m llm.Message) (part, []part) {
	var late []part
	for _, p := range shown(m.Content) {
		if p.Data != nil {
			late = append(late, p)
		}
	}
	field := "output"
	if m.IsError {
		field = "error"
	}
	return part{Response: &functionResponse{Name: m.ToolName, Response: map[string]string{field: m.Text()}}}, late
}

func shown(blocks []llm.Block) []part {
	var parts []part
	for _, b := range blocks {
		switch {
		case b.Type == llm.BlockText && b.Text != "":
			parts = append(parts, part{Text: &b.Text})
		case b.Type == llm.BlockImage:
			parts = append(parts, part{Data: &data{MimeType: b.MimeType, Data: b.Data}})
		}
	}
	return parts
}

// assistant gives a response as it is sent back, with the signatures of its
// thinking, which may sit on any part.
func (c *Client) assistant(m llm.Message) []part {
	var parts []part
	signed := false
	for _, b := range m.Content {
		switch b.Type {
		case llm.BlockText:
			if b.Text != "" || b.TextSignature != "" {
				parts = append(parts, part{Text: &b.Text, ThoughtSignature: signature(b.TextSignature)})
			}
		case llm.BlockThinking:
			if b.Thinking != "" || b.ThinkingSignature != "" {
				parts = append(parts, part{Text: &b.Thinking, Thought: true, ThoughtSignature: signature(b.ThinkingSignature)})
			}
		case llm.BlockToolCall:
			args := b.Arguments
			if len(args) == 0 {
				args = json.RawMessage("{}")
			}
			p := part{Call: &functionCall{Name: b.Name, Args: args}, ThoughtSignature: signature(b.ThoughtSignature)}
			// Of parallel calls only the first has to be signed.
			if p.ThoughtSignature == "" && !signed && c.quirks.Levels {
				p.ThoughtSignature = unsigned
			}
			signed = true
			parts = append(parts, p)
		}
	}
	return parts
}

// signature leaves out what the API would reject.
func signature(s string) string {
	if _, err := base64.StdEncoding.DecodeString(s); err != nil {
		return ""
	}
	return s
}
