package tmux

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

const killPoll = 10 * time.Millisecond

// Kill ends panes and their programs. The programs are asked first (SIGTERM to
// their process groups) and have grace to end; those that are left then, and
// the panes with all that runs on their terminals, are killed. A pane that is
// gone already is no error; ErrStale: nothing was done.
//
// What a program has started in a process group of its own, and off its
// terminal, is not found.
func (s *Server) Kill(ctx context.Context, grace time.Duration, refs ...PaneRef) error {
	sn, err := s.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("killing panes: %w", err)
	}
	var groups []int
	for _, ref := range refs {
		p, err := sn.Pane(ref)
		switch {
		case errors.Is(err, ErrNoSuchPane):
		case err != nil:
			return fmt.Errorf("killing panes: %w", err)
		case !p.Dead && p.PID > 1:
			groups = append(groups, p.PID) // it leads a session and a group
		}
	}
	signal(groups, syscall.SIGTERM)
	signal(groups, syscall.SIGCONT) // a stopped program sees SIGTERM only then
	waitErr := waitGone(ctx, grace, groups)
	// From here on all of it is done, even if ctx has ended.
	signal(groups, syscall.SIGKILL)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	for _, ref := range refs {
		err := s.KillPane(ctx, ref)
		if err != nil && !errors.Is(err, ErrNoSuchPane) && !errors.Is(err, ErrNoServer) {
			waitErr = errors.Join(waitErr, err)
		}
	}
	return waitErr
}

func signal(groups []int, sig syscall.Signal) {
	for _, pid := range groups {
		_ = syscall.Kill(-pid, sig) // it may have ended by now
	}
}

// waitGone waits until the process groups are empty, at most for grace.
func waitGone(ctx context.Context, grace time.Duration, groups []int) error {
	end := time.NewTimer(grace)
	defer end.Stop()
	tick := time.NewTicker(killPoll)
	defer tick.Stop()
	for {
		left := false
		for _, pid := range groups {
			left = left || syscall.Kill(-pid, 0) == nil
		}
		if !left {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for programs to end: %w", context.Cause(ctx))
		case <-end.C:
			return nil
		case <-tick.C:
		}
	}
}
