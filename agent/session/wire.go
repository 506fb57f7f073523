package session

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"muntin/agent/llm"
)

// roleOther marks a message that the model never sees: Pi's system messages, and
// roles that are not known here.
const roleOther llm.Role = ""

// A reference stands in a block, or in details, in place of what a blob holds.
// The block that bears it is a text that says so: that is what Pi shows, and what
// is left when the blob is lost.
type reference struct {
	Blob     string `json:"blob"`
	Type     string `json:"type,omitempty"` // image, text
	MimeType string `json:"mimeType,omitempty"`
}

// EncodeMessage gives a message as Pi has it, whole.
func EncodeMessage(m llm.Message) (json.RawMessage, error) { return codec{}.encodeMessage(m) }

// encodeMessage makes a message as Pi reads it: an assistant's always has a usage
// with a cost, and large pieces are in blobs.
func (c codec) encodeMessage(m llm.Message) (json.RawMessage, error) {
	wire := struct {
		llm.Message
		Content []json.RawMessage `json:"content"`
		Usage   json.RawMessage   `json:"usage,omitempty"`
		IsError *bool             `json:"isError,omitempty"`
	}{Message: m, Content: []json.RawMessage{}}
	if m.Role == llm.RoleTool {
		wire.IsError = &m.IsError // Pi always says it
	}
	for _, b := range m.Content {
		raw, err := c.encodeBlock(b)
		if err != nil {
			return nil, err
		}
		wire.Content = append(wire.Content, raw)
	}
	var err error
	if m.Role == llm.RoleAssistant {
		if wire.Usage, err = encodeUsage(m.Usage); err != nil {
			return nil, err
		}
	}
	if len(m.Details) > blobText && c.blobs.dir != "" {
		name, err := c.blobs.put(m.Details, "json")
		if err != nil {
			return nil, err
		}
		if wire.Details, err = marshal(map[string]reference{"muntin": {Blob: name}}); err != nil {
			return nil, err
		}
	}
	return marshal(wire)
}

func (c codec) encodeBlock(b llm.Block) (json.RawMessage, error) {
	if c.blobs.dir == "" {
		return marshal(b)
	}
	var data []byte
	var ref reference
	var text, ext string
	switch {
	case b.Type == llm.BlockImage && len(b.Data) > blobImage:
		var err error
		if data, err = base64.StdEncoding.DecodeString(b.Data); err != nil {
			return marshal(b) // what is no base64 must come back as it was
		}
		ref, ext = reference{Type: "image", MimeType: b.MimeType}, extension(b.MimeType)
	case b.Type == llm.BlockText && len(b.Text) > blobText:
		data, ext, ref = []byte(b.Text), "txt", reference{Type: "text"}
	default:
		return marshal(b)
	}
	var err error
	if ref.Blob, err = c.blobs.put(data, ext); err != nil {
		return nil, err
	}
	if ref.Type == "image" {
		text = fmt.Sprintf("[An image, %s, %d bytes: it is in blobs/%s beside the session]", b.MimeType, len(data), ref.Blob)
	} else {
		head, tail := bothEnds(b.Text, blobShown)
		text = fmt.Sprintf("%s\n[The whole text, %d bytes, is in blobs/%s beside the session]\n%s", head, len(data), ref.Blob, tail)
	}
	return marshal(struct {
		Type llm.BlockType `json:"type"`
		Text string        `json:"text"`
		Ref  reference     `json:"muntin"`
	}{llm.BlockText, text, ref})
}

// bothEnds is the first and the last n bytes of a text, in whole characters.
func bothEnds(s string, n int) (head, tail string) {
	i, j := n, len(s)-n
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	for j < len(s) && !utf8.RuneStart(s[j]) {
		j++
	}
	return s[:i], s[j:]
}

// encodeUsage adds what Pi takes for granted: a cost.
func encodeUsage(u *llm.Usage) (json.RawMessage, error) {
	if u == nil {
		u = &llm.Usage{}
	}
	raw, err := marshal(u)
	if err != nil || bytes.Contains(raw, []byte(`"cost":`)) {
		return raw, err
	}
	return append(raw[:len(raw)-1], `,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`...), nil
}

