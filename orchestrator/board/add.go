package board

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muntin/internal/id"
)

// A NewTask is what AddTask writes. Only Text is needed.
type NewTask struct {
	ID        string // made from Text when empty
	Text      string
	Assignees []string
	After     []string
	Check     string
	Priority  int
	Tags      []string
	Body      string // details, below the line
	Parent    string // id of the task to put it in
}

// AddTask adds an open task behind the last one of its parent, or of the list
// that ends the board, and returns its id. The line looks like its neighbours.
func (b *Board) AddTask(n NewTask) (string, error) {
	text, err := oneLine(n.Text)
	if err != nil {
		return "", fmt.Errorf("adding a task: %w", err)
	}
	n.Text = text
	if n.ID == "" {
		taken := map[string]bool{}
		for _, t := range b.tasks {
			taken[t.ID] = true
		}
		n.ID = freeID(n.Text, taken)
	} else if err := b.checkNewID(n.ID); err != nil {
		return "", fmt.Errorf("adding a task: %w", err)
	}
	places, err := b.places(n.Parent)
	if err != nil {
		return "", fmt.Errorf("adding a task: %w", err)
	}
	for _, p := range places {
		if err = b.add(n, p); err == nil {
			return n.ID, nil
		}
	}
	return "", fmt.Errorf("adding task %q: %w", n.Text, err)
}

func (b *Board) checkNewID(name string) error {
	if _, ok := b.byID[name]; ok {
		return fmt.Errorf("id ^%s is taken", name)
	}
	return id.CheckName("task", name)
}

// A place is where a new line can go and what it starts with.
type place struct {
	at     int
	prefix string // up to the box
	gap    bool   // leave a blank line before it
}

// places are the places for a new task, the best first.
func (b *Board) places(parent string) ([]place, error) {
	if parent != "" {
		t, err := b.find(parent)
		if err != nil {
			return nil, err
		}
		if kids := b.children[t.index]; len(kids) > 0 {
			return []place{b.behind(b.tasks[kids[len(kids)-1]])}, nil
		}
		marker := "- "
		return []place{{t.pos.itemEnd, t.indent(b.src) + marker, false}, {t.pos.itemEnd, t.indent(b.src) + marker, true}}, nil
	}
	var out []place
	for _, t := range slices.Backward(b.tasks) {
		if t.parent < 0 && t.State != Unknown && !bytes.ContainsRune(b.src[t.pos.lineStart:t.pos.box], '>') {
			out = append(out, b.behind(t))
			break
		}
	}
	end := len(b.src)
	return append(out, place{end, "- ", len(b.tasks) == 0}, place{end, "- ", true}), nil
}

// behind is the place behind a task, with a line start like its.
func (b *Board) behind(t Task) place {
	prefix := b.src[t.pos.lineStart:t.pos.box]
	end := len(bytes.TrimRight(prefix, " \t"))
	start := end - 1
	for start > 0 && prefix[start-1] >= '0' && prefix[start-1] <= '9' {
		start--
	}
	marker := string(prefix[start:end])
	if n, err := strconv.Atoi(marker[:len(marker)-1]); err == nil && n < 999999999 {
		marker = strconv.Itoa(n+1) + marker[len(marker)-1:]
	}
	return place{t.pos.itemEnd, indentOf(prefix[:start]) + marker + string(prefix[end:]), false}
}

// add writes the task at a place and makes sure that it is read there.
func (b *Board) add(n NewTask, p place) error {
	var parent *Task
	if t, ok := b.Task(n.Parent); ok && n.Parent != "" {
		parent = &t
	}
	lines := []string{p.prefix + "[ ] " + n.line()}
	indent := indentOf([]byte(p.prefix))
	for _, s := range strings.Split(strings.TrimRight(n.Body, "\n"), "\n") {
		s = strings.TrimRight(s, "\r")
		if s != "" {
			s = indent + s
		}
		if n.Body != "" {
			lines = append(lines, s)
		}
	}
	if p.gap && p.at > 0 {
		lines = slices.Insert(lines, 0, strings.TrimRight(indentOf([]byte(p.prefix)), " \t"))
	}
	return b.apply([]splice{b.lineSplice(span{p.at, p.at}, strings.Join(lines, b.eol))}, func(next *Board) error {
		return b.checkAdded(next, n, parent)
	})
}

// checkAdded compares the board before and after a task was added.
func (b *Board) checkAdded(next *Board, n NewTask, parent *Task) error {
	t, ok := next.Task(n.ID)
	switch {
	case !ok && len(next.tasks) == len(b.tasks):
		return errors.New("the board ends inside something that is not Markdown text, such as an open code fence")
	case !ok || len(next.tasks) != len(b.tasks)+1:
		return errors.New("its text or details would be read as something else")
	case t.Text != n.Text || t.State != Open || !n.sameTokens(t) || !sameLines(t.Body, n.Body):
		return errors.New("its text or details would be read as something else")
	case (t.parent < 0) != (parent == nil) || parent != nil && t.parent != parent.index:
		return errors.New("it would not stand where it should")
	}
	old := 0
	for i, u := range next.tasks {
		if i == t.index {
			continue
		}
		if was := b.tasks[old]; u.Raw != was.Raw || u.Mark != was.Mark || u.Body != was.Body {
			return fmt.Errorf("the task in line %d would change", was.Line)
		}
		old++
	}
	return nil
}

// sameLines compares details without the white space that every line starts with.
func sameLines(s, t string) bool {
	normal := func(s string) string {
		lines := strings.Split(s, "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " \t\r")
		}
		return joinBody(lines)
	}
	return normal(s) == normal(t)
}

func (n NewTask) sameTokens(t Task) bool {
	return slices.Equal(n.Assignees, t.Assignees) && slices.Equal(n.After, t.After) &&
		slices.Equal(n.Tags, t.Tags) && n.Check == t.Check && n.Priority == t.Priority
}

// line is the task's text with its tokens, the id last.
func (n NewTask) line() string {
	words := []string{n.Text}
	if n.Priority != 0 {
		words = append(words, "!"+strconv.Itoa(n.Priority))
	}
	for _, tag := range n.Tags {
		words = append(words, "#"+tag)
	}
	for _, name := range n.Assignees {
		words = append(words, "@"+name)
	}
	if len(n.After) > 0 {
		words = append(words, "after:"+strings.Join(n.After, ","))
	}
	if n.Check != "" {
		words = append(words, quoteCheck(n.Check))
	}
	return strings.Join(append(words, "^"+n.ID), " ")
}
