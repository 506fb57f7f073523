// Package simulate drives the orchestrator's reducer with agents that are only
// played: in virtual time, without tmux, git, models or a disk. The same options
// give the same run. After every step it looks whether the state holds what a
// state must hold (see Check), so that it is a test of the reducer as well.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"muntin/orchestrator"
)

// Options say what to play. Chances are from 0 to 1.
type Options struct {
	State orchestrator.State  // before anything happened
	Tasks []orchestrator.Task // the board
	Seed  uint64

	Turn   time.Duration // the length of a turn in the mean
	Spread float64       // turns are from Turn*(1-Spread) to Turn*(1+Spread)
	Slow   float64       // chance that a turn takes ten times as long
	Check  time.Duration // the length of a check

	Fail     float64 // chance that a check fails
	Conflict float64 // that a merge conflicts
	Crash    float64 // that an agent ends in its turn
	Limit    float64 // that a provider takes no more in a turn
	Changes  float64 // that a reader wants changes
	Unclear  float64 // that a reader's answer cannot be read

	Person time.Duration                                   // how long until a person judges what only a person can; 0: nobody does
	Seen   func(orchestrator.Input, []orchestrator.Effect) // is told of each step; may be nil

	Tokens int64   // of a turn
	Cost   float64 // of 1000 tokens, in US dollars
}

// maxSteps bounds a simulation, so that one which goes in circles ends.
const maxSteps = 5_000_000

// ErrEndless says that a simulation did not come to its end.
var ErrEndless = errors.New("the run does not come to an end")

// A simulation is one at work.
type simulation struct {
	Options
	random *rand.Rand
	now    time.Time
	start  time.Time
	queue  queue
	state  orchestrator.State
	agents map[string]*player
	tasks  []orchestrator.Task
	index  map[string]int
	rev    int64
	tally  tally
	steps  int
}

// Run plays a run to its end and reports. The error tells of a state that must
// not be, or of the end of ctx.
func Run(ctx context.Context, o Options) (Report, error) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &simulation{
		Options: o, random: rand.New(rand.NewPCG(o.Seed, 0x6d756e74696e)), now: start, start: start, state: o.State,
		agents: map[string]*player{}, tasks: append([]orchestrator.Task{}, o.Tasks...), index: map[string]int{},
	}
	s.tally.ready = map[string]time.Time{}
	for i, t := range s.tasks {
		s.index[t.ID] = i
	}
	for _, name := range o.State.Order {
		p := &player{name: name, s: s}
		s.agents[name] = p
		s.after(time.Duration(s.random.IntN(1000))*time.Millisecond, p.begin)
	}
	s.readBoard()
	for {
		if s.steps%1024 == 0 && ctx.Err() != nil {
			return Report{}, context.Cause(ctx)
		}
		if s.steps > maxSteps {
			return Report{}, ErrEndless
		}
		if err := s.next(); err != nil {
			if errors.Is(err, errOver) {
				return s.report(), s.ended()
			}
			return s.report(), fmt.Errorf("after %s, in step %d: %w", s.now.Sub(s.start).Round(time.Second), s.steps, err)
		}
	}
}

// errOver says that nothing will happen any more.
var errOver = errors.New("over")

// next lets the next thing happen: what was played for the soonest time, or the
// time for which the state waits.
func (s *simulation) next() error {
	s.steps++
	e, some := s.queue.first()
	if wake := s.state.Wake; !wake.IsZero() && (!some || wake.Before(e.at)) {
		s.now = later(s.now, wake)
		s.input(orchestrator.Input{Kind: orchestrator.InputTime, Heard: s.state.Heard()})
		return s.tally.broken
	}
	if !some {
		return errOver
	}
	s.queue.pop()
	s.now = later(s.now, e.at)
	e.do()
	return s.tally.broken
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// after has something happen in a while.
func (s *simulation) after(wait time.Duration, do func()) {
	s.queue.push(happening{at: s.now.Add(wait), do: do})
}

// chance tells whether something of a probability happens. It always draws, so
// that a probability of 0 leaves the rest as it is.
func (s *simulation) chance(p float64) bool { return s.random.Float64() < p }

// input gives the reducer an input and plays what follows.
func (s *simulation) input(in orchestrator.Input) {
	in.Time = s.now
	before := s.state
	next, effects := orchestrator.Reduce(s.state, in)
	s.state = next
	if s.Seen != nil {
		s.Seen(in, effects)
	}
	s.watch(before, effects)
	if err := Check(next); err != nil && s.tally.broken == nil {
		s.tally.broken = err
	}
	for _, e := range effects {
		s.effect(e)
	}
}
