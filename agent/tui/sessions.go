package tui

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/session"
	"muntin/internal/term"
)

// exchange leaves the present conversation for the one at a place, and stays where
// that cannot be opened.
func (l *loop) exchange(ctx context.Context, at Place) error {
	l.forgetStatuses()
	h, err := l.opts.Host.Open(ctx, at, l.Attach)
	if err != nil {
		return err
	}
	old := l.present.Swap(h)
	l.learn()
	l.cost.begin(h.Session())
	if err := old.Close(); err != nil {
		return fmt.Errorf("closing the conversation that was left: %w", err)
	}
	for _, p := range h.Problems() {
		l.display.note(p)
	}
	return nil
}

// place is one for a new conversation with the present model.
func (l *loop) place(parent string) (Place, error) {
	file, err := l.opts.Host.NewFile()
	h := l.Agent()
	return Place{File: file, Parent: parent, Model: h.Model().Name, Thinking: h.Thinking()}, err
}

func (l *loop) fresh(ctx context.Context, _ Asker, _ string) (string, error) {
	at, err := l.place("")
	if err == nil {
		err = l.Agent().MaySwitch(ctx, harness.SwitchNew, at.File)
	}
	if err == nil {
		err = l.exchange(ctx, at)
	}
	return "A new conversation.", err
}

func (l *loop) resume(ctx context.Context, _ Asker, _ string) (string, error) {
	all, err := l.opts.Host.Sessions()
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "There is no other conversation in this folder.", nil
	}
	q := question{title: "Go on with which conversation?"}
	for _, s := range all {
		q.items = append(q.items, item{
			label:  term.CleanLine(s.Title()),
			detail: fmt.Sprintf("%s · %s", ago(l.opts.Now().Sub(s.Modified)), plural(s.Messages, "message")),
		})
	}
	i, err := l.choose(ctx, q)
	if err != nil {
		return "", err
	}
	if all[i].Path == l.Agent().Session().Path() {
		return "It is the present one.", nil
	}
	if err := l.Agent().MaySwitch(ctx, harness.SwitchResume, all[i].Path); err != nil {
		return "", err
	}
	if err := l.exchange(ctx, Place{File: all[i].Path}); err != nil {
		return "", err
	}
	l.display.past(l.Agent().Messages())
	return "", nil
}

// fork goes on in a new conversation that holds what lay before a message.
func (l *loop) fork(ctx context.Context, _ Asker, _ string) (string, error) {
	users, err := l.users()
	if err != nil {
		return "", err
	}
	i, err := l.choose(ctx, question{title: "Begin again from which message?", items: labels(users), at: len(users) - 1})
	if err != nil {
		return "", err
	}
	if err := l.forkAt(ctx, users[i].parent); err != nil {
		return "", err
	}
	l.display.giveBack([]string{users[i].text})
	return "A new conversation, from before that message. Its text is in the editor.", nil
}

func (l *loop) clone(ctx context.Context, _ Asker, _ string) (string, error) {
	leaf := l.Agent().Session().Leaf()
	if leaf == "" {
		return "", errors.New("there is nothing to copy yet")
	}
	return "A copy of the conversation; the other one stays as it is.", l.forkAt(ctx, leaf)
}

// forkAt goes on in a copy of the branch that ends with an entry; "" is the root. A
// conversation in memory has no copy: it goes on from the entry itself.
func (l *loop) forkAt(ctx context.Context, entry string) error {
	h := l.Agent()
	from := h.Session()
	if from.Path() == "" {
		_, err := h.Navigate(ctx, harness.Navigation{Entry: entry, Exact: true})
		return err
	}
	at, err := l.place(from.Path())
	if err == nil {
		err = h.MaySwitch(ctx, harness.SwitchFork, entry)
	}
	if err != nil {
		return err
	}
	if entry != "" {
		if err := from.Fork(session.ForkOptions{Path: at.File, Entry: entry}); err != nil {
			return err
		}
	}
	return l.exchange(ctx, at)
}

func (l *loop) name(ctx context.Context, ask Asker, name string) (string, error) {
	h := l.Agent()
	if name == "" {
		var err error
		if name, err = ask.Text(ctx, "The conversation's name", h.Session().Name()); err != nil {
			return "", err
		}
	}
	if name = strings.TrimSpace(term.CleanLine(name)); name == "" {
		return "", errors.New("a name cannot be empty")
	}
	return "", h.Rename(name)
}

