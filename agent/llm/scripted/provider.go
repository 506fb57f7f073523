package scripted

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"
	"unicode/utf8"

	"muntin/agent/llm"
)

// API and Provider are what the messages of a script carry.
const (
	API      = "scripted"
	Provider = "scripted"
)

// Options say how a script is played.
type Options struct {
	// Speed divides the delays: 1 is as written, 2 twice as fast. 0 leaves them out.
	Speed float64
	Now   func() time.Time // for timestamps; default time.Now
}

// New makes a provider that plays s. The step of a response is found from the
// conversation it is asked for, so that the provider keeps no state, with one
// exception: how often a step's error or cut was given to a session.
func New(s *Script, o Options) llm.Provider {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &player{script: s, o: o, given: map[failure]int{}}
}

type player struct {
	script *Script
	o      Options

	mu    sync.Mutex // guards given
	given map[failure]int
}

// a failure is one that was given to a session.
type failure struct {
	session string
	rule    int
	index   int
	cut     bool
}

// due tells whether a failure that is to be given so many times is still due, and
// counts it.
func (p *player) due(f failure, times int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if times > 0 && p.given[f] >= times {
		return false
	}
	p.given[f]++
	return true
}

// Stream implements llm.Provider.
func (p *player) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) {
		head := llm.Message{API: API, Provider: Provider, Model: req.Model, Timestamp: p.o.Now().UnixMilli()}
		pl := &play{player: p, ctx: ctx, out: llm.NewBuilder(head, yield)}
		pl.run(req)
	}
}

// a play is one response on its way out.
type play struct {
	*player
	ctx    context.Context
	out    *llm.Builder
	deltas int
}

func (p *play) run(req llm.Request) {
	step, rule, index := p.script.choose(req.Messages)
	if step == nil {
		step = &Step{Text: fmt.Sprintf("The script %q has no step %d for this prompt.", p.script.Name, index+1)}
	}
	id := failure{session: req.SessionID, rule: rule, index: index}
	if step.Error != nil && p.due(id, step.Error.Times) {
		if err := p.wait(step.Delay); err != nil {
			p.out.Fail(err, nil)
			return
		}
		p.out.Fail(step.Error.asError(), nil)
		return
	}
	id.cut = true
	cut := step.Cut && p.due(id, step.CutTimes)
	p.out.Start()
	usage := step.Usage
	if usage == nil {
		usage = estimate(req, step)
	}
	err := p.wait(step.Delay)
	if err == nil {
		err = p.content(step, req, cut)
	}
	switch {
	case err != nil:
		p.out.Fail(err, nil)
	case cut:
		p.out.Fail(&llm.Error{Class: llm.ClassRetryable, Message: "the stream broke before its end", Err: io.ErrUnexpectedEOF}, nil)
	case step.Stop == "":
		p.out.Done(llm.StopEnd, usage) // the builder sees to toolUse
	default:
		p.out.Done(step.Stop, usage)
	}
}

func (e *Error) asError() error {
	out := &llm.Error{Status: e.Status, Message: e.Message, RetryAfter: e.RetryAfter}
	if out.Message == "" {
		out.Message = "an error of the script"
	}
	out.Class = llm.ClassifyStatus(e.Status, e.Message)
	if e.Status == 0 && out.Class == llm.ClassOther {
		out.Class = llm.ClassRetryable // a broken connection
	}
	return out
}

// content sends what the step says. Of a step that is cut, the last tool call
// loses the second half of its arguments.
func (p *play) content(step *Step, req llm.Request, cut bool) error {
	if err := p.send(step.Thinking, p.out.Thinking); err != nil {
		return err
	}
	if err := p.send(step.Text, p.out.Text); err != nil {
		return err
	}
	for i, t := range step.Tools {
		args := string(t.Arguments)
		if args == "" {
			args = "{}"
		}
		if cut && i == len(step.Tools)-1 {
			args = args[:len(args)/2]
		}
		index := p.out.Tool(callID(req, i), t.Name)
		if err := p.send(args, func(d string) { p.out.ToolArguments(index, d) }); err != nil {
			return err
		}
	}
	return nil
}

// callID makes ids that differ within a conversation and are the same each time
// it is played.
func callID(req llm.Request, i int) string { return fmt.Sprintf("call_%d_%d", len(req.Messages), i+1) }

// send hands text out in pieces, with the script's delay between them.
func (p *play) send(text string, out func(string)) error {
	for text != "" && !p.out.Stopped() {
		n := firstRunes(text, p.script.Chunk)
		if p.deltas > 0 {
			if err := p.wait(p.script.Delay); err != nil {
				return err
			}
		}
		p.deltas++
		out(text[:n])
		text = text[n:]
	}
	return p.canceled()
}

// firstRunes gives the length in bytes of the first n characters, or of all for 0.
func firstRunes(text string, n int) int {
	if n <= 0 {
		return len(text)
	}
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

func (p *play) wait(d time.Duration) error {
	if p.o.Speed <= 0 || d <= 0 {
		return p.canceled()
	}
	timer := time.NewTimer(time.Duration(float64(d) / p.o.Speed))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.ctx.Done():
		return p.canceled()
	}
}

func (p *play) canceled() error {
	if p.ctx.Err() == nil {
		return nil
	}
	return &llm.Error{Class: llm.ClassAborted, Message: "the request was aborted", Err: context.Cause(p.ctx)}
}

// estimate counts the tokens of a request and its response at 4 bytes each.
func estimate(req llm.Request, step *Step) *llm.Usage {
	const bytesPerToken = 4
	in, out := len(req.System), len(step.Thinking)+len(step.Text)
	for _, m := range req.Messages {
		for _, b := range m.Content {
			in += len(b.Text) + len(b.Thinking) + len(b.Arguments)
		}
	}
	for _, t := range step.Tools {
		out += len(t.Name) + len(t.Arguments)
	}
	u := &llm.Usage{Input: (in + bytesPerToken - 1) / bytesPerToken, Output: (out + bytesPerToken - 1) / bytesPerToken}
	u.Total = u.Input + u.Output
	return u
}
