package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muntin/agent"
	"muntin/agent/llm"
	"muntin/internal/markdown"
	"muntin/internal/term"
)

// A thought is thinking that streams in: plain text, shown faint.
type thought struct{ rest string }

// event shows an event of the agent.
func (m *model) event(e agent.Event) {
	switch e.Type {
	case agent.EventMessageUpdate:
		m.update(e.Stream)
	case agent.EventMessageEnd:
		m.messageEnd(e.Message)
	case agent.EventToolStart:
		m.endStream()
		m.tools = append(m.tools, &toolView{id: e.ToolCallID, name: e.ToolName, args: e.Args, start: m.now()})
	case agent.EventToolUpdate:
		if t := m.tool(e.ToolCallID); t != nil && e.Partial != nil {
			t.tail = blockText(e.Partial.Content)
		}
	case agent.EventToolEnd:
		m.toolEnd(e)
	case agent.EventCompaction:
		m.doing = "making room: summarising what came before"
		m.since = m.now()
	case agent.EventCompactionEnd:
		m.doing = ""
		m.compacted(e)
	case agent.EventRetry:
		delay := time.Duration(e.DelayMS) * time.Millisecond
		m.note(m.theme.Warn.Render(fmt.Sprintf("↻ trying again in %s: %s", duration(delay), term.CleanLine(e.Error))))
	case agent.EventSessionInfo:
		m.facts.name = e.Name
	case agent.EventThinkingLevel:
		m.facts.thinking = string(e.Level)
	}
}

// update shows text and thinking as they come.
func (m *model) update(step *llm.Event) {
	if step == nil {
		return
	}
	switch step.Type {
	case llm.EventTextDelta:
		m.endThought()
		delta := clean(step.Delta)
		if m.answer == nil {
			if delta = strings.TrimLeft(delta, "\n"); delta == "" {
				return
			}
			m.gap()
			m.answer, m.streamed = markdown.New(m.width), true
		}
		m.lines(m.answer.Write(delta))
	case llm.EventThinkingDelta:
		m.think(clean(step.Delta))
	}
}

func (m *model) think(delta string) {
	if m.thought == nil {
		if delta = strings.TrimLeft(delta, "\n"); delta == "" {
			return
		}
		m.endAnswer()
		m.thought, m.thoughts = &thought{}, ""
		if m.thinking {
			m.gap()
		}
	}
	m.thoughts += delta
	if !m.thinking {
		return
	}
	m.thought.rest += delta
	for {
		line, rest, whole := strings.Cut(m.thought.rest, "\n")
		if !whole {
			return
		}
		m.thought.rest = rest
		m.faintLines(line)
	}
}

func (m *model) faintLines(text string) {
	for _, l := range markdown.Wrap(strings.TrimRight(text, " \t"), m.width) {
		if l == "" && m.blank {
			continue
		}
		m.line(m.theme.Dim.Italic(true).Render(l))
		m.blank = l == ""
	}
}

func (m *model) endThought() {
	if m.thought == nil {
		return
	}
	if m.thought.rest != "" {
		m.faintLines(m.thought.rest)
	}
	m.thought = nil
}

func (m *model) endAnswer() {
	if m.answer != nil {
		m.lines(m.answer.Close())
		m.answer = nil
	}
}

// endStream prints what streams in as far as it came: something else follows.
func (m *model) endStream() {
	m.endThought()
	m.endAnswer()
}

// toggleThinking shows thinking, or hides it from now on. What was hidden last is
// shown.
func (m *model) toggleThinking() {
	m.thinking = !m.thinking
	if m.thought != nil {
		m.thought.rest = ""
	}
	switch {
	case !m.thinking:
		m.endAnswer()
		m.line(m.theme.Dim.Render("thinking is hidden; Ctrl+T shows it"))
	case m.thoughts != "":
		m.endAnswer()
		m.gap()
		m.faintLines(strings.TrimRight(m.thoughts, "\n"))
	default:
		m.endAnswer()
		m.line(m.theme.Dim.Render("thinking is shown"))
	}
}

// messageEnd closes a response; one that did not come in pieces is shown now. A
// message of the user that was not shown yet is.
func (m *model) messageEnd(msg *llm.Message) {
	if msg == nil {
		return
	}
	switch msg.Role {
	case llm.RoleUser:
		text := msg.Text()
		if i := slices.Index(m.printed, text); i >= 0 {
			m.printed = slices.Delete(m.printed, i, i+1)
			return
		}
		if i := slices.IndexFunc(m.steering, func(s message) bool { return s.text == text }); i >= 0 {
			s := m.steering[i]
			m.steering = slices.Delete(m.steering, i, i+1)
			m.printPrompt(s, "steering")
			m.gap()
		}
	case llm.RoleAssistant:
		m.endStream()
		if text := strings.Trim(msg.Text(), "\n"); !m.streamed && text != "" {
			m.page(text)
		}
		m.streamed = false
		if msg.Usage != nil {
			u := msg.Usage
			if used := u.Input + u.CacheRead + u.CacheWrite + u.Output; used > 0 {
				m.facts.used = used
			}
			m.facts.cost += u.Cost.Total
		}
	}
}

func (m *model) compacted(e agent.Event) {
	switch {
	case e.Compaction == nil:
		m.note(m.theme.Warn.Render("no room was made: " + term.CleanLine(e.Error)))
	case e.Error != "":
		m.note(m.theme.Warn.Render(term.CleanLine(e.Error)))
	default:
		m.note(fmt.Sprintf("about %d tokens became %d", e.Compaction.TokensBefore, e.Compaction.TokensAfter))
	}
}
