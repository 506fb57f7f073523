package pty

import (
	"slices"

	"muntin/agent/adapter"
)

// next hands over what can be.
func (m *machine) next() {
	m.holding = false
	m.hand()
}

func (m *machine) hand() {
	if m.busy() || m.tending || m.exited || m.state != AgentIdle && m.state != AgentWorking {
		return
	}
	if m.side == nil && len(m.urgent) > 0 && m.nextUrgent(m.urgent[0]) {
		m.hand()
		return
	}
	if m.main == nil && m.side == nil && m.cur == nil && m.state == AgentIdle && len(m.waiting) > 0 {
		if e := m.waiting[0]; m.free(e) {
			m.waiting = m.waiting[1:]
			m.begins(e)
		}
	}
}

// nextUrgent reports whether it took e off its queue.
func (m *machine) nextUrgent(e *entry) bool {
	abort := e.rec.Kind == KindAbort
	switch {
	case abort && m.cur == nil && m.main == nil:
		m.urgent = m.urgent[1:]
		m.finish(e, StateDone, adapter.ByNone, "no turn was running")
		return true
	case abort && m.cur == nil && !m.link, // it is being typed: its turn comes in a moment
		!abort && m.cur == nil && m.main != nil,
		!abort && m.cur != nil && m.noSteer,
		!abort && !m.free(e):
		return false
	case m.cur == nil && m.main == nil:
		m.urgent = m.urgent[1:]
		m.begins(e)
		return true
	}
	m.side = e
	m.urgent = m.urgent[1:]
	m.do(effect{deliver: e})
	return true
}

// free reports whether no person is in the way, and says once when one is. The
// built-in agent takes messages beside what a person types.
func (m *machine) free(e *entry) bool {
	if m.link {
		return true
	}
	why := m.guard()
	if why != nil {
		m.hold(e, why)
	}
	return why == nil
}

func (m *machine) hold(e *entry, why error) {
	m.holding = true
	if e.why != why.Error() {
		e.why = why.Error()
		info := e.info()
		info.State, info.Why = StateHeld, e.why
		m.write(Event{Kind: EventMessage, Message: &info})
	}
	m.do(effect{hold: true})
}

// blocked says that a person came in between before the message could be
// typed.
func (m *machine) blocked(id string, why error) []effect {
	if e := m.inHand(id); e != nil {
		m.takeBack(e)
		m.hold(e, why)
	}
	return m.flush()
}

// returned says that the message was not handed over after all; it waits again,
// first in its queue. What stopped it will cause a poke or a ready.
func (m *machine) returned(id string) []effect {
	if e := m.inHand(id); e != nil {
		m.takeBack(e)
	}
	return m.flush()
}

func (m *machine) takeBack(e *entry) {
	m.letGo(e)
	e.state = StateQueued
	e.tries++
	if e.rec.Kind == KindSteer || e.rec.Kind == KindAbort {
		m.urgent = slices.Insert(m.urgent, 0, e)
	} else {
		m.waiting = slices.Insert(m.waiting, 0, e)
	}
}

func (m *machine) inHand(id string) *entry {
	for _, e := range []*entry{m.main, m.side} {
		if e != nil && e.rec.ID == id {
			return e
		}
	}
	return nil
}

// holds reports whether h is not void.
func (m *machine) holds(h handing) bool {
	return m.inHand(h.e.rec.ID) == h.e && h.e.tries == h.try
}

func (m *machine) letGo(e *entry) {
	if m.main == e {
		m.main = nil
	}
	if m.side == e {
		m.side = nil
	}
}

// find returns the message with that id, if it has not ended.
func (m *machine) find(id string) *entry {
	all := slices.Concat(m.waiting, m.urgent, m.open)
	for _, e := range append(all, m.main, m.side) {
		if e != nil && e.rec.ID == id {
			return e
		}
	}
	return nil
}
