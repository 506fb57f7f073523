package pty

import (
	"context"
	"errors"
	"time"

	"muntin/agent/adapter"
)

// apply carries out what the machine asks for, in order. What follows from
// that is appended, never done in between.
func (s *supervisor) apply(effects []effect) {
	s.todo = append(s.todo, effects...)
	if s.applying {
		return
	}
	s.applying = true
	for len(s.todo) > 0 {
		e := s.todo[0]
		s.todo = s.todo[1:]
		switch {
		case e.event != nil:
			s.write(*e.event)
		case e.deliver != nil:
			s.deliver(e.deliver)
		case e.finish != nil:
			r := e.finish.rec
			r.State = e.finish.state
			if err := s.putAway(r); err != nil {
				s.log.Error("a message's file was not put away", "id", r.ID, "error", err)
				s.stuck[r.ID] = e.finish.info()
			}
		case e.checkpoint != "":
			s.checkpoint(e.checkpoint)
		case e.await != nil:
			s.watch.begin(watchAnswer, e.await.rec.ID, s.watch.sideM, time.Now())
			s.watch.side = ""
			offer(s.outputs, struct{}{}) // look
		case e.hold:
			again, _ := s.term.guarded(s.guard())
			s.unhold.Reset(max(again, time.Millisecond))
		}
	}
	s.todo, s.applying = nil, false
	s.settled()
}

// settled arranges what depends on the messages that wait now.
func (s *supervisor) settled() {
	if s.m.holding != s.held {
		s.held = s.m.holding
		s.opt.OnHeld(s.held)
	}
	s.expire.Stop()
	if at := s.m.deadline(); !at.IsZero() {
		s.expire.Reset(max(at.Sub(s.opt.Now()), time.Millisecond))
	}
}

func (s *supervisor) guard() guard { return guard{keys: s.opt.Hold, draft: s.opt.HoldDraft} }

// deliver hands a message over, in a goroutine of its own.
func (s *supervisor) deliver(e *entry) {
	msg := e.rec.Message
	if s.m.link {
		l := s.link
		s.wg.Go(func() { s.deliverLink(l, msg) })
		return
	}
	s.wg.Go(func() { s.deliverTyped(e, msg) })
}

// deliverLink sends the message on the built-in agent's link.
func (s *supervisor) deliverLink(l *link, msg Message) {
	if l != nil {
		if err := l.send(Frame{Op: OpDeliver, Message: &msg}); err != nil {
			s.log.Warn("delivering a message", "id", msg.ID, "error", err)
			l.close() // its reader tells that it is lost
			return
		}
	}
	s.do(s.work, func() {
		if l == nil || l != s.link {
			s.apply(s.m.returned(msg.ID))
			return
		}
		s.apply(s.m.delivered(msg.ID, adapter.ByProtocol))
	})
}

// deliverTyped types the message into the agent's terminal.
func (s *supervisor) deliverTyped(e *entry, msg Message) {
	ad := s.opt.Adapter
	if msg.Kind == KindAbort {
		s.awaitForeground(s.work)
		done, err := s.term.press(kittyKeys(ad.Abort, s.term.scan.kitty.Load()))
		s.do(s.work, func() { s.wasTyped(msg, done, err) })
		return
	}
	text, err := pasteBytes(msg.Text, s.term.scan.pasting.Load(), s.term.lineMode())
	if err != nil {
		s.do(s.work, func() { s.apply(s.m.refused(msg.ID, err.Error())) })
		return
	}
	done, err := s.term.paste(s.work, pasting{
		text: text, submit: kittyKeys(ad.Submit, s.term.scan.kitty.Load()), delay: ad.Delay(len(text)), guard: s.guard(),
		before: func() error { return s.markTyped(e) },
	})
	s.do(s.work, func() { s.wasTyped(msg, done, err) })
}

// awaitForeground gives a shell that has just taken a command a moment to put
// it into the foreground: an interrupt that comes before is the shell's, and
// lost. A shell that runs nothing else is interrupted itself.
func (s *supervisor) awaitForeground(ctx context.Context) {
	if !s.opt.Adapter.Foreground {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pollForeground)
	defer cancel()
	for s.term.foreground() == s.child.pid && wait(ctx, 5*time.Millisecond) == nil {
	}
}

// markTyped writes down, before the first byte is typed, that the message must
// not be typed again whatever happens now.
func (s *supervisor) markTyped(e *entry) error {
	err := context.Canceled
	s.do(s.work, func() {
		if s.m.exited || s.m.inHand(e.rec.ID) != e || e.rec.Typed {
			return
		}
		r := e.rec
		r.Typed = true
		if err = s.box.put(r); err == nil {
			e.rec.Typed = true
		}
	})
	return err
}

