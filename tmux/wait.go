package tmux

import (
	"context"
	"fmt"
)

// patient carries out one command that may wait for a person or an event for
// any time. It has a tmux process of its own, as tmux lets nothing else
// through a client whose command waits, and ends with ctx.
func (s *Server) patient(ctx context.Context, cmd Cmd) error {
	epoch, err := s.bound(ctx)
	if err != nil {
		return err
	}
	own := *s.exec
	own.timeout = 0
	_, err = own.run(ctx, epoch, []Cmd{cmd})
	return err
}

// WaitFor waits until a channel is signalled (tmux(1), wait-for) or ctx ends.
// A signal that came before is not lost: it ends the next wait at once.
// Channels are named by CheckName and shared by everybody on the server.
func (s *Server) WaitFor(ctx context.Context, channel string) error {
	if err := CheckName("channel", channel); err != nil {
		return err
	}
	if err := s.patient(ctx, Cmd{"wait-for", channel}); err != nil {
		return fmt.Errorf("waiting for tmux channel %s: %w", channel, err)
	}
	return nil
}

// Signal ends the waits for a channel.
func (s *Server) Signal(ctx context.Context, channel string) error {
	if err := CheckName("channel", channel); err != nil {
		return err
	}
	if _, err := s.Do(ctx, SignalCmd(channel)); err != nil {
		return fmt.Errorf("signalling tmux channel %s: %w", channel, err)
	}
	return nil
}

// SignalCmd is the command of Signal, for a hook or a menu.
func SignalCmd(channel string) Cmd { return Cmd{"wait-for", "-S", channel} }
