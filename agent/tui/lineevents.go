package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"muntin/agent"
	"muntin/agent/llm"
	"muntin/internal/term"
)

// resultLines is how many lines of a tool's result are shown.
const resultLines = 6

// stream is what is known of the response that is being shown.
type stream struct {
	shown    bool   // text of the response was shown as it came
	thinking bool   // the last text was thinking
	tool     string // the call whose line was written last
	calls    map[string]string
	wrap     wrapper
	style    lipgloss.Style // of what wrap holds back
}

func (s *screen) event(e agent.Event) {
	switch e.Type {
	case agent.EventMessageUpdate:
		s.write(func(b *strings.Builder) { s.update(b, e) })
	case agent.EventMessageEnd:
		s.write(func(b *strings.Builder) { s.messageEnd(b, e) })
	case agent.EventToolStart:
		s.write(func(b *strings.Builder) { s.toolStart(b, e) })
	case agent.EventToolEnd:
		s.write(func(b *strings.Builder) { s.toolEnd(b, e) })
	case agent.EventCompaction:
		s.write(func(b *strings.Builder) { s.line(b, s.theme.Dim.Render("making room: summarising what came before")) })
	case agent.EventCompactionEnd:
		s.write(func(b *strings.Builder) { s.compacted(b, e) })
	case agent.EventRetry:
		delay := time.Duration(e.DelayMS) * time.Millisecond
		s.write(func(b *strings.Builder) {
			s.line(b, s.theme.Warn.Render(fmt.Sprintf("↻ trying again in %s: %s", duration(delay), term.CleanLine(e.Error))))
		})
	}
}

// compacted tells what became of making room.
func (s *screen) compacted(b *strings.Builder, e agent.Event) {
	switch {
	case e.Compaction == nil:
		s.line(b, s.theme.Warn.Render("no room was made: "+term.CleanLine(e.Error)))
	case e.Error != "":
		s.line(b, s.theme.Warn.Render(term.CleanLine(e.Error)))
	default:
		s.line(b, s.theme.Dim.Render(fmt.Sprintf("about %d tokens became %d", e.Compaction.TokensBefore, e.Compaction.TokensAfter)))
	}
}

// update shows text and thinking as they come.
func (s *screen) update(b *strings.Builder, e agent.Event) {
	step := e.Stream
	if step == nil || step.Type != llm.EventTextDelta && step.Type != llm.EventThinkingDelta {
		return
	}
	thinking := step.Type == llm.EventThinkingDelta
	style := lipgloss.NewStyle()
	if thinking {
		style = s.theme.Dim
	}
	delta := step.Delta
	if !s.streams.shown || s.streams.thinking != thinking {
		s.gap(b)
		delta = strings.TrimLeft(delta, "\n")
	}
	if delta == "" {
		return
	}
	s.streams.shown, s.streams.thinking, s.streams.tool = true, thinking, ""
	s.more(b, delta, style)
}

// messageEnd closes a response; one that did not come in pieces is shown now.
func (s *screen) messageEnd(b *strings.Builder, e agent.Event) {
	m := e.Message
	if m == nil || m.Role != llm.RoleAssistant {
		return
	}
	if text := strings.Trim(m.Text(), "\n"); !s.streams.shown && text != "" {
		s.gap(b)
		s.text(b, text, lipgloss.NewStyle(), 0)
	}
	s.fresh(b)
	s.streams.shown = false
}

func (s *screen) toolStart(b *strings.Builder, e agent.Event) {
	if s.streams.calls == nil {
		s.streams.calls = map[string]string{}
	}
	text := summary(e.ToolName, e.Args)
	s.streams.calls[e.ToolCallID] = text
	if s.streams.tool == "" {
		s.gap(b)
	}
	s.toolLine(b, e, s.theme.Accent.Render("● "))
}

func (s *screen) toolLine(b *strings.Builder, e agent.Event, mark string) {
	s.line(b, mark+s.theme.Strong.Render(term.CleanLine(e.ToolName))+"  "+s.streams.calls[e.ToolCallID])
	s.streams.tool = e.ToolCallID
}

// toolEnd shows what of a result helps a person: the end of a command's output,
// the changed lines of an edit, and every error.
func (s *screen) toolEnd(b *strings.Builder, e agent.Event) {
	lines, cut := resultText(e)
	if len(lines) == 0 {
		return
	}
	if s.streams.tool != e.ToolCallID { // another call's line came between
		s.toolLine(b, e, s.theme.Dim.Render("↳ "))
	}
	if cut > 0 {
		s.line(b, s.theme.Dim.Render(fmt.Sprintf("  … %d more lines", cut)))
	}
	for _, l := range lines {
		style := s.theme.Dim
		switch {
		case e.IsError:
			style = s.theme.Bad
		case e.ToolName == "edit" && strings.HasPrefix(l, "+"):
			style = s.theme.Good
		case e.ToolName == "edit" && strings.HasPrefix(l, "-"):
			style = s.theme.Bad
		}
		s.line(b, term.Paint(style, "  "+term.CleanLine(l)))
	}
}

// resultText gives the lines to show, and how many before them are not.
func resultText(e agent.Event) (lines []string, cut int) {
	if e.Result == nil {
		return nil, 0
	}
	text := blockText(e.Result.Content)
	switch {
	case e.IsError:
	case e.ToolName == "read", e.ToolName == "write", text == "(no output)":
		return nil, 0
	case e.ToolName == "edit":
		var details struct {
			Diff string `json:"diff"`
		}
		if json.Unmarshal(e.Result.Details, &details) != nil {
			return nil, 0
		}
		text = changedLines(details.Diff)
	}
	lines = cleanLines(text)
	cut = max(len(lines)-resultLines, 0)
	if e.ToolName == "edit" && !e.IsError {
		return lines[:len(lines)-cut], 0
	}
	return lines[cut:], cut
}

// changedLines leaves the context out of a diff.
func changedLines(diff string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(diff, "\n") {
		if strings.HasPrefix(l, "+") || strings.HasPrefix(l, "-") {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}
