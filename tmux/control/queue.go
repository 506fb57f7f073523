package control

import "sync"

const (
	defaultQueue = 1024 // events
	leastQueue   = 4
)

// A queue is a channel of events that never holds up who puts them.
type queue struct {
	ch chan Event
	mu sync.Mutex // held by the one who puts
}

func newQueue(size int) *queue {
	if size <= 0 {
		size = defaultQueue
	}
	return &queue{ch: make(chan Event, max(size, leastQueue))}
}

// put adds an event. If there is no room, all that nobody took is dropped, and
// a Resync with their number stands there instead; only Gone is kept beside it.
func (q *queue) put(e Event) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case q.ch <- e:
		return 0
	default:
	}
	told := 0 // dropped earlier, and counted then
	for {
		select {
		case old := <-q.ch:
			dropped++
			told += old.Dropped
			continue
		default:
		}
		break
	}
	if e.Kind != Gone {
		dropped++
	}
	q.ch <- Event{Kind: Resync, Dropped: dropped + told}
	if e.Kind == Gone {
		q.ch <- e
	}
	return dropped
}
