package board

import (
	"fmt"
	"slices"
	"strings"
)

// A line is a task's line from the box on, taken apart for a merge.
type line struct {
	raw    string
	task   Task
	tokens []string // as written, without the id
	id     string   // as written
}

func readLine(raw string) (line, bool) {
	b, err := Parse([]byte("- " + raw + "\n"))
	if err != nil || len(b.tasks) != 1 || b.content(b.tasks[0]) != raw {
		return line{}, false
	}
	l := line{raw: raw, task: b.tasks[0]}
	for _, w := range l.task.pos.tokens {
		text := b.text[w.start:w.end]
		if w.kind == wordID && w.value == l.task.ID {
			l.id = text
			continue
		}
		l.tokens = append(l.tokens, text)
	}
	return l, true
}

// String writes the line anew from its parts.
func (l line) String() string {
	words := append([]string{l.task.Text}, l.tokens...)
	if l.id != "" {
		words = append(words, l.id)
	}
	return "[" + l.task.Mark + "] " + strings.Join(words, " ")
}

// mergeLine merges one task's line. doubt says what both sides changed and
// neither may decide.
func (m *merger) mergeLine(base, mine, theirs string) (merged, doubt string) {
	switch {
	case mine == theirs, theirs == base:
		return mine, ""
	case mine == base:
		return theirs, ""
	}
	first, equal := m.first()
	raw := [2]string{mine, theirs}
	winner, other := raw[first], raw[1-first]
	b, ok1 := readLine(base)
	w, ok2 := readLine(winner)
	o, ok3 := readLine(other)
	if !ok1 || !ok2 || !ok3 {
		return winner, fmt.Sprintf("edited twice at the same time, also as: %s", other)
	}
	out := w
	var doubts []string
	if mark, clash := pick(b.task.Mark, w.task.Mark, o.task.Mark); clash && equal {
		doubts = append(doubts, fmt.Sprintf("one says %s, another %s", w.task.State, o.task.State))
	} else {
		out.task.Mark = mark
	}
	text, clash := pick(b.task.Text, w.task.Text, o.task.Text)
	out.task.Text = text
	if clash && equal {
		doubts = append(doubts, fmt.Sprintf("the text was changed at the same time to: %s", o.task.Text))
	}
	var unlike string
	if out.tokens, unlike = mergeTokens(b.tokens, w.tokens, o.tokens); unlike != "" && equal {
		doubts = append(doubts, "another says "+unlike)
	}
	if _, ok := readLine(out.String()); !ok {
		return winner, fmt.Sprintf("edited twice at the same time, also as: %s", other)
	}
	return out.String(), strings.Join(doubts, "; ")
}

// pick is the three-way merge of one value. clash says that both changed it; then
// the winner's counts.
func pick(base, winner, other string) (value string, clash bool) {
	switch {
	case winner == other, other == base:
		return winner, false
	case winner == base:
		return other, false
	}
	return winner, true
}

// mergeTokens merges the tokens as a set. Of those that a task has only one of,
// check and priority, the winner's counts; unlike is the other's then.
func mergeTokens(base, winner, other []string) (merged []string, unlike string) {
	for _, t := range winner {
		if slices.Contains(base, t) && !slices.Contains(other, t) && !replaced(t, other, base) {
			continue // the other took it away
		}
		merged = append(merged, t)
	}
	for _, t := range other {
		if slices.Contains(base, t) || slices.Contains(merged, t) {
			continue
		}
		single := singleKind(t)
		i := -1
		if single != "" {
			i = slices.IndexFunc(merged, func(u string) bool { return singleKind(u) == single })
		}
		switch {
		case i < 0:
			merged = append(merged, t)
		case slices.Contains(base, merged[i]):
			merged[i] = t // only the other changed it
		default:
			unlike = t
		}
	}
	return merged, unlike
}

// replaced reports whether the other side has another token of this single kind
// in the place of t, which is then exchanged where it stands.
func replaced(t string, other, base []string) bool {
	kind := singleKind(t)
	return kind != "" && slices.ContainsFunc(other, func(u string) bool {
		return singleKind(u) == kind && !slices.Contains(base, u)
	})
}

// singleKind names the kinds of token that count once.
func singleKind(token string) string {
	switch {
	case strings.HasPrefix(token, "check:"):
		return "check"
	case strings.HasPrefix(token, "!"):
		return "priority"
	}
	return ""
}
