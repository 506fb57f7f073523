package orchestrator

import (
	"context"
	"errors"

	"muntin/agent/pty"
	"muntin/internal/state"
)

// A supervisor that is killed writes no last event: that it is gone shows on a
// connection to it alone. A lookout holds one, so that nothing is polled.
type lookout struct {
	dir  state.AgentDir
	seen chan struct{} // a supervisor is up; holds one
}

func newLookout(dir state.AgentDir) *lookout {
	return &lookout{dir: dir, seen: make(chan struct{}, 1)}
}

// up says that the agent's log tells of a supervisor that is ready.
func (l *lookout) up() {
	select {
	case l.seen <- struct{}{}:
	default: // it will look already
	}
}

// watch calls lost each time a supervisor has gone without saying that its
// agent ended, until ctx ends.
func (l *lookout) watch(ctx context.Context, lost func() error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.seen:
		}
		ended, err := l.hold(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case ended:
			continue
		}
		if err := lost(); err != nil {
			return err
		}
	}
}

// hold keeps a connection to the supervisor until that is gone. ended tells
// that the log has the agent's end.
func (l *lookout) hold(ctx context.Context) (ended bool, err error) {
	client, err := pty.Dial(ctx, l.dir.Socket)
	if errors.Is(err, pty.ErrNotRunning) {
		return l.hasEnded()
	}
	if err != nil {
		return false, err
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err == nil {
		err = client.Subscribe(ctx, status.Seq+1, func(pty.Event) error { return nil })
	}
	if err == nil {
		return true, nil // it sent the end
	}
	return l.hasEnded()
}

// hasEnded tells whether the agent's end is the last thing in its log.
func (l *lookout) hasEnded() (bool, error) {
	ended := false
	_, err := pty.ReadEvents(l.dir, 0, func(e pty.Event, _ int64) error {
		switch e.Kind {
		case pty.EventExit:
			ended = true
		case pty.EventStart:
			ended = false
		}
		return nil
	})
	return ended, err
}

// gone tells whether no supervisor is there and none has told of its agent's
// end: to be asked when its pane has ended.
func (l *lookout) gone(ctx context.Context) (bool, error) {
	client, err := pty.Dial(ctx, l.dir.Socket)
	if err == nil {
		return false, client.Close() // it runs somewhere else
	}
	if !errors.Is(err, pty.ErrNotRunning) {
		return false, err
	}
	ended, err := l.hasEnded()
	return !ended && err == nil, err
}

// answers tells whether a supervisor serves the socket whose agent runs.
func answers(ctx context.Context, socket string) bool {
	client, err := pty.Dial(ctx, socket)
	if err != nil {
		return false
	}
	defer client.Close()
	status, err := client.Status(ctx)
	return err == nil && status.State != pty.AgentExited
}
