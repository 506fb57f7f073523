package tui

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"muntin/agent/harness"
	"muntin/internal/term"
)

// asks are the questions to the person, of commands and of extensions. One is asked
// at a time; the others wait for it.
type asks struct {
	turn    chan struct{} // holds one value while a question is asked
	answers chan input    // to the one that is asked

	mu     sync.Mutex // guards all below
	asked  *question  // nil: none, or it has its answer
	nobody bool       // no answer will come any more
}

func newAsks() *asks { return &asks{turn: make(chan struct{}, 1), answers: make(chan input, 1)} }

// open says what is asked from now on; nil: nothing. It reports whether there is
// somebody to ask.
func (a *asks) open(q *question) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = q
	return !a.nobody
}

// present is the question that has no answer yet.
func (a *asks) present() *question {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// answer hands an answer to who asked, if somebody does.
func (a *asks) answer(in input) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked != nil {
		a.asked = nil
		a.answers <- in
	}
}

// end leaves this question and all that come without an answer.
func (a *asks) end() {
	a.mu.Lock()
	a.nobody = true
	a.mu.Unlock()
	a.answer(input{kind: inputAnswer, choice: -1})
}

// question waits for the person's answer. Its error is that of ctx, or ErrNoAnswer.
func (u *UI) question(ctx context.Context, q question) (input, error) {
	none := input{choice: -1}
	select {
	case u.asks.turn <- struct{}{}:
		defer func() { <-u.asks.turn }()
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	select {
	case <-u.asks.answers: // one that came too late for the question before
	default:
	}
	defer u.asks.open(nil)
	if !u.asks.open(&q) {
		return none, ErrNoAnswer
	}
	u.display.ask(&q)
	select {
	case <-ctx.Done():
		u.display.ask(nil)
		return none, context.Cause(ctx)
	case in := <-u.asks.answers:
		if in.choice < 0 || len(q.items) > 0 && in.choice >= len(q.items) {
			return none, ErrNoAnswer
		}
		return in, nil
	}
}

// choose asks for one of the items.
func (u *UI) choose(ctx context.Context, q question) (int, error) {
	if len(q.items) == 0 {
		return -1, errNothing
	}
	in, err := u.question(ctx, q)
	return in.choice, err
}

// answerLine takes a line for an answer, where questions are answered by lines: the
// number of an item from 1, or its beginning, or a text. An empty line is no answer.
func (l *loop) answerLine(text string) bool {
	q := l.asks.present()
	if q == nil || l.opts.Live {
		return false
	}
	in := input{kind: inputAnswer, text: text, choice: -1}
	switch {
	case text == "":
	case len(q.items) == 0:
		in.choice = 0
	default:
		if in.choice = q.find(text); in.choice < 0 {
			l.display.note("That is none of them: a number from 1 to " + strconv.Itoa(len(q.items)) + ", or an empty line.")
			return true
		}
	}
	l.asks.answer(in)
	return true
}

// find is the item that a person means; -1: none.
func (q *question) find(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n <= len(q.items) {
		return n - 1
	}
	found := -1
	for i, it := range q.items {
		label := strings.ToLower(strings.TrimSpace(it.label))
		switch {
		case label == strings.ToLower(text):
			return i
		case strings.HasPrefix(label, strings.ToLower(text)) && found >= 0:
			return -1
		case strings.HasPrefix(label, strings.ToLower(text)):
			found = i
		}
	}
	return found
}

// Attach makes the front end the one of an agent that is to be opened.
func (u *UI) Attach(o *harness.Options) { o.OnEvent, o.UI, o.OnWaiting = u.OnEvent, u, u.Waiting }

// Ask implements harness.UI: a dialog of an extension. Whoever supervises the pane is
// told that a person is waited for.
func (u *UI) Ask(ctx context.Context, asked harness.Question) harness.Answer {
	q := question{title: asked.Extension + ": " + asked.Title, body: asked.Text}
	switch asked.Kind {
	case harness.AskConfirm:
		q.items = []item{{label: "yes"}, {label: "no"}}
		q.at = 1 // what cannot be undone is not done by a key too many
	case harness.AskSelect:
		for _, o := range asked.Options {
			q.items = append(q.items, item{label: o})
		}
	default:
		q.text = asked.Default
	}
	if asked.Kind == harness.AskSelect && len(q.items) == 0 {
		return harness.Answer{}
	}
	if u.opts.Link != nil {
		u.opts.Link.Waits(term.CleanLine(q.title))
		defer u.opts.Link.Waits("")
	}
	in, err := u.question(ctx, q)
	if err != nil {
		return harness.Answer{}
	}
	a := harness.Answer{Answered: true}
	switch asked.Kind {
	case harness.AskConfirm:
		a.Confirmed = in.choice == 0
	case harness.AskSelect:
		a.Value = asked.Options[in.choice]
	default:
		a.Value = in.text
	}
	return a
}

// Notify implements harness.UI: the text stays in the conversation.
func (u *UI) Notify(n harness.Notice) { u.display.notice(n) }

// Status implements harness.UI: the text stands in the status line.
func (u *UI) Status(s harness.Status) {
	text := term.CleanLine(s.Text)
	u.told.Lock()
	defer u.told.Unlock()
	u.statuses = slices.DeleteFunc(u.statuses, func(o harness.Status) bool { return o.Extension == s.Extension })
	if text != "" {
		u.statuses = append(u.statuses, harness.Status{Extension: s.Extension, Text: text})
	}
	u.showStatuses()
}

// forgetStatuses is for when the programs that said them end.
func (u *UI) forgetStatuses() {
	u.told.Lock()
	defer u.told.Unlock()
	u.statuses = nil
	u.showStatuses()
}

// showStatuses needs the lock told.
func (u *UI) showStatuses() {
	slices.SortFunc(u.statuses, func(a, b harness.Status) int { return strings.Compare(a.Extension, b.Extension) })
	var texts []string
	for _, s := range u.statuses {
		texts = append(texts, s.Text)
	}
	u.display.statuses(texts)
}

// Waiting begins a turn for messages that an extension sent while none goes on; see
// harness.Options.OnWaiting.
func (u *UI) Waiting() {
	select {
	case u.sent <- struct{}{}:
	default:
	}
}
