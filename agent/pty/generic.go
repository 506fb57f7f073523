package pty

import (
	"time"

	"muntin/agent/adapter"
)

// A watch concludes from the terminal what an agent does that does not tell.
// It is pure: look takes what is seen and says what follows from it, and when
// to look again. At rest it asks for nothing.
type watch struct {
	on   adapter.Adapter
	mode watchMode

	id    string    // the message whose answer or turn it is; empty: a person's
	mark  int64     // output count before the key that should bring an answer
	since time.Time // start of the mode
	side  string    // a steer or abort that was typed into the turn
	sideM int64     // its mark
}

type watchMode int

const (
	watchRest   watchMode = iota
	watchReady            // from the start until it takes prompts
	watchAnswer           // from a submit until something follows
	watchEnter            // from a person's Enter until something follows
	watchTurn             // until it is still
)

// A sight is what is seen of the terminal now.
type sight struct {
	now     time.Time
	output  int64         // bytes so far
	still   time.Duration // since the last output
	own     bool          // the foreground is the agent's own (always true where that tells nothing)
	pasting bool          // bracketed paste is on
}

// A verdict is what follows from a sight.
type verdict int

const (
	nothing  verdict = iota
	isReady          // it takes prompts
	answered         // output followed the submit
	silent           // none did, and it is at rest
	over             // the turn has ended
	person           // a person began a turn
)

// A lookAgain says when to look next: after a time (0: not), and at the next
// output.
type lookAgain struct {
	after  time.Duration
	output bool
}

const (
	// pollForeground is how often the foreground group is asked for while only
	// a change of it is missing: nothing tells of one.
	pollForeground = 250 * time.Millisecond
	// enterAnswer is how long a person's Enter may go without an answer before
	// it is taken for nothing.
	enterAnswer = time.Second
)

// begin goes into a mode.
func (w *watch) begin(mode watchMode, id string, mark int64, now time.Time) {
	w.mode, w.id, w.mark, w.since = mode, id, mark, now
}

// sideAnswered reports once that output followed what was typed into the turn.
func (w *watch) sideAnswered(s sight) (string, bool) {
	if w.side == "" || s.output <= w.sideM {
		return "", false
	}
	id := w.side
	w.side = ""
	return id, true
}

// look says what follows from s, and goes on to the next mode with it.
func (w *watch) look(s sight) (verdict, lookAgain) {
	v, again := w.judge(s)
	switch v {
	case answered, person:
		w.begin(watchTurn, w.id, 0, s.now)
		again.after = w.on.Quiet
	case isReady, silent, over:
		w.begin(watchRest, "", 0, s.now)
		w.side, again = "", lookAgain{}
	case nothing:
	}
	again.output = again.output || w.side != ""
	return v, again
}

func (w *watch) judge(s sight) (verdict, lookAgain) {
	age := s.now.Sub(w.since)
	switch w.mode {
	case watchReady:
		if w.on.ReadyOutput && s.output == 0 || w.on.ReadyPaste && !s.pasting {
			return nothing, lookAgain{output: true}
		}
		return w.rest(s, min(s.still, age), w.on.ReadyQuiet, isReady)
	case watchAnswer:
		if s.output > w.mark {
			return answered, lookAgain{}
		}
		v, again := w.rest(s, age, w.on.Quiet, silent)
		again.output = true
		return v, again
	case watchEnter:
		switch {
		case s.output > w.mark:
			return person, lookAgain{}
		case age >= enterAnswer:
			w.begin(watchRest, "", 0, s.now)
			return nothing, lookAgain{}
		}
		return nothing, lookAgain{after: enterAnswer - age, output: true}
	case watchTurn:
		return w.rest(s, min(s.still, age), w.on.Quiet, over)
	case watchRest:
	}
	return nothing, lookAgain{}
}

// rest answers v if the agent has been at rest for want, and its own process
// is in the foreground.
func (w *watch) rest(s sight, has, want time.Duration, v verdict) (verdict, lookAgain) {
	switch {
	case has < want:
		return nothing, lookAgain{after: want - has}
	case !s.own:
		return nothing, lookAgain{after: pollForeground}
	}
	return v, lookAgain{}
}
