package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/tui/editor"
	"muntin/internal/term"
)

func newTestModel(width, height int) *model {
	history, _ := editor.LoadHistory("")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := newModel(Options{Theme: term.DefaultTheme(), Now: func() time.Time { return now }, Model: "scripted/test", Name: "worker", Dir: "/p"}, history)
	m.resize(width, height)
	m.facts = facts{model: "scripted/test"}
	m.opts.commands = func() []Command {
		return []Command{{Name: "help", Help: "helps"}, {Name: "model", Args: "[name]", Help: "another"}}
	}
	return m
}

// shown is what a terminal would hold: the lines that stay, a rule, and the region.
func shown(m *model) string {
	var lines []string
	for _, l := range m.out {
		lines = append(lines, ansi.Strip(l.Text))
	}
	lines = append(lines, "====")
	for _, l := range m.view().Lines {
		lines = append(lines, strings.TrimRight(ansi.Strip(l), " "))
	}
	return strings.Join(lines, "\n")
}

// keys presses keys: those in <> by name, all others type themselves.
func keys(m *model, all string) {
	for all != "" {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(all, "<"), ">"); ok && all[0] == '<' {
			m.key(name, "")
			all = rest
			continue
		}
		r := []rune(all)[0]
		m.key(string(r), string(r))
		all = all[len(string(r)):]
	}
}

func delta(m *model, kind llm.EventType, text string) {
	m.event(agent.Event{Type: agent.EventMessageUpdate, Stream: &llm.Event{Type: kind, Delta: text}})
}

func TestModelTurn(t *testing.T) {
	t.Parallel()
	m := newTestModel(40, 20)
	m.prompt(message{text: "do it", from: local}, "")
	m.status(stateWorking, "")
	delta(m, llm.EventThinkingDelta, "hm")
	delta(m, llm.EventTextDelta, "# Plan\n\nI **wi")
	if got := shown(m); got != "❯ do it\n\nhm\n\nPlan\n====\n\nI **wi\n◌ working  0s · Esc aborts\n\n❯\ntest" {
		t.Errorf("got\n%s", got)
	}
	delta(m, llm.EventTextDelta, "ll**.")
	m.event(agent.Event{Type: agent.EventMessageEnd, Message: &llm.Message{Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockText, Text: "# Plan\n\nI **will**."}}}})
	m.event(agent.Event{Type: agent.EventToolStart, ToolCallID: "1", ToolName: "bash", Args: []byte(`{"command":"make"}`)})
	partial := agent.TextResult("a\nb\r\nc\x1b[2Jd\n")
	m.event(agent.Event{Type: agent.EventToolUpdate, ToolCallID: "1", Partial: &partial})
	m.prompt(message{text: "faster", from: local}, "steering")
	m.queue = []string{"and then\nthis"}
	m.out = nil
	if got := shown(m); got != "====\n\n● bash  make\n  a\n  b\n  cd\n↳ steering: faster\n↳ next: and then …\n  Alt+Up takes them back\n◌ working  0s · Esc aborts\n\n❯\ntest · 2 waiting" {
		t.Errorf("got\n%s", got)
	}
	result := agent.TextResult("1\n2\n3\n4\n5\n6\n7\n8\n9")
	m.event(agent.Event{Type: agent.EventToolEnd, ToolCallID: "1", ToolName: "bash", Result: &result, DurationMS: 2500})
	m.event(agent.Event{Type: agent.EventMessageEnd, Message: &llm.Message{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: "faster"}}}})
	m.queue = nil
	m.footer(harness.Outcome{}, errors.New("no\nkey"))
	m.status(stateError, "no key")
	if got := shown(m); got != "\n● bash  make  2.5s\n  … 3 more lines (Ctrl+O shows them)\n  4\n  5\n  6\n  7\n  8\n  9\n\n❯ faster  (steering)\n\n✗ no\nkey\n  0.0s · 0 in · 0 out\n====\n\n❯\ntest" {
		t.Errorf("got\n%s", got)
	}
	m.out = nil
	keys(m, "<ctrl+o><ctrl+o>")
	if got := shown(m); !strings.Contains(got, "▾ bash  make\n  1\n  2\n") || !strings.Contains(got, "nothing is folded") {
		t.Errorf("got\n%s", got)
	}
}

func TestModelThinking(t *testing.T) {
	t.Parallel()
	m := newTestModel(40, 20)
	keys(m, "<ctrl+t>")
	delta(m, llm.EventThinkingDelta, "secret\nthoughts")
	if got := shown(m); strings.Contains(got, "secret") || !strings.Contains(got, "thinking …") {
		t.Errorf("got\n%s", got)
	}
	keys(m, "<ctrl+t>")
	if got := shown(m); !strings.Contains(got, "secret\nthoughts") {
		t.Errorf("got\n%s", got)
	}
}

