// Package export writes a session as a page for people: HTML that stands on its
// own, or Markdown. It shows the branch from the root to the leaf, also what was
// compacted away, one entry at a time, so that a large session takes no memory.
package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/session"
	"muntin/internal/term"
)

// A page is a form that a session can be written in.
type page interface {
	head(title string, h session.Header)
	section(kind, who, when string) // begins an entry
	prose(text string)
	code(title, text string) // in full, but out of the way
	image(mime, data string)
	foot()
	err() error
}

// HTML writes the session as one HTML page without any resource from elsewhere:
// all text is escaped, a content policy forbids scripts and requests, and it is
// readable on light and dark screens.
func HTML(w io.Writer, s *session.Session) error { return write(&htmlPage{out: out{w: w}}, s) }

// Markdown writes the session as Markdown, GitHub's flavour.
func Markdown(w io.Writer, s *session.Session) error { return write(&markdownPage{out: out{w: w}}, s) }

func write(p page, s *session.Session) error {
	title := s.Name()
	if title == "" {
		title = "Session " + s.Header().ID
	}
	p.head(title, s.Header())
	err := s.Each(func(e session.Entry) error {
		entry(p, e)
		return p.err()
	})
	p.foot()
	if err == nil {
		err = p.err()
	}
	if err != nil {
		return fmt.Errorf("exporting session %s: %w", s.Header().ID, err)
	}
	return nil
}

func entry(p page, e session.Entry) {
	when := ""
	if t := e.Time(); !t.IsZero() {
		when = t.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	switch e.Type {
	case session.TypeMessage:
		message(p, *e.Message, when)
	case session.TypeCompaction:
		p.section("summary", fmt.Sprintf("Compacted (%d tokens before)", e.TokensBefore), when)
		p.code("Summary", e.Summary)
	case session.TypeBranchSummary:
		p.section("summary", "Came back from another branch", when)
		p.code("Summary", e.Summary)
	case session.TypeModelChange:
		p.section("note", "Model: "+e.Provider+"/"+e.ModelID, when)
	case session.TypeSessionInfo:
		p.section("note", "Named: "+e.Name, when)
	}
}

func message(p page, m llm.Message, when string) {
	switch m.Role {
	case llm.RoleUser:
		p.section("user", "User", when)
	case llm.RoleAssistant:
		who := "Assistant"
		if m.Model != "" {
			who += " (" + m.Model + ")"
		}
		p.section("assistant", who, when)
	case llm.RoleTool:
		who := "Result of " + m.ToolName
		if m.IsError {
			who += ", an error"
		}
		p.section("tool", who, when)
	default:
		return
	}
	for _, b := range m.Content {
		switch b.Type {
		case llm.BlockText:
			if m.Role == llm.RoleTool {
				p.code(firstLine(b.Text), b.Text)
			} else {
				p.prose(b.Text)
			}
		case llm.BlockThinking:
			p.code("Thinking", b.Thinking)
		case llm.BlockToolCall:
			p.code("Calls "+b.Name+" "+firstLine(string(b.Arguments)), indent(b.Arguments))
		case llm.BlockImage:
			p.image(b.MimeType, b.Data)
		}
	}
	if m.ErrorMessage != "" {
		p.prose("Failed: " + m.ErrorMessage)
	}
}

// clean is a text without what a terminal would obey, and with plain line ends.
func clean(s string) string { return term.Clean(strings.ReplaceAll(s, "\r\n", "\n")) }

// firstLine is the beginning of a text, for what can be folded.
func firstLine(text string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = term.CleanLine(line)
	if short := term.Truncate(line, 100); short != line || rest == "" {
		return short
	}
	return line + " …"
}

func indent(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// out writes until the first error and keeps it.
type out struct {
	w     io.Writer
	first error
}

func (o *out) write(parts ...string) {
	for _, s := range parts {
		if o.first == nil {
			_, o.first = io.WriteString(o.w, s)
		}
	}
}

func (o *out) err() error { return o.first }
