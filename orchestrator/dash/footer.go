package dash

import (
	"strings"

	"muntin/internal/term"
)

// footer says what can be done now: the keys, and the command line that the
// first of them is. It asks when there is a question.
func (f frame) footer() []string {
	low := f.height < lowHeight
	keys, command := f.keyLine(), f.commandLine()
	if low && command == "" || low && f.input == nil && f.sure == nil && f.status == "" && f.busy == "" {
		return []string{term.Truncate(keys, f.width)}
	}
	if low {
		return []string{command}
	}
	return []string{command, term.Truncate(keys, f.width)}
}

// keyLine names the keys.
func (f frame) keyLine() string {
	switch {
	case f.leave:
		return f.question()
	case f.input != nil:
		return f.hints("enter run", "esc leave it")
	case f.sure != nil:
		return f.theme.Warn.Render("Run it? [y/n]")
	case f.filtering:
		return f.hints("enter keep", "esc show all")
	case f.page != nil:
		return f.hints("↑↓ scroll", "esc back")
	case f.help:
		return f.hints("any key goes back")
	}
	var parts []string
	if f.tab == TabAgent {
		parts = append(parts, "←→ agent")
	}
	for _, a := range f.acts() {
		parts = append(parts, a.key+" "+a.label)
	}
	last := []string{"/ filter", "? help", "q leave"}
	if f.tab == TabAgent {
		last = last[1:]
	}
	line := f.hints(append(parts, last...)...)
	for len(parts) > 0 && term.Width(line) > f.width {
		parts = parts[:len(parts)-1]
		line = f.hints(append(append([]string{}, parts...), last...)...)
	}
	return line
}

// hints writes keys and what they do.
func (f frame) hints(parts ...string) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString(f.theme.Dim.Render("  "))
		}
		key, label, _ := strings.Cut(p, " ")
		b.WriteString(f.theme.Strong.Render(key) + " " + f.theme.Dim.Render(clean(label)))
	}
	return b.String()
}

// commandLine is the command that the key at hand is, or what came of the last.
func (f frame) commandLine() string {
	prompt := f.theme.Dim.Render("$ ")
	switch {
	case f.input != nil:
		return f.inputLine()
	case f.sure != nil:
		return prompt + f.theme.Command.Render(term.Truncate(clean(f.sure.line("")), f.width-2))
	case f.filtering:
		return f.theme.Accent.Render("/") + clean(f.filter) + f.theme.Strong.Render("▏")
	case f.busy != "":
		return f.theme.Busy.Render("… ") + f.theme.Dim.Render(term.Truncate(clean(f.busy), f.width-2))
	case f.status != "" && f.bad:
		return f.theme.Bad.Render("✗ " + term.Truncate(clean(f.status), f.width-2))
	case f.status != "":
		return f.theme.Good.Render("✓ ") + f.theme.Dim.Render(term.Truncate(clean(f.status), f.width-2))
	case f.filter != "":
		return f.theme.Accent.Render("/") + clean(f.filter) + f.theme.Dim.Render("  esc shows all")
	case f.page != nil || f.help:
		return ""
	}
	for _, a := range f.acts() {
		if a.argv != nil {
			return prompt + f.theme.Dim.Render(term.Truncate(a.key+" is  "+clean(a.line("")), f.width-2))
		}
	}
	if len(f.Hints) > 0 {
		return f.theme.Dim.Render(term.Truncate(clean(strings.Join(f.Hints, "  ·  ")), f.width))
	}
	return ""
}

// inputLine shows what is being typed within the command that it becomes. The
// end of a long text is what is seen.
func (f frame) inputLine() string {
	before, after, _ := strings.Cut(f.input.act.line(""), `"…"`)
	text := clean(string(f.input.text))
	room := f.width - 2 - term.Width(before) - term.Width(after) - 3
	if room < 10 {
		before, after = clean(f.input.act.ask)+": ", ""
		room = f.width - 2 - term.Width(before) - 3
	}
	cut := []rune(text)
	for term.Width(string(cut)) > max(room, 1) && len(cut) > 0 {
		cut = cut[1:]
	}
	return f.theme.Dim.Render("$ ") + f.theme.Command.Render(before+`"`) + string(cut) + f.theme.Strong.Render("▏") + f.theme.Command.Render(`"`+after)
}

// helpLines explain the keys, those of the present tab first.
func (f frame) helpLines(height int) []string {
	lines := []string{f.title("Keys", "", f.width)}
	pair := func(key, what string) {
		lines = append(lines, "  "+f.theme.Strong.Render(pad(key, 12))+" "+what)
	}
	for _, a := range f.acts() {
		what := clean(a.label)
		if a.argv != nil {
			what = pad(what, 18) + " " + f.theme.Dim.Render(clean(a.line("")))
		}
		pair(a.key, what)
	}
	if len(lines) > 1 {
		lines = append(lines, "")
	}
	for _, k := range [][2]string{
		{"1 … 7  tab", "views: fleet, board, agent, overlap, messages, what needs you, story"},
		{"↑ ↓  j k", "choose; page up and down, home and end; the mouse and its wheel"},
		{"← →", "the agent before and after, in the agent view"},
		{"/", "filter: rows that have all the words"},
		{"esc", "back, or all rows again"},
		{"q  ctrl+c", "leave"},
	} {
		pair(k[0], f.theme.Dim.Render(k[1]))
	}
	return lines[:min(len(lines), height)]
}
