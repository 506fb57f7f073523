package tui

import (
	"context"
	"sync"

	"muntin/agent"
	"muntin/agent/llm"
	"muntin/agent/session"
)

// A purse counts what a conversation has cost, so that the status line need not go
// through all of it again.
type purse struct {
	mu   sync.Mutex // guards cost
	cost float64    // dollars
}

// begin counts what a conversation has cost so far, on all branches.
func (p *purse) begin(s *session.Session) {
	total := 0.0
	if s.Resumed() {
		_ = s.All(func(e session.Entry) error { // what cannot be read is left out
			if e.Usage != nil {
				total += e.Usage.Cost.Total
			}
			if e.Message != nil && e.Message.Usage != nil {
				total += e.Message.Usage.Cost.Total
			}
			return nil
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cost = total
}

func (p *purse) on(e agent.Event) {
	if e.Type != agent.EventMessageEnd || e.Message == nil || e.Message.Role != llm.RoleAssistant || e.Message.Usage == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cost += e.Message.Usage.Cost.Total
}

func (p *purse) total() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cost
}

// tellFacts tells the display what the status line shows.
func (l *loop) tellFacts(context.Context) {
	h := l.Agent()
	f := facts{model: h.Model().Name, thinking: string(h.Thinking()), cost: l.cost.total(), name: h.Session().Name()}
	f.used, f.window = h.ContextUsage()
	if l.opts.Host.Branch != nil {
		f.branch = l.opts.Host.Branch()
	}
	if l.opts.Host.Task != nil {
		f.task = l.opts.Host.Task()
	}
	l.display.facts(f)
}
