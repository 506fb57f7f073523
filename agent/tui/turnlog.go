package tui

import (
	"slices"
	"sync"
	"time"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
)

// turnLog tells the link about the running turn. A message is accepted, and the
// turn begun, when the session has the message: not when it was handed over.
type turnLog struct {
	link Link // nil: nobody is told

	mu       sync.Mutex // guards all below
	expected []message  // handed to the agent, not in the session yet
	begun    bool
	id       string // of the message that the turn began with
	calls    map[string]agent.Event
}

// begin is called before the turn's goroutine runs.
func (t *turnLog) begin(m message) {
	t.mu.Lock()
	t.begun, t.id, t.calls = false, m.id, map[string]agent.Event{}
	if !m.resume {
		t.expected = slices.Insert(t.expected, 0, m)
	}
	t.mu.Unlock()
	if m.resume && m.id != "" { // in the session already: no message will come
		t.start(m.id)
	}
}

// expect adds a message that steers the turn.
func (t *turnLog) expect(m message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected = append(t.expected, m)
}

// drop forgets a message that was taken back, and returns it.
func (t *turnLog) drop(text string) (m message, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.expected, func(m message) bool { return m.text == text })
	if i < 0 {
		return message{}, false
	}
	m = t.expected[i]
	t.expected = slices.Delete(t.expected, i, i+1)
	return m, true
}

// on takes the events of the turn, from its goroutine.
func (t *turnLog) on(e agent.Event) {
	if e.Type == agent.EventMessageEnd && e.Message != nil && e.Message.Role == llm.RoleUser {
		t.taken(e.Message.Text())
	}
	if t.link == nil {
		return
	}
	switch e.Type {
	case agent.EventToolStart:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.calls[e.ToolCallID] = e
	case agent.EventToolEnd:
		t.mu.Lock()
		began := t.calls[e.ToolCallID]
		t.mu.Unlock()
		t.link.Tool(ToolReport{
			Name: e.ToolName, Summary: summary(e.ToolName, began.Args), IsError: e.IsError,
			Duration: time.Duration(e.DurationMS) * time.Millisecond,
		})
	}
}

// taken says that the session has a message with this text.
func (t *turnLog) taken(text string) {
	t.mu.Lock()
	i := slices.IndexFunc(t.expected, func(m message) bool { return m.text == text })
	if i < 0 {
		t.mu.Unlock()
		return
	}
	m := t.expected[i]
	t.expected = slices.Delete(t.expected, i, i+1)
	t.mu.Unlock()
	if m.id != "" {
		t.link.Accepted(m.id)
	}
	t.start(m.id)
}

func (t *turnLog) start(id string) {
	t.mu.Lock()
	first := !t.begun
	if first {
		t.begun, t.id = true, id
	}
	t.mu.Unlock()
	if first && t.link != nil {
		t.link.TurnStart(id)
	}
}

// end is called after the turn's goroutine has ended.
func (t *turnLog) end(o harness.Outcome, err error) {
	t.mu.Lock()
	id := t.id
	// A message that began the turn and was not taken is over with it; steers
	// stay with the kernel, for the turn that continues.
	if !t.begun && len(t.expected) > 0 && t.expected[0].id == id {
		t.expected = t.expected[1:]
	}
	t.mu.Unlock()
	if t.link != nil {
		t.link.TurnEnd(id, o, err)
	}
}
