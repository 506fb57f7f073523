package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// A Target is the model that a transcript is converted for.
type Target struct {
	API, Provider, Model string
	NoImages             bool // the model cannot be shown images
	Images               ImageLimits
	IDs                  IDRule // of tool calls
}

// An IDRule says which ids of tool calls a provider takes. The zero value takes all.
type IDRule struct {
	Word  bool // only letters, digits, _ and -
	Alnum bool // only letters and digits
	Max   int  // characters at most; 0: no bound
	Exact int  // characters exactly; 0: any number
}

// NoImage is the text that stands in for an image that a model cannot see.
const NoImage = "[An image was here; this model cannot be shown images.]"

// TooManyImages is the text that stands in for an image beyond a model's limits.
const TooManyImages = "[An image was here; this model takes no more of them at a time.]"

// Convert gives the part of a transcript that a model may be shown (see
// Sendable), made fit for that model:
//   - thinking of another model is left out: nobody else may be held to it, and
//     its signatures mean nothing elsewhere; so are signatures of texts and calls;
//   - tool calls and their results get ids that the provider takes;
//   - images become a note where the model cannot see them; so do the oldest,
//     where there are more than it takes.
//
// The messages given are not changed.
func Convert(messages []Message, to Target) []Message {
	out := Sendable(messages)
	for i, m := range out {
		own := m.API == to.API && m.Provider == to.Provider && m.Model == to.Model
		if m.Role == RoleTool {
			out[i].ToolCallID = to.IDs.Apply(m.ToolCallID)
		}
		changed := make([]Block, 0, len(m.Content))
		for _, b := range m.Content {
			switch {
			case b.Type == BlockThinking && !own && m.Role == RoleAssistant:
				continue
			case b.Type == BlockImage && to.NoImages:
				b = Block{Type: BlockText, Text: NoImage}
			case b.Type == BlockToolCall:
				b.ID = to.IDs.Apply(b.ID)
			}
			if !own {
				b.TextSignature, b.ThoughtSignature = "", ""
			}
			changed = append(changed, b)
		}
		out[i].Content = changed
	}
	to.Images.apply(out)
	return out
}

// apply replaces the images that are too much. The contents are not shared.
func (l ImageLimits) apply(messages []Message) {
	total := 0
	for _, m := range slices.Backward(messages) {
		here := 0
		for i, b := range slices.Backward(m.Content) {
			if b.Type != BlockImage {
				continue
			}
			if l.MaxPerMessage > 0 && here >= l.MaxPerMessage || l.MaxPerRequest > 0 && total >= l.MaxPerRequest {
				m.Content[i] = Block{Type: BlockText, Text: TooManyImages}
				continue
			}
			here++
			total++
		}
	}
}

// Apply gives id as the rule wants it: itself when it fits, else one made from it
// that is the same each time and differs for different ids.
func (r IDRule) Apply(id string) string {
	if r.fits(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	hash := hex.EncodeToString(sum[:])
	if r.Exact > 0 {
		return hash[:min(r.Exact, len(hash))]
	}
	const tail = 8
	clean := strings.Map(func(c rune) rune {
		if r.takes(c) {
			return c
		}
		if r.Alnum {
			return -1
		}
		return '_'
	}, id)
	if r.Max > 0 && len(clean) > r.Max-tail {
		clean = strings.ToValidUTF8(clean[:max(0, r.Max-tail)], "")
	}
	return clean + hash[:tail]
}

func (r IDRule) fits(id string) bool {
	if id == "" || r.Max > 0 && len(id) > r.Max || r.Exact > 0 && len(id) != r.Exact {
		return false
	}
	return strings.IndexFunc(id, func(c rune) bool { return !r.takes(c) }) < 0
}

func (r IDRule) takes(c rune) bool {
	alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	switch {
	case r.Alnum:
		return alnum
	case r.Word:
		return alnum || c == '_' || c == '-'
	}
	return true
}
