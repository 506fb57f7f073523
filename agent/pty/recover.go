package pty

import (
	"fmt"

	"muntin/agent/adapter"
)

// Why messages of an earlier life cannot be delivered any more.
const (
	whyTyped    = "the supervisor ended after it was typed; it is not typed again"
	whyAccepted = "the supervisor ended during its turn"
	whyNoAnswer = "the agent's process ended before it answered"
	whyInTurn   = "the agent's process ended in the turn"
)

// Why messages end before they are handed over.
const (
	whyCancelled = "it was cancelled"
	whyExpired   = "its deadline passed before it was handed over"
)

// takeUp goes on where the supervisor before this one ended: it closes a turn
// that was left open, ends the messages that must not be delivered again, and
// queues the others in the order in which they were filed.
func (s *supervisor) takeUp() error {
	records, bad, err := s.box.load()
	if err != nil {
		return err
	}
	for _, err := range bad {
		s.log.Error("a message was set aside", "error", err)
	}
	inbox := make(map[string]bool, len(records))
	for _, r := range records {
		inbox[r.ID] = true
		s.filed = max(s.filed, r.place())
	}
	p, err := s.events.replay(inbox)
	if err != nil {
		return err
	}
	s.m = newMachine(s.opt.Adapter.Link, p.turn, s.opt.Now)
	s.m.noSteer, s.m.checks = s.opt.Adapter.NoSteer, s.opt.Checkpoints != nil
	_, s.m.tends = s.opt.Checkpoints.(Maintainer)
	if s.opt.Limits {
		s.m.measure = func() *Resources { return s.child.resources() }
	}
	s.m.guard = func() error {
		_, why := s.term.guarded(s.guard())
		return why
	}
	if !s.opt.Adapter.Link {
		p.left, p.known = s.leftBehind()
	}
	s.endOpenTurn(records, p)
	for _, r := range records {
		if err := s.takeUpOne(r, p); err != nil {
			return fmt.Errorf("taking up message %s: %w", r.ID, err)
		}
	}
	return nil
}

// endOpenTurn closes a turn that the supervisor before this one left open.
func (s *supervisor) endOpenTurn(records []record, p past) {
	if p.pending == nil {
		return
	}
	end := TurnEndInfo{Reason: TurnExited, Error: "the supervisor ended in the turn", Source: adapter.ByNone}
	for _, r := range records {
		if r.ID == p.pending.Message && p.says(r) {
			end = p.left.turnEnd()
		}
	}
	end.Message, end.Task = p.pending.Message, p.pending.Task
	s.write(Event{Kind: EventTurnEnd, Turn: p.turn, TurnEnd: &end})
}

// says reports whether the conversation that was left tells of the message.
func (p past) says(r record) bool { return p.known && p.left.of(r, p.typed[r.ID]) }

func (s *supervisor) takeUpOne(r record, p past) error {
	if info, ok := p.ended[r.ID]; ok || r.State.Ended() { // only its file was not moved
		if ok {
			r.State, r.Why = info.State, info.Why
		}
		return s.putAway(r)
	}
	last, told := p.states[r.ID]
	typed := !s.opt.Adapter.Link && last.Reached(stateTyping)
	why := ""
	switch {
	case typed && p.says(r):
		return s.settleBy(r, last, p.left.turnEnd())
	case last == StateAccepted:
		why = whyAccepted
	case typed:
		why = whyTyped
	case expired(r, s.opt.Now()):
		why = whyExpired
	}
	if why == "" {
		s.apply(s.m.add(r, told))
		return nil
	}
	r.State, r.Why = StateFailed, why
	info := r.info()
	s.write(Event{Kind: EventMessage, Message: &info})
	return s.putAway(r)
}

// settleBy ends a message by what the conversation that was left says of it.
func (s *supervisor) settleBy(r record, last MessageState, end TurnEndInfo) error {
	steps := []MessageState{StateAccepted, StateDone}
	if r.Why = whyFailed(end); end.Reason == TurnExited {
		r.Why = whyAccepted
	}
	if r.Why != "" {
		steps[1] = StateFailed
	}
	if last.Reached(StateAccepted) {
		steps = steps[1:]
	}
	for _, state := range steps {
		info := r.info()
		info.State, info.Evidence = state, adapter.ByTranscript
		if !state.Ended() {
			info.Why = ""
		}
		s.write(Event{Kind: EventMessage, Message: &info})
	}
	r.State = steps[len(steps)-1]
	return s.putAway(r)
}

// putAway moves the file of a message that has ended.
func (s *supervisor) putAway(r record) error {
	now := s.opt.Now()
	r.Finished = &now
	return s.box.finish(r)
}

// write appends an event. A log that cannot be written must not end the agent:
// the error goes to the structured log.
func (s *supervisor) write(ev Event) {
	if err := s.events.append(ev); err != nil {
		s.log.Error("an event was not written", "kind", string(ev.Kind), "error", err)
	}
	if ev.Kind == EventTurnEnd {
		s.sync()
	}
}

func (s *supervisor) sync() {
	if err := s.events.log.Sync(); err != nil {
		s.log.Error("the event log was not synced", "error", err)
	}
}
