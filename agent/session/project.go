package session

import (
	"encoding/json"

	"muntin/agent/llm"
)

// An Item is a message that the model sees, and the entry it comes from.
type Item struct {
	Entry   string // id
	Type    string // of the entry; TypeCompaction and TypeBranchSummary for summaries
	Message llm.Message
}

// context is what the model sees of the branch that ends at leaf. Only the
// entries that count are decoded: the last compaction stands for all before its
// first kept entry. Context edits change or hide one entry each, the last wins.
func (s *Session) context(leaf int32) []Item {
	path := s.tree.path(leaf)
	start, skip := 0, -1
	items := []Item{}
	for at := len(path) - 1; at >= 0; at-- {
		if s.tree.nodes[path[at]].kind != kindCompaction {
			continue
		}
		e, ok := s.entry(path[at])
		if !ok {
			continue
		}
		items = append(items, Item{e.ID, e.Type, Summary("The conversation before this point was compacted to this summary:", e.Summary, e.unixMilli())})
		start, skip = s.keptFrom(path[:at], e.FirstKept), at
		break
	}
	edits := s.edits(path)
	for at := start; at < len(path); at++ {
		if at == skip || !s.tree.nodes[path[at]].kind.visible() {
			continue
		}
		e, ok := s.entry(path[at])
		if !ok {
			continue
		}
		m, ok := s.visible(e)
		if edit, edited := edits[e.ID]; ok && edited {
			m, ok = s.apply(edit, m)
		}
		if ok {
			items = append(items, Item{e.ID, e.Type, m})
		}
	}
	return answersOnly(items)
}

// keptFrom is where the kept entries begin; behind the compacted ones, when the
// entry that is named is not there.
func (s *Session) keptFrom(before []int32, firstKept string) int {
	for i, n := range before {
		if s.tree.nodes[n].id == firstKept {
			return i
		}
	}
	return len(before)
}

func (s *Session) edits(path []int32) map[string]Entry {
	edits := map[string]Entry{}
	for _, i := range path {
		if s.tree.nodes[i].kind == kindEdit {
			if e, ok := s.entry(i); ok {
				edits[e.TargetID] = e
			}
		}
	}
	return edits
}

// visible tells whether entries of the kind may carry something for the model.
// An older compaction carries nothing beside the last one.
func (k kind) visible() bool {
	switch k {
	case kindUser, kindAssistant, kindTool, kindRole, kindSummary, kindCustomMessage:
		return true
	}
	return false
}

func (s *Session) visible(e Entry) (llm.Message, bool) {
	switch e.Type {
	case TypeMessage:
		return *e.Message, e.Message.Role != roleOther
	case TypeBranchSummary:
		return Summary("This is a summary of a branch that the conversation came back from:", e.Summary, e.unixMilli()), true
	case TypeCustomMessage:
		blocks, _, err := s.codec.content(e.Content)
		return llm.Message{Role: llm.RoleUser, Content: blocks, Timestamp: e.unixMilli()}, err == nil
	}
	return llm.Message{}, false
}

// Summary is the message that shows a summary to the model: head says of what.
func Summary(head, text string, unixMilli int64) llm.Message {
	return llm.UserText(head+"\n\n<summary>\n"+text+"\n</summary>", unixMilli)
}

func (s *Session) apply(edit Entry, m llm.Message) (llm.Message, bool) {
	var replacement struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(edit.Replacement, &replacement); err != nil || replacement.Content == nil {
		return m, false // null hides the entry
	}
	if blocks, _, err := s.codec.content(replacement.Content); err == nil {
		m.Content = blocks
	}
	return m, true
}

// answersOnly leaves out tool results whose call is not there, because it was
// lost with a line or compacted away: no provider takes them.
func answersOnly(items []Item) []Item {
	called := map[string]bool{}
	kept := items[:0]
	for _, it := range items {
		for _, c := range it.Message.ToolCalls() {
			called[c.ID] = true
		}
		if it.Message.Role != llm.RoleTool || called[it.Message.ToolCallID] {
			kept = append(kept, it)
		}
	}
	return kept
}
