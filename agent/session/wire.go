package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"muntin/agent/llm"
)

// roleOther marks a message that the model never sees: Pi's system messages, and
// roles that are not known here.
const roleOther llm.Role = ""

// message reads a message as Pi writes it: content may be a plain string, and
// there are more roles than the model knows of.
func message(raw json.RawMessage) (*llm.Message, error) {
	var wire struct {
		llm.Message
		Content json.RawMessage `json:"content"`
		Details json.RawMessage `json:"details"`

		Command  string `json:"command"` // bashExecution: a command that the user ran
		Output   string `json:"output"`
		ExitCode *int   `json:"exitCode"`
		Excluded bool   `json:"excludeFromContext"`
	}
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, errors.New("the message is missing")
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, fmt.Errorf("the message: %w", err)
	}
	m := wire.Message
	m.Details = wire.Details
	switch m.Role {
	case llm.RoleUser, llm.RoleAssistant, llm.RoleTool:
	case "bashExecution":
		m = bashMessage(wire.Command, wire.Output, wire.ExitCode, m.Timestamp)
		if wire.Excluded {
			m.Role = roleOther
		}
		return &m, nil
	case "custom":
		m.Role = llm.RoleUser
	default:
		m.Role = roleOther
	}
	var err error
	m.Content, err = content(wire.Content)
	return &m, err
}

// content reads blocks, or a string as one block. Blocks of unknown types are
// left out.
func content(raw json.RawMessage) ([]llm.Block, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return []llm.Block{}, nil
	}
	if raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, fmt.Errorf("the message's content: %w", err)
		}
		return []llm.Block{{Type: llm.BlockText, Text: text}}, nil
	}
	var all []llm.Block
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("the message's content: %w", err)
	}
	blocks := make([]llm.Block, 0, len(all))
	for _, b := range all {
		switch b.Type {
		case llm.BlockText, llm.BlockThinking, llm.BlockToolCall, llm.BlockImage:
			blocks = append(blocks, b)
		}
	}
	return blocks, nil
}

func bashMessage(command, output string, code *int, at int64) llm.Message {
	var b strings.Builder
	fmt.Fprintf(&b, "The user ran `%s`:\n\n%s", command, output)
	if code != nil && *code != 0 {
		fmt.Fprintf(&b, "\n\nIt exited with code %d.", *code)
	}
	return llm.UserText(b.String(), at)
}
