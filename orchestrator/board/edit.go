package board

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"muntin/internal/id"
)

// ErrNoTask says that the board has no task with the id asked for.
var ErrNoTask = errors.New("no such task")

// A splice replaces the bytes of a span.
type splice struct {
	span
	text string
}

// SetState writes the mark of a state. Unknown cannot be set. The reason
// below a blocked task stays; see SetReason.
func (b *Board) SetState(taskID string, s State) error {
	return b.edit("setting the state", taskID, func(t Task) (change, error) {
		mark := markOf(s)
		if mark == "" {
			return change{}, fmt.Errorf("state %q has no mark", s)
		}
		if t.State == s {
			return change{}, nil
		}
		return change{
			splices: []splice{{span{t.pos.markStart, t.pos.markEnd}, mark}},
			want:    func(t Task) bool { return t.State == s },
		}, nil
	})
}

// SetClaim makes sure that @name is the last name of the task, which is the
// one that counts on a claimed task. The mark stays as it is.
func (b *Board) SetClaim(taskID, name string) error {
	return b.edit("claiming", taskID, func(t Task) (change, error) {
		if err := id.CheckName("agent", name); err != nil {
			return change{}, err
		}
		if n := len(t.Assignees); n > 0 && t.Assignees[n-1] == name {
			return change{}, nil
		}
		c := b.removeName(t, name)
		at, text := t.tokenPlace("@" + name)
		for _, w := range slices.Backward(t.pos.tokens) {
			if w.kind == wordName && w.value != name {
				at, text = w.end, " @"+name
				break
			}
		}
		c.splices = append(c.splices, splice{span{at, at}, text})
		c.want = func(t Task) bool { return len(t.Assignees) > 0 && t.Assignees[len(t.Assignees)-1] == name }
		return c, nil
	})
}

// ClearClaim takes @name away from the task, wherever among its tokens. The
// mark stays as it is.
func (b *Board) ClearClaim(taskID, name string) error {
	return b.edit("releasing", taskID, func(t Task) (change, error) {
		c := b.removeName(t, name)
		c.want = func(t Task) bool { return !slices.Contains(t.Assignees, name) }
		return c, nil
	})
}

// SetText replaces the text of the task's line and keeps its tokens. The text
// is one line and may not end in words that would be read as tokens.
func (b *Board) SetText(taskID, text string) error {
	return b.edit("setting the text", taskID, func(t Task) (change, error) {
		text, err := oneLine(text)
		if err != nil || text == t.Text {
			return change{}, err
		}
		s := splice{span{t.pos.textStart, t.pos.textEnd}, text}
		if t.pos.textStart == t.pos.textEnd {
			s.text += " "
		}
		return change{splices: []splice{s}, want: func(t Task) bool { return t.Text == text }}, nil
	})
}

