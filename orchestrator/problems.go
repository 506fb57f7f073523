package orchestrator

import (
	"slices"
	"sync"

	"muntin/orchestrator/board"
)

// problems holds what is wrong with the board and the plan, from the goroutines
// that read them to the one that shows it.
type problems struct {
	mu   sync.Mutex
	list []board.Problem
	plan error
}

func (p *problems) setPlan(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = err
}

func (p *problems) set(list []board.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = list
}

func (p *problems) get() []board.Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan == nil {
		return p.list
	}
	return append(slices.Clone(p.list), board.Problem{Line: 1, Col: 1, Text: p.plan.Error()})
}
