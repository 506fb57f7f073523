package openai

import (
	"bytes"
	"encoding/json"

	"muntin/agent/llm"
)

type body struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Tools         []tool    `json:"tools,omitempty"`
	Stream        bool      `json:"stream"`
	StreamOptions options   `json:"stream_options"`
}

type options struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role       string `json:"role"`
	Content    any    `json:"content"` // string, []part or null
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

type part struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
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
	Type     string   `json:"type"`
	Function toolSpec `json:"function"`
}

type toolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// encode gives the body of a request.
func encode(req llm.Request, maxTokensField string) ([]byte, error) {
	b := body{Model: req.Model, Messages: messages(req), Stream: true, StreamOptions: options{IncludeUsage: true}}
	for _, t := range req.Tools {
		b.Tools = append(b.Tools, tool{Type: "function", Function: toolSpec(t)})
	}
	text, err := marshal(b)
	if err != nil || req.MaxTokens <= 0 {
		return text, err
	}
	limit, err := marshal(map[string]int{maxTokensField: req.MaxTokens})
	if err != nil {
		return nil, err
	}
	// Both are objects with at least one field: join them.
	return append(append(text[:len(text)-1], ','), limit[1:]...), nil
}

// marshal leaves <, > and & alone: code is full of them.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

func messages(req llm.Request) []message {
	out := make([]message, 0, len(req.Messages)+1)
	if req.System != "" {
		out = append(out, message{Role: "system", Content: req.System})
	}
	var images []part // of tool results, which may hold text only here
	for _, m := range req.Messages {
		if m.Role != llm.RoleTool {
			out, images = withImages(out, images), nil
		}
		switch m.Role {
		case llm.RoleUser:
			out = append(out, message{Role: "user", Content: content(m.Content)})
		case llm.RoleAssistant:
			if a, ok := assistant(m); ok {
				out = append(out, a)
			}
		case llm.RoleTool:
			text := m.Text()
			found := imageParts(m.Content)
			if text == "" && len(found) > 0 {
				text = "(see the attached image)"
			} else if text == "" {
				text = "(no output)"
			}
			out = append(out, message{Role: "tool", ToolCallID: m.ToolCallID, Content: text})
			images = append(images, found...)
		}
	}
	return withImages(out, images)
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

// assistant gives a response as it is sent back. Thinking is not sent: the API
// has no field for it. One with nothing else is left out.
func assistant(m llm.Message) (message, bool) {
	out := message{Role: "assistant"}
	if text := m.Text(); text != "" {
		out.Content = text
	}
	for _, b := range m.ToolCalls() {
		args := string(b.Arguments)
		if args == "" {
			args = "{}"
		}
		out.ToolCalls = append(out.ToolCalls, call{ID: b.ID, Type: "function", Function: function{Name: b.Name, Arguments: args}})
	}
	return out, out.Content != nil || len(out.ToolCalls) > 0
}