// wasTyped goes on after a message was typed, or was not.
func (s *supervisor) wasTyped(msg Message, done pasted, err error) {
	switch {
	case errors.Is(err, errTyping) || errors.Is(err, errDraft):
		s.apply(s.m.blocked(msg.ID, err))
		return
	case errors.Is(err, context.Canceled):
		return // the agent has ended, or is about to, or the message was taken back
	case err != nil:
		s.apply(s.m.refused(msg.ID, "typing it: "+err.Error()))
		return
	}
	evidence := adapter.ByNone
	if done.read {
		evidence = adapter.ByScreen
	}
	if s.m.main != nil && s.m.main.rec.ID == msg.ID {
		s.watch.begin(watchAnswer, msg.ID, done.mark, time.Now())
	} else {
		s.watch.side, s.watch.sideM = msg.ID, done.mark
	}
	s.apply(s.m.delivered(msg.ID, evidence))
	s.look()
}

// look looks at the terminal, and tells the machine what follows from it.
func (s *supervisor) look() {
	if s.m.link || s.m.exited {
		return
	}
	s.hear()
	now := sight{
		now: time.Now(), output: s.term.output.Load(), still: s.term.still(),
		own:     !s.opt.Adapter.Foreground || s.term.foreground() == s.child.pid,
		pasting: s.term.scan.pasting.Load(),
	}
	if id, ok := s.watch.sideAnswered(now); ok {
		s.apply(s.m.accepted(id, adapter.ByScreen))
	}
	id := s.watch.id
	verdict, again := s.watch.look(now)
	switch verdict {
	case isReady:
		s.term.undraft() // a key that answered what it asked before
		by := adapter.ByScreen
		if s.watch.idle {
			by = adapter.ByTerminal
		}
		s.apply(s.m.ready(by))
	case answered:
		s.apply(s.m.accepted(id, adapter.ByScreen))
		s.apply(s.m.turnStarted(id, adapter.ByScreen))
	case person:
		s.apply(s.m.turnStarted("", adapter.ByScreen))
	case silent:
		s.apply(s.m.turnStarted(id, adapter.ByNone))
		s.apply(s.m.turnOver(TurnEndInfo{Reason: TurnDone, Source: adapter.ByNone}))
	case over:
		s.turnOver(TurnEndInfo{Reason: TurnDone, Source: adapter.ByScreen})
	case unheard:
		s.submitAgain(id)
	case nothing, failed, waits, resumed, limited:
	}
	s.lookAgain(again, now.output)
}

// submitAgain presses the submit key once more, unless a person is at it.
func (s *supervisor) submitAgain(id string) {
	if _, why := s.term.guarded(s.guard()); why != nil {
		return
	}
	s.log.Info("no signal followed the submit key, it is pressed once more", "message", id)
	keys := kittyKeys(s.opt.Adapter.Submit, s.term.scan.kitty.Load())
	s.wg.Go(func() { _, _ = s.term.press(keys) }) // its failure is the program's end
}

// turnOver ends the turn of an agent that is watched. What was typed at a
// shell's command was the command's.
func (s *supervisor) turnOver(end TurnEndInfo) {
	if s.opt.Adapter.Foreground {
		s.term.undraft()
	}
	s.apply(s.m.turnOver(end))
}

// lookAgain arranges the next look.
func (s *supervisor) lookAgain(again lookAgain, seen int64) {
	s.tick.Stop()
	if again.after > 0 {
		s.tick.Reset(again.after)
	}
	s.term.wake.Store(again.output)
	if again.output && s.term.output.Load() != seen {
		offer(s.outputs, struct{}{}) // it came in between
	}
}

// entered takes note that a person pressed Enter.
func (s *supervisor) entered(mark int64) {
	if s.m.link || s.watch.trust > 0 || s.watch.mode != watchRest || s.m.state != AgentIdle || s.m.main != nil {
		return
	}
	s.watch.begin(watchEnter, "", mark, time.Now())
	s.look()
}

// checkpoint has one taken, in a goroutine of its own.
func (s *supervisor) checkpoint(cause CheckpointCause) {
	if s.opt.Checkpoints == nil {
		s.apply(s.m.checkpointed(nil, ""))
		return
	}
	req := CheckpointRequest{Run: s.opt.Run, Agent: s.opt.Agent, Turn: s.m.turn, Cause: cause}
	if t := s.m.cur; t != nil {
		req.Message = t.message
		if t.end != nil {
			req.Entry = t.end.Entry
		}
	}
	if cause == CauseBetween {
		req.Message = s.m.main.rec.ID
	}
	s.wg.Go(func() { s.saveCheckpoint(s.work, req) })
}

func (s *supervisor) saveCheckpoint(work context.Context, req CheckpointRequest) {
	// The last turn's checkpoint is taken after the agent has ended, and with
	// it the deliveries' context.
	base := context.WithoutCancel(work)
	ctx, cancel := context.WithTimeout(base, s.opt.CheckpointTimeout)
	defer cancel()
	info, err := s.opt.Checkpoints.Save(ctx, req)
	s.do(base, func() {
		if errors.Is(err, ErrUnchanged) {
			s.apply(s.m.checkpointed(nil, ""))
			return
		}
		if err != nil {
			s.log.Error("taking a checkpoint", "turn", req.Turn, "error", err)
			s.apply(s.m.checkpointed(nil, err.Error()))
			return
		}
		if info.Cause == "" {
			info.Cause = string(req.Cause)
		}
		s.apply(s.m.checkpointed(&info, ""))
	})
}
