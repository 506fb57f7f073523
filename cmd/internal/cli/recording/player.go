package recording

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"muntin/cmd/internal/cli/know"
	"muntin/internal/cast"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/history"
)

// frame is how close events are drawn together.
const frame = 30 * time.Millisecond

// A track is one pane's recording, and how far it was played.
type track struct {
	name   string
	events []cast.Event
	next   int
	emu    *cast.Emulator
}

// play feeds the pane all that it printed by then.
func (t *track) play(until time.Time) error {
	for t.next < len(t.events) && !t.events[t.next].Time.After(until) {
		e := t.events[t.next]
		t.next++
		if t.emu == nil {
			t.emu = cast.NewEmulator(e.Cols, e.Rows)
		}
		t.emu.Resize(e.Cols, e.Rows)
		if e.Code != cast.Output {
			continue
		}
		if err := t.emu.Write(e.Data); err != nil {
			return err
		}
	}
	return nil
}

func (t *track) rewind() {
	if t.emu != nil {
		t.emu.Close()
	}
	t.emu, t.next = nil, 0
}

// A player plays tracks on one clock.
type player struct {
	o      ReplayOptions
	full   *term.Full
	tracks []*track
	events []history.Event
	now    time.Time // of the run
	end    time.Time
	begin  time.Time
	paused bool
	esc    int // how much of an arrow key's sequence was typed
}

func play(ctx context.Context, o ReplayOptions, run orchestrator.Run, names []string) error {
	p := &player{o: o}
	if p.o.Speed == 0 {
		p.o.Speed = 1
	}
	var err error
	if p.events, err = history.Load(ctx, run, nil); err != nil {
		return err
	}
	for _, name := range names {
		t := &track{name: name}
		err := cast.Read(run.Dir.Agent(name).Screen(), func(e cast.Event) error {
			t.events = append(t.events, e)
			return ctx.Err()
		})
		if err != nil {
			return fmt.Errorf("replaying agent %s: %w", name, err)
		}
		if len(t.events) == 0 {
			continue
		}
		p.tracks = append(p.tracks, t)
		first, last := t.events[0].Time, t.events[len(t.events)-1].Time
		if p.begin.IsZero() || first.Before(p.begin) {
			p.begin = first
		}
		if last.After(p.end) {
			p.end = last
		}
	}
	if len(p.tracks) == 0 {
		return fmt.Errorf("replaying run %s: %w", run.Name, cast.ErrNothing)
	}
	p.events = slices.DeleteFunc(p.events, func(e history.Event) bool { return e.Agent != "" && !p.shows(e.Agent) })
	if n := len(p.events); n > 0 && p.events[n-1].Time.After(p.end) {
		p.end = p.events[n-1].Time
	}
	p.now = p.begin
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if p.full, err = term.OpenFull(ctx, o.App.Streams); err != nil {
		return err
	}
	err = p.loop(ctx)
	stop()
	for _, t := range p.tracks {
		t.rewind()
	}
	return errors.Join(err, p.full.Close())
}

func (p *player) loop(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		for _, t := range p.tracks {
			if err := t.play(p.now); err != nil {
				return err
			}
		}
		if err := p.draw(); err != nil {
			return err
		}
		next, more := p.upcoming()
		timer.Stop()
		if more && !p.paused {
			timer.Reset(max(pause(p.o, p.now, next), frame))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			p.now = next.Add(time.Duration(float64(frame) * p.o.Speed)) // and what comes with it
		case <-p.full.Resized():
		case key, ok := <-p.full.Keys():
			if !ok || !p.key(key) {
				return nil
			}
		}
	}
}

// upcoming is when the next thing is printed, or happens.
func (p *player) upcoming() (next time.Time, ok bool) {
	for _, t := range p.tracks {
		if t.next < len(t.events) && (!ok || t.events[t.next].Time.Before(next)) {
			next, ok = t.events[t.next].Time, true
		}
	}
	i := sort.Search(len(p.events), func(i int) bool { return p.events[i].Time.After(p.now) })
	if i < len(p.events) && (!ok || p.events[i].Time.Before(next)) {
		next, ok = p.events[i].Time, true
	}
	return next, ok
}

