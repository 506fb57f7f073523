package panes

import (
	"context"
	"errors"
	"slices"

	"muntin/orchestrator"
	"muntin/recipes"
	"muntin/tmux"
)

// Panes implements orchestrator.Host.
func (h *Host) Panes(ctx context.Context, session string) (map[string]bool, error) {
	there, err := h.find(ctx, session)
	if err != nil {
		return nil, err
	}
	alive := map[string]bool{}
	for name, p := range there {
		alive[name] = !p.Dead
	}
	return alive, nil
}

// find lists the panes of a session that we made, by name.
func (h *Host) find(ctx context.Context, session string) (map[string]tmux.Pane, error) {
	sn, err := h.server.Snapshot(ctx)
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	there := map[string]tmux.Pane{}
	for _, p := range sn.Panes {
		if name := p.Meta["name"]; p.SessionName == session && name != "" {
			there[name] = p
		}
	}
	return there, nil
}

// Restore implements orchestrator.Host.
func (h *Host) Restore(ctx context.Context, f orchestrator.Fleet, names []string) error {
	// A client stays with the server process that it met first; that may be gone.
	server, err := h.server.Reopen(ctx)
	if err != nil {
		return err
	}
	return New(server).restore(ctx, f, names)
}

func (h *Host) restore(ctx context.Context, f orchestrator.Fleet, names []string) error {
	session, err := h.server.FindSession(ctx, f.Session)
	if isGone(err) {
		return h.Start(ctx, f.Only(names))
	}
	if err != nil {
		return err
	}
	there, err := h.find(ctx, f.Session)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range append([]orchestrator.Pane{f.Board}, f.Agents...) {
		if !slices.Contains(names, p.Name) {
			continue
		}
		ref, err := h.place(ctx, placing{session: session.ID, fleet: f, pane: p, there: there})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		there[p.Name] = tmux.Pane{Ref: ref}
	}
	return errors.Join(errs...)
}

// A placing is one pane on its way to a session that is there.
type placing struct {
	session tmux.SessionID
	fleet   orchestrator.Fleet
	pane    orchestrator.Pane
	there   map[string]tmux.Pane
}

// place runs a pane's program where the pane was, else beside the agents, else
// in a window of its own.
func (h *Host) place(ctx context.Context, pl placing) (tmux.PaneRef, error) {
	spec := pane(pl.pane)
	if was, ok := pl.there[pl.pane.Name]; ok {
		return was.Ref, h.server.Respawn(ctx, was.Ref, spec)
	}
	if beside, ok := pl.beside(); ok {
		ref, err := h.server.Split(ctx, beside, tmux.Tiled, spec)
		if !errors.Is(err, tmux.ErrNoSpace) {
			return ref, err
		}
	}
	made, err := h.server.NewWindow(ctx, pl.session, tmux.WindowSpec{Name: pl.pane.Name, Panes: []tmux.PaneSpec{spec}})
	if err != nil || len(made.Panes) == 0 {
		return tmux.PaneRef{}, err
	}
	return made.Panes[0], nil
}

// beside finds an agent's pane whose window takes one more.
func (pl placing) beside() (tmux.PaneRef, bool) {
	if pl.fleet.Layout.Style == recipes.LayoutWindows || pl.pane.Name == orchestrator.BoardPane {
		return tmux.PaneRef{}, false
	}
	for _, a := range slices.Backward(pl.fleet.Agents) {
		if p, ok := pl.there[a.Name]; ok {
			return p.Ref, true
		}
	}
	return tmux.PaneRef{}, false
}
