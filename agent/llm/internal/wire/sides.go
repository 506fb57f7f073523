package wire

import "muntin/agent/llm"

// A Side is what one of the two that talk says in a row, in a dialect's own pieces.
type Side[B any] struct {
	Model  bool // else the user, and the results of tools
	Pieces []B
}

// Pieces turns messages into a dialect's pieces.
type Pieces[B any] struct {
	User  func([]llm.Block) []B
	Model func(llm.Message) []B
	// Result gives the piece that answers a call, and pictures that it may not hold.
	Result func(llm.Message) (result B, late []B)
}

// Sides folds a transcript into sides that take turns, for the APIs that know no
// role for tools: results are the user's, and pictures that a result may not hold
// follow the last of them.
func Sides[B any](messages []llm.Message, of Pieces[B]) []Side[B] {
	var out []Side[B]
	add := func(model bool, pieces []B) {
		if len(pieces) == 0 {
			return
		}
		if n := len(out); n > 0 && out[n-1].Model == model {
			out[n-1].Pieces = append(out[n-1].Pieces, pieces...)
			return
		}
		out = append(out, Side[B]{Model: model, Pieces: pieces})
	}
	var late []B
	for _, m := range messages {
		if m.Role != llm.RoleTool {
			add(false, late)
			late = nil
		}
		switch m.Role {
		case llm.RoleUser:
			add(false, of.User(m.Content))
		case llm.RoleAssistant:
			add(true, of.Model(m))
		case llm.RoleTool:
			result, more := of.Result(m)
			add(false, []B{result})
			late = append(late, more...)
		}
	}
	add(false, late)
	return out
}
