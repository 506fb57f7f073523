package orchestrator

import (
	"fmt"
	"time"

	"muntin/agent/pty"
)

// A Pause is how long an agent is left alone because its provider takes no more.
type Pause struct {
	Until time.Time // zero: it is not paused
	Text  string    // what the provider said
	Tries int       // pauses without a good turn between
}

func (p Pause) on() bool { return !p.Until.IsZero() }

// The pauses where the provider does not say when to try again.
const (
	firstPause = time.Minute
	lastPause  = 30 * time.Minute
)

// limited pauses an agent. Its task stays with it.
func (r *step) limited(a *Agent, info pty.LimitInfo) {
	tries := a.Pause.Tries + 1
	until := r.now.Add(backoff(tries, firstPause, lastPause))
	if info.RetryAt != nil && info.RetryAt.After(r.now) {
		until = *info.RetryAt
	}
	a.Pause = Pause{Until: until, Text: info.Text, Tries: tries}
	r.tell(Fact{Agent: a.Name, Bad: true, Text: fmt.Sprintf("%s is limited by its provider: it goes on at %s", a.Name, until.Format("15:04:05 MST"))})
}

// asks notes that an agent's turn waits for a person, or that it goes on.
func (r *step) asks(a *Agent, info pty.WaitingInfo) {
	a.Asks = nil
	if info.For == pty.WaitNothing {
		return
	}
	a.Asks = &info
	text := a.Name + " asks for approval"
	if info.For == pty.WaitQuestion {
		text = a.Name + " asks something"
	}
	if info.Text != "" {
		text += ": " + firstLine(info.Text)
	}
	r.tell(Fact{Agent: a.Name, Bad: true, Text: text + " (needs a person, in its pane)"})
}
