package pty

import (
	"context"
	"time"

	"muntin/agent/adapter"
)

// firstPatience is how long the screen of a program must stand still, that was
// started with a prompt and takes others, for the prompt to have been left out.
// By then a program that has it has told of a turn.
const firstPatience = 15 * time.Second

const whyUnheard = "the program was started with it and told of no turn; it is not given again"

// first gives the command line of the agent. Where the next prompt can stand on
// it, it is handed over so: the composer may be slow, or ask something first,
// and nothing of it is lost. Only of programs that tell of their turns it can
// be known whether they took it.
func (s *supervisor) first(ctx context.Context) (argv []string, e *entry, err error) {
	argv = s.opt.Argv
	tells := s.opt.Adapter.Status || s.opt.Hooked
	if s.opt.First == nil || s.m.link || !tells || len(s.m.waiting) == 0 || len(s.m.urgent) > 0 {
		return argv, nil, nil
	}
	e = s.m.waiting[0]
	with, ok := s.opt.First(cleanText(e.rec.Text))
	if !ok {
		return argv, nil, nil
	}
	s.firstCheckpoint(ctx) // what stands there now is from before its turn
	info := e.info()
	info.State = stateTyping
	if err = s.events.append(Event{Kind: EventMessage, Message: &info}); err == nil {
		err = s.events.log.Sync()
	}
	if err != nil {
		return nil, nil, err
	}
	s.m.first(e)
	return with, e, nil
}

// firstCheckpoint keeps the state before the first turn, before there is a
// child that could change it.
func (s *supervisor) firstCheckpoint(ctx context.Context) {
	if s.opt.Checkpoints == nil {
		s.apply(s.m.checkpointed(nil, ""))
		return
	}
	req := s.checkpointRequest(CauseStart)
	info, err := s.saveCheckpoint(ctx, req)
	s.savedCheckpoint(req, info, err)
}

// unstarted takes the first prompt back: the program was not there to take it.
func (s *supervisor) unstarted(e *entry) {
	if e == nil {
		return
	}
	info := e.info()
	info.State = StateQueued
	s.write(Event{Kind: EventMessage, Message: &info})
	s.sync()
}

// first takes e off its queue: it is handed over with the start.
func (m *machine) first(e *entry) {
	m.waiting = m.waiting[1:]
	m.main, e.state = e, stateTyping
}

// withoutPrompt is the command line as it is written down: the prompt stands in
// its message.
func (s *supervisor) withoutPrompt(argv []string, e *entry) []string {
	if e == nil {
		return argv
	}
	return s.opt.Argv
}

// hearFirst says what follows from a signal of a program that was started with
// a prompt, before it was seen to be ready.
func (w *watch) hearFirst(means adapter.Meaning, now time.Time) []verdict {
	if means != adapter.MeansWorking && !ends(means) {
		return nil
	}
	w.begin(watchTurn, w.id, w.mark, now)
	w.told = true
	return append([]verdict{answered}, w.turnSignal(means)...)
}

// unheardFirst corrects that a program which was started with a prompt is ready
// for another.
func (w *watch) unheardFirst(s sight) (verdict, lookAgain) {
	if s.still < firstPatience {
		return nothing, lookAgain{after: firstPatience - s.still, output: true}
	}
	return ignored, lookAgain{}
}
