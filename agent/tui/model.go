package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/tui/editor"
	"muntin/agent/tui/live"
	"muntin/internal/markdown"
	"muntin/internal/term"
)

// pastShown is how many messages of a conversation that goes on are shown.
const pastShown = 24

// A model is what a terminal shows, without the terminal: changes and keys go in,
// lines that stay and the region below them come out. It does no I/O.
type model struct {
	opts          Options
	theme         term.Theme
	now           func() time.Time
	width, height int

	out   []live.Line // lines that stay, not drawn yet
	blank bool        // the last of them is empty
	raw   []string    // sequences for the terminal, not written yet

	answer   *markdown.Stream // the text that streams in; nil: none
	thought  *thought         // the thinking that streams in; nil: none
	thoughts string           // the last thinking, whole
	streamed bool             // the present message came in pieces
	tools    []*toolView      // calls that run
	inTools  bool             // the last that was printed is a result
	folded   []toolView       // results that were cut, the newest last
	thinking bool             // thinking is shown

	printed  []string  // prompts that were shown before the session had them
	steering []message // that go into the turn, not taken yet
	queue    []string  // that wait for the end of the turn
	statuses []string  // of extensions
	facts    facts

	working bool
	since   time.Time
	doing   string // what it does beside answering; "" for nothing

	edit    editor.Editor
	history *editor.History
	popup   *popup
	dialog  *dialog
	files   []string // of the folder, for completion
	listed  time.Time
	lastEsc time.Time

	// What the model wants of others.
	wants      []input
	wantFiles  bool
	wantEditor bool
}

func newModel(opts Options, history *editor.History) *model {
	return &model{opts: opts, theme: opts.Theme, now: opts.Now, width: term.DefaultWidth, height: term.DefaultHeight,
		blank: true, thinking: true, history: history}
}

func (m *model) resize(width, height int) {
	m.width, m.height = max(width, markdown.MinWidth), max(height, 3)
	if m.answer != nil {
		m.answer.Resize(m.width)
	}
}

// line prints a line of ours, cut at the width.
func (m *model) line(text string) {
	m.out = append(m.out, live.Line{Text: term.Truncate(text, m.width)})
	m.blank, m.inTools = text == "", false
}

// lines prints lines of Markdown.
func (m *model) lines(all []markdown.Line) {
	for _, l := range all {
		if l.Text == "" && m.blank {
			continue
		}
		m.out = append(m.out, live.Line{Text: l.Text, Wraps: l.Wraps})
		m.blank, m.inTools = l.Text == "", false
	}
}

// gap leaves an empty line, if there is none yet.
func (m *model) gap() {
	if !m.blank {
		m.line("")
	}
}

func (m *model) head(o Options, notices []string) {
	m.opts = o
	m.line(m.theme.Title.Render(term.CleanLine(o.Name)) + m.theme.Dim.Render("  "+term.CleanLine(o.Model)+"  "+term.CleanLine(shortDir(o.Dir))))
	for _, n := range notices {
		m.line(m.theme.Warn.Render(term.CleanLine(n)))
	}
}

func (m *model) note(text string) {
	m.endStream()
	for _, l := range strings.Split(ansi.Wrap(text, m.width, ""), "\n") {
		m.line(term.Paint(m.theme.Dim, l))
	}
}

func (m *model) page(text string) {
	m.endStream()
	m.gap()
	m.lines(markdown.Render(clean(text), m.width))
}

// notice shows what an extension says; what answers a command of the person stands by
// itself.
func (m *model) notice(n harness.Notice) {
	m.endStream()
	head, style := noticeHead(m.theme, n)
	if head == "" {
		m.gap()
	}
	for i, l := range markdown.Wrap(clean(strings.TrimRight(n.Text, "\n")), max(m.width-term.Width(head), 4)) {
		before := strings.Repeat(" ", term.Width(head))
		if i == 0 {
			before = m.theme.Dim.Render(head)
		}
		m.line(before + style.Render(l))
	}
}

// noticeHead is what stands before a notice, and how its text looks.
func noticeHead(theme term.Theme, n harness.Notice) (string, lipgloss.Style) {
	switch n.Level {
	case harness.LevelReply:
		return "", lipgloss.NewStyle()
	case "warning":
		return term.CleanLine(n.Extension) + ": ", theme.Warn
	case "error":
		return term.CleanLine(n.Extension) + ": ", theme.Bad
	}
	return term.CleanLine(n.Extension) + ": ", lipgloss.NewStyle()
}

