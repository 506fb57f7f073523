package tmux

import (
	"context"
	"slices"
	"sync"
	"time"

	"muntin/tmux/control"
)

// An EventKind says what an Event tells.
type EventKind string

const (
	// EventAdded means: the pane is new.
	EventAdded EventKind = "added"
	// EventDied means: the pane's program has ended and the pane was kept; Status
	// and Signal are those of Pane.
	EventDied EventKind = "died"
	// EventRespawned means: a dead pane runs a program again.
	EventRespawned EventKind = "respawned"
	// EventGone means: the pane is no more.
	EventGone EventKind = "gone"
	// EventLayout means: the window's panes changed places or sizes.
	EventLayout EventKind = "layout"
	// EventResync means: events were lost, because the connection was or because
	// nobody took them. A new Snapshot tells what is.
	EventResync EventKind = "resync"
	// EventServerGone means: the server has ended, or another has taken its place
	// (Err). It is the last event.
	EventServerGone EventKind = "server gone"
)

// An Event is one change on the server.
type Event struct {
	Kind   EventKind
	Pane   Pane     // as it was last seen
	Window WindowID // of EventLayout
	Err    error    // of EventServerGone
}

const (
	// deathsName names the subscription that shows all panes of all sessions
	// (refresh-client -B). tmux looks once a second whether its value changed.
	deathsName   = "muntin-deaths"
	deathsFormat = "#{S:#{W:#{P:#{pane_id}#{?pane_dead,=#{pane_dead_status}/#{pane_dead_signal},} }}}"

	eventQueue  = 256
	debounce    = 50 * time.Millisecond // changes come in bursts
	reapPoll    = 50 * time.Millisecond // how often a dead pane's status is asked for
	reapTimeout = 2 * time.Second       // after which the death is told without it
	listTimeout = commandTimeout + time.Second
)

// Events returns a channel of what happens on the server from now on; what was
// before, a Snapshot taken afterwards shows. Changes that lie closer together
// than 50 ms may be told as one. The death of a pane that is kept is told
// within about a second, since tmux has no word for it.
//
// The channel holds 256 events; when nobody takes them all are dropped and
// an EventResync stands there instead. It is closed when ctx ends, after
// EventServerGone, and by Close. ErrNotConnected: Connect comes first.
func (s *Server) Events(ctx context.Context) (<-chan Event, error) {
	l := s.link.Load()
	if l == nil {
		return nil, ErrNotConnected
	}
	return l.hub.subscribe(ctx)
}

// A hub turns what the control client hears into events: whatever it hears is
// only a hint to look, and the listings are compared.
type hub struct {
	server *Server
	epoch  Epoch
	heard  <-chan control.Event
	cancel context.CancelFunc
	done   chan struct{}

	// Of the goroutine alone.
	seen  map[PaneID]Pane
	known bool // seen is what was last listed
	since map[PaneID]time.Time

	mu     sync.Mutex // guards the fields below
	subs   []chan Event
	closed bool
}

func newHub(s *Server, epoch Epoch, heard <-chan control.Event) *hub {
	return &hub{server: s, epoch: epoch, heard: heard, done: make(chan struct{}), since: map[PaneID]time.Time{}}
}

// start looks at what is there, which is told to nobody, and starts the goroutine.
func (h *hub) start(ctx context.Context) {
	h.look(ctx)
	ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go h.run(ctx)
}

func (h *hub) stop() {
	h.cancel()
	<-h.done
}

func (h *hub) subscribe(ctx context.Context) (<-chan Event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := make(chan Event, eventQueue)
	if h.closed {
		close(ch)
		return ch, nil
	}
	h.subs = append(h.subs, ch)
	context.AfterFunc(ctx, func() { h.unsubscribe(ch) })
	return ch, nil
}

func (h *hub) unsubscribe(ch chan Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.subs, ch); i >= 0 {
		h.subs = slices.Delete(h.subs, i, i+1)
		close(ch)
	}
}

// publish gives an event to everybody, and waits for nobody.
func (h *hub) publish(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ch := range h.subs {
		offer(ch, e)
	}
}

