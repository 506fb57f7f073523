package tmux

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"muntin/tmux/control"
)

// ErrNotConnected means: the call needs Connect before it.
var ErrNotConnected = errors.New("not connected to the tmux server")

// Connect attaches a control-mode client to the running server and keeps it
// until Close. While it is attached, commands go over it, many times faster
// than by a tmux process each, and Events tells what happens; while it is not,
// they go the other way, with the same results. The client takes no output, has
// no size and changes nothing that a person sees, other than that its session
// counts as attached.
//
// ctx limits the connecting only. A Server that is connected already stays so.
// ErrNoServer means: none is running, or it has no session. ErrStale.
func (s *Server) Connect(ctx context.Context) error {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	if s.link.Load() != nil {
		return nil
	}
	epoch, err := s.bound(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the tmux server: %w", err)
	}
	client, err := control.NewClient(ctx, control.ClientOptions{
		Options: control.Options{
			Argv: s.exec.argv, Env: s.env, Dir: s.exec.dir,
			// The last one is known to 3.6 and later, and passed over before.
			Flags: []string{"no-output", "ignore-size", "no-detach-on-destroy"},
		},
		Prepare: func(ctx context.Context, c *control.Conn) error {
			if err := sameServer(ctx, c, epoch); err != nil {
				return err
			}
			_, err := c.Do(ctx, Cmd{"refresh-client", "-B", deathsName + "::" + deathsFormat})
			return err
		},
		Final: func(err error, down time.Duration) bool { return isFinal(fromControl(err), epoch, down) },
	})
	if err != nil {
		return fmt.Errorf("connecting to the tmux server: %w", fromControl(err))
	}
	l := &link{client: client, epoch: epoch, hub: newHub(s, epoch, client.Events())}
	l.hub.start(ctx)
	s.link.Store(l)
	return nil
}

// Close ends what Connect began and waits until it is gone; the Server stays
// usable. The channels of Events are closed.
func (s *Server) Close() error {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	l := s.link.Swap(nil)
	if l == nil {
		return nil
	}
	err := l.client.Close()
	l.hub.stop()
	return err
}

// Connected reports whether commands go over a control-mode client now.
func (s *Server) Connected() bool {
	l := s.link.Load()
	return l != nil && l.client.Conn() != nil
}

// A link is the connected side of a Server.
type link struct {
	client *control.Client
	epoch  Epoch
	hub    *hub
}

// sameServer makes sure that a connection is one to the server meant. From
// then on it can be to no other.
func sameServer(ctx context.Context, c *control.Conn, epoch Epoch) error {
	replies, err := c.Do(ctx, Cmd{"display-message", "-p", "#{pid}/#{start_time}"})
	if err != nil {
		return err
	}
	if replies[0] != fmt.Sprintf("%d/%d", epoch.PID, epoch.Start) {
		return ErrStale
	}
	return nil
}

// socketGrace is how long a server whose socket is not there may take to make
// it again (SIGUSR1, tmux(1)) before it counts as gone.
const socketGrace = 5 * time.Second

// isFinal tells whether an error of a new connection means that the server of
// this epoch will not be seen again. A socket that is missing can be one that
// was cleaned away from a server that lives.
func isFinal(err error, epoch Epoch, down time.Duration) bool {
	var refused *CommandError
	switch {
	case errors.Is(err, ErrStale):
		return true
	case !errors.As(err, &refused) || !errors.Is(err, ErrNoServer):
		return false
	case strings.Contains(refused.Text, noSessions): // it is about to exit, or waits for one
		return false
	case strings.Contains(refused.Text, "error connecting to"):
		return down > socketGrace || errors.Is(syscall.Kill(epoch.PID, 0), syscall.ESRCH)
	}
	return true
}

const noSessions = "no sessions"

// fromControl turns an error of package control into one of this package.
func fromControl(err error) error {
	var refused *control.Error
	if errors.As(err, &refused) {
		return &CommandError{Command: refused.Command, Text: refused.Text}
	}
	return err
}

// A switchTransport takes the control connection where there is one, and else
// one process a list.
type switchTransport struct {
	exec *execTransport
	link *atomic.Pointer[link]
}

func (t *switchTransport) run(ctx context.Context, epoch Epoch, cmds []Cmd) ([]string, error) {
	l := t.link.Load()
	if l == nil || l.epoch != epoch || len(cmds) == 0 || slices.ContainsFunc(cmds, needsProcess) {
		return t.exec.run(ctx, epoch, cmds)
	}
	// A server that does not answer ends the connection, and with it this: no
	// timer is needed, which would cost a third of the round trip.
	replies, err := l.client.Do(ctx, cmds...)
	switch {
	case errors.Is(err, control.ErrLost):
		return t.lost(ctx, epoch, cmds, err)
	case errors.Is(err, control.ErrDown):
		return t.exec.run(ctx, epoch, cmds)
	}
	return replies, fromControl(err)
}

// lost goes on after a connection that ended before the reply. Commands that
// only look are asked again; of others nobody knows whether they were carried
// out, and that is said, unless the whole server is gone.
func (t *switchTransport) lost(ctx context.Context, epoch Epoch, cmds []Cmd, err error) ([]string, error) {
	if !slices.ContainsFunc(cmds, func(c Cmd) bool { return !looksOnly(c) }) {
		return t.exec.run(ctx, epoch, cmds)
	}
	if _, gone := t.exec.run(ctx, epoch, []Cmd{{"display-message", "-p", ""}}); gone != nil {
		return nil, gone
	}
	return nil, fmt.Errorf("tmux %s: %w", cmds[0][0], err)
}

// needsProcess tells commands that would hold up all others of a connection
// while they wait, or that are about the client that gives them.
func needsProcess(c Cmd) bool {
	if len(c) == 0 {
		return false
	}
	switch c[0] {
	case "wait-for", "confirm-before", "command-prompt", "display-popup", "display-menu", "display-panes", "choose-tree",
		"attach-session", "detach-client", "switch-client", "suspend-client", "refresh-client", "lock-client":
		return true
	case "run-shell":
		return !slices.Contains(c[1:], "-b")
	case "if-shell":
		return !slices.Contains(c[1:], "-F")
	case "load-buffer", "source-file":
		return slices.Contains(c[1:], "-")
	}
	return false
}

// looksOnly tells commands that change nothing.
func looksOnly(c Cmd) bool {
	if c[0] == "display-message" {
		return slices.Contains(c, "-p")
	}
	return strings.HasPrefix(c[0], "list-") || strings.HasPrefix(c[0], "show-") ||
		c[0] == "has-session" || c[0] == "capture-pane" && slices.Contains(c, "-p")
}
