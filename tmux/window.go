package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// NewWindow makes one window at the end of a session, behind what a person
// looks at. Each pane needs its Dir. ErrNoSuchSession; ErrNoSpace: not all
// panes fit, and none is left. Programs that do not start are reported as by
// Spawn.
func (s *Server) NewWindow(ctx context.Context, session SessionID, w WindowSpec) (Spawned, error) {
	return s.addWindows(ctx, session, func(Size) []WindowSpec { return []WindowSpec{w} })
}

// NewWindows is NewWindow, but panes that would become too small in the size
// that the session has now spill over into further windows.
func (s *Server) NewWindows(ctx context.Context, session SessionID, w WindowSpec) (Spawned, error) {
	return s.addWindows(ctx, session, w.spill)
}

func (s *Server) addWindows(ctx context.Context, session SessionID, parts func(Size) []WindowSpec) (Spawned, error) {
	wrap := func(err error) error { return fmt.Errorf("making a tmux window in %s: %w", session, err) }
	size, err := s.sessionSize(ctx, session)
	if err != nil {
		return Spawned{}, wrap(err)
	}
	plan := &plan{target: string(session) + ":", size: size}
	for _, w := range parts(size) {
		if err := plan.add(w, ""); err != nil {
			return Spawned{}, wrap(err)
		}
	}
	if len(plan.steps) == 0 {
		return Spawned{}, wrap(errors.New("no panes given"))
	}
	replies, err := s.Do(ctx, plan.commands(s, "")...)
	var out Spawned
	if err == nil {
		out, err = plan.read(replies, s.Epoch())
	}
	if err != nil {
		return Spawned{}, errors.Join(wrap(err), s.undoWindows(ctx, plan, replies))
	}
	s.noteKeys(plan.keys()...)
	if err := s.verify(ctx, session, plan.pairs(out)); err != nil {
		return out, fmt.Errorf("starting tmux window %s: %w", out.Windows[0], err)
	}
	return out, nil
}

// sessionSize is the size of a session's current window, which a new one gets.
func (s *Server) sessionSize(ctx context.Context, id SessionID) (Size, error) {
	if err := id.check(); err != nil {
		return Size{}, err
	}
	replies, err := s.Do(ctx, Cmd{"list-windows", "-t", string(id), "-f", "#{window_active}", "-F", "#{window_width} #{window_height}"})
	if err != nil {
		return Size{}, err
	}
	var size Size
	if _, err := fmt.Sscanf(replies[0], "%d %d", &size.Cols, &size.Rows); err != nil {
		return Size{}, fmt.Errorf("reading the size of tmux session %s: %w: %w", id, errReply, err)
	}
	return size, nil
}

// undoWindows kills the windows that a plan which failed has made.
func (s *Server) undoWindows(ctx context.Context, p *plan, replies []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	var cmds []Cmd
	for i, st := range p.steps {
		newWindow := i == 0 || p.steps[i-1].window != st.window
		if !newWindow || len(replies) <= st.reply {
			continue
		}
		ids, err := readIDs(replies[st.reply])
		if err != nil {
			return err
		}
		cmds = append(cmds, Cmd{"kill-window", "-t", string(ids.window)})
	}
	if len(cmds) == 0 {
		return nil
	}
	_, err := s.Do(ctx, cmds...)
	return err
}

// onWindow carries out commands if the window is there, looked up in a listing.
func (s *Server) onWindow(ctx context.Context, id WindowID, doing string, cmds ...Cmd) error {
	if err := id.check(); err != nil {
		return err
	}
	there := Cmd{"list-panes", "-t", string(id), "-F", ""}
	if _, err := s.Do(ctx, append([]Cmd{there}, cmds...)...); err != nil {
		return fmt.Errorf("%s tmux window %s: %w", doing, id, err)
	}
	return nil
}

