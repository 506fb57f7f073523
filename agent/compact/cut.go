package compact

import (
	"slices"

	"muntin/agent/llm"
)

// imageTokens is what an image counts for, as in Pi.
const imageTokens = 1200

// Estimate is about how many tokens a message takes: a quarter of its bytes.
func Estimate(m llm.Message) int {
	bytes, images := 0, 0
	for _, b := range m.Content {
		bytes += len(b.Text) + len(b.Thinking) + len(b.Name) + len(b.Arguments)
		if b.Type == llm.BlockImage {
			images++
		}
	}
	return (bytes+3)/4 + images*imageTokens
}

// Tokens is about how many tokens a request with these messages takes. It builds
// on what the provider counted for the last response that came after since (Unix
// milliseconds; what came before counted a context that is no more), and on
// estimates for what follows. base stands for the system prompt and the tools
// where nothing was counted yet.
func Tokens(messages []llm.Message, since int64, base int) int {
	sum := 0
	for _, m := range slices.Backward(messages) {
		if m.Role == llm.RoleAssistant && (m.StopReason == llm.StopError || m.StopReason == llm.StopAborted) {
			continue // it is not shown to the model, and counted nothing
		}
		if n := counted(m); n > 0 && m.Timestamp > since {
			return sum + n
		}
		sum += Estimate(m)
	}
	return sum + base
}

func counted(m llm.Message) int {
	if m.Role != llm.RoleAssistant || m.Usage == nil {
		return 0
	}
	u := m.Usage
	return max(u.Total, u.Input+u.Output+u.CacheRead+u.CacheWrite)
}

// Cut finds the first item to keep so that about keep tokens are kept. It prefers
// the beginning of a turn, that is, a message of the user; split tells that it
// had to cut within one. A call is never cut off from its results.
func Cut(items []Item, keep int) (first int, split bool) {
	sums := make([]int, len(items)+1) // tokens from each item to the end
	for i := len(items) - 1; i >= 0; i-- {
		sums[i] = sums[i+1] + Estimate(items[i].Message)
	}
	at := len(items)
	for at > 0 && sums[at] < keep {
		at--
	}
	before, after := -1, -1
	for i, it := range items {
		if it.Summary || it.Message.Role != llm.RoleUser {
			continue
		}
		if i < at {
			before = i
		} else if after < 0 {
			after = i
		}
	}
	switch {
	case after >= 0 && 2*sums[after] >= keep:
		return after, false
	case before > 0 && sums[before] <= 2*keep:
		return before, false
	}
	for i := at; i < len(items); i++ {
		if items[i].Message.Role != llm.RoleTool {
			return i, items[i].Message.Role == llm.RoleAssistant
		}
	}
	for i := min(at, len(items)-1); i >= 0; i-- {
		if items[i].Message.Role != llm.RoleTool {
			return i, items[i].Message.Role == llm.RoleAssistant
		}
	}
	return 0, false
}

// A Trim shortens what one entry shows to the model.
type Trim struct {
	ID   string
	Text string
}

// Trims shortens the largest tool results until the items take no more than
// limit tokens, or nothing large is left: what helps when what must be kept is
// too large by itself.
func Trims(items []Item, limit int) []Trim {
	const shown = 2000 // bytes
	total := 0
	var results []Item
	for _, it := range items {
		total += Estimate(it.Message)
		if it.Message.Role == llm.RoleTool && Estimate(it.Message) > shown/2 {
			results = append(results, it)
		}
	}
	slices.SortStableFunc(results, func(a, b Item) int { return Estimate(b.Message) - Estimate(a.Message) })
	var trims []Trim
	for _, it := range results {
		if total <= limit {
			break
		}
		text := shorten(it.Message.Text(), shown)
		if text == "" {
			text = "[The result held no text, and was left out to make room.]"
		}
		total -= Estimate(it.Message) - (len(text)+3)/4
		trims = append(trims, Trim{ID: it.ID, Text: text})
	}
	return trims
}