func TestModelKeys(t *testing.T) {
	t.Parallel()
	for all, want := range map[string]string{
		"hi<enter>":                           "0 hi",
		"hi<alt+enter>":                       "1 hi",
		"a<shift+enter>b<ctrl+j>c<enter>":     "0 a\nb\nc",
		"one<enter>two<enter><up><up><enter>": "0 one, 0 two, 0 one",
		"one<enter>dr<up><down>aft<enter>":    "0 one, 0 draft",
		"x<ctrl+c>y<enter>":                   "0 y",
		"<ctrl+c>":                            "3 ",
		"<ctrl+d>":                            "6 ",
		"ab<left><ctrl+d><enter>":             "0 a",
		"<esc>":                               "2 ",
		"<esc><esc>":                          "2 , 0 /tree",
		"<alt+up><ctrl+l><shift+tab><ctrl+x>": "4 , 7 , 8 , 0 /copy",
		"   <enter>":                          "",
		"/he<enter>":                          "0 /help",
		"/mo<tab>x<enter>":                    "0 /model x",
		"/<down><enter>y<enter>":              "0 /model y",
		"see @lo<tab>!<enter>":                "0 see @agent/loop.go !",
		"see agent/<tab><tab><enter>":         "0 see agent/loop.go ",
		"@lo<esc><enter>":                     "0 @lo",
	} {
		m := newTestModel(60, 20)
		m.files = []string{"agent/loop.go", "b c.txt"}
		m.listed = m.now()
		keys(m, all)
		var got []string
		for _, in := range m.wants {
			got = append(got, fmt.Sprintf("%d %s", in.kind, in.text))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: got %q, want %q", all, s, want)
		}
	}
}

func TestModelDialog(t *testing.T) {
	t.Parallel()
	for all, want := range map[string]int{"<enter>": 1, "<down><enter>": 2, "<up><up><enter>": 0, "thi<enter>": 2, "zzz<enter><backspace><backspace><backspace><enter>": 0, "<esc>": -1} {
		m := newTestModel(40, 12)
		m.dialog = newDialog(&question{title: "Which?", items: []item{{label: "first"}, {label: "second", detail: "2"}, {label: "third"}}, at: 1})
		if got := shown(m); !strings.Contains(got, "Which?\n  first\n▸ second  2\n  third\n2 of 3") {
			t.Errorf("got\n%s", got)
		}
		keys(m, all)
		if len(m.wants) != 1 || m.wants[0].choice != want || m.dialog != nil {
			t.Errorf("%s: got %+v, want %d", all, m.wants, want)
		}
	}
	m := newTestModel(40, 12)
	m.dialog = newDialog(&question{title: "Name?", text: "old"})
	keys(m, "er<enter>")
	if len(m.wants) != 1 || m.wants[0].text != "older" {
		t.Errorf("got %+v", m.wants)
	}
}

func TestModelGiveBack(t *testing.T) {
	t.Parallel()
	m := newTestModel(40, 12)
	m.prompt(message{text: "one", from: local}, "steering")
	keys(m, "draft")
	m.giveBack([]string{"one", "two"})
	if got := m.edit.Text(); got != "one\n\ntwo\n\ndraft" || len(m.steering) != 0 {
		t.Errorf("got %q", got)
	}
}

// The region is never taller or wider than the screen, whatever is in it.
func TestModelFits(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{40, 12}, {200, 50}, {10, 3}, {8, 5}, {80, 24}} {
		m := newTestModel(size[0], size[1])
		m.facts = facts{model: "a-provider/with-a-long-model-name", thinking: "high", used: 5000, window: 10000, cost: 1.5, branch: "feature/漢字", task: "^task", name: "a name"}
		m.status(stateWorking, "")
		delta(m, llm.EventTextDelta, strings.Repeat("words that go on 漢字 ", 100))
		for i := range 6 {
			m.event(agent.Event{Type: agent.EventToolStart, ToolCallID: fmt.Sprint(i), ToolName: "bash", Args: []byte(`{"command":"` + strings.Repeat("long ", 50) + `"}`)})
			m.prompt(message{text: strings.Repeat("steer ", 40)}, "steering")
		}
		m.paste(strings.Repeat("pasted ", 60) + "\nand\nmore")
		m.popup = &popup{items: []completion{{label: strings.Repeat("x", 300), detail: "y"}, {label: "b"}}}
		check := func(what string) {
			r := m.view()
			if len(r.Lines) >= size[1] {
				t.Errorf("%v %s: %d lines", size, what, len(r.Lines))
			}
			if r.Y < 0 || r.Y >= len(r.Lines) {
				t.Errorf("%v %s: the cursor is in line %d of %d", size, what, r.Y, len(r.Lines))
			}
			for _, l := range r.Lines {
				if n := ansi.StringWidth(l); n > size[0] {
					t.Errorf("%v %s: a line of %d cells: %q", size, what, n, ansi.Strip(l))
				}
			}
		}
		check("editor")
		var items []item
		for range 50 {
			items = append(items, item{label: strings.Repeat("item ", 50), detail: strings.Repeat("detail ", 20)})
		}
		m.dialog = newDialog(&question{title: strings.Repeat("title ", 50), items: items, at: 25})
		check("dialog")
	}
}

// BenchmarkFrame is the cost of a frame while an answer streams into a long
// conversation: none of it depends on how long that is.
func BenchmarkFrame(b *testing.B) {
	m := newTestModel(100, 40)
	m.status(stateWorking, "")
	for b.Loop() {
		for range 20 { // 500 tokens a second, 25 frames
			delta(m, llm.EventTextDelta, "word ")
		}
		delta(m, llm.EventTextDelta, "\n")
		m.view()
		m.out = nil
	}
}
