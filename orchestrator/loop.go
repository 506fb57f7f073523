package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"muntin/agent/pty"
)

// A Doer carries out one effect and returns its result as an input. It may
// block until ctx ends, is called from several goroutines at once, and may be
// called again for an effect that a crash cut short.
type Doer interface {
	Do(ctx context.Context, e Effect) Input
}

// A Loop drives a run: it takes inputs, journals and reduces them, and has
// the effects carried out.
type Loop struct {
	Journal *Journal
	State   State    // as OpenJournal returned it
	Pending []Effect // as OpenJournal returned them
	Doer    Doer
	Inputs  <-chan Input
	OnState func(State) // called after every step, from the loop's goroutine; may be nil
	Now     func() time.Time
}

// Run works until ctx ends, which is no error, or the journal cannot be
// written. It returns after the last effect under way has come to its end.
func (l *Loop) Run(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	results := make(chan Input)
	start := func(effects []Effect) {
		for _, e := range effects {
			work.Go(func() error {
				in := l.Doer.Do(ctx, e)
				if ctx.Err() != nil {
					return nil // cut short: without a result it will be carried out again
				}
				in.Kind, in.Key, in.Time = InputResult, e.Key, l.Now()
				select {
				case results <- in:
				case <-ctx.Done():
				}
				return nil
			})
		}
	}
	work.Go(func() error {
		pending, err := l.Journal.intend(l.Pending)
		if err != nil {
			return err
		}
		start(pending)
		l.show()
		alarm := time.NewTimer(time.Hour)
		defer alarm.Stop()
		for {
			l.arm(alarm)
			var in Input
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-alarm.C:
				in = l.time()
			case in = <-l.Inputs:
			case in = <-results:
			}
			effects, err := l.step(in)
			if err != nil {
				return err
			}
			start(effects)
		}
	})
	if err := work.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("orchestrating: %w", err)
	}
	return nil
}

// arm sets the loop's one timer to when the state wants to be told the time.
func (l *Loop) arm(alarm *time.Timer) {
	if l.State.Wake.IsZero() {
		alarm.Stop()
		return
	}
	alarm.Reset(l.State.Wake.Sub(l.Now()))
}

// time is the input that tells the time. A clock that was put back does not
// make it less than what was waited for.
func (l *Loop) time() Input {
	now := l.Now()
	if now.Before(l.State.Wake) {
		now = l.State.Wake
	}
	return Input{Kind: InputTime, Time: now, Heard: l.State.Heard()}
}

// step takes one input. Inputs that change nothing but what is shown are not
// journalled.
func (l *Loop) step(in Input) ([]Effect, error) {
	if in.Time.IsZero() {
		in.Time = l.Now()
	}
	in.Time = in.Time.UTC().Round(0) // as it is read back from the journal
	next, effects := Reduce(l.State, in)
	if l.worthKeeping(in, effects) {
		var err error
		if effects, err = l.Journal.step(in, l.State, next, effects); err != nil {
			return nil, err
		}
	}
	l.State = next
	l.show()
	return effects, nil
}

// worthKeeping tells whether an input changes what will be decided.
func (l *Loop) worthKeeping(in Input, effects []Effect) bool {
	if in.Kind != InputAgent || in.Event == nil || len(effects) > 0 {
		return true
	}
	switch in.Event.Kind {
	case pty.EventTool:
		return l.State.Agents[in.Agent].marked()
	case pty.EventMessage:
		return in.Event.Message != nil && in.Event.Message.State == pty.StateFailed
	default:
		return true
	}
}

func (l *Loop) show() {
	if l.OnState != nil {
		l.OnState(l.State)
	}
}
