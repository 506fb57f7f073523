package pty

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"muntin/agent/adapter"
	"muntin/internal/id"
)

// status answers what the agent does now.
func (s *supervisor) status(ctx context.Context) (st Status, ok bool) {
	ok = s.do(ctx, func() {
		st = s.m.status()
		st.Run, st.Agent, st.PID, st.Seq = s.opt.Run, s.opt.Agent, os.Getpid(), s.events.last()
		st.Title, st.Output = s.cues.lastTitle(), s.rec.offset()
	})
	return st, ok
}

// send takes a message: it is on disk when send returns. A message whose id is
// known already is not taken again; its present state is the answer, and seq
// the number of the first event that can come after it.
func (s *supervisor) send(ctx context.Context, msg Message) (info MessageInfo, seq int64, err error) {
	if err := checkMessage(msg); err != nil {
		return MessageInfo{}, 0, err
	}
	if msg.Time.IsZero() {
		msg.Time = s.opt.Now()
	}
	err = errEnding
	s.do(ctx, func() {
		seq = s.events.last() + 1
		if e := s.m.find(msg.ID); e != nil {
			info, err = e.info(), nil
			return
		}
		if stuck, ok := s.stuck[msg.ID]; ok {
			info, err = stuck, nil
			return
		}
		r, known, findErr := s.box.find(msg.ID)
		if err = findErr; err != nil {
			return
		}
		if known && r.State.Ended() {
			info = r.info()
			return
		}
		if !known { // else it was filed behind the supervisor's back
			s.filed = max(s.filed+1, time.Now().UnixNano())
			r = record{Message: msg, State: StateQueued, Filed: s.filed}
			if err = s.box.put(r); err != nil {
				return
			}
		}
		info = r.info()
		s.apply(s.m.add(r, false))
	})
	return info, seq, err
}

// cancel takes a message back that has not been handed over; another is
// answered as it is, and an unknown one with nothing.
func (s *supervisor) cancel(ctx context.Context, msg string) (info MessageInfo, err error) {
	if !id.Valid(msg) {
		return MessageInfo{}, nil // and no name of a file
	}
	if !s.do(ctx, func() {
		found, todo, ok := s.m.cancel(msg)
		if ok {
			info = found
			s.apply(todo)
			return
		}
		r, known, findErr := s.box.find(msg)
		if err = findErr; known {
			info = r.info()
		}
	}) {
		return MessageInfo{}, errEnding
	}
	return info, err
}

const maxCells = 1000 // a side of the terminal

// resize sets the size of an agent's terminal that no pane decides about.
func (s *supervisor) resize(size *Size) error {
	switch {
	case size == nil || size.Cols < 1 || size.Rows < 1 || size.Cols > maxCells || size.Rows > maxCells:
		return fmt.Errorf("resize: want a size of 1 to %d columns and rows", maxCells)
	case isTerminal(s.opt.In) || isTerminal(s.opt.Out):
		return errors.New("resize: the size of the pane decides")
	}
	s.rec.resize(size.Cols, size.Rows)
	return s.term.resize(unix.Winsize{Col: uint16(size.Cols), Row: uint16(size.Rows)}) //nolint:gosec // checked
}

// report takes what the built-in agent says.
func (s *supervisor) report(r Report) {
	by := adapter.ByProtocol
	switch r.Kind {
	case ReportReady:
		s.apply(s.m.ready(by))
	case ReportAccepted:
		s.apply(s.m.accepted(r.Message, by))
	case ReportRefused:
		s.apply(s.m.refused(r.Message, r.Why))
	case ReportTurnStart:
		s.apply(s.m.turnStarted(r.Message, by))
	case ReportTool:
		if r.Tool != nil {
			s.apply(s.m.tool(*r.Tool))
		}
	case ReportTurnEnd:
		end := TurnEndInfo{Reason: TurnDone}
		if r.TurnEnd != nil {
			end = *r.TurnEnd
		}
		end.Message, end.Source = r.Message, by
		s.apply(s.m.turnOver(end))
	case ReportWaiting:
		if r.Waiting != nil {
			s.apply(s.m.waits(WaitingInfo{For: r.Waiting.For, Text: clip(r.Waiting.Text, 512), Source: by}))
		}
	case ReportLimit:
		if r.Limit != nil {
			s.apply(s.m.limit(LimitInfo{Text: clip(r.Limit.Text, 512), RetryAt: r.Limit.RetryAt, Source: by}))
		}
	default:
		s.log.Warn("an unknown report", "kind", string(r.Kind))
	}
}