func (m *model) copy(text string) { m.raw = append(m.raw, ansi.SetSystemClipboard(text)) }

// status reports the state to the terminal, and begins or ends the time of work.
func (m *model) status(st state, msg string) {
	m.raw = append(m.raw, statusSequence(st, msg))
	m.working = st == stateWorking
	m.doing = ""
	if m.working {
		m.since = m.now()
	}
}

func (m *model) atWork() bool { return m.working || len(m.tools) > 0 || m.doing != "" }

// prompt shows a message. One that steers is shown in the region until the model
// has it.
func (m *model) prompt(msg message, how string) {
	if how != "" {
		m.steering = append(m.steering, msg)
		return
	}
	m.printPrompt(msg, how)
	if !msg.resume {
		m.printed = append(m.printed, msg.text)
	}
}

func (m *model) printPrompt(msg message, how string) {
	m.endStream()
	m.gap()
	notes := []string{}
	if msg.from != local && msg.from != "" {
		notes = append(notes, msg.from)
	}
	if how != "" {
		notes = append(notes, how)
	}
	after := ""
	if len(notes) > 0 {
		after = m.theme.Dim.Render("  (" + strings.Join(notes, ", ") + ")")
	}
	lines := markdown.Wrap(clean(msg.text), max(m.width-term.Width(promptMark), 4))
	const shown = 40 // of a prompt that is a whole file
	if extra := len(lines) - shown; extra > 1 {
		lines = append(lines[:shown:shown], fmt.Sprintf("… %d more lines", extra))
	}
	for i, l := range lines {
		mark := "  "
		if i == 0 {
			mark = m.theme.Command.Render(promptMark)
		}
		l = mark + m.theme.Strong.Render(l)
		if i == len(lines)-1 {
			l += after
		}
		m.line(l)
	}
}

// past shows the end of what was said before.
func (m *model) past(all []llm.Message) {
	if cut := len(all) - pastShown; cut > 0 {
		m.line(m.theme.Dim.Render(fmt.Sprintf("… %d earlier messages: /tree, /export", cut)))
		all = all[cut:]
	}
	calls := map[string]llm.Block{}
	for _, msg := range all {
		switch msg.Role {
		case llm.RoleUser:
			m.printPrompt(message{text: msg.Text()}, "")
		case llm.RoleAssistant:
			for _, c := range msg.ToolCalls() {
				calls[c.ID] = c
			}
			if text := strings.Trim(msg.Text(), "\n"); text != "" {
				m.page(text)
			}
		case llm.RoleTool:
			m.printTool(&toolView{
				name: msg.ToolName, args: calls[msg.ToolCallID].Arguments, failed: msg.IsError,
				result: &agent.ToolResult{Content: msg.Content, Details: msg.Details},
			})
		}
	}
	m.gap()
}

// giveBack puts texts into the editor, before what stands there.
func (m *model) giveBack(texts []string) {
	m.steering = slices.DeleteFunc(m.steering, func(s message) bool { return slices.Contains(texts, s.text) })
	if len(texts) == 0 {
		return
	}
	if !m.edit.Empty() {
		texts = append(texts, m.edit.Text())
	}
	m.edit.Set(strings.Join(texts, "\n\n"))
}

func (m *model) footer(o harness.Outcome, err error) {
	m.endStream()
	m.tools, m.doing = nil, ""
	facts := footerText(o)
	failure := o.Failure(err)
	switch {
	case aborted(failure):
		m.line(m.theme.Warn.Render("■ aborted") + m.theme.Dim.Render(" · "+facts))
	case failure != nil:
		for _, l := range markdown.Wrap("✗ "+clean(failure.Error()), m.width) {
			m.line(m.theme.Bad.Render(l))
		}
		m.line(m.theme.Dim.Render("  " + facts))
	default:
		m.line(m.theme.Good.Render("✓ ") + m.theme.Dim.Render(facts))
	}
}

// leave is the end: what streams in is printed as far as it came.
func (m *model) leave() {
	m.endStream()
	m.dialog, m.popup = nil, nil
}

func (m *model) want(in input) { m.wants = append(m.wants, in) }
