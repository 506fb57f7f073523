package pty

import "muntin/agent/adapter"

// linkLost says that the agent lives but cannot be heard.
func (m *machine) linkLost() []effect {
	if m.exited {
		return nil
	}
	m.enter(AgentUnknown, adapter.ByNone)
	for _, e := range []*entry{m.side, m.main} {
		if e != nil && !e.state.Reached(StateAccepted) {
			m.takeBack(e) // it is handed over again by its id, and taken once
		}
	}
	return m.flush()
}

// exit says that the agent's process has ended.
func (m *machine) exit() []effect {
	switch {
	case m.exited:
		return nil
	case m.checking && m.behind == nil: // a person's turn may wait for it
		return m.postpone(m.exit)
	}
	if e := m.main; e != nil && m.cur == nil && !m.busy() && m.taken(e) {
		m.begin(e.rec.ID, adapter.ByNone) // it may have done something, and its turn had no time to be seen
	}
	m.exited = true
	m.enter(AgentExited, adapter.ByProcess)
	m.later = nil
	switch {
	case m.settling:
	case m.checking:
		m.leave()
	case m.cur != nil:
		m.cur.end = &TurnEndInfo{Reason: TurnExited, Source: adapter.ByProcess}
		m.settling = true
		m.do(effect{checkpoint: CauseTurn})
	default:
		m.leave()
	}
	return m.flush()
}

// leave ends the messages that were handed over and cannot be answered any
// more. One that the built-in agent has not accepted stays for the next life.
func (m *machine) leave() {
	for _, e := range []*entry{m.side, m.main} {
		switch {
		case e == nil:
			continue
		case m.taken(e):
			m.letGo(e)
			m.finish(e, StateFailed, "", whyNoAnswer)
		default:
			m.takeBack(e)
		}
	}
}

// taken reports whether the agent may have acted on e: it must not be handed
// over again.
func (m *machine) taken(e *entry) bool {
	return e.state.Reached(StateAccepted) || !m.link && e.state.Reached(stateTyping)
}
