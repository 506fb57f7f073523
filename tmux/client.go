package tmux

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNoSuchClient says that no client of that name is attached.
var ErrNoSuchClient = errors.New("no such tmux client")

// A Client is a terminal, or a program in control mode, that is attached to
// the server.
type Client struct {
	Name       string // what the other methods know it by; its terminal's path, as a rule
	Session    SessionID
	PID        int
	Cols, Rows int  // 0 in control mode, as long as it has told none
	Control    bool // in control mode: nothing is drawn on it
	ReadOnly   bool
	Term       string // its terminal's type, $TERM
}

// Clients lists who is attached.
func (s *Server) Clients(ctx context.Context) ([]Client, error) {
	format := "#{session_id} #{client_pid} #{client_width} #{client_height} #{?client_control_mode,1,0} #{?client_readonly,1,0} " +
		textField("client_termname") + " " + textField("client_name")
	replies, err := s.Do(ctx, Cmd{"list-clients", "-F", format})
	if err != nil {
		return nil, fmt.Errorf("listing tmux clients: %w", err)
	}
	var list []Client
	for l := range strings.Lines(replies[0]) {
		c, err := parseClient(strings.TrimSuffix(l, "\n"))
		if err != nil {
			return nil, fmt.Errorf("listing tmux clients: %w", err)
		}
		if c.Session != "" { // else it is about to attach, or to go
			list = append(list, c)
		}
	}
	return list, nil
}

func parseClient(l string) (Client, error) {
	f := strings.SplitN(l, " ", 8)
	if len(f) < 8 {
		return Client{}, fmt.Errorf("client %q: %w", l, errReply)
	}
	c := Client{Session: SessionID(f[0]), Control: f[4] == "1", ReadOnly: f[5] == "1", Term: unquote(f[6]), Name: unquote(f[7])}
	if c.Session == "" {
		return c, nil
	}
	if err := c.Session.check(); err != nil {
		return Client{}, fmt.Errorf("client %q: %w: %w", l, errReply, err)
	}
	for i, to := range []*int{&c.PID, &c.Cols, &c.Rows} {
		if f[i+1] == "" { // a size that is not known
			continue
		}
		if _, err := fmt.Sscanf(f[i+1], "%d", to); err != nil {
			return Client{}, fmt.Errorf("client %q: %w: %w", l, errReply, err)
		}
	}
	return c, nil
}

// onClient makes sure that a client of exactly that name is attached: tmux
// would take another for it, or the one that asks.
func (s *Server) onClient(ctx context.Context, name string) (Client, error) {
	list, err := s.Clients(ctx)
	if err != nil {
		return Client{}, err
	}
	for _, c := range list {
		if c.Name == name {
			return c, nil
		}
	}
	return Client{}, fmt.Errorf("client %q: %w", name, ErrNoSuchClient)
}

// SwitchClient shows a session on a terminal that is attached to this server.
// ErrNoSuchSession; ErrNoSuchClient.
func (s *Server) SwitchClient(ctx context.Context, client string, id SessionID) error {
	err := id.check()
	if err == nil {
		_, err = s.onClient(ctx, client)
	}
	if err == nil {
		_, err = s.Do(ctx, Cmd{"switch-client", "-c", client, "-t", string(id)})
	}
	if err != nil {
		return fmt.Errorf("switching tmux client %s: %w", client, err)
	}
	return nil
}

// DetachClient takes a terminal off the server; the sessions go on.
// ErrNoSuchClient.
func (s *Server) DetachClient(ctx context.Context, client string) error {
	_, err := s.onClient(ctx, client)
	if err == nil {
		_, err = s.Do(ctx, Cmd{"detach-client", "-t", client})
	}
	if err != nil {
		return fmt.Errorf("detaching tmux client %s: %w", client, err)
	}
	return nil
}

// DetachAll takes every terminal off a session. ErrNoSuchSession.
func (s *Server) DetachAll(ctx context.Context, id SessionID) error {
	if err := id.check(); err != nil {
		return err
	}
	if _, err := s.Do(ctx, Cmd{"has-session", "-t", string(id)}, Cmd{"detach-client", "-s", string(id)}); err != nil {
		return fmt.Errorf("detaching the clients of tmux session %s: %w", id, err)
	}
	return nil
}
