package pty

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/vt"
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
	emu     *vt.Emulator
	drained chan struct{} // closed when the emulator's answers are read no more
	from    int64         // offset of the first output that the emulator took
	at      int64         // and behind the last
	partial bool
	idle    *time.Timer
	ended   bool
}

// show gives the present screen.
func (m *screenModel) show(rec *recorder, style bool) (sc Screen, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return Screen{}, errEnding
	}
	defer func() { // hostile output must cost no more than its own picture
		if p := recover(); p != nil {
			m.drop()
			sc, err = Screen{}, fmt.Errorf("drawing the screen: %v", p)
		}
	}()
	view := rec.view()
	m.fit(view)
	if err := m.feed(rec, view.end); err != nil {
		m.drop()
		return Screen{}, fmt.Errorf("drawing the screen: %w", err)
	}
	if m.idle == nil {
		m.idle = time.AfterFunc(screenIdle, m.giveUp)
	}
	m.idle.Reset(screenIdle)
	pos := m.emu.CursorPosition()
	return Screen{
		Cols: view.cols, Rows: view.rows, Lines: m.lines(style), Col: pos.X, Row: pos.Y,
		Hidden: m.emu.CursorHidden(), Partial: m.partial, Offset: m.at,
	}, nil
}

// fit makes an emulator that can go on to the end of the view.
func (m *screenModel) fit(v view) {
	start := max(v.fresh, v.end-replayLimit)
	if m.emu != nil && (m.at > v.end || m.at < start || m.from > start) {
		m.drop()
	}
	if m.emu != nil {
		if m.emu.Width() != v.cols || m.emu.Height() != v.rows {
			m.emu.Resize(v.cols, v.rows)
		}
		return
	}
	m.emu = vt.NewEmulator(v.cols, v.rows)
	m.emu.SetScrollbackSize(1)
	m.from, m.at, m.partial = start, start, start > v.fresh
	// It answers the program's queries, and waits for the answers to be read.
	emu, drained := m.emu, make(chan struct{})
	m.drained = drained
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, emu)
	}()
	if v.alternate && start > 0 {
		_, _ = emu.WriteString("\x1b[?1049h")
	}
}

func (m *screenModel) feed(rec *recorder, end int64) error {
	take := func(at int64, data string) error {
		m.partial = m.partial || at > m.at
		m.at = at + int64(len(data))
		_, err := m.emu.WriteString(data)
		return err
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

func (m *screenModel) lines(style bool) []string {
	if style {
		lines := strings.Split(m.emu.Render(), "\n")
		for i, line := range lines {
			lines[i] = strings.TrimRight(line, " \r")
		}
		return lines
	}
	lines := make([]string, m.emu.Height())
	for y := range lines {
		var b strings.Builder
		for x := 0; x < m.emu.Width(); x++ {
			switch c := m.emu.CellAt(x, y); {
			case c == nil || c.Width > 0 && c.Content == "":
				b.WriteByte(' ')
			case c.Width > 0:
				b.WriteString(c.Content)
				x += c.Width - 1
			}
		}
		lines[y] = strings.TrimRight(b.String(), " ")
	}
	return lines
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
	// The emulator's own Close writes what its Read reads, unguarded.
	if pipe, ok := m.emu.InputPipe().(io.Closer); ok {
		_ = pipe.Close()
		<-m.drained
	}
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
