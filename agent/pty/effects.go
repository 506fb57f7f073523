package pty

import (
	"context"
	"errors"
	"slices"
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
			if again <= 0 {
				again = dialogAgain // it is no person's typing that is in the way
			}
			s.unhold.Reset(again)
		case e.tend:
			if store, ok := s.opt.Checkpoints.(Maintainer); ok {
				s.wg.Go(func() { s.maintain(s.work, store) })
			}
		}
	}
	s.todo, s.applying = nil, false
	s.settled()
}

// settled arranges what depends on the messages that wait now.
func (s *supervisor) settled() {
	if s.m.tending && (s.m.cur != nil || s.m.busy()) {
		s.stopTending()
	}
	if s.m.holding != s.held {
		s.held = s.m.holding
		s.opt.OnHeld(s.held)
	}
	s.measuring()
	if s.opt.Advise != nil && !s.advice && (s.m.state == AgentIdle || s.m.state == AgentWorking) {
		s.advice = true
		s.wg.Go(s.advised)
	}
	s.expire.Stop()
	if at := s.m.deadline(); !at.IsZero() {
		s.expire.Reset(max(at.Sub(s.opt.Now()), time.Millisecond))
	}
}

func (s *supervisor) guard() guard { return guard{keys: s.opt.Hold, draft: s.opt.HoldDraft} }

// deliver hands a message over, in a goroutine of its own.
func (s *supervisor) deliver(e *entry) {
	h, msg := handing{e, e.tries}, e.rec.Message
	if s.m.link {
		l := s.link
		s.wg.Go(func() { s.deliverLink(l, h, msg) })
		return
	}
	s.say(msg.Text)
	s.wg.Go(func() {
		done, err := s.typeIt(h, msg)
		s.do(s.work, func() { s.wasTyped(h, done, err) })
	})
}

// deliverLink sends the message on the built-in agent's link.
func (s *supervisor) deliverLink(l *link, h handing, msg Message) {
	if l != nil {
		if err := l.send(Frame{Op: OpDeliver, Message: &msg}); err != nil {
			s.log.Warn("delivering a message", "id", msg.ID, "error", err)
			l.close() // its reader tells that it is lost
			return
		}
	}
	s.do(s.work, func() {
		switch {
		case !s.m.holds(h):
		case l == nil || l != s.link:
			s.apply(s.m.returned(msg.ID))
		default:
			s.apply(s.m.delivered(msg.ID, adapter.ByProtocol))
		}
	})
}

// typeIt types the message into the agent's terminal.
func (s *supervisor) typeIt(h handing, msg Message) (pasted, error) {
	ad := s.opt.Adapter
	if msg.Kind == KindAbort {
		s.awaitForeground(s.work)
		return s.term.press(kittyKeys(ad.Abort, s.term.scan.kitty.Load()))
	}
	if asks(s.glance().Sight.Means) {
		return pasted{}, errDialog
	}
	text, err := pasteBytes(msg.Text, s.term.scan.pasting.Load(), s.term.lineMode())
	if err != nil {
		return pasted{}, err
	}
	return s.term.paste(s.work, pasting{
		text: text, submit: kittyKeys(ad.Submit, s.term.scan.kitty.Load()), delay: ad.Delay(len(text)), guard: s.guard(),
		before: func() error { return s.markTyped(h) },
	})
}

// foregroundGrace is how long a shell may take to start a command; a busy machine
// makes it long.
const foregroundGrace = time.Second

// awaitForeground gives a shell that has just taken a command a moment to put
// it into the foreground: an interrupt that comes before is the shell's, and
// lost. A shell that runs nothing else is interrupted itself.
func (s *supervisor) awaitForeground(ctx context.Context) {
	if !s.opt.Adapter.Foreground {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, foregroundGrace)
	defer cancel()
	for s.term.foreground() == s.child.pid && wait(ctx, 5*time.Millisecond) == nil {
	}
}

