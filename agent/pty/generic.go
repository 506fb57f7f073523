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

	trust   int  // of the best signals that it has given of its work
	idle    bool // it has said that it takes prompts, before it was ready
	blocked bool // it has said that it waits for a person
	retried bool // the submit key was pressed once more
	sighted bool // blocked was concluded from the screen
	limited bool // the screen's word of a limit has been passed on
	told    bool // it has given a signal since the submit

	sure adapter.Confidence // in the last verdict of look
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

	unready func() bool // its user wants more of it to be ready; nil: nobody does

	shows func() adapter.Seen // what the screen shows; nil: nothing that is known
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
	failed           // the turn has ended with an error
	waits            // it waits for a person
	resumed          // it does not any more
	limited          // its provider takes no more
	aborted          // a person has ended the turn
	unheard          // the submit may not have been taken
	ignored          // it takes prompts, and has not taken that with which it was started
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
	// signalAnswer is how long a program that gives signals of its work has to
	// give one after a submit, before output alone counts.
	signalAnswer = 3 * time.Second
	// hookAnswer is the same of a program with hooks: it starts a process for
	// each, and a busy machine makes that long.
	hookAnswer = 10 * time.Second
	// signalRetry is how long the submit key of such a program may go without a
	// signal before it is pressed once more: composers take a quick Enter for a
	// part of the paste. Pressed at an empty composer it does nothing, and a
	// question would have been told.
	signalRetry = signalAnswer / 2
	// watchdog is how many times as long as another's the screen of such a
	// program must be still before its turn is taken to be over unsaid.
	watchdog = 4
)

// begin goes into a mode.
func (w *watch) begin(mode watchMode, id string, mark int64, now time.Time) {
	w.mode, w.id, w.mark, w.since = mode, id, mark, now
	w.blocked, w.retried, w.sighted, w.limited = false, false, false, false
	if mode != watchTurn {
		w.told = false
	}
}

// hear says what follows from a signal, in order, and goes on to the next mode
// with it. A signal from before the submit says nothing about what came of it.
func (w *watch) hear(sig cue, means adapter.Meaning, now time.Time) []verdict {
	trust := sig.kind.Trust()
	switch means {
	case adapter.MeansNothing:
		return nil
	case adapter.MeansLimit:
		return []verdict{limited}
	case adapter.MeansApproval, adapter.MeansQuestion: // said by the less trusted too
	case adapter.MeansIdle, adapter.MeansWorking, adapter.MeansDone, adapter.MeansError, adapter.MeansAborted, adapter.MeansLimited:
		if sig.kind == adapter.SignalFile {
			break // it is true, and told late: others go on counting
		}
		if w.mode == watchReady && means == adapter.MeansIdle {
			break // it takes prompts, whoever says so
		}
		if trust < w.trust {
			return nil
		}
		w.trust = trust
	}
	switch {
	case sig.kind == adapter.SignalHook && means == adapter.MeansIdle:
		return nil // a conversation begins, or goes on in another file: that there are hooks is all that it tells
	case w.mode == watchReady && w.id != "" && means != adapter.MeansIdle:
		return w.hearFirst(means, now)
	case w.mode == watchReady:
		w.idle = w.idle || means == adapter.MeansIdle || means == adapter.MeansDone
		return nil
	case sig.at <= w.mark && w.mode != watchRest:
		return nil
	case means == adapter.MeansIdle && w.mode != watchTurn:
		return nil // it is said again at every chance
	case ends(means) && w.mode != watchTurn && w.mode != watchAnswer:
		return nil // of a turn that is settled already
	}
	w.told = true
	var out []verdict
	if w.mode != watchTurn {
		v := person
		if w.mode == watchAnswer {
			v = answered
		}
		out = append(out, v)
		w.begin(watchTurn, w.id, w.mark, now)
	}
	return append(out, w.turnSignal(means)...)
}

// turnSignal takes a signal that was given in a turn.
func (w *watch) turnSignal(means adapter.Meaning) []verdict {
	switch means {
	case adapter.MeansWorking:
		if w.blocked {
			w.blocked, w.sighted = false, false
			return []verdict{resumed}
		}
	case adapter.MeansApproval, adapter.MeansQuestion:
		if !w.blocked {
			w.blocked = true
			return []verdict{waits}
		}
	case adapter.MeansIdle, adapter.MeansDone:
		w.rested()
		return []verdict{over}
	case adapter.MeansError:
		w.rested()
		return []verdict{failed}
	case adapter.MeansAborted:
		w.rested()
		return []verdict{aborted}
	case adapter.MeansLimited:
		w.rested()
		return []verdict{limited, failed}
	case adapter.MeansNothing, adapter.MeansLimit:
	}
	return nil
}

// ends reports whether a signal tells of a turn's end.
func ends(m adapter.Meaning) bool {
	switch m {
	case adapter.MeansDone, adapter.MeansError, adapter.MeansAborted, adapter.MeansLimited:
		return true
	case adapter.MeansNothing, adapter.MeansIdle, adapter.MeansWorking, adapter.MeansApproval, adapter.MeansQuestion, adapter.MeansLimit:
	}
	return false
}

func (w *watch) rested() {
	w.mode, w.id, w.mark, w.side, w.blocked = watchRest, "", 0, "", false
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
	w.sure = w.restSure(adapter.Seen{})
	if v == answered || v == person {
		w.sure = adapter.Low // something was shown: that may be an echo
	}
	if (v == isReady || v == over || v == silent) && s.shows != nil {
		v, again = w.seen(v, s)
	}
	if v == isReady && s.unready != nil && s.unready() {
		v, again = nothing, lookAgain{after: readyAgain}
	}
	if v == isReady && w.id != "" {
		v, again = w.unheardFirst(s)
	}
	switch v {
	case answered, person:
		w.begin(watchTurn, w.id, w.mark, s.now)
		again.after = w.quiet()
	case isReady, silent, over, ignored:
		w.rested()
		again = lookAgain{}
	case nothing, failed, waits, resumed, limited, unheard, aborted:
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
		if w.idle {
			return isReady, lookAgain{}
		}
		return w.rest(s, min(s.still, age), w.on.ReadyQuiet, isReady)
	case watchAnswer:
		patience := signalAnswer
		if w.trust >= adapter.SignalHook.Trust() {
			patience = hookAnswer
		}
		switch {
		case s.output > w.mark && (w.trust == 0 || age >= patience):
			return answered, lookAgain{}
		case w.trust < adapter.SignalStatus.Trust() || w.retried:
		case age >= signalRetry:
			w.retried = true
			return unheard, lookAgain{after: patience - age}
		default:
			return nothing, lookAgain{after: signalRetry - age}
		}
		if w.trust > 0 && s.output > w.mark {
			return nothing, lookAgain{after: patience - age}
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
		if w.blocked && !w.sighted {
			return nothing, lookAgain{} // it stands still until a person answers
		}
		return w.rest(s, min(s.still, age), w.quiet(), over)
	case watchRest:
	}
	return nothing, lookAgain{}
}

// quiet is how long the output must be still for the turn to be over.
func (w *watch) quiet() time.Duration {
	if w.trust > 0 {
		return watchdog * w.on.Quiet
	}
	return w.on.Quiet
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
