package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"muntin/agent/llm"
)

// The types of entries that are understood. Entries of other types stay in the
// tree and carry nothing for the model.
const (
	TypeMessage       = "message"
	TypeModelChange   = "model_change"
	TypeThinking      = "thinking_level_change"
	TypeCompaction    = "compaction"
	TypeBranchSummary = "branch_summary"
	TypeCustomMessage = "custom_message"
	TypeContextEdit   = "context_edit"
	TypeCustom        = "custom"
	TypeLabel         = "label"
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

	Provider      string `json:"provider,omitempty"` // model_change
	ModelID       string `json:"modelId,omitempty"`
	ThinkingLevel string `json:"thinkingLevel,omitempty"` // thinking_level_change

	Summary      string `json:"summary,omitempty"`          // compaction, branch_summary
	FirstKept    string `json:"firstKeptEntryId,omitempty"` // compaction
	TokensBefore int    `json:"tokensBefore,omitempty"`     // compaction
	FromID       string `json:"fromId,omitempty"`           // branch_summary: the leaf that was left, or "root"

	TargetID    string          `json:"targetId,omitempty"`    // label, context_edit
	Label       string          `json:"label,omitempty"`       // label; "": taken away
	Replacement json.RawMessage `json:"replacement,omitempty"` // context_edit: null or {"content":…}

	CustomType string          `json:"customType,omitempty"` // custom, custom_message
	Data       json.RawMessage `json:"data,omitempty"`       // custom
	Content    json.RawMessage `json:"content,omitempty"`    // custom_message: a string or blocks
	Details    json.RawMessage `json:"details,omitempty"`    // compaction, branch_summary, custom_message
	Usage      *llm.Usage      `json:"usage,omitempty"`      // compaction, branch_summary

	Name string `json:"name,omitempty"` // session_info

	bash json.RawMessage // a message of AppendBash
}

// An Origin says where a user's message came from.
type Origin struct {
	ID   string `json:"id,omitempty"`   // the message's id on its way to the agent
	From string `json:"from,omitempty"` // "user", "orchestrator" or an agent's name
}

// Time is when the entry was made; zero when it does not say.
func (e Entry) Time() time.Time {
	t, err := time.Parse(time.RFC3339, e.Timestamp)
	if err != nil {
		return time.Time{}
	}
	return t
}

func (e Entry) unixMilli() int64 {
	if t := e.Time(); !t.IsZero() {
		return t.UnixMilli()
	}
	return 0
}

// dependedOn reports whether something outside the session follows from the
// entry at once: a request to a model, or the run of a tool.
func (e Entry) dependedOn() bool {
	if e.Type != TypeMessage || e.Message == nil {
		return false
	}
	return e.Message.Role == llm.RoleUser || len(e.Message.ToolCalls()) > 0
}

// A kind is what an entry is, as far as the tree must know without decoding it.
type kind uint8

const (
	kindOther kind = iota
	kindUser
	kindAssistant
	kindTool
	kindRole // a message of one of Pi's own roles
	kindModel
	kindThinking
	kindCompaction
	kindSummary
	kindCustomMessage
	kindEdit
	kindLabel
	kindInfo
	kindLeaf
)

func kindOf(typ, role, customType string) kind {
	switch typ {
	case TypeMessage:
		switch llm.Role(role) {
		case llm.RoleUser:
			return kindUser
		case llm.RoleAssistant:
			return kindAssistant
		case llm.RoleTool:
			return kindTool
		}
		return kindRole
	case TypeModelChange:
		return kindModel
	case TypeThinking:
		return kindThinking
	case TypeCompaction:
		return kindCompaction
	case TypeBranchSummary:
		return kindSummary
	case TypeCustomMessage:
		return kindCustomMessage
	case TypeContextEdit:
		return kindEdit
	case TypeLabel:
		return kindLabel
	case TypeSessionInfo:
		return kindInfo
	case TypeCustom:
		if customType == customLeaf {
			return kindLeaf
		}
	}
	return kindOther
}

// a line is what a look at an entry's line gives without decoding it.
type line struct {
	id, parent string
	kind       kind
	origin     string // id of the Origin
}

// glance looks at an entry's line. old allows entries without an id, as version
// 1 has them.
func glance(b []byte, old bool) (line, error) {
	var typ, role, custom string
	var l line
	err := fields(b, func(key, value []byte) (err error) {
		switch string(key) {
		case "type":
			typ = text(value)
		case "id":
			l.id = text(value)
		case "parentId":
			l.parent = text(value)
		case "customType":
			custom = text(value)
		case "message":
			role = roleIn(value)
		case "muntin":
			l.origin = textIn(value, "id")
		}
		return nil
	})
	if err != nil {
		return line{}, err
	}
	if typ == "" || l.id == "" && !old {
		return line{}, errors.New("it is no entry: type or id is missing")
	}
	if typ == TypeMessage && role == "" {
		return line{}, errors.New("the message is missing, or has no role")
	}
	l.kind = kindOf(typ, role, custom)
	return l, nil
}

