package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Spawned is what was made, by id.
type Spawned struct {
	Session SessionID
	Home    PaneRef    // the pane of SessionSpec.Argv, if it was given
	Panes   []PaneRef  // of the windows asked for, in the order asked
	Windows []WindowID // all, in order
}

// NewSession makes a session with one window of one pane, which runs sp.Argv.
// It starts the server if there is none. Errors are those of Spawn.
func (s *Server) NewSession(ctx context.Context, sp SessionSpec) (SessionID, WindowID, PaneRef, error) {
	if len(sp.Argv) == 0 {
		return "", "", PaneRef{}, fmt.Errorf("making tmux session %s: no command given", sp.Name)
	}
	out, err := s.Spawn(ctx, sp, nil)
	if len(out.Windows) == 0 {
		return "", "", PaneRef{}, err
	}
	return out.Session, out.Windows[0], out.Home, err
}

// Spawn makes a session with any number of windows and panes in one step, and
// looks with a second one whether their programs run in their folders. It
// starts the server if there is none. Windows whose panes would become too
// small spill over into further ones.
//
// If the session could not be made, nothing of it is left and Spawned is
// zero. ErrExists: the name is taken. If it was made but programs did not
// start, the error holds a *StartError for each (see errors.As), Spawned is
// complete and the session is left for the caller to look at or to kill. A
// program that starts and fails a moment later is found by Failed.
func (s *Server) Spawn(ctx context.Context, sp SessionSpec, windows []WindowSpec) (Spawned, error) {
	plan, err := newPlan(sp, windows)
	if err != nil {
		return Spawned{}, err
	}
	mark := rand.Text()
	cmds := plan.commands(s, mark)
	replies, err := s.start(ctx, cmds)
	var out Spawned
	if err == nil {
		out, err = plan.read(replies, s.Epoch())
	}
	if err != nil {
		err = fmt.Errorf("making tmux session %s: %w", sp.Name, err)
		if errors.Is(err, ErrExists) {
			return Spawned{}, err
		}
		return Spawned{}, errors.Join(err, s.undo(ctx, sp.Name, mark))
	}
	s.noteKeys(plan.keys()...)
	if err := s.verify(ctx, out.Session, plan.pairs(out)); err != nil {
		return out, fmt.Errorf("starting tmux session %s: %w", sp.Name, err)
	}
	return out, nil
}

const undoTimeout = 5 * time.Second

// undo kills what a Spawn that failed or was called off has made: the session
// of that name, if it bears the mark of this Spawn.
func (s *Server) undo(ctx context.Context, name, mark string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	kill, err := line(Cmd{"kill-session", "-t", "=" + name})
	if err != nil {
		return err
	}
	_, err = s.Do(ctx, Cmd{"if-shell", "-F", "-t", "=" + name + ":", "#{==:#{" + sessionMark + "}," + mark + "}", kill})
	for _, nothing := range []error{ErrNoServer, ErrStale, ErrNoTmux} {
		if errors.Is(err, nothing) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("clearing away tmux session %s: %w", name, err)
	}
	return nil
}

// Split makes a pane beside another, in the layout given ("": tiled), without
// moving a person's focus. ErrNoSpace: the window has no room for one more; the
// caller makes a window. A program that does not start is reported as by Spawn.
//
// The pane is made empty first and filled in a second step, when its id is
// known: so its program begins at its final size, and even if it ends at once
// its status can be read.
func (s *Server) Split(ctx context.Context, beside PaneRef, layout Layout, p PaneSpec) (PaneRef, error) {
	p, err := p.normal("")
	if err == nil {
		err = layout.check()
	}
	if err != nil {
		return PaneRef{}, err
	}
	if layout == "" {
		layout = Tiled
	}
	wrap := func(err error) error { return fmt.Errorf("splitting pane %s: %w", beside.ID, err) }
	at := string(beside.ID)
	replies, err := s.onPane(ctx, beside,
		Cmd{"select-layout", "-t", at, string(layout)},
		Cmd{"split-window", "-d", "-t", at, "-c", escapePath(p.Dir), "-P", "-F", idFormat, ""},
		Cmd{"select-layout", "-t", at, string(layout)})
	var ids madeIDs
	if err == nil {
		ids, err = readIDs(replies[1])
	}
	if err != nil {
		return PaneRef{}, wrap(err)
	}
	ref := PaneRef{Epoch: beside.Epoch, ID: ids.pane}
	if err := s.fill(ctx, ref, p); err != nil {
		return PaneRef{}, errors.Join(wrap(err), s.KillPane(context.WithoutCancel(ctx), ref))
	}
	if err := s.verify(ctx, ids.session, []started{{ref, p}}); err != nil {
		return ref, wrap(err)
	}
	return ref, nil
}

// fill runs p in a pane that is there, in place of what runs in it.
func (s *Server) fill(ctx context.Context, ref PaneRef, p PaneSpec) error {
	cmds := append(dress(string(ref.ID), p), append(append(Cmd{"respawn-pane", "-k", "-t", string(ref.ID)}, p.place()...), p.command()...))
	if _, err := s.onPane(ctx, ref, cmds...); err != nil {
		return err
	}
	s.noteKeys(sorted(p.Meta)...)
	return nil
}

// Respawn runs p in a pane that is there, in place of what runs in it or has
// ended in it: the pane keeps its id, its place, its metadata and, where p has
// none, its title. Errors are those of Split; the pane stays whatever comes.
func (s *Server) Respawn(ctx context.Context, ref PaneRef, p PaneSpec) error {
	wrap := func(err error) error { return fmt.Errorf("starting again in pane %s: %w", ref.ID, err) }
	p, err := p.normal("")
	if err != nil {
		return wrap(err)
	}
	sn, err := s.Snapshot(ctx)
	if err != nil {
		return wrap(err)
	}
	was, err := sn.Pane(ref)
	if err != nil {
		return wrap(err)
	}
	if err := s.fill(ctx, ref, p); err != nil {
		return wrap(err)
	}
	if err := s.verify(ctx, was.Session, []started{{ref, p}}); err != nil {
		return wrap(err)
	}
	return nil
}
