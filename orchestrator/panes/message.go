package panes

import (
	"context"
	"errors"

	"muntin/tmux"
)

// Message shows a line on every terminal that is attached to the session, for a
// few seconds. Nobody being there is no error.
func (h *Host) Message(ctx context.Context, session, text string) error {
	found, err := h.server.FindSession(ctx, session)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	clients, err := h.server.Clients(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range clients {
		if c.Session != found.ID || c.Control {
			continue
		}
		_, err := h.server.Do(ctx, tmux.Cmd{"display-message", "-c", c.Name, "-d", "5000", tmux.EscapeTime(text)})
		if !errors.Is(err, tmux.ErrNoSuchClient) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
