package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"muntin/agent/llm"
)

// A RetryPolicy says how often and how soon a request that failed for a passing
// reason is made again. The zero value means the defaults. The wait doubles from
// BaseDelay up to MaxDelay, less up to a quarter at random so that many agents do
// not come back at once, and is never shorter than what the server asked for. A
// server that asks for more than MaxDelay is not waited for.
type RetryPolicy struct {
	MaxAttempts int            // retries after the first try; 0: 3, negative: none
	BaseDelay   time.Duration  // default 2 s
	MaxDelay    time.Duration  // default 60 s
	Rand        func() float64 // in [0,1); default math/rand
}

func (p RetryPolicy) withDefaults(random func() float64) RetryPolicy {
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 3
	}
	if p.BaseDelay <= 0 {
		p.BaseDelay = 2 * time.Second
	}
	if p.MaxDelay <= 0 {
		p.MaxDelay = time.Minute
	}
	if p.Rand == nil {
		p.Rand = random
	}
	return p
}

// Attempts is how many retries there are at most.
func (p RetryPolicy) Attempts() int { return max(p.withDefaults(rand.Float64).MaxAttempts, 0) }

// Delay gives the wait before a retry (1 is the first) of something that failed
// for a passing reason, or false to give up. asked is what the server asked for,
// 0 for nothing. It is for requests that are made beside a run, as for summaries.
func (p RetryPolicy) Delay(attempt int, asked time.Duration) (time.Duration, bool) {
	return p.withDefaults(rand.Float64).delay(attempt, asked)
}

// delay gives the wait before a retry (1 is the first), or false to give up.
func (p RetryPolicy) delay(attempt int, asked time.Duration) (time.Duration, bool) {
	if attempt > p.MaxAttempts || asked > p.MaxDelay {
		return 0, false
	}
	d := p.BaseDelay
	for i := 1; i < attempt && d < p.MaxDelay; i++ {
		d *= 2
	}
	d = min(d, p.MaxDelay)
	d -= time.Duration(float64(d) * p.Rand() / 4)
	return max(d, asked), true
}

// a recovery says whether and how a failed attempt is made again.
type recovery struct {
	again bool
	retry bool // after a wait; else with a shorter transcript, at once
	delay time.Duration
}

// recover decides what follows an attempt that ended with err.
func (r *run) recover(err error) recovery {
	failed, ok := err.(*ModelError) //nolint:errorlint // the attempt's own error, not one within it
	if !ok || r.hookFailed || r.ctx.Err() != nil {
		return recovery{}
	}
	switch llm.Classify(failed.Err) {
	case llm.ClassRetryable:
		delay, ok := r.agent.retryPolicy().delay(r.retries+1, llm.RetryAfter(failed.Err))
		return recovery{again: ok, retry: ok, delay: delay}
	case llm.ClassOverflow:
		return recovery{again: r.shorten(failed)}
	}
	return recovery{}
}

// shorten asks the Overflow hook for a transcript that fits.
func (r *run) shorten(failed *ModelError) bool {
	hook := r.agent.hooks.Overflow
	if hook == nil || r.shortened {
		return false
	}
	r.shortened = true
	messages, err := hook(r.ctx, failed.Err, r.agent.Messages())
	if err != nil {
		failed.Err = fmt.Errorf("%w (making room: %w)", failed.Err, err)
		return false
	}
	if messages == nil {
		return false
	}
	r.replace(messages)
	return true
}

func (a *Agent) retryPolicy() RetryPolicy {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.retry
}

// waitForRetry gives a channel that AbortRetry closes. ended ends the wait.
func (a *Agent) waitForRetry() (givenUp <-chan struct{}, ended func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.giveUp = make(chan struct{})
	return a.giveUp, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.giveUp = nil
	}
}

// pause announces a retry and waits for its time. The error is why there is none.
func (r *run) pause(rec recovery, cause error) error {
	r.retries++
	givenUp, ended := r.agent.waitForRetry() // before anybody can know of it
	defer ended()
	err := r.emit(Event{
		Type: EventRetry, Attempt: r.retries, MaxAttempts: r.agent.retryPolicy().MaxAttempts,
		DelayMS: rec.delay.Milliseconds(), Error: cause.Error(),
	})
	if err != nil {
		return err
	}
	timer := time.NewTimer(rec.delay)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-r.agent.kick:
			if err := r.emitQueue(); err != nil {
				return err
			}
		case <-givenUp:
			return cause
		case <-r.ctx.Done():
			return r.aborted()
		}
	}
}

// retryEnded tells how a row of retries ended, if there was one.
func (r *run) retryEnded(failure error) error {
	if r.retries == 0 {
		return nil
	}
	e := Event{Type: EventRetryEnd, Success: failure == nil, Attempt: r.retries}
	if failure != nil {
		e.Error = failure.Error()
	}
	r.retries = 0
	return r.emit(e)
}

// aborted gives the error of a run that was ended from outside.
func (r *run) aborted() error {
	cause := context.Cause(r.ctx)
	if cause == ErrAborted { //nolint:errorlint // the very value that Abort gives
		return ErrAborted
	}
	return fmt.Errorf("%w: %w", ErrAborted, cause)
}