// decodeMessage reads a message as Pi writes it: content may be a plain string,
// and there are more roles than the model knows of. The content, which may be
// large, is taken out first, so that it is decoded once only.
func (c codec) decodeMessage(raw json.RawMessage) (_ *llm.Message, lost []string, err error) {
	var wire struct {
		llm.Message
		Usage   json.RawMessage `json:"usage"`
		Content json.RawMessage `json:"content"` // never set

		Command  string `json:"command"` // bashExecution: a command that the user ran
		Output   string `json:"output"`
		ExitCode *int   `json:"exitCode"`
		Excluded bool   `json:"excludeFromContext"`
	}
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil, errors.New("the message is missing")
	}
	rest, parts, err := split(raw, "content", "details")
	if err == nil {
		err = json.Unmarshal(rest, &wire)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the message: %w", err)
	}
	m := wire.Message
	optional(wire.Usage, &m.Usage)
	if m.Usage != nil && *m.Usage == (llm.Usage{}) {
		m.Usage = nil // it says nothing
	}
	switch m.Role {
	case llm.RoleUser, llm.RoleAssistant, llm.RoleTool:
	case roleBash:
		m = bashMessage(wire.Command, wire.Output, wire.ExitCode, m.Timestamp)
		if wire.Excluded {
			m.Role = roleOther
		}
		return &m, nil, nil
	case "custom", "hookMessage": // the name until version 2
		m.Role = llm.RoleUser
	default:
		m.Role = roleOther
	}
	if m.Details, err = c.details(parts[1]); err != nil {
		lost = append(lost, err.Error())
	}
	blocks, missing, err := c.content(parts[0])
	m.Content = blocks
	return &m, append(lost, missing...), err
}

func (c codec) details(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > 0 && !json.Valid(raw) {
		return nil, errors.New("the details are no JSON")
	}
	if name := textIn(valueIn(raw, "muntin"), "blob"); name != "" {
		data, err := c.blobs.get(name)
		if err == nil && !json.Valid(data) {
			err = fmt.Errorf("blob %s is no JSON", name)
		}
		if err != nil {
			return raw, fmt.Errorf("the details: %w", err)
		}
		return data, nil
	}
	return raw, nil
}

// split takes the named fields out of an object, and gives what is left of it.
func split(object []byte, names ...string) (rest []byte, parts [][]byte, err error) {
	rest, parts = append(rest, '{'), make([][]byte, len(names))
	err = fields(object, func(key, value []byte) error {
		if i := slices.Index(names, string(key)); i >= 0 {
			parts[i] = value
			return nil
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(append(append(rest, '"'), key...), '"', ':'), value...)
		return nil
	})
	return append(rest, '}'), parts, err
}

func valueIn(object []byte, name string) []byte {
	var found []byte
	_ = fields(object, func(key, value []byte) error { // no object: there is nothing to find
		if string(key) == name {
			found = value
			return errFound
		}
		return nil
	})
	return found
}

// content reads blocks, or a string as one block. Blocks of unknown types are
// left out. A blob that cannot be read leaves the text that stands for it.
func (c codec) content(raw json.RawMessage) (blocks []llm.Block, lost []string, err error) {
	blocks = []llm.Block{}
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return blocks, nil, nil
	}
	if raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, nil, fmt.Errorf("the message's content: %w", err)
		}
		return []llm.Block{{Type: llm.BlockText, Text: text}}, nil, nil
	}
	err = elements(raw, func(value []byte) error {
		var b struct {
			llm.Block
			Ref json.RawMessage `json:"muntin"`
		}
		if err := json.Unmarshal(value, &b); err != nil {
			return err
		}
		switch b.Type {
		case llm.BlockText, llm.BlockThinking, llm.BlockToolCall, llm.BlockImage:
		default:
			return nil
		}
		block := b.Block
		if len(b.Ref) > 0 {
			var err error
			if block, err = c.fetch(b.Block, b.Ref); err != nil {
				lost = append(lost, err.Error())
			}
		}
		blocks = append(blocks, block)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("the message's content: %w", err)
	}
	return blocks, lost, nil
}

// fetch makes the block that a reference stands for.
func (c codec) fetch(b llm.Block, raw json.RawMessage) (llm.Block, error) {
	var ref reference
	if err := json.Unmarshal(raw, &ref); err != nil || ref.Blob == "" {
		return b, nil // another program's field of this name
	}
	data, err := c.blobs.get(ref.Blob)
	if err != nil {
		return b, fmt.Errorf("a part of the message: %w", err)
	}
	if ref.Type == "image" {
		return llm.Block{Type: llm.BlockImage, Data: base64.StdEncoding.EncodeToString(data), MimeType: ref.MimeType}, nil
	}
	return llm.Block{Type: llm.BlockText, Text: string(data)}, nil
}

func bashMessage(command, output string, code *int, at int64) llm.Message {
	var b strings.Builder
	fmt.Fprintf(&b, "The user ran `%s`:\n\n%s", command, output)
	if code != nil && *code != 0 {
		fmt.Fprintf(&b, "\n\nIt exited with code %d.", *code)
	}
	return llm.UserText(b.String(), at)
}
