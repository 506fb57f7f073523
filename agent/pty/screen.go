package pty

import (
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"muntin/internal/cast"
)

const (
	// replayLimit is how much output is replayed at most to make a screen: a
	// program that never empties its screen may have older text on it.
	replayLimit = 512 << 10
	// screenIdle is how long a screen is kept after it was asked for.
	screenIdle = 20 * time.Second
)

// A screenModel makes the screen out of the output when somebody asks for it,
// and goes on from there the next time. It costs nothing before, and is given
// up when nobody has asked for a while: an emulator of every agent, always up
// to date, would cost more than all else that a supervisor does.
type screenModel struct {
	mu      sync.Mutex // guards all below
	emu     *cast.Emulator
	from    int64 // offset of the first output that the emulator took
	at      int64 // and behind the last
	partial bool
	idle    *time.Timer
	ended   bool
}

// show gives the present screen.
func (m *screenModel) show(rec *recorder, style bool) (Screen, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return Screen{}, errEnding
	}
	view := rec.view()
	m.fit(view)
	if err := m.feed(rec, view.end); err != nil {
		m.drop()
		return Screen{}, err
	}
	if m.idle == nil {
		m.idle = time.AfterFunc(screenIdle, m.giveUp)
	}
	m.idle.Reset(screenIdle)
	sc := Screen{Cols: view.cols, Rows: view.rows, Lines: m.emu.Lines(style), Partial: m.partial, Offset: m.at}
	sc.Col, sc.Row, sc.Hidden = m.emu.Cursor()
	return sc, nil
}

// fit makes an emulator that can go on to the end of the view.
func (m *screenModel) fit(v view) {
	start := max(v.fresh, v.end-replayLimit)
	if m.emu != nil && (m.at > v.end || m.at < start || m.from > start) {
		m.drop()
	}
	if m.emu != nil {
		m.emu.Resize(v.cols, v.rows)
		return
	}
	m.emu = cast.NewEmulator(v.cols, v.rows)
	m.from, m.at, m.partial = start, start, start > v.fresh
	if v.alternate && start > 0 {
		_ = m.emu.Write("\x1b[?1049h")
	}
}

func (m *screenModel) feed(rec *recorder, end int64) error {
	take := func(at int64, data string) error {
		m.partial = m.partial || at > m.at
		m.at = at + int64(len(data))
		return m.emu.Write(data)
	}
	for m.at < end {
		data, _, err := rec.since(m.at)
		switch {
		case errors.Is(err, errGone):
			before := m.at
			if err := rec.kept(m.at, take); err != nil && !errors.Is(err, errGone) {
				return err
			}
			if m.at == before {
				m.at, m.partial = rec.oldest(), true
			}
		case err != nil:
			return err
		case len(data) == 0:
			return nil
		default:
			if err := take(m.at, string(data)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *screenModel) giveUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop()
	debug.FreeOSMemory() // the emulator's buffers are most of what there is
}

// drop gives the emulator up. mu is held.
func (m *screenModel) drop() {
	if m.emu == nil {
		return
	}
	m.emu.Close()
	m.emu = nil
}

func (m *screenModel) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	if m.idle != nil {
		m.idle.Stop()
	}
	m.drop()
}

// A view is what is on the screen: the output from fresh to end, in a terminal
// of that size.
type view struct {
	cols, rows int
	fresh, end int64
	alternate  bool
}

func (r *recorder) view() view {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &r.recent
	return view{cols: max(r.cols, 1), rows: max(r.rows, 1), fresh: m.fresh[m.screen], end: m.total, alternate: m.screen == alternateScreen}
}