// offer puts an event into a channel that only it fills. When that is full, all
// in it give way to a resync.
func offer(ch chan Event, e Event) {
	select {
	case ch <- e:
		return
	default:
	}
	for {
		select {
		case <-ch:
			continue
		default:
		}
		break
	}
	ch <- Event{Kind: EventResync}
	if e.Kind == EventServerGone {
		ch <- e
	}
}

// run is the hub's goroutine.
func (h *hub) run(ctx context.Context) {
	defer close(h.done)
	defer h.end()
	timer := time.NewTimer(debounce)
	timer.Stop()
	armed := false
	arm := func(after time.Duration) {
		if !armed {
			timer.Reset(after)
			armed = true
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-h.heard:
			if !ok {
				return
			}
			switch e.Kind {
			case control.Structure, control.Subscription:
				arm(debounce)
			case control.Up, control.Resync:
				h.publish(Event{Kind: EventResync})
				arm(0)
			case control.Gone:
				h.publish(Event{Kind: EventServerGone, Err: fromControl(e.Err)})
				return
			default: // tells nothing about panes
			}
		case <-timer.C:
			armed = false
			if h.look(ctx) {
				arm(reapPoll)
			}
		}
	}
}

func (h *hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, ch := range h.subs {
		close(ch)
	}
	h.subs = nil
}

// look lists the panes and tells what is different. again asks to be called
// again soon, as something could not be told yet.
func (h *hub) look(ctx context.Context) (again bool) {
	limited, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	sn, err := h.server.list(limited, h.epoch, Cmd{"list-panes", "-a"})
	if err != nil {
		// Without a connection, Up or Gone will follow.
		return ctx.Err() == nil && h.server.Connected()
	}
	now := map[PaneID]Pane{}
	moved := map[WindowID]bool{}
	for _, p := range sn.Panes {
		if _, twice := now[p.Ref.ID]; twice {
			continue // of a window that is linked into several sessions
		}
		was, known := h.seen[p.Ref.ID]
		if p.unreaped() && h.waitsForStatus(p.Ref.ID) {
			again = true
			p.Dead = false // not yet
		}
		now[p.Ref.ID] = p
		if h.known {
			h.compare(was, p, known)
		}
		if h.known && !(known && was.sameplace(p)) {
			moved[p.Window] = true
		}
	}
	for id, was := range h.seen {
		if _, there := now[id]; !there {
			delete(h.since, id)
			moved[was.Window] = true
			h.publish(Event{Kind: EventGone, Pane: was})
		}
	}
	for _, p := range sn.Panes { // a window that is gone has no layout
		if moved[p.Window] {
			delete(moved, p.Window)
			h.publish(Event{Kind: EventLayout, Window: p.Window})
		}
	}
	h.seen, h.known = now, true
	return again
}

// waitsForStatus reports whether a dead pane's status may still come.
func (h *hub) waitsForStatus(id PaneID) bool {
	first, ok := h.since[id]
	if !ok {
		h.since[id] = time.Now()
		return true
	}
	return time.Since(first) < reapTimeout
}

func (h *hub) compare(was, is Pane, known bool) {
	switch {
	case !known:
		h.publish(Event{Kind: EventAdded, Pane: is})
		if is.Dead {
			h.publish(Event{Kind: EventDied, Pane: is})
		}
	case is.Dead && !was.Dead:
		h.publish(Event{Kind: EventDied, Pane: is})
	case !is.Dead && was.Dead:
		delete(h.since, is.Ref.ID)
		h.publish(Event{Kind: EventRespawned, Pane: is})
	case is.Dead && was.PID != is.PID: // it ran again and has ended again
		h.publish(Event{Kind: EventRespawned, Pane: is})
		h.publish(Event{Kind: EventDied, Pane: is})
	}
}

// sameplace reports whether a pane is where it was.
func (p Pane) sameplace(q Pane) bool {
	return p.Window == q.Window && p.Index == q.Index && p.Cols == q.Cols && p.Rows == q.Rows
}
