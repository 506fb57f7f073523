package tool

import (
	"context"
	"sync"
)

// queue lets changes of one file happen one after the other, while different
// files change at the same time.
type queue struct {
	mu    sync.Mutex // guards files and the counts in it
	files map[string]*place
}

type place struct {
	turn  chan struct{} // holds a token while somebody has the file
	users int           // who hold or wait
}

func newQueue() *queue { return &queue{files: map[string]*place{}} }

// enter waits for the file's turn, or until ctx ends. leave gives it back.
func (q *queue) enter(ctx context.Context, real string) (leave func(), err error) {
	q.mu.Lock()
	p := q.files[real]
	if p == nil {
		p = &place{turn: make(chan struct{}, 1)}
		q.files[real] = p
	}
	p.users++
	q.mu.Unlock()

	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn; q.drop(real, p) }, nil
	case <-ctx.Done():
		q.drop(real, p)
		return nil, context.Cause(ctx)
	}
}

func (q *queue) drop(real string, p *place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.users--
	if p.users == 0 {
		delete(q.files, real)
	}
}