// markTyped writes down, before the first byte is typed, that the message must
// not be typed again whatever happens now.
func (s *supervisor) markTyped(h handing) error {
	err := context.Canceled
	s.do(s.work, func() {
		e := h.e
		if s.m.exited || !s.m.holds(h) || e.state.Reached(stateTyping) {
			return
		}
		info := e.info()
		info.State = stateTyping
		if err = s.events.append(Event{Kind: EventMessage, Turn: s.m.running(), Message: &info}); err != nil {
			return
		}
		if err = s.events.log.Sync(); err == nil {
			e.state = stateTyping
		}
	})
	return err
}

// wasTyped goes on after a message was typed, or was not.
func (s *supervisor) wasTyped(h handing, done pasted, err error) {
	msg := h.e.rec.Message
	switch {
	case !s.m.holds(h): // it was taken back meanwhile
		return
	case errors.Is(err, errTyping) || errors.Is(err, errDraft) || errors.Is(err, errDialog):
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
		pasting: s.term.scan.pasting.Load(), unready: s.unready,
	}
	var seen adapter.Sight
	if len(s.opt.Adapter.Sights) > 0 || s.opt.Adapter.Composer != "" {
		now.shows = func() adapter.Seen { shown := s.glance(); seen = shown.Sight; return shown }
	}
	if id, ok := s.watch.sideAnswered(now); ok {
		s.apply(s.m.accepted(id, adapter.ByScreen))
	}
	id := s.watch.id
	s.wasTold = s.watch.told // look forgets it with the turn's end
	verdict, again := s.watch.look(now)
	s.m.sure = s.watch.sure
	s.concluded(verdict, id, seen)
	s.m.sure = ""
	s.lookAgain(again, now.output)
	s.probing()
}

// concluded tells the machine what was concluded from the screen about the
// message of that id.
func (s *supervisor) concluded(v verdict, id string, seen adapter.Sight) {
	switch v {
	case isReady:
		s.term.undraft() // a key that answered what it asked before
		by := adapter.ByScreen
		if s.watch.idle {
			by = adapter.ByTerminal
		}
		s.apply(s.m.ready(by))
	case ignored:
		s.apply(s.m.refused(id, whyUnheard))
		s.apply(s.m.ready(adapter.ByScreen))
	case answered:
		s.apply(s.m.accepted(id, adapter.ByScreen))
		s.apply(s.m.turnStarted(id, adapter.ByScreen))
	case person:
		s.apply(s.m.turnStarted("", adapter.ByScreen))
	case silent:
		s.apply(s.m.turnStarted(id, adapter.ByNone))
		s.apply(s.m.turnOver(TurnEndInfo{Reason: TurnDone, Source: adapter.ByNone}))
	case over:
		end := TurnEndInfo{Reason: TurnDone, Source: adapter.ByScreen}
		if id != "" && s.untold() {
			end.Reason, end.Error = TurnError, whyUntold
		}
		s.turnOver(end)
	case unheard:
		s.submitAgain(id)
	case waits:
		s.apply(s.m.waits(WaitingInfo{For: waitingFor(seen.Means), Text: seen.Note, Source: adapter.ByScreen}))
	case limited:
		s.apply(s.m.limit(LimitInfo{Text: seen.Note, Source: adapter.ByScreen}))
	case nothing, failed, resumed, aborted:
	}
}

const whyUntold = "the program tells of its turns, and told of none: it has probably not taken the text"

// untold reports whether the program, which has hooks that work, has told of no
// turn: output that followed the text is then no sign that it was taken.
func (s *supervisor) untold() bool {
	return s.opt.Hooked && !s.wasTold && slices.Contains(s.cues.seen(), adapter.SignalHook)
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
	s.fill(&end)
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
	s.apply(s.m.personEnters())
	if s.m.link || s.watch.trust > 0 || s.watch.mode != watchRest || s.m.state != AgentIdle || s.m.main != nil {
		return
	}
	s.watch.begin(watchEnter, "", mark, time.Now())
	s.look()
}