// errFound ends a walk through fields.
var errFound = errors.New("found")

// roleIn is the role of a message; it stands first in what Pi and muntin write.
func roleIn(message []byte) string { return textIn(message, "role") }

// textIn is the string of a key in an object, or "".
func textIn(object []byte, name string) string {
	found := ""
	_ = fields(object, func(key, value []byte) error { // no object: there is nothing to find
		if string(key) != name {
			return nil
		}
		found = text(value)
		return errFound
	})
	return found
}

// text is the text of a JSON string; "" for anything else.
func text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1])
	}
	var s string
	_ = json.Unmarshal(value, &s) // no string: there is nothing to find
	return s
}

// A codec turns entries into lines and back.
type codec struct {
	blobs   blobs
	version int // of the file
}

// encode makes an entry's line as Pi reads it, without the newline.
func (c codec) encode(e Entry) (json.RawMessage, error) {
	wire := struct {
		Entry
		Message      json.RawMessage `json:"message,omitempty"`
		TokensBefore *int            `json:"tokensBefore,omitempty"`
		Display      *bool           `json:"display,omitempty"`
		Usage        json.RawMessage `json:"usage,omitempty"`
	}{Entry: e}
	switch e.Type {
	case TypeCompaction:
		wire.TokensBefore = &e.TokensBefore
	case TypeCustomMessage:
		display := true
		wire.Display = &display
	}
	var err error
	if e.bash != nil {
		wire.Message = e.bash
	}
	if e.Message != nil {
		if wire.Message, err = c.encodeMessage(*e.Message); err != nil {
			return nil, err
		}
	}
	if e.Usage != nil {
		if wire.Usage, err = encodeUsage(e.Usage); err != nil {
			return nil, err
		}
	}
	return marshal(wire)
}

// marshal is JSON without the escapes that only HTML needs.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// decode reads an entry's line. id and parent are those of the tree, which has
// given them to entries of version 1. lost names blobs that are not there.
func (c codec) decode(b []byte) (e Entry, lost []string, err error) {
	var wire struct {
		Entry
		// What may have another shape in a foreign file than here.
		Origin       json.RawMessage `json:"muntin"`
		Summary      json.RawMessage `json:"summary"`
		FirstKept    json.RawMessage `json:"firstKeptEntryId"`
		FirstIndex   json.RawMessage `json:"firstKeptEntryIndex"` // version 1
		TokensBefore json.RawMessage `json:"tokensBefore"`
		Usage        json.RawMessage `json:"usage"`
		Name         json.RawMessage `json:"name"`
		Provider     json.RawMessage `json:"provider"`
		ModelID      json.RawMessage `json:"modelId"`
		Label        json.RawMessage `json:"label"`
		ParentID     json.RawMessage `json:"parentId"`
		ID           json.RawMessage `json:"id"`
	}
	rest, parts, err := split(b, "message")
	if err == nil {
		err = json.Unmarshal(rest, &wire)
	}
	if err != nil {
		return Entry{}, nil, fmt.Errorf("the entry: %w", err)
	}
	e = wire.Entry
	e.Message = nil // a field whose name is written in another way
	e.Summary, e.Name, e.Label = text(wire.Summary), text(wire.Name), text(wire.Label)
	e.Provider, e.ModelID = text(wire.Provider), text(wire.ModelID)
	e.FirstKept = text(wire.FirstKept)
	if c.version < 2 && len(wire.FirstIndex) > 0 {
		if n, err := strconv.Atoi(string(wire.FirstIndex)); err == nil && n > 0 {
			e.FirstKept = oldID(n) // the header is the file's entry 0
		}
	}
	optional(wire.TokensBefore, &e.TokensBefore)
	optional(wire.Usage, &e.Usage)
	optional(wire.Origin, &e.Origin)
	if e.Type != TypeMessage {
		return e, nil, nil
	}
	m, lost, err := c.decodeMessage(parts[0])
	e.Message = m
	return e, lost, err
}

// optional reads what another program may have put there in another shape.
func optional(raw json.RawMessage, into any) {
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, into) // then it stays empty
	}
}

// oldID is the id of the nth entry, from 1, of a file of version 1, which has none.
func oldID(n int) string { return fmt.Sprintf("%08x", n) }
