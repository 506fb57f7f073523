package pty

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"muntin/internal/durable"
	"muntin/internal/state"
)

// A Conversation is what an outside agent's conversation is known by, so that
// the next start goes on with it.
type Conversation struct {
	ID         string   `json:"id"`
	Transcript string   `json:"transcript,omitempty"` // its file, where it was seen
	Earlier    []string `json:"earlier,omitempty"`    // ids before this one, the last first
}

const maxEarlier = 20

func conversationFile(dir state.AgentDir) string {
	return filepath.Join(dir.Path, "conversation.json")
}

// ReadConversation gives the agent's conversation, the zero value if none is
// known yet.
func ReadConversation(dir state.AgentDir) (Conversation, error) {
	var c Conversation
	data, err := os.ReadFile(conversationFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return Conversation{}, fmt.Errorf("reading the conversation of %s: %w", dir.Name, err)
	}
	return c, nil
}

// WriteConversation keeps c. An id that was kept before goes to c.Earlier:
// what has been learned is never lost.
func WriteConversation(dir state.AgentDir, c Conversation) error {
	if old, err := ReadConversation(dir); err == nil {
		c.Earlier = old.Earlier
		if old.ID != "" && old.ID != c.ID {
			c.Earlier = slices.Insert(slices.Clone(old.Earlier), 0, old.ID)
		}
		c.Earlier = c.Earlier[:min(len(c.Earlier), maxEarlier)]
	}
	data, err := json.Marshal(c)
	if err == nil {
		err = durable.WriteFile(conversationFile(dir), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("keeping the conversation of %s: %w", dir.Name, err)
	}
	return nil
}
