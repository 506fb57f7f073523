package dash

import (
	"fmt"
	"strings"

	"muntin/internal/term"
)

// needRows are what waits for a person. Enter settles it where a command does,
// else it goes to where a person can.
func (f frame) needRows() []row {
	rows := make([]row, 0, len(f.Needs))
	for _, n := range f.Needs {
		rows = append(rows, row{
			key:  string(n.Kind) + " " + n.Agent + " " + n.Task,
			find: func() string { return strings.Join([]string{string(n.Kind), n.Agent, n.Task, n.Text}, " ") },
			text: func(int) string { return f.needRow(n) },
			acts: func() []act { return f.needActs(n) },
		})
	}
	return rows
}

func (f frame) needRow(n Need) string {
	style := f.theme.Warn
	if n.Kind == NeedConflict || n.Kind == NeedRevive {
		style = f.theme.Bad
	}
	who := n.Agent
	if n.Task != "" && n.Kind != NeedAnswer {
		who = n.Task
	}
	when := "     "
	if !n.Since.IsZero() {
		when = pad(f.clock(n.Since, "15:04"), 6)
	}
	return style.Render(pad(string(n.Kind), 8)) + "  " + f.theme.Dim.Render(when) + "  " +
		f.theme.Strong.Render(pad(clean(who), min(nameMost, max(f.width/6, 6)))) + "  " + clean(n.Text)
}

func (f frame) needActs(n Need) []act {
	var acts []act
	enter := "enter"
	if n.Answer != nil && f.canDo {
		acts = append(acts, act{key: enter, label: n.Label, argv: n.Answer, sure: n.Kind != NeedPlan})
		enter = "v"
	}
	if n.Kind == NeedPlan {
		acts = append(acts, act{key: "p", label: "read the plan", plan: true})
	}
	if a, ok := f.View.find(n.Agent); ok {
		if n.Kind == NeedAnswer && f.canDo {
			acts = append(acts, act{key: enter, label: "answer in its pane", argv: []string{"attach", a.Name, "--run", f.Run}, tty: true})
			enter = "v"
		}
		acts = append(acts, act{key: enter, label: "look", open: a.Name})
		for _, more := range f.agentActs(a) {
			if more.key == "s" || more.key == "d" || more.key == "l" || more.key == "a" && n.Kind != NeedAnswer {
				acts = append(acts, more)
			}
		}
	}
	if n.Task == "" || n.Kind == NeedAnswer {
		return acts
	}
	return append(acts,
		act{key: "o", label: "reopen", argv: []string{"todo", "reopen", n.Task}},
		act{key: "t", label: "tick", argv: []string{"todo", "done", n.Task}, sure: true},
		act{key: "x", label: "cancel", argv: []string{"todo", "cancel", n.Task}, sure: true})
}

func (f frame) overlapRows() []row {
	rows := make([]row, 0, len(f.Overlaps))
	names := 0
	for _, o := range f.Overlaps {
		names = max(names, term.Width(o.A)+term.Width(o.B)+3)
	}
	for _, o := range f.Overlaps {
		where := ""
		if o.Where != "" {
			where = " " + f.theme.Dim.Render(clean(o.Where))
		}
		rows = append(rows, row{
			key: o.A + " " + o.B + " " + o.Path, find: func() string { return o.A + " " + o.B + " " + o.Path },
			text: func(int) string {
				pair := f.theme.Strong.Render(clean(o.A)) + f.theme.Warn.Render(" ↔ ") + f.theme.Strong.Render(clean(o.B))
				return pad(pair, names) + "  " + clean(o.Path) + where + "  " + f.theme.Dim.Render(clean(o.Kind))
			},
			acts: func() []act {
				return []act{
					{key: "enter", label: "diff of " + o.A, argv: []string{"diff", o.A, "--run=" + f.Run}, page: true},
					{key: "o", label: "overlap", argv: []string{"overlap", f.Run}, page: true},
					{key: "s", label: "send", argv: []string{"send", o.A, textMark, "--run", f.Run}, ask: "prompt for " + o.A},
				}
			},
		})
	}
	return rows
}

func (f frame) messageStyle(state string) paint {
	switch state {
	case "done", "accepted":
		return f.theme.Good
	case "failed":
		return f.theme.Bad
	case "held", "queued":
		return f.theme.Warn
	}
	return f.theme.Busy
}

func (f frame) messageActs(m Message) []act {
	run := []string{"--run", f.Run}
	acts := []act{{key: "enter", label: "show", argv: append([]string{"msg", "show", m.Agent, m.ID}, run...), page: true}}
	switch m.State {
	case "failed":
		acts = append(acts, act{key: "r", label: "send again", argv: append([]string{"msg", "retry", m.Agent, m.ID}, run...)})
	case "queued", "held":
		acts = append(acts, act{key: "x", label: "take back", argv: append([]string{"msg", "cancel", m.Agent, m.ID}, run...), sure: true})
	}
	return acts
}

func (f frame) messageRows() []row {
	rows := make([]row, 0, len(f.messages))
	name, from := 4, 4
	for _, m := range f.messages {
		name = max(name, min(term.Width(m.Agent), nameMost))
		from = max(from, min(term.Width(m.From), 12))
	}
	for _, m := range f.messages {
		rows = append(rows, row{
			key:  m.ID,
			find: func() string { return strings.Join([]string{m.Agent, m.From, m.Kind, m.State, m.Text, m.Why}, " ") },
			text: func(int) string {
				text := clean(m.Text)
				if m.Why != "" {
					text = f.messageStyle(m.State).Render(clean(m.Why)) + "  " + text
				}
				return f.theme.Dim.Render(pad(f.clock(m.Time, "15:04"), 6)) + "  " + f.messageStyle(m.State).Render(pad(m.State, 9)) + "  " +
					f.theme.Dim.Render(pad(m.Kind, 8)) + "  " + f.theme.Dim.Render(pad(clean(m.From), from)) + f.theme.Dim.Render(" → ") +
					f.theme.Strong.Render(pad(clean(m.Agent), name)) + "  " + text
			},
			acts: func() []act { return f.messageActs(m) },
		})
	}
	return rows
}

func (f frame) storyRows() []row {
	rows := make([]row, 0, len(f.Log))
	for i, l := range f.Log {
		key := fmt.Sprint(l.Time.UnixNano(), l.Text)
		if i > 0 && l == f.Log[i-1] {
			key += fmt.Sprint(i)
		}
		rows = append(rows, row{key: key, find: func() string { return l.Text }, text: func(int) string { return f.logLine(l) }})
	}
	return rows
}

func (f frame) logLine(l Line) string {
	mark, style := "·", f.theme.Dim
	switch l.Level {
	case LevelGood:
		mark, style = "✓", f.theme.Good
	case LevelWarn:
		mark, style = "!", f.theme.Warn
	case LevelBad:
		mark, style = "✗", f.theme.Bad
	case LevelInfo:
	}
	return f.theme.Dim.Render(l.Time.In(f.now.Location()).Format("15:04:05")) + " " + style.Render(mark) + " " + clean(l.Text)
}
