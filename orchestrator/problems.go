package orchestrator

import (
	"sync"

	"muntin/orchestrator/board"
)

// problems holds what is wrong with the board, from the goroutine that reads
// it to the one that shows it.
type problems struct {
	mu   sync.Mutex
	list []board.Problem
}

func (p *problems) set(list []board.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = list
}

func (p *problems) get() []board.Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list
}
