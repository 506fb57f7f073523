package pty

import (
	"context"
	"errors"
)

// checkpoint has one taken, in a goroutine of its own.
func (s *supervisor) checkpoint(cause CheckpointCause) {
	if s.opt.Checkpoints == nil {
		s.apply(s.m.checkpointed(nil, ""))
		return
	}
	req := s.checkpointRequest(cause)
	s.wg.Go(func() { s.takeCheckpoint(s.work, req) })
}

func (s *supervisor) takeCheckpoint(work context.Context, req CheckpointRequest) {
	// The last turn's checkpoint is taken after the agent has ended, and with
	// it the deliveries' context.
	base := context.WithoutCancel(work)
	info, err := s.saveCheckpoint(base, req)
	s.do(base, func() { s.savedCheckpoint(req, info, err) })
}

func (s *supervisor) checkpointRequest(cause CheckpointCause) CheckpointRequest {
	req := CheckpointRequest{Run: s.opt.Run, Agent: s.opt.Agent, Turn: s.m.turn, Cause: cause}
	if t := s.m.cur; t != nil {
		req.Message = t.message
		if t.end != nil {
			req.Entry = t.end.Entry
		}
	}
	if s.m.behind != nil {
		req.Message = s.m.behind.rec.ID
	}
	return req
}

func (s *supervisor) saveCheckpoint(ctx context.Context, req CheckpointRequest) (CheckpointInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.CheckpointTimeout)
	defer cancel()
	return s.opt.Checkpoints.Save(ctx, req)
}

// savedCheckpoint goes on after a checkpoint was taken, or was not.
func (s *supervisor) savedCheckpoint(req CheckpointRequest, info CheckpointInfo, err error) {
	switch {
	case errors.Is(err, ErrUnchanged):
		s.apply(s.m.checkpointed(nil, ""))
		return
	case err != nil:
		s.log.Error("taking a checkpoint", "turn", req.Turn, "error", err)
		s.apply(s.m.checkpointed(nil, err.Error()))
		return
	case info.Cause == "":
		info.Cause = string(req.Cause)
	}
	s.apply(s.m.checkpointed(&info, ""))
}

// maintain looks after the store, unless a turn has begun by now or does
// meanwhile.
func (s *supervisor) maintain(work context.Context, store Maintainer) {
	ctx, cancel := context.WithTimeout(work, s.opt.CheckpointTimeout)
	defer cancel()
	s.do(work, func() {
		s.stopTending = cancel
		s.settled()
	})
	if err := store.Maintain(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("looking after the checkpoints", "error", err)
	}
	brokenOff := errors.Is(ctx.Err(), context.Canceled)
	s.do(work, func() {
		s.stopTending = func() {}
		s.apply(s.m.tended(brokenOff))
	})
}
