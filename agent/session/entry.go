package session

import (
	"encoding/json"
	"errors"

	"muntin/agent/llm"
)

// The types of entries that are understood. Entries of other types stay in the
// tree and carry nothing for the model.
const (
	TypeMessage       = "message"
	TypeModelChange   = "model_change"
	TypeCompaction    = "compaction"
	TypeBranchSummary = "branch_summary"
	TypeCustomMessage = "custom_message"
	TypeContextEdit   = "context_edit"
	TypeCustom        = "custom"
	TypeSessionInfo   = "session_info"
)

// customLeaf is the customType of the entry that records a move of the leaf.
const customLeaf = "muntin.leaf"

// An Entry is one line of a session's file. Which fields count is told by Type.
type Entry struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	ParentID  *string `json:"parentId"` // nil: the root
	Timestamp string  `json:"timestamp"`

	Message *llm.Message `json:"message,omitempty"`
	Origin  *Origin      `json:"muntin,omitempty"` // of a user's message

	Provider string `json:"provider,omitempty"` // model_change
	ModelID  string `json:"modelId,omitempty"`

	CustomType string          `json:"customType,omitempty"` // custom, custom_message
	Data       json.RawMessage `json:"data,omitempty"`
	Name       string          `json:"name,omitempty"` // session_info

	raw json.RawMessage // the line as it is in the file, for types with more fields
}

// An Origin says where a user's message came from.
type Origin struct {
	ID   string `json:"id,omitempty"`   // the message's id on its way to the agent
	From string `json:"from,omitempty"` // "user", "orchestrator" or an agent's name
}

// dependedOn reports whether something outside the session follows from the
// entry at once: a request to a model, or the run of a tool.
func (e Entry) dependedOn() bool {
	if e.Type != TypeMessage || e.Message == nil {
		return false
	}
	return e.Message.Role == llm.RoleUser || len(e.Message.ToolCalls()) > 0
}

// parseEntry reads a line. The message of an entry may be one of Pi's own roles;
// see message.
func parseEntry(line []byte) (Entry, error) {
	var wire struct {
		Entry
		Message json.RawMessage `json:"message"`
		Origin  json.RawMessage `json:"muntin"`
	}
	if err := json.Unmarshal(line, &wire); err != nil {
		return Entry{}, err
	}
	e := wire.Entry
	if e.Type == "" || e.ID == "" {
		return Entry{}, errors.New("it is no entry: type or id is missing")
	}
	if len(wire.Origin) > 0 {
		_ = json.Unmarshal(wire.Origin, &e.Origin) // what another program put there is not ours to refuse
	}
	if e.Type != TypeMessage {
		e.raw = append(json.RawMessage(nil), line...)
		return e, nil
	}
	m, err := message(wire.Message)
	if err != nil {
		return Entry{}, err
	}
	e.Message = m
	return e, nil
}
