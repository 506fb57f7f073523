package pty

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"muntin/internal/durable"
	"muntin/internal/state"
)

// An eventLog is events.jsonl with its one writer. Append may be called from
// one goroutine; anybody may wait for it to grow.
type eventLog struct {
	path string
	log  *durable.Log
	now  func() time.Time
	seq  int64

	mu    sync.Mutex    // guards all below
	grown chan struct{} // closed at the next append, nil while nobody waits
	end   bool
	marks []mark // every markEvery events, in order
}

// A mark is where an event stands in the log, so that whoever follows it from
// late on need not read all of it.
type mark struct{ seq, at int64 }

const markEvery = 64

// A past is what the log tells of the lives before this one.
type past struct {
	turn    int
	pending *TurnStartInfo          // a turn that never ended
	states  map[string]MessageState // of the messages that reached no end
	typed   map[string]time.Time    // and when they were typed
	left    left                    // of the conversation, if known
	known   bool
	ended   map[string]MessageInfo // of those that did, while their file was still in the inbox
}

// openEvents opens the log, alone: a second supervisor of the agent gets an
// error that matches durable.ErrLocked.
func openEvents(path string, now func() time.Time) (*eventLog, error) {
	log, err := durable.OpenLog(path)
	if err != nil {
		return nil, err
	}
	return &eventLog{path: path, log: log, now: now}, nil
}

// replay reads what stands in the log, before anything is appended. inbox
// tells which messages have a file there.
func (l *eventLog) replay(inbox map[string]bool) (past, error) {
	p := past{states: map[string]MessageState{}, typed: map[string]time.Time{}, ended: map[string]MessageInfo{}}
	_, err := durable.Lines(l.path, 0, func(line []byte, next int64) error {
		var ev Event
		if err := json.Unmarshal(line, &ev); err != nil {
			return fmt.Errorf("reading %s behind event %d: %w", l.path, l.seq, err)
		}
		l.seq = max(l.seq, ev.Seq)
		l.mark(ev.Seq, next-int64(len(line))-1)
		p.take(ev, inbox)
		return nil
	})
	return p, err
}

func (p *past) take(ev Event, inbox map[string]bool) {
	p.turn = max(p.turn, ev.Turn)
	switch {
	case ev.Kind == EventTurnStart && ev.TurnStart != nil:
		p.pending = ev.TurnStart
	case ev.Kind == EventTurnEnd:
		p.pending = nil
	case ev.Kind == EventMessage && ev.Message != nil && inbox[ev.Message.ID]:
		p.states[ev.Message.ID] = ev.Message.State
		if ev.Message.State == stateTyping {
			p.typed[ev.Message.ID] = ev.Time
		}
		if ev.Message.State.Ended() {
			p.ended[ev.Message.ID] = *ev.Message
		}
	}
}

// append numbers the event and writes it. The number is used again if the
// write fails, so that the log has no gap.
func (l *eventLog) append(ev Event) error {
	ev.Seq, ev.Time = l.seq+1, l.now()
	at := l.log.Size()
	if err := l.log.Append(ev); err != nil {
		return err
	}
	l.mu.Lock()
	l.seq++
	l.mark(l.seq, at)
	l.wake()
	l.mu.Unlock()
	return nil
}

func (l *eventLog) mark(seq, at int64) {
	if seq%markEvery == 0 {
		l.marks = append(l.marks, mark{seq, at})
	}
}

// offset is where the log can be read from for all events from seq on.
func (l *eventLog) offset(seq int64) (at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range slices.Backward(l.marks) {
		if m.seq <= seq {
			return m.at
		}
	}
	return 0
}

// wake tells all who wait. mu is held.
func (l *eventLog) wake() {
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
}

// more returns a channel that is closed when the log has grown beyond size or
// will not grow any more, and whether it has ended.
func (l *eventLog) more(size int64) (<-chan struct{}, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end || l.log.Size() > size {
		closed := make(chan struct{})
		close(closed)
		return closed, l.end && l.log.Size() <= size
	}
	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	return l.grown, false
}

// last is the number of the last event.
func (l *eventLog) last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// finish says that nothing more will be appended.
func (l *eventLog) finish() error {
	l.mu.Lock()
	l.end = true
	l.wake()
	l.mu.Unlock()
	return l.log.Sync()
}

func (l *eventLog) close() error { return l.log.Close() }

// ReadEvents calls fn for each event of the agent's log that stands at or
// after the byte offset from, with the offset behind it. It returns the offset
// to go on from. A line that is still being written is left for the next call;
// a log that does not exist has no events. An error of fn ends the reading and
// is returned.
func ReadEvents(dir state.AgentDir, from int64, fn func(ev Event, next int64) error) (int64, error) {
	return durable.Lines(dir.Events(), from, func(line []byte, next int64) error {
		var ev Event
		if err := json.Unmarshal(line, &ev); err != nil {
			return fmt.Errorf("reading %s at byte %d: %w", dir.Events(), next-int64(len(line))-1, err)
		}
		return fn(ev, next)
	})
}
