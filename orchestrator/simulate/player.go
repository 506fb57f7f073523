package simulate

import (
	"fmt"
	"strings"
	"time"

	"muntin/agent/pty"
	"muntin/orchestrator"
)

// A player plays an agent with its supervisor: it takes prompts one after the
// other, works for a while, and ends its turn, or itself.
type player struct {
	name  string
	s     *simulation
	seq   int64
	life  int // counts its starts: what was to happen in an earlier life does not
	alive bool
	turn  *turn
	inbox []orchestrator.Effect // not taken yet

	turns int
	busy  time.Duration
	tree  int
}

// A turn is one under way.
type turn struct {
	task  string
	reads bool
	began time.Time
}

func (p *player) event(e pty.Event) {
	p.seq++
	e.Seq, e.Time = p.seq, p.s.now
	p.s.input(orchestrator.Input{Kind: orchestrator.InputAgent, Agent: p.name, Event: &e})
}

// begin starts the agent's program.
func (p *player) begin() {
	if p.alive {
		return
	}
	p.alive, p.turn = true, nil
	p.life++
	life := p.life
	p.event(pty.Event{Kind: pty.EventStart})
	p.s.after(time.Second, func() {
		if p.life != life {
			return
		}
		p.event(pty.Event{Kind: pty.EventReady, Ready: &pty.ReadyInfo{Source: "protocol"}})
		p.take()
	})
}

// take begins a turn with the next prompt, if the agent is idle.
func (p *player) take() {
	if !p.alive || p.turn != nil || len(p.inbox) == 0 {
		return
	}
	e := p.inbox[0]
	p.inbox = p.inbox[1:]
	p.turn = &turn{task: e.Task, reads: p.s.state.Works[p.name].Reads, began: p.s.now}
	p.turns++
	now, life, s := p.turn, p.life, p.s
	crash, limit := s.chance(s.Crash), s.chance(s.Limit)
	length := s.length()
	p.event(pty.Event{Kind: pty.EventTurnStart, TurnStart: &pty.TurnStartInfo{Task: e.Task}})
	s.after(length, func() {
		switch {
		case p.life != life || p.turn != now:
		case crash:
			p.crash()
		case limit:
			p.event(pty.Event{Kind: pty.EventLimit, Limit: &pty.LimitInfo{Text: "played limit"}})
			p.end(pty.TurnError)
		default:
			p.end(pty.TurnDone)
		}
	})
}

// end ends the turn.
func (p *player) end(reason pty.TurnReason) {
	t, s := p.turn, p.s
	p.turn = nil
	p.tree++
	took := s.now.Sub(t.began)
	p.busy += took
	end := &pty.TurnEndInfo{
		Task: t.task, Reason: reason, DurationMS: took.Milliseconds(),
		Checkpoint: &pty.CheckpointInfo{Tree: fmt.Sprintf("%s-%d", p.name, p.tree)},
		Usage:      &pty.Usage{Input: int(s.Tokens), Cost: float64(s.Tokens) / 1000 * s.Cost},
	}
	if t.reads {
		end.Text = s.answer(t.task)
	}
	p.event(pty.Event{Kind: pty.EventTurnEnd, TurnEnd: end})
	s.after(0, p.take)
}

// answer is what a reader says.
func (s *simulation) answer(task string) string {
	unclear, changes, pick := s.chance(s.Unclear), s.chance(s.Changes), s.random.IntN(1000)
	if unclear {
		return "I cannot tell."
	}
	var passed []string
	for _, w := range s.state.WorkOn(task) {
		if w.Stage == orchestrator.StagePassed {
			passed = append(passed, w.Agent)
		}
	}
	switch {
	case s.state.Settings.Flow.Lanes > 1 && len(passed) > 0:
		return "winner: " + passed[pick%len(passed)]
	case changes:
		return "More of it.\nverdict: changes"
	}
	return "verdict: approve"
}

// crash ends the agent's program in its turn.
func (p *player) crash() {
	p.end(pty.TurnExited)
	p.alive = false
	p.life++
	p.event(pty.Event{Kind: pty.EventExit, Exit: &pty.ExitInfo{Code: 1}})
}

// length is how long a turn takes.
func (s *simulation) length() time.Duration {
	factor, slow := 1+s.Spread*(2*s.random.Float64()-1), s.chance(s.Slow)
	if slow {
		factor *= 10
	}
	return max(time.Duration(float64(s.Turn)*factor), time.Millisecond)
}

// send plays the delivery of a message and returns what came of it.
func (p *player) send(e orchestrator.Effect) orchestrator.Result {
	switch {
	case e.Msg == pty.KindSteer:
		return orchestrator.Result{OK: true}
	case e.Msg == pty.KindAbort:
		if p.turn != nil && p.turn.task == e.Task {
			p.end(pty.TurnAborted)
		}
		return orchestrator.Result{OK: true}
	case !p.alive:
		p.inbox = append(p.inbox, e)
		return orchestrator.Result{Error: "it has ended", Gone: true, State: string(pty.StateQueued)}
	}
	if p.turn != nil || len(p.inbox) > 0 {
		p.s.broken("%s gets a prompt for ^%s before it is done with what it has", p.name, e.Task)
	}
	p.inbox = append(p.inbox, e)
	p.take()
	return orchestrator.Result{OK: true}
}

// recall takes back what waits for a task.
func (p *player) recall(task string) {
	var left []orchestrator.Effect
	for _, e := range p.inbox {
		if e.Task != task {
			left = append(left, e)
		}
	}
	p.inbox = left
}

func (s *simulation) broken(format string, args ...any) {
	if s.tally.broken == nil {
		s.tally.broken = fmt.Errorf(strings.TrimSpace(format), args...)
	}
}
