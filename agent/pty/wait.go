package pty

import (
	"slices"
	"time"

	"muntin/agent/adapter"
)

// waits says that the running turn waits for a person, or that it goes on; or
// that an agent which has just been started does.
func (m *machine) waits(info WaitingInfo) []effect {
	if m.busy() {
		return m.postpone(func() []effect { return m.waits(info) })
	}
	if m.cur == nil && m.state != AgentStarting || m.waiter == nil && info.For == WaitNothing {
		return nil
	}
	info.Confidence = m.sureOf(info.Source)
	m.write(Event{Kind: EventWaiting, Waiting: &info})
	m.waiter = &info
	if info.For == WaitNothing {
		m.waiter = nil
	}
	return m.flush()
}

// limit says that the agent's provider takes no more.
func (m *machine) limit(info LimitInfo) []effect {
	if m.busy() {
		return m.postpone(func() []effect { return m.limit(info) })
	}
	m.tellLimit(info)
	return m.flush()
}

func (m *machine) tellLimit(info LimitInfo) {
	info.Confidence = m.sureOf(info.Source)
	if l, is := adapter.LimitOf(info.Text, m.clock()); is && info.Kind == "" {
		info.Kind = l.Kind
	}
	if at := adapter.RetryAt(info.Text, m.clock()); info.RetryAt == nil && !at.IsZero() {
		info.RetryAt = &at
	}
	m.limited = &info
	if m.cur != nil {
		m.cur.limited = true
	}
	m.write(Event{Kind: EventLimit, Limit: &info})
}

// cancel takes a message back that has not been handed over, and tells how far
// it is in any case; ok is false if there is none that has not ended.
func (m *machine) cancel(id string) (info MessageInfo, todo []effect, ok bool) {
	e := m.find(id)
	if e == nil {
		return MessageInfo{}, nil, false
	}
	if m.drop(e) {
		m.finish(e, StateFailed, "", whyCancelled)
		m.next()
	}
	return e.info(), m.flush(), true
}

// drop takes e off its queue; it reports false if e is on none.
func (m *machine) drop(e *entry) bool {
	for _, queue := range []*[]*entry{&m.waiting, &m.urgent} {
		if i := slices.Index(*queue, e); i >= 0 {
			*queue = slices.Delete(*queue, i, i+1)
			return true
		}
	}
	return false
}

// expire ends the messages whose deadline has passed while they waited.
func (m *machine) expire(now time.Time) []effect {
	for _, e := range slices.Concat(m.urgent, m.waiting) {
		if !expired(e.rec, now) {
			continue
		}
		m.drop(e)
		why := whyExpired
		if e.why != "" {
			why += ": " + e.why
		}
		m.finish(e, StateFailed, adapter.ByNone, why)
	}
	m.next()
	return m.flush()
}

func expired(r record, now time.Time) bool { return r.Deadline != nil && !now.Before(*r.Deadline) }

// deadline is the earliest of those that wait, the zero time if there is none.
func (m *machine) deadline() (first time.Time) {
	for _, queue := range [][]*entry{m.urgent, m.waiting} {
		for _, e := range queue {
			if d := e.rec.Deadline; d != nil && (first.IsZero() || d.Before(first)) {
				first = *d
			}
		}
	}
	return first
}
