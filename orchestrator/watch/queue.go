package watch

import "time"

// A queue holds the events that nobody has received yet: at most one a file,
// so it is bounded by the number of files.
type queue struct {
	resync bool
	files  map[string]due
}

// due says when an event may go out, and when its first cause was.
type due struct{ at, since time.Time }

func newQueue() *queue { return &queue{files: map[string]due{}} }

// changed notes a change of a file: its event waits until the file is quiet
// for debounce, but not longer than maxDelay times that.
func (q *queue) changed(path string, now time.Time, debounce time.Duration) {
	d, ok := q.files[path]
	if !ok {
		d.since = now
	}
	d.at = now.Add(debounce)
	if latest := d.since.Add(maxDelay * debounce); d.at.After(latest) {
		d.at = latest
	}
	q.files[path] = d
}

// next is the event to send now and the channel for it; a nil channel when
// there is none.
func (q *queue) next(now time.Time, to chan Event) (chan<- Event, Event) {
	if q.resync {
		return to, Event{Resync: true}
	}
	path, first := q.first()
	if path == "" || first.at.After(now) {
		return nil, Event{}
	}
	return to, Event{Path: path}
}

// wait is how long it takes until next has an event that it has not now.
func (q *queue) wait(now time.Time) (time.Duration, bool) {
	_, first := q.first()
	if !first.at.After(now) {
		return 0, false
	}
	return first.at.Sub(now), true
}

// first is the file whose event is due first.
func (q *queue) first() (string, due) {
	path, first := "", due{}
	for p, d := range q.files {
		if path == "" || d.at.Before(first.at) || d.at.Equal(first.at) && p < path {
			path, first = p, d
		}
	}
	return path, first
}

func (q *queue) sent(e Event) {
	if e.Resync {
		// Whoever reads everything again needs no single events of before.
		q.resync = false
		clear(q.files)
		return
	}
	delete(q.files, e.Path)
}