// key takes a key; it returns false to end.
func (p *player) key(b byte) bool {
	switch {
	case p.esc == 0 && b == 0x1b:
		p.esc = 1
		return true
	case p.esc == 1 && b == '[':
		p.esc = 2
		return true
	case p.esc == 2:
		p.esc = 0
		switch b {
		case 'C':
			p.seek(p.now.Add(5 * time.Second))
		case 'D':
			p.seek(p.now.Add(-5 * time.Second))
		}
		return true
	}
	p.esc = 0
	switch b {
	case 'q', 3:
		return false
	case ' ':
		p.paused = !p.paused
	case '+', '=':
		p.o.Speed = min(p.o.Speed*2, 1024)
	case '-':
		p.o.Speed = max(p.o.Speed/2, 1.0/16)
	case ']':
		p.seek(p.turn(true))
	case '[':
		p.seek(p.turn(false))
	case 'g':
		p.seek(p.begin)
	case 'G':
		p.seek(p.end)
	}
	return true
}

// seek goes to another time. What lies before it is played again.
func (p *player) seek(to time.Time) {
	if to.After(p.end) {
		to = p.end
	}
	if to.Before(p.begin) {
		to = p.begin
	}
	if to.Before(p.now) {
		for _, t := range p.tracks {
			t.rewind()
		}
	}
	p.now = to
}

// turn is the beginning of the next turn, or of the one before, of the agents
// that are shown.
func (p *player) turn(forward bool) time.Time {
	last := p.begin
	for _, e := range p.events {
		if e.Kind != history.KindTurn || e.What != "started" {
			continue
		}
		if e.Time.After(p.now) {
			if forward {
				return e.Time
			}
			break
		}
		if e.Time.Before(p.now.Add(-time.Second)) {
			last = e.Time
		}
	}
	if forward {
		return p.end
	}
	return last
}

func (p *player) shows(agent string) bool {
	for _, t := range p.tracks {
		if t.name == agent {
			return true
		}
	}
	return false
}

func (p *player) draw() error {
	width, height := p.o.App.Streams.Size()
	theme := p.o.App.Theme
	var lines []string
	each := max((height-2)/len(p.tracks), 1)
	for i, t := range p.tracks {
		room := each
		if len(p.tracks) > 1 {
			room--
			lines = append(lines, theme.Dim.Render(fmt.Sprintf("── %s  turn %d", t.name, turnAt(p.events, t.name, p.now))))
		}
		if i == len(p.tracks)-1 {
			room = max(height-2-len(lines), 0)
		}
		lines = append(lines, t.lines(room)...)
	}
	state := "playing"
	if p.paused {
		state = "stopped"
	}
	if _, more := p.upcoming(); !more {
		state = "the end"
	}
	status := fmt.Sprintf("%s  %s  %gx  %s of %s", p.now.Local().Format("15:04:05.0"), state, p.o.Speed,
		p.now.Sub(p.begin).Round(time.Second), p.end.Sub(p.begin).Round(time.Second))
	lines = append(lines, term.Truncate(theme.Title.Render(status)+theme.Dim.Render("   space [ ] ← → + - q"), width), p.latest())
	return p.full.Draw(lines)
}

// lines are the pane's, cut from above to the rows that there are.
func (t *track) lines(room int) []string {
	out := make([]string, room)
	if t.emu == nil {
		return out
	}
	plain, styled := t.emu.Lines(false), t.emu.Lines(true)
	end := len(plain)
	for end > room && plain[end-1] == "" {
		end--
	}
	from := max(end-room, 0)
	for i := from; i < end && i-from < room; i++ {
		out[i-from] = safeStyled(styled, plain, i)
	}
	return out
}

// latest is the last event of the agents that are shown.
func (p *player) latest() string {
	for i := len(p.events) - 1; i >= 0; i-- {
		if e := p.events[i]; !e.Time.After(p.now) {
			return know.Line(p.o.App.Theme, e)
		}
	}
	return ""
}
