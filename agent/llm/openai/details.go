package openai

import (
	"encoding/json"
	"strings"

	"muntin/agent/llm/internal/wire"
)

// maxDetails bounds the reasoning details of one response.
const maxDetails = 10_000

// A detail is a piece of reasoning as OpenRouter hands it through: text, summary
// or encrypted, with what its provider wants back. Fields that are not known here
// are kept.
//
// Source: https://openrouter.ai/docs/use-cases/reasoning-tokens
type detail struct {
	fields map[string]json.RawMessage
	grown  *strings.Builder // the text of several pieces; nil while there is one
}

func (d *detail) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &d.fields) }

// MarshalJSON implements json.Marshaler.
func (d detail) MarshalJSON() ([]byte, error) {
	if d.grown != nil {
		text, err := json.Marshal(d.grown.String())
		if err != nil {
			return nil, err
		}
		d.fields[d.growing()] = text
	}
	return json.Marshal(d.fields)
}

// growing is the field whose pieces are joined.
func (d detail) growing() string {
	if d.text("type") == "reasoning.summary" {
		return "summary"
	}
	return "text"
}

func (d detail) text(name string) string {
	var text string
	_ = json.Unmarshal(d.fields[name], &text) // null and others have no text
	return text
}

// joins tells whether next goes on with what d began.
func (d detail) joins(next detail) bool {
	kind := d.text("type")
	return (kind == "reasoning.text" || kind == "reasoning.summary") && kind == next.text("type") &&
		string(d.fields["index"]) == string(next.fields["index"]) && d.text("signature") == ""
}

// addDetails keeps the details; those that come in pieces are joined.
func (d *decoder) addDetails(list []detail) {
	for _, next := range list {
		if next.fields == nil || len(d.details) >= maxDetails {
			continue
		}
		last := len(d.details) - 1
		if last < 0 || !d.details[last].joins(next) {
			d.details = append(d.details, next)
			continue
		}
		d.details[last].add(next)
	}
}

func (d *detail) add(next detail) {
	field := d.growing()
	if d.grown == nil {
		d.grown = &strings.Builder{}
		d.grown.WriteString(d.text(field))
	}
	d.grown.WriteString(next.text(field))
	for name, value := range next.fields {
		if name != field && string(value) != "null" {
			d.fields[name] = value
		}
	}
}

// sign makes the details the signature of the thinking that was open until now,
// or of an empty one: they go back with the response.
func (d *decoder) sign() {
	if len(d.details) == 0 {
		return
	}
	signature, err := wire.Marshal(d.details)
	d.details = nil
	if err != nil {
		return // what came as JSON can be encoded
	}
	if !d.Out.OpenThinking() {
		d.Out.BeginThinking()
	}
	d.Out.Sign(string(signature))
}
