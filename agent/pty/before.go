package pty

import "time"

// A turn that begins within enterTurn of a person's Enter is taken to be its
// doing; Enters within enterAgain of each other count as one.
const (
	enterTurn  = 5 * time.Second
	enterAgain = time.Second
)

// personEnters says that a person pressed Enter at an idle agent. A turn may
// begin, and before the agent does anything in it the state is kept.
func (m *machine) personEnters() []effect {
	if !m.checks || m.exited || m.busy() || m.state != AgentIdle || m.cur != nil || m.main != nil {
		return nil
	}
	if m.clock().Sub(m.entered) < enterAgain {
		return nil
	}
	m.check(nil)
	m.entered = m.clock()
	return m.flush()
}

// unkept reports whether the turn that is about to begin, with that message or
// a person's, has no checkpoint before it: it was not this supervisor that
// began it.
func (m *machine) unkept(message string) bool {
	if !m.checks || m.cur != nil || m.exited || m.fresh {
		return false
	}
	ours := m.main != nil && message != "" && m.main.rec.ID == message
	return !ours && m.clock().Sub(m.entered) > enterTurn
}

// check asks for a checkpoint before a turn, and hands e over behind it.
func (m *machine) check(e *entry) {
	m.checking, m.behind = true, e
	m.do(effect{checkpoint: CauseBetween})
}

// begins hands over the message that begins a turn, once the state before it
// is kept: a person may have changed files since the last turn's end. Right
// after a checkpoint nobody has.
func (m *machine) begins(e *entry) {
	m.main = e
	if m.checks && !m.fresh {
		m.check(e)
		return
	}
	m.do(effect{deliver: e})
}

// tend asks for the store of the checkpoints to be looked after, between two
// turns, when it is time.
func (m *machine) tend() {
	if !m.tends || m.tending || m.saved < tendEvery || m.exited || m.busy() || m.cur != nil || m.main != nil || m.side != nil {
		return
	}
	m.tending, m.saved = true, 0
	m.do(effect{tend: true})
}

// tended says that it was done, or broken off: then it is tried again after the
// next turn.
func (m *machine) tended(brokenOff bool) []effect {
	m.tending = false
	if brokenOff {
		m.saved = tendEvery
	}
	m.next()
	return m.flush()
}