// RenameWindow names a window; control characters are dropped. The name stays:
// neither tmux nor the program changes it. ErrNoSuchWindow.
func (s *Server) RenameWindow(ctx context.Context, id WindowID, name string) error {
	return s.onWindow(ctx, id, "naming",
		Cmd{"set-option", "-w", "-t", string(id), "automatic-rename", "off"},
		Cmd{"set-option", "-w", "-t", string(id), "allow-rename", "off"},
		Cmd{"rename-window", "-t", string(id), "--", Escape(name)})
}

// KillWindow ends a window and the programs in its panes (SIGHUP); with the
// last window the session goes. ErrNoSuchWindow.
func (s *Server) KillWindow(ctx context.Context, id WindowID) error {
	return s.onWindow(ctx, id, "killing", Cmd{"kill-window", "-t", string(id)})
}

// SelectLayout arranges a window's panes. ErrNoSuchWindow.
func (s *Server) SelectLayout(ctx context.Context, id WindowID, l Layout) error {
	if err := l.check(); err != nil {
		return err
	}
	if l == "" {
		l = Tiled
	}
	return s.onWindow(ctx, id, "arranging", Cmd{"select-layout", "-t", string(id), string(l)})
}

// Layout is the layout that a window has, as SelectLayout takes it back while
// it has as many panes. ErrNoSuchWindow.
func (s *Server) Layout(ctx context.Context, id WindowID) (Layout, error) {
	if err := id.check(); err != nil {
		return "", err
	}
	replies, err := s.Do(ctx, Cmd{"list-panes", "-t", string(id), "-F", "#{window_layout}\n"})
	if err != nil {
		return "", fmt.Errorf("reading the layout of tmux window %s: %w", id, err)
	}
	first, _, _ := strings.Cut(replies[0], "\n")
	return Layout(first), Layout(first).check()
}

// SelectWindow makes a window its session's current one: what a person sees
// changes, so only a person's wish is a reason to call it. ErrNoSuchWindow.
func (s *Server) SelectWindow(ctx context.Context, id WindowID) error {
	return s.onWindow(ctx, id, "selecting", Cmd{"select-window", "-t", string(id)})
}

// ResizeWindow gives a window a size of its own, which from then on no longer
// follows the terminals that are attached. ErrNoSuchWindow.
func (s *Server) ResizeWindow(ctx context.Context, id WindowID, cols, rows int) error {
	if cols < 1 || rows < 1 || cols > maxSide || rows > maxSide {
		return fmt.Errorf("resizing tmux window %s: size %dx%d is not between 1x1 and %dx%d", id, cols, rows, maxSide, maxSide)
	}
	return s.onWindow(ctx, id, "resizing",
		Cmd{"resize-window", "-t", string(id), "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows)})
}

// A BorderPosition says where a window's pane borders carry a line of text.
type BorderPosition string

// The positions of tmux(1), pane-border-status.
const (
	BorderOff    BorderPosition = "off"
	BorderTop    BorderPosition = "top"
	BorderBottom BorderPosition = "bottom"
)

// SetBorders makes a window's borders show each pane's title and then its
// metadata of the keys given, as they are at any moment. The metadata is drawn
// as plain text. ErrNoSuchWindow.
func (s *Server) SetBorders(ctx context.Context, id WindowID, at BorderPosition, keys ...string) error {
	switch at {
	case BorderOff, BorderTop, BorderBottom:
	default:
		return fmt.Errorf("tmux border position %q: want off, top or bottom", string(at))
	}
	format := " #{?#{" + titleOption + "},#{" + titleOption + "},#{pane_title}} "
	for _, k := range keys {
		if !isMetaKey(k) {
			return fmt.Errorf("tmux metadata key %q: not a key", k)
		}
		// Every '#' is doubled, as one before '[' would begin a style.
		value := paneMeta + k
		format += "#{?#{" + value + "},#{q/h:" + value + "} ,}"
	}
	return s.onWindow(ctx, id, "setting the borders of",
		Cmd{"set-option", "-w", "-t", string(id), "pane-border-format", format},
		Cmd{"set-option", "-w", "-t", string(id), "pane-border-status", string(at)})
}
