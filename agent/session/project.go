package session

import (
	"encoding/json"
	"time"

	"muntin/agent/llm"
)

// extra is the fields of entries that only the projection reads.
type extra struct {
	Summary     string          `json:"summary"`
	FirstKept   string          `json:"firstKeptEntryId"`
	TargetID    string          `json:"targetId"`
	Replacement json.RawMessage `json:"replacement"`
	Content     json.RawMessage `json:"content"`
}

func (e Entry) extra() extra {
	var x extra
	_ = json.Unmarshal(e.raw, &x) // the line was read before; a field of another shape stays empty
	return x
}

// project turns the entries from root to leaf into the messages a model sees.
// The last compaction stands for all before its first kept entry; context edits
// change or hide one entry each, the last one wins.
func project(branch []Entry) []llm.Message {
	start, messages := 0, []llm.Message{}
	edits := map[string]extra{}
	for i, e := range branch {
		switch e.Type {
		case TypeCompaction:
			x := e.extra()
			messages = []llm.Message{summary("The conversation before this point was compacted to this summary:", x.Summary, e)}
			start = keptFrom(branch[:i], x.FirstKept)
		case TypeContextEdit:
			x := e.extra()
			edits[x.TargetID] = x
		}
	}
	for _, e := range branch[start:] {
		m, ok := visible(e)
		if !ok {
			continue
		}
		if edit, edited := edits[e.ID]; edited {
			if m, ok = edit.apply(m); !ok {
				continue
			}
		}
		messages = append(messages, m)
	}
	return answersOnly(messages)
}

// keptFrom is where the kept entries begin; behind the compacted ones, when the
// entry that is named is not there.
func keptFrom(before []Entry, firstKept string) int {
	for i, e := range before {
		if e.ID == firstKept {
			return i
		}
	}
	return len(before)
}

func visible(e Entry) (llm.Message, bool) {
	switch e.Type {
	case TypeMessage:
		return *e.Message, e.Message.Role != roleOther
	case TypeBranchSummary:
		return summary("This is a summary of a branch that the conversation came back from:", e.extra().Summary, e), true
	case TypeCustomMessage:
		blocks, err := content(e.extra().Content)
		return llm.Message{Role: llm.RoleUser, Content: blocks, Timestamp: e.unixMilli()}, err == nil
	}
	return llm.Message{}, false
}

func summary(head, text string, e Entry) llm.Message {
	return llm.UserText(head+"\n\n<summary>\n"+text+"\n</summary>", e.unixMilli())
}

func (x extra) apply(m llm.Message) (llm.Message, bool) {
	var replacement struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(x.Replacement, &replacement); err != nil || replacement.Content == nil {
		return m, false // null hides the entry
	}
	blocks, err := content(replacement.Content)
	if err == nil {
		m.Content = blocks
	}
	return m, true
}

// answersOnly leaves out tool results whose call is not there, because it was
// lost with a line or compacted away: no provider takes them.
func answersOnly(messages []llm.Message) []llm.Message {
	called := map[string]bool{}
	kept := messages[:0]
	for _, m := range messages {
		for _, c := range m.ToolCalls() {
			called[c.ID] = true
		}
		if m.Role != llm.RoleTool || called[m.ToolCallID] {
			kept = append(kept, m)
		}
	}
	return kept
}

func (e Entry) unixMilli() int64 {
	t, err := time.Parse(time.RFC3339, e.Timestamp)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}
