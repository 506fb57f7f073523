package tui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"muntin/agent"
	"muntin/agent/llm"
	"muntin/internal/term"
)

// Limits of what is shown of a call.
const (
	maxTail   = 32 << 10 // bytes of the output of a command that runs
	tailLines = 5        // of them, on the screen
	diffLines = 30       // of an edit
	maxFolded = 20       // results that can be shown in full
)

// A toolView is a call that runs or has ended.
type toolView struct {
	id, name string
	args     json.RawMessage
	start    time.Time
	tail     string // of its output so far
	result   *agent.ToolResult
	failed   bool
	took     time.Duration
}

func (m *model) tool(id string) *toolView {
	i := slices.IndexFunc(m.tools, func(t *toolView) bool { return t.id == id })
	if i < 0 {
		return nil
	}
	return m.tools[i]
}

// toolEnd prints a call with its result.
func (m *model) toolEnd(e agent.Event) {
	t := m.tool(e.ToolCallID)
	if t == nil {
		t = &toolView{id: e.ToolCallID, name: e.ToolName, args: e.Args}
	}
	m.tools = slices.DeleteFunc(m.tools, func(o *toolView) bool { return o == t })
	t.result, t.failed, t.took = e.Result, e.IsError, time.Duration(e.DurationMS)*time.Millisecond
	m.endStream()
	m.printTool(t)
}

// title is the line that stands for a call.
func (t *toolView) title(theme term.Theme, mark string) string {
	return mark + theme.Strong.Render(term.CleanLine(t.name)) + "  " + summary(t.name, t.args)
}

// printTool prints a call and its result, apart from what is no call.
func (m *model) printTool(t *toolView) {
	if !m.inTools {
		m.gap()
	}
	m.printResult(t)
	m.inTools = true
}

func (m *model) printResult(t *toolView) {
	mark := m.theme.Good.Render("● ")
	if t.failed {
		mark = m.theme.Bad.Render("● ")
	}
	title := t.title(m.theme, mark)
	if t.took >= time.Second {
		title += m.theme.Dim.Render("  " + duration(t.took))
	}
	m.line(title)
	lines, first, limit := t.lines()
	if len(lines) > limit+1 {
		m.folded = append(m.folded, *t)
		m.folded = m.folded[max(len(m.folded)-maxFolded, 0):]
	} else {
		limit = len(lines)
	}
	cut := len(lines) - limit
	if cut > 0 && !first {
		m.line(m.theme.Dim.Render(fmt.Sprintf("  … %d more lines (Ctrl+O shows them)", cut)))
		lines = lines[cut:]
	}
	for i, l := range lines {
		if i == limit {
			m.line(m.theme.Dim.Render(fmt.Sprintf("  … %d more lines (Ctrl+O shows them)", cut)))
			return
		}
		m.line("  " + t.paint(m.theme, l))
	}
}

// expand shows the last result that was cut in full, then the one before.
func (m *model) expand() {
	n := len(m.folded)
	if n == 0 {
		m.line(m.theme.Dim.Render("nothing is folded"))
		return
	}
	t := m.folded[n-1]
	m.folded = m.folded[:n-1]
	m.endStream()
	m.gap()
	m.line(t.title(m.theme, m.theme.Dim.Render("▾ ")))
	lines, _, _ := t.lines()
	for _, l := range lines {
		m.line("  " + t.paint(m.theme, l))
	}
}

// paint colours a line of a result.
func (t *toolView) paint(theme term.Theme, line string) string {
	style := theme.Dim
	switch {
	case t.failed:
		style = theme.Bad
	case t.name != "edit" && t.name != "write":
	case strings.HasPrefix(line, "+"):
		style = theme.Good
	case strings.HasPrefix(line, "-"):
		style = theme.Bad
	}
	return style.Render(line)
}

// lines are those of a result that help a person, clean. first tells that of a long
// one the beginning counts, else the end; limit is how many are shown.
func (t *toolView) lines() (lines []string, first bool, limit int) {
	limit = resultLines
	if t.result == nil {
		return nil, false, limit
	}
	text := blockText(t.result.Content)
	switch {
	case t.failed:
	case t.name == "read", text == "(no output)":
		return nil, false, limit
	case t.name == "write":
		var a struct {
			Content string `json:"content"`
		}
		if json.Unmarshal(t.args, &a) != nil || a.Content == "" {
			return nil, false, limit
		}
		text = "+" + strings.ReplaceAll(strings.TrimRight(a.Content, "\n"), "\n", "\n+")
		first = true
	case t.name == "edit":
		var details struct {
			Diff string `json:"diff"`
		}
		if json.Unmarshal(t.result.Details, &details) != nil {
			return nil, false, limit
		}
		text, first, limit = details.Diff, true, diffLines
	case t.name == "grep", t.name == "find", t.name == "ls":
		first = true
	}
	return cleanLines(text), first, limit
}

// cleanLines are the lines of a text as a terminal would have them in the end,
// without empty ones.
func cleanLines(text string) []string {
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		l = strings.TrimRight(l, "\r")
		l = term.Clean(l[strings.LastIndexByte(l, '\r')+1:]) // a progress line, as it ended
		if strings.TrimSpace(l) != "" {
			lines = append(lines, strings.ReplaceAll(l, "\t", "    "))
		}
	}
	return lines
}

func blockText(blocks []llm.Block) string {
	var b strings.Builder
	for _, block := range blocks {
		if block.Type == llm.BlockText {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// region are the lines of a call that runs.
func (t *toolView) region(m *model) []string {
	took := ""
	if d := m.now().Sub(t.start); d >= time.Second {
		took = m.theme.Dim.Render("  " + d.Truncate(time.Second).String())
	}
	lines := []string{t.title(m.theme, m.theme.Accent.Render("● ")) + took}
	tail := t.tail
	if len(tail) > maxTail {
		tail = tail[len(tail)-maxTail:]
	}
	all := cleanLines(tail)
	for _, l := range all[max(len(all)-tailLines, 0):] {
		lines = append(lines, "  "+m.theme.Dim.Render(l))
	}
	return lines
}