// SetReason writes why the task is blocked in a line below it ("Blocked: …"),
// replaces the one that is there, or takes it away when reason is empty. Line
// breaks and control characters in reason become spaces.
func (b *Board) SetReason(taskID, reason string) error {
	return b.edit("setting the reason", taskID, func(t Task) (change, error) {
		reason := strings.Join(strings.FieldsFunc(reason, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
		want := func(t Task) bool { return t.Reason == reason }
		old := t.pos.reason
		switch {
		case reason == t.Reason && (reason != "" || old == span{}):
			return change{}, nil
		case reason == "":
			return change{splices: []splice{{old, ""}}, want: want}, nil
		case old == span{}:
			old = span{t.pos.paraEnd, t.pos.paraEnd}
		}
		line := t.indent(b.src) + reasonPrefix + " " + reason
		return change{splices: []splice{b.lineSplice(old, line)}, want: want}, nil
	})
}

// EnsureIDs gives an id to every task that has none, made from its text, and
// returns the new ids. Items with an unknown mark get none: they may be no tasks.
func (b *Board) EnsureIDs() ([]string, error) {
	taken := map[string]bool{}
	for _, t := range b.tasks {
		taken[t.ID] = true
	}
	var c change
	var ids []string
	targets := map[int]string{}
	for _, t := range b.tasks {
		if t.ID != "" || t.State == Unknown {
			continue
		}
		newID := freeID(t.Text, taken)
		taken[newID] = true
		ids = append(ids, newID)
		targets[t.index] = newID
		c.splices = append(c.splices, splice{span{t.pos.contentEnd, t.pos.contentEnd}, " ^" + newID})
	}
	if len(ids) == 0 {
		return nil, nil
	}
	err := b.apply(c.splices, func(next *Board) error {
		for i, want := range targets {
			if next.tasks[i].ID != want {
				return fmt.Errorf("line %d takes no id", b.tasks[i].Line)
			}
		}
		return b.sameOthers(next, func(i int) bool { _, ok := targets[i]; return ok })
	})
	if err != nil {
		return nil, fmt.Errorf("giving ids: %w", err)
	}
	return ids, nil
}

// A change is what an edit does to one task, and how it is seen to have worked.
type change struct {
	splices []splice
	want    func(Task) bool
}

// edit changes one task and makes sure that the new text means what was
// wanted and that no other task changed. Else the board stays as it was.
func (b *Board) edit(what, taskID string, plan func(Task) (change, error)) error {
	t, err := b.find(taskID)
	if err != nil {
		return fmt.Errorf("%s of a task: %w", what, err)
	}
	c, err := plan(t)
	if err != nil {
		return fmt.Errorf("%s of task %s: %w", what, taskID, err)
	}
	if len(c.splices) == 0 {
		return nil
	}
	err = b.apply(c.splices, func(next *Board) error {
		if len(next.tasks) != len(b.tasks) || !c.want(next.tasks[t.index]) || next.tasks[t.index].ID != t.ID {
			return errors.New("the new text would be read as something else")
		}
		return b.sameOthers(next, func(i int) bool { return i == t.index })
	})
	if err != nil {
		return fmt.Errorf("%s of task %s: %w", what, taskID, err)
	}
	return nil
}

func (b *Board) find(taskID string) (Task, error) {
	t, ok := b.Task(taskID)
	if !ok {
		return Task{}, fmt.Errorf("%w: ^%s", ErrNoTask, taskID)
	}
	for _, other := range b.tasks[t.index+1:] {
		if other.ID == taskID {
			return Task{}, fmt.Errorf("id ^%s is used in lines %d and %d: give one of them another id", taskID, t.Line, other.Line)
		}
	}
	return t, nil
}

// apply makes the new text, asks check about it, and takes it over. The
// splices are in the order of the text and do not overlap.
func (b *Board) apply(splices []splice, check func(next *Board) error) error {
	out := make([]byte, 0, len(b.src)+64)
	at := 0
	for _, s := range splices {
		out = append(out, b.src[at:s.start]...)
		out = append(out, s.text...)
		at = s.end
	}
	out = append(out, b.src[at:]...)
	next, err := Parse(out)
	if err != nil {
		return err
	}
	if err := check(next); err != nil {
		return err
	}
	*b = *next
	return nil
}

// sameOthers tells whether the tasks that are not touched are the same in next.
func (b *Board) sameOthers(next *Board, touched func(i int) bool) error {
	if len(next.tasks) != len(b.tasks) {
		return errors.New("the number of tasks would change")
	}
	for i, t := range b.tasks {
		if !touched(i) && !next.tasks[i].same(t) {
			return fmt.Errorf("the task in line %d would change", t.Line)
		}
	}
	return nil
}

func (t Task) same(u Task) bool {
	return t.Raw == u.Raw && t.Mark == u.Mark && t.Body == u.Body && t.Reason == u.Reason && t.parent == u.parent
}

// removeName takes every @name of the tokens away, with the space before it.
func (b *Board) removeName(t Task, name string) change {
	var c change
	for _, w := range t.pos.tokens {
		if w.kind != wordName || w.value != name {
			continue
		}
		start := w.start
		for start > t.pos.markEnd+2 && isBlank(b.src[start-1]) {
			start--
		}
		c.splices = append(c.splices, splice{span{start, w.end}, ""})
	}
	return c
}

// tokenPlace is where a token is put and how it is written there: before the
// id, which likes to be last, or at the end of the line.
func (t Task) tokenPlace(token string) (int, string) {
	if n := len(t.pos.tokens); n > 0 && t.pos.tokens[n-1].kind == wordID {
		return t.pos.tokens[n-1].start, token + " "
	}
	return t.pos.contentEnd, " " + token
}

// indent is what a line below the task starts with to belong to it: quote
// marks and tabs as above, spaces for everything else.
func (t Task) indent(src []byte) string { return indentOf(src[t.pos.lineStart:t.pos.box]) }

func indentOf(prefix []byte) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\ufeff':
			return -1
		case '>', '\t':
			return r
		}
		return ' '
	}, string(prefix))
}

// lineSplice puts a whole line in the place of at, which starts and ends at
// line ends or at the end of a text without one.
func (b *Board) lineSplice(at span, line string) splice {
	s := splice{at, line + b.eol}
	if at.start > 0 && b.src[at.start-1] != '\n' {
		s.text = b.eol + line
	} else if at.end > at.start && b.src[at.end-1] != '\n' {
		s.text = line
	}
	return s
}

// oneLine refuses text that cannot stand on a task's line.
func oneLine(text string) (string, error) {
	text = strings.Trim(text, " \t\r\n")
	if text == "" {
		return "", errors.New("the text is empty")
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "", errors.New("the text has a line break or another control character in it")
	}
	return text, nil
}

// Replace puts another text in the place of all of the board's. It fails, and
// changes nothing, when the text is no board.
func (b *Board) Replace(text []byte) error {
	next, err := Parse(bytes.Clone(text))
	if err != nil {
		return err
	}
	*b = *next
	return nil
}
