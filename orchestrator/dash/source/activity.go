package source

import (
	"context"
	"slices"
	"sync"
	"time"

	"muntin/orchestrator"
)

// The sparkline of an agent: how many of its events came in each slice of time,
// up to its last one. Time in which nothing comes does not move it, so that a
// fleet at rest need not be drawn again.
const (
	slice      = 15 * time.Second
	sliceCount = 8
)

// A pulse counts an agent's events.
type pulse struct {
	seq    int64
	last   int64 // the slice of the newest count
	counts []int
}

// activity counts the events that came since it was asked last.
func (s *Source) activity(a orchestrator.Agent) []int {
	p, known := s.pulses[a.Name]
	if !known { // what was before we looked has no time
		s.pulses[a.Name] = &pulse{seq: a.Seq}
		return nil
	}
	if a.Seq <= p.seq {
		return p.counts
	}
	now := s.now().UnixNano() / int64(slice)
	if missed := now - p.last; len(p.counts) > 0 && missed > 0 {
		p.counts = append(slices.Clone(p.counts), make([]int, min(missed, sliceCount))...)
	} else {
		p.counts = slices.Clone(p.counts)
	}
	if len(p.counts) == 0 {
		p.counts = []int{0}
	}
	p.counts = p.counts[max(len(p.counts)-sliceCount, 0):]
	p.counts[len(p.counts)-1] += int(a.Seq - p.seq)
	p.seq, p.last = a.Seq, now
	return p.counts
}

// lines counts what agents have changed, one at a time and only when a
// checkpoint is new: it costs a process each.
type lines struct {
	stat func(ctx context.Context, agent string) (added, deleted int, err error)
	wake chan struct{} // holds one

	mu     sync.Mutex // guards the fields below
	counts map[string]lineCount
}

type lineCount struct {
	want, have     string // marks
	added, deleted int
}

func newLines(stat func(context.Context, string) (int, int, error)) *lines {
	return &lines{stat: stat, wake: make(chan struct{}, 1), counts: map[string]lineCount{}}
}

// of is what is known of an agent's lines. They are counted anew when the mark is
// another than before.
func (l *lines) of(agent, mark string) (added, deleted int) {
	if l.stat == nil {
		return 0, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts[agent]
	if c.want != mark {
		c.want = mark
		l.counts[agent] = c
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return c.added, c.deleted
}

// next is an agent whose lines are to be counted.
func (l *lines) next() (agent, mark string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, c := range l.counts {
		if c.want != c.have {
			return name, c.want
		}
	}
	return "", ""
}

// run counts until ctx ends, and calls news after each.
func (l *lines) run(ctx context.Context, news func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for agent, mark := l.next(); agent != "" && ctx.Err() == nil; agent, mark = l.next() {
			added, deleted, err := l.stat(ctx, agent)
			l.mu.Lock()
			c := l.counts[agent]
			c.have = mark
			if err == nil {
				c.added, c.deleted = added, deleted
			}
			l.counts[agent] = c
			l.mu.Unlock()
			news()
		}
	}
}