func (l *loop) session(context.Context, Asker, string) (string, error) {
	h := l.Agent()
	s := h.Session()
	var users, answers, results int
	var usage llm.Usage
	err := s.All(func(e session.Entry) error {
		if e.Usage != nil {
			usage = usage.Add(*e.Usage)
		}
		if e.Type != session.TypeMessage || e.Message == nil {
			return nil
		}
		switch e.Message.Role {
		case llm.RoleUser:
			users++
		case llm.RoleTool:
			results++
		case llm.RoleAssistant:
			answers++
			if e.Message.Usage != nil {
				usage = usage.Add(*e.Message.Usage)
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	where := s.Path()
	if where == "" {
		where = "in memory only"
	}
	used, window := h.ContextUsage()
	size := count(used) + " tokens"
	if window > 0 {
		size += fmt.Sprintf(" of %s", count(window))
	}
	return fmt.Sprintf("| | |\n|---|---|\n| Session | %s |\n| File | %s |\n| Name | %s |\n| Model | %s |\n| Messages | %d from you, %d answers, %d tool results |\n"+
		"| Tokens | %s in, %s out, %s from the cache |\n| Cost | $%.4f |\n| Context | %s |\n",
		s.Header().ID, where, s.Name(), h.Model().Name, users, answers, results,
		count(usage.Input+usage.CacheWrite), count(usage.Output), count(usage.CacheRead), usage.Cost.Total, size), nil
}

func (l *loop) export(_ context.Context, _ Asker, path string) (string, error) {
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(l.opts.Dir, path)
	}
	written, err := l.opts.Host.Export(path, l.Agent().Session())
	if err != nil {
		return "", err
	}
	return "The conversation is in " + written, nil
}

// copyLast puts the last answer that has a text onto the clipboard.
func (l *loop) copyLast(context.Context, Asker, string) (string, error) {
	all := l.Agent().Messages()
	for i := len(all) - 1; i >= 0; i-- {
		if text := strings.TrimSpace(all[i].Text()); all[i].Role == llm.RoleAssistant && text != "" {
			l.display.copy(text)
			return fmt.Sprintf("Copied %s.", plural(len([]rune(text)), "character")), nil
		}
	}
	return "", errors.New("there is no answer yet")
}

func (l *loop) model(ctx context.Context, _ Asker, name string) (string, error) {
	h := l.Agent()
	if name == "" {
		q := question{title: "Which model?"}
		all := l.opts.Host.Models()
		for i, m := range all {
			full := m.Provider + "/" + m.ID
			detail := ""
			if m.ContextWindow > 0 {
				detail = count(m.ContextWindow)
			}
			q.items = append(q.items, item{label: full, detail: detail})
			if full == h.Model().Name {
				q.at = i
			}
		}
		if len(all) == 0 {
			return "", errors.New("no model can be asked: `muntin login` stores a key, or say /model provider/id")
		}
		i, err := l.choose(ctx, q)
		if err != nil {
			return "", err
		}
		name = q.items[i].label
	}
	m, level, err := l.opts.Host.OpenModel(ctx, name)
	if err != nil {
		return "", err
	}
	if err := h.SetModel(m); err != nil {
		return "", err
	}
	if level != "" {
		_, err = h.SetThinking(level)
	}
	return "", err
}

func (l *loop) thinking(ctx context.Context, _ Asker, want string) (string, error) {
	h := l.Agent()
	levels := h.Model().Levels()
	if want == "" {
		q := question{title: "How much shall the model think?"}
		for i, lv := range levels {
			q.items = append(q.items, item{label: string(lv)})
			if lv == h.Thinking() {
				q.at = i
			}
		}
		i, err := l.choose(ctx, q)
		if err != nil {
			return "", err
		}
		want = string(levels[i])
	}
	for _, lv := range llm.Levels() {
		if string(lv) == want {
			got, err := h.SetThinking(lv)
			if err == nil && got != lv {
				return fmt.Sprintf("The model has no level %s: it is %s.", lv, got), nil
			}
			return "", err
		}
	}
	return "", fmt.Errorf("%q is no level: there are %v", want, levels)
}

// cycleThinking goes to the next level.
func (l *loop) cycleThinking(ctx context.Context) {
	h := l.Agent()
	levels := h.Model().Levels()
	at := 0
	for i, lv := range levels {
		if lv == h.Thinking() {
			at = i + 1
		}
	}
	if len(levels) == 0 {
		return
	}
	if _, err := h.SetThinking(levels[at%len(levels)]); err != nil {
		l.display.note(term.CleanLine(err.Error()))
	}
	l.tellFacts(ctx)
}

func (l *loop) compact(ctx context.Context, _ Asker, instructions string) (string, error) {
	_, err := l.Agent().Compact(ctx, instructions)
	return "", err
}

// ago is a time that has passed, for a person.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}
