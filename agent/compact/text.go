package compact

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"muntin/agent/llm"
)

// resultLimit bounds what a summary sees of one tool's result, in bytes.
const resultLimit = 2000

// transcript is a conversation as text, one piece a message. Thinking is left out.
func transcript(items []Item) []string {
	var pieces []string
	for _, it := range items {
		m := it.Message
		text := m.Text()
		if images := slices.IndexFunc(m.Content, func(b llm.Block) bool { return b.Type == llm.BlockImage }); images >= 0 {
			text = strings.TrimSpace(text + "\n[with an image]")
		}
		switch m.Role {
		case llm.RoleUser:
			pieces = append(pieces, "[User]: "+text)
		case llm.RoleTool:
			what := "[Tool result]: "
			if m.IsError {
				what = "[Tool error]: "
			}
			pieces = append(pieces, what+shorten(text, resultLimit))
		case llm.RoleAssistant:
			if m.StopReason == llm.StopError || m.StopReason == llm.StopAborted {
				continue
			}
			if text != "" {
				pieces = append(pieces, "[Assistant]: "+text)
			}
			for _, call := range m.ToolCalls() {
				pieces = append(pieces, fmt.Sprintf("[Assistant calls]: %s(%s)", call.Name, shorten(string(call.Arguments), 4*resultLimit)))
			}
		}
	}
	return pieces
}

// takePieces joins pieces up to size bytes. One that is longer by itself is
// taken in parts.
func takePieces(pieces []string, size int) (text string, rest []string) {
	var b strings.Builder
	for i, p := range pieces {
		if b.Len() > 0 && b.Len()+len(p)+2 > size {
			return b.String(), pieces[i:]
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		if len(p) > size {
			at := size
			for at > 0 && !utf8.RuneStart(p[at]) {
				at--
			}
			b.WriteString(p[:at])
			return b.String(), append([]string{"[continued]: " + p[at:]}, pieces[i+1:]...)
		}
		b.WriteString(p)
	}
	return b.String(), nil
}

// shorten keeps the beginning and the end of a text.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, tail := limit*2/3, len(s)-limit/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", s[:head], tail-head, s[tail:])
}

// The sizes of a summary that no model made, in bytes.
const (
	digestPrevious = 12_000
	digestEach     = 600
	digestCount    = 30
)

// digest is a summary in the words that stand there.
func digest(items []Item, previous string) string {
	var asked, said []string
	calls := map[string]int{}
	for _, it := range items {
		m := it.Message
		switch text := strings.TrimSpace(m.Text()); {
		case m.Role == llm.RoleUser && text != "":
			asked = append(asked, text)
		case m.Role == llm.RoleAssistant && m.StopReason != llm.StopError && m.StopReason != llm.StopAborted:
			for _, call := range m.ToolCalls() {
				calls[call.Name]++
			}
			if text != "" {
				said = append(said, text)
			}
		}
	}
	var b strings.Builder
	b.WriteString("This summary was put together without a model: it holds shortened pieces of the conversation.\n")
	if previous != "" {
		b.WriteString("\n## What came before\n\n" + shorten(previous, digestPrevious) + "\n")
	}
	list(&b, "What the user asked", asked, true)
	list(&b, "What the agent said", said, false)
	if len(calls) > 0 {
		b.WriteString("\n## Tools that were called\n\n")
		names := make([]string, 0, len(calls))
		for name := range calls {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(&b, "- %s, %d times\n", name, calls[name])
		}
	}
	return b.String()
}

// list writes the newest of texts, and the very first where it says what all is about.
func list(b *strings.Builder, title string, texts []string, first bool) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	skipped := max(len(texts)-digestCount, 0)
	if skipped > 0 && first {
		fmt.Fprintf(b, "- %s\n", shorten(texts[0], 4*digestEach))
	}
	if skipped > 0 {
		fmt.Fprintf(b, "- (%d more are left out)\n", skipped)
	}
	for _, t := range texts[skipped:] {
		fmt.Fprintf(b, "- %s\n", shorten(t, digestEach))
	}
}
