package panes

import (
	"context"
	"errors"
	"slices"

	"muntin/orchestrator"
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
	var errs []error
	for _, p := range append([]orchestrator.Pane{f.Board}, f.Agents...) {
		if !slices.Contains(names, p.Name) {
			continue
		}
		m := missing{session: session.ID, fleet: f, place: place(f, len(f.Agents)), pane: p}
		if m.there, err = h.find(ctx, f.Session); err != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, h.bringBack(ctx, m))
	}
	return errors.Join(errs...)
}

// Close ends the named panes of a session, whatever runs in them. Those that are
// not there are no error.
func (h *Host) Close(ctx context.Context, session string, names []string) error {
	there, err := h.find(ctx, session)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if p, ok := there[name]; ok {
			err := h.server.KillPane(ctx, p.Ref)
			if !isGone(err) && !errors.Is(err, tmux.ErrNoSuchPane) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// A missing is one pane on its way back to a session that is there.
type missing struct {
	session tmux.SessionID
	fleet   orchestrator.Fleet
	place   placing
	pane    orchestrator.Pane
	there   map[string]tmux.Pane
}

// bringBack runs a pane's program where the pane was, else beside the panes that
// the layout has it with, else in a window of its own.
func (h *Host) bringBack(ctx context.Context, m missing) error {
	spec := pane(m.pane)
	if was, ok := m.there[m.pane.Name]; ok {
		return h.server.Respawn(ctx, was.Ref, spec)
	}
	for _, beside := range m.beside() {
		_, err := h.server.Split(ctx, beside.Ref, tmux.Tiled, spec)
		if errors.Is(err, tmux.ErrNoSpace) {
			continue
		}
		if err != nil {
			return err
		}
		// The pane is there; how the window looks is not worth failing for.
		_ = h.server.SelectLayout(ctx, beside.Window, m.place.styleOf(m.count(beside.Window)+1))
		return nil
	}
	name := m.pane.Name
	if m.place.most > 0 {
		name = "agents"
	}
	_, err := h.server.NewWindow(ctx, m.session, tmux.WindowSpec{Name: name, Panes: []tmux.PaneSpec{spec}})
	return err
}

// count is how many panes of ours a window has.
func (m missing) count(id tmux.WindowID) int {
	n := 0
	for _, p := range m.there {
		if p.Window == id {
			n++
		}
	}
	return n
}

// beside are the panes whose windows take one more, best first: the nearest one
// before it in the fleet's order, so that it gets its place back, then those
// behind.
func (m missing) beside() []tmux.Pane {
	var order []string
	if m.place.together {
		order = append(order, m.fleet.Board.Name)
	}
	for _, a := range m.fleet.Agents {
		order = append(order, a.Name)
	}
	at := slices.Index(order, m.pane.Name)
	if m.place.single || at < 0 || m.pane.Name == orchestrator.BoardPane {
		return nil
	}
	names := slices.Clone(order[:at])
	slices.Reverse(names)
	var list []tmux.Pane
	var seen []tmux.WindowID
	for _, name := range append(names, order[at+1:]...) {
		p, ok := m.there[name]
		if !ok || slices.Contains(seen, p.Window) {
			continue
		}
		seen = append(seen, p.Window)
		if m.count(p.Window) < m.place.room() {
			list = append(list, p)
		}
	}
	return list
}
