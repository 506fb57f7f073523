package tmux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"muntin/tmux/control"
)

// maxViews is how many panes a Server looks at at once: each costs a client,
// and tmux sends it what all panes of the session write.
const (
	maxViews  = 4
	viewQueue = 128 // records of up to some KB that wait for Next
)

// ErrTooManyViews means: four panes are being viewed already.
var ErrTooManyViews = errors.New("four tmux panes are being viewed already")

// A Screen is what a pane showed at one moment.
type Screen struct {
	Text             string // rows, with colours and attributes as escape sequences
	Cols, Rows       int
	CursorX, CursorY int // from 0
	Alternate        bool
}

// A Frame is a piece of what a pane shows: a whole screen, which takes the
// place of all before it, or bytes that its program wrote since.
type Frame struct {
	Screen *Screen // nil: see Data
	Data   []byte
}

// A View follows what a pane shows. For one goroutine at a time.
type View struct {
	conn    *control.Conn
	pane    PaneID
	free    func()
	waiting bool // for a screen; output before it is in it
	closed  bool
}

// The tags of what a View queues.
const (
	tagScreen = iota + 1
	tagPause
)

// View begins to follow what a pane shows, for a person to look at: also one
// that is not ours. The first Frame is its screen. Whoever is slow to call Next
// misses bytes and gets a whole screen instead; no pane ever waits for a View.
// The last bytes before a program ends can be missing, as tmux drops them.
//
// ErrNoSuchPane; ErrStale; ErrTooManyViews. ctx limits the beginning only.
func (s *Server) View(ctx context.Context, ref PaneRef) (*View, error) {
	v, err := s.view(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("viewing pane %s: %w", ref.ID, fromControl(err))
	}
	return v, nil
}

func (s *Server) view(ctx context.Context, ref PaneRef) (*View, error) {
	sn, err := s.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	p, err := sn.Pane(ref)
	if err != nil {
		return nil, err
	}
	select {
	case s.views <- struct{}{}:
	default:
		return nil, ErrTooManyViews
	}
	free := func() { <-s.views }
	conn, err := control.Dial(ctx, control.Options{
		Argv: s.exec.argv, Env: s.env, Dir: s.exec.dir, Target: string(p.Session),
		Flags: []string{"ignore-size", "pause-after=1"}, Queue: viewQueue,
	})
	if err != nil {
		free()
		return nil, err
	}
	v := &View{conn: conn, pane: ref.ID, free: free}
	if err := v.begin(ctx, sn, p.Session); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// begin asks for the first screen, and for no output of all other panes of
// the session.
func (v *View) begin(ctx context.Context, sn Snapshot, session SessionID) error {
	if err := sameServer(ctx, v.conn, sn.Epoch); err != nil {
		return err
	}
	for _, p := range sn.Panes {
		if p.Session == session && p.Ref.ID != v.pane {
			if err := v.pause(ctx, p.Ref.ID); err != nil {
				return err
			}
		}
	}
	return v.resync(ctx, Cmd{"refresh-client", "-A", string(v.pane) + ":pause"})
}

// pause stops the output of a pane to this client. (Switched "off" it would
// not be read at all if no other client were there.)
func (v *View) pause(ctx context.Context, id PaneID) error {
	return v.conn.Queue(ctx, tagPause, Cmd{"refresh-client", "-A", string(id) + ":pause"})
}

const screenFormat = "#{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{alternate_on}"

// resync asks for the screen of the paused pane and for its output from there
// on, in one step that no output comes between.
func (v *View) resync(ctx context.Context, before ...Cmd) error {
	v.waiting = true
	at := string(v.pane)
	return v.conn.Queue(ctx, tagScreen, append(before,
		Cmd{"capture-pane", "-p", "-e", "-t", at},
		Cmd{"display-message", "-p", "-t", at, screenFormat},
		Cmd{"refresh-client", "-A", at + ":continue"})...)
}

// Next waits for the next frame. ErrNoSuchPane: the pane is gone. io.EOF: its
// session is, or Close was called. After an error there are no more frames.
func (v *View) Next(ctx context.Context) (Frame, error) {
	for {
		var e control.Event
		var ok bool
		select {
		case e, ok = <-v.conn.Events():
		case <-ctx.Done():
			return Frame{}, fmt.Errorf("viewing pane %s: %w", v.pane, context.Cause(ctx))
		}
		if !ok {
			return Frame{}, io.EOF
		}
		f, err := v.take(ctx, e)
		if errors.Is(err, control.ErrDown) || errors.Is(err, control.ErrLost) {
			return Frame{}, io.EOF
		}
		if err != nil {
			return Frame{}, fmt.Errorf("viewing pane %s: %w", v.pane, fromControl(err))
		}
		if f.Screen != nil || len(f.Data) > 0 {
			return f, nil
		}
	}
}

// take turns an event into a frame, or into none.
func (v *View) take(ctx context.Context, e control.Event) (Frame, error) {
	switch e.Kind {
	case control.Output:
		switch {
		case e.Pane != string(v.pane): // new in the session
			return Frame{}, v.pause(ctx, PaneID(e.Pane))
		case v.waiting:
			return Frame{}, nil
		}
		return Frame{Data: e.Data}, nil
	case control.Paused:
		if e.Pane == string(v.pane) && !v.waiting {
			return Frame{}, v.resync(ctx)
		}
	case control.Resync:
		return Frame{}, v.resync(ctx, Cmd{"refresh-client", "-A", string(v.pane) + ":pause"})
	case control.Reply:
		if e.Tag != tagScreen {
			return Frame{}, nil // a pane that is gone needs no pause
		}
		if e.Err != nil {
			return Frame{}, e.Err
		}
		v.waiting = false
		screen, err := parseScreen(e.Replies[len(e.Replies)-3], e.Replies[len(e.Replies)-2])
		return Frame{Screen: screen}, err
	case control.Structure:
		return Frame{}, v.gone(ctx, e)
	default: // nothing to show
	}
	return Frame{}, nil
}

// gone looks whether the pane is still there when its windows have changed.
func (v *View) gone(ctx context.Context, e control.Event) error {
	switch e.Name {
	case "window-close", "unlinked-window-close", "layout-change":
	default:
		return nil
	}
	_, err := v.conn.Do(ctx, Cmd{"list-panes", "-t", string(v.pane), "-F", ""})
	return err
}

func parseScreen(text, numbers string) (*Screen, error) {
	s := &Screen{Text: text}
	alternate := 0
	_, err := fmt.Sscanf(strings.TrimSpace(numbers), "%d %d %d %d %d", &s.Cols, &s.Rows, &s.CursorX, &s.CursorY, &alternate)
	if err != nil {
		return nil, fmt.Errorf("reading a screen's size from %q: %w", numbers, errReply)
	}
	s.Alternate = alternate == 1
	return s, nil
}

// Close ends the view and waits until its client is gone.
func (v *View) Close() error {
	if v.closed {
		return nil
	}
	v.closed = true
	err := v.conn.Close()
	v.free()
	return err
}
