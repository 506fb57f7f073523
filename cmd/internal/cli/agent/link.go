package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"muntin/agent/adapter"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/pty"
	"muntin/agent/tui"
)

// A link is the agent's side of its supervisor's socket: a tui.Link.
type link struct {
	link *pty.Link
	in   chan tui.Incoming
	done sync.WaitGroup
	stop context.CancelFunc
	now  func() time.Time
}

func newLink(ctx context.Context, client *pty.Client, now func() time.Time) (*link, error) {
	attached, err := client.Attach(ctx)
	if err != nil {
		return nil, fmt.Errorf("attaching to the pane's supervisor: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	l := &link{link: attached, in: make(chan tui.Incoming), stop: stop, now: now}
	l.done.Go(func() {
		defer close(l.in)
		for m := range attached.Messages() {
			select {
			case l.in <- tui.Incoming{ID: m.ID, Kind: tui.Kind(m.Kind), Text: m.Text, From: m.From}:
			case <-ctx.Done():
				return
			}
		}
	})
	return l, nil
}

func (l *link) close() {
	l.stop()
	_ = l.link.Close() // the supervisor sees the end either way
	l.done.Wait()
}

func (l *link) Messages() <-chan tui.Incoming { return l.in }

func (l *link) Ready(context.Context) error {
	return l.link.Report(pty.Report{Kind: pty.ReportReady})
}

// The reports below are lost only with the supervisor, which takes the agent
// with it: an error has nowhere to go.

func (l *link) Accepted(id string) {
	_ = l.link.Report(pty.Report{Kind: pty.ReportAccepted, Message: id})
}

func (l *link) Refused(id, why string) {
	_ = l.link.Report(pty.Report{Kind: pty.ReportRefused, Message: id, Why: why})
}

func (l *link) TurnStart(id string) {
	_ = l.link.Report(pty.Report{Kind: pty.ReportTurnStart, Message: id})
}

func (l *link) Tool(t tui.ToolReport) {
	_ = l.link.Report(pty.Report{Kind: pty.ReportTool, Tool: &pty.ToolInfo{
		Name: t.Name, Summary: t.Summary, IsError: t.IsError, MS: t.Duration.Milliseconds(),
	}})
}

func (l *link) TurnEnd(id string, o harness.Outcome, err error) {
	end := &pty.TurnEndInfo{
		Message: id, Reason: pty.TurnDone, Text: o.Text, Entry: o.Entry,
		DurationMS: o.Duration.Milliseconds(),
		Usage: &pty.Usage{
			Input: o.Usage.Input, Output: o.Usage.Output,
			CacheRead: o.Usage.CacheRead, CacheWrite: o.Usage.CacheWrite,
			Cost: o.Usage.Cost.Total,
		},
	}
	switch failure := o.Failure(err); {
	case errors.Is(err, tui.ErrEnding):
		end.Reason = pty.TurnExited
	case errors.Is(err, harness.ErrAborted):
		end.Reason = pty.TurnAborted
	case failure != nil:
		end.Reason, end.Error = pty.TurnError, failure.Error()
		l.limit(failure)
	}
	_ = l.link.Report(pty.Report{Kind: pty.ReportTurnEnd, Message: id, TurnEnd: end})
}

func (l *link) Waits(question string) {
	info := pty.WaitingInfo{For: pty.WaitQuestion, Text: question}
	if question == "" {
		info.For = pty.WaitNothing
	}
	_ = l.link.Report(pty.Report{Kind: pty.ReportWaiting, Waiting: &info})
}

// limit reports that the provider takes no more, if that is why a turn failed.
func (l *link) limit(failure error) {
	var e *llm.Error
	if !errors.As(failure, &e) {
		return
	}
	info := pty.LimitInfo{Text: e.Error()}
	switch {
	case e.Class == llm.ClassQuota:
		info.Kind = adapter.LimitQuota
	case e.Status == http429:
		info.Kind = adapter.LimitRate
	default:
		return
	}
	if e.RetryAfter > 0 {
		at := l.now().Add(e.RetryAfter)
		info.RetryAt = &at
	}
	_ = l.link.Report(pty.Report{Kind: pty.ReportLimit, Limit: &info})
}

// http429 is "too many requests" (RFC 6585, section 4).
const http429 = 429
