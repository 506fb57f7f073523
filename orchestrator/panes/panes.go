// Package panes puts a fleet on a tmux server: it is the orchestrator's Host.
package panes

import (
	"context"
	"errors"

	"muntin/orchestrator"
	"muntin/tmux"
)

// A Host starts and stops fleets on one tmux server.
type Host struct {
	server *tmux.Server
}

// New makes a Host of a tmux server.
func New(server *tmux.Server) *Host { return &Host{server: server} }

// Start brings up a fleet: a tmux session of its name with the board's pane
// and one pane an agent, each running its program as the pane's own process.
func (h *Host) Start(ctx context.Context, f orchestrator.Fleet) error {
	spec := tmux.SessionSpec{
		Name: f.Session, Cols: f.Cols, Rows: f.Rows, Dir: dirOf(f), Env: f.Env,
		Meta: map[string]string{"run": f.Label},
	}
	err := h.spawn(ctx, spec, f)
	var start *tmux.StartError
	if errors.As(err, &start) { // the session was made, and is left for a look
		return errors.Join(err, h.Stop(context.WithoutCancel(ctx), f.Session))
	}
	return err
}

// spawnTries is how often a server is met that is just ending.
const spawnTries = 4

// spawn makes the session of a fleet. A server ends with its last session: one
// that was there a moment ago may go while it is asked, and then a new one is
// started.
func (h *Host) spawn(ctx context.Context, spec tmux.SessionSpec, f orchestrator.Fleet) error {
	for try := 1; ; try++ {
		_, err := h.server.Spawn(ctx, spec, windows(f))
		gone := errors.Is(err, tmux.ErrNoServer) || errors.Is(err, tmux.ErrStale)
		if !gone || try == spawnTries || ctx.Err() != nil {
			return err
		}
		server, openErr := h.server.Reopen(ctx)
		if openErr != nil {
			return errors.Join(err, openErr)
		}
		h.server = server
	}
}

// Stop ends the fleet of a session. A session, or a server, that is not there
// is no error.
func (h *Host) Stop(ctx context.Context, session string) error {
	found, err := h.server.FindSession(ctx, session)
	if err == nil {
		err = h.server.KillSession(ctx, found.ID, session)
	}
	if isGone(err) { // or it went by itself when its last pane ended
		return nil
	}
	return err
}

// Watch calls ended with the name of each agent of a session whose program has
// ended or whose pane is gone: soon after it happens, and at once for those
// that ended before. It holds one connection to the server, and asks nothing
// meanwhile. It returns the error of ended, nil when the server is gone, and
// ctx's error; the same name can be told twice.
func (h *Host) Watch(ctx context.Context, session string, ended func(agent string) error) (err error) {
	if err := h.server.Connect(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.server.Close()) }()
	events, err := h.server.Events(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	if err := h.compare(ctx, session, seen, ended); err != nil {
		return err
	}
	for e := range events {
		switch e.Kind {
		case tmux.EventResync, tmux.EventAdded:
			err = h.compare(ctx, session, seen, ended)
		case tmux.EventDied, tmux.EventGone:
			if name := e.Pane.Meta["name"]; e.Pane.SessionName == session && name != orchestrator.BoardPane && name != "" {
				err = ended(name)
			}
		default: // agents live
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// compare looks at the agents' panes as they are. seen are those that were there.
func (h *Host) compare(ctx context.Context, session string, seen map[string]bool, ended func(string) error) error {
	sn, err := h.server.Snapshot(ctx)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	alive := map[string]bool{}
	for _, p := range sn.Panes {
		name := p.Meta["name"]
		if p.SessionName != session || name == orchestrator.BoardPane || name == "" {
			continue
		}
		seen[name] = true
		alive[name] = !p.Dead
	}
	for name := range seen {
		if !alive[name] {
			if err := ended(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func isGone(err error) bool {
	return errors.Is(err, tmux.ErrNoSuchSession) || errors.Is(err, tmux.ErrNoServer)
}

func pane(p orchestrator.Pane) tmux.PaneSpec {
	return tmux.PaneSpec{Argv: p.Argv, Dir: p.Dir, Title: p.Name, Meta: map[string]string{"name": p.Name}}
}

// dirOf is where panes start that a person opens in the session.
func dirOf(f orchestrator.Fleet) string {
	if f.Board.Dir == "" && len(f.Agents) > 0 {
		return f.Agents[0].Dir
	}
	return f.Board.Dir
}
