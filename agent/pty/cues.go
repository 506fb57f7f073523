package pty

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"muntin/agent/adapter"
)

// maxCues is how many signals wait at most. The loop takes them in a moment;
// of a program that gives more, the oldest are dropped and counted.
const maxCues = 256

// A meantCue is a signal and what it means for the agent's adapter.
type meantCue struct {
	cue
	means adapter.Meaning
}

// cues carries signals from the relay to the loop. Signals without a meaning,
// and titles that say the same again, stay out of it: a title that turns a
// mark ten times a second must not wake anybody.
type cues struct {
	on   adapter.Adapter
	wake func()

	title atomic.Pointer[string] // the last one
	last  adapter.Meaning        // of titles; the relay's own

	mu      sync.Mutex // guards all below
	waiting []meantCue
	lost    int
	kinds   []adapter.SignalKind // that have come, sorted
}

// add is called by the relay for each signal.
func (c *cues) add(sig cue) {
	means := c.on.Means(sig.kind, sig.text)
	if sig.kind == adapter.SignalTitle {
		c.title.Store(&sig.text)
		if means == c.last {
			return
		}
		c.last = means
	}
	if means == adapter.MeansNothing {
		return
	}
	c.mu.Lock()
	if i, known := slices.BinarySearch(c.kinds, sig.kind); !known {
		c.kinds = slices.Insert(c.kinds, i, sig.kind)
	}
	if len(c.waiting) == maxCues {
		c.waiting = c.waiting[1:]
		c.lost++
	}
	c.waiting = append(c.waiting, meantCue{sig, means})
	c.mu.Unlock()
	c.wake()
}

// take gives what has come since the last call, and how many were lost.
func (c *cues) take() (came []meantCue, lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	came, lost = c.waiting, c.lost
	c.waiting, c.lost = nil, 0
	return came, lost
}

// seen are the kinds of the signals with a meaning that have come.
func (c *cues) seen() []adapter.SignalKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.kinds)
}

// lastTitle is the title that the program gave itself last.
func (c *cues) lastTitle() string {
	if t := c.title.Load(); t != nil {
		return *t
	}
	return ""
}

// hear takes the signals that have come, and tells the machine what follows.
// While a message is being typed they wait: a quick program's answer must not
// be taken for a turn of somebody else.
func (s *supervisor) hear() {
	if e := s.m.main; e != nil && e.state.Reached(stateTyping) && !e.state.Reached(StateDelivered) {
		return // wasTyped looks
	}
	came, lost := s.cues.take()
	if lost > 0 {
		s.log.Warn("signals of the program were dropped", "count", lost)
	}
	for _, c := range came {
		if s.m.link || s.m.exited {
			return // its link says all of it, and better
		}
		id := s.watch.id
		for _, v := range s.watch.hear(c.cue, c.means, time.Now()) {
			s.heard(v, id, c)
		}
	}
}

// heard carries out one conclusion from a signal.
func (s *supervisor) heard(v verdict, id string, c meantCue) {
	by := c.kind.Evidence()
	switch v {
	case answered:
		if s.m.state == AgentStarting { // with a prompt
			s.apply(s.m.ready(by))
		}
		s.apply(s.m.accepted(id, by))
		s.apply(s.m.turnStarted(id, by))
	case person:
		s.apply(s.m.turnStarted("", by))
	case over:
		end := TurnEndInfo{Reason: TurnDone, Source: by}
		if c.kind == adapter.SignalHook {
			end.Text = c.note // the transcript may be behind
		}
		s.turnOver(end)
	case failed:
		s.turnOver(TurnEndInfo{Reason: TurnError, Error: clip(c.why(), 512), Source: by})
	case waits:
		s.apply(s.m.waits(WaitingInfo{For: waitingFor(c.means), Text: clip(c.note, 512), Source: by}))
	case resumed:
		s.term.undraft() // the key that answered it
		s.apply(s.m.waits(WaitingInfo{For: WaitNothing, Source: by}))
	case limited:
		s.apply(s.m.limit(LimitInfo{Text: clip(c.note, 512), Source: by}))
	case aborted:
		s.turnOver(TurnEndInfo{Reason: TurnAborted, Source: by})
	case nothing, isReady, silent, unheard, ignored:
	}
}

// why is the error that a signal tells of.
func (c meantCue) why() string {
	switch {
	case c.kind == adapter.SignalCommand && len(c.text) > 2:
		return "exit status " + c.text[len("D;"):]
	case c.kind == adapter.SignalStatus && c.note == c.text || c.note == "":
		return "the program said so"
	}
	return c.note
}

func waitingFor(m adapter.Meaning) WaitingFor {
	if m == adapter.MeansQuestion {
		return WaitQuestion
	}
	return WaitApproval
}
