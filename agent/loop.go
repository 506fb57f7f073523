package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"muntin/agent/llm"
)

// a run is one way from a prompt to settled. It belongs to the goroutine that
// called Prompt or Continue; the transcript and the queues are the agent's.
type run struct {
	agent    *Agent
	ctx      context.Context // ends with an abort
	eventCtx context.Context // does not
	stop     context.CancelCauseFunc

	broken     error         // the first error of OnEvent
	added      []llm.Message // since agent_start
	retries    int           // since the last good response
	shortened  bool          // the Overflow hook was called since then
	hookFailed bool          // the last failure came from a hook
}

// execute makes attempts until one ends well or nothing can be done.
func (r *run) execute(first []pending) error {
	var err error
	for {
		r.added, r.hookFailed = nil, false
		err = r.attempt(first)
		first = nil
		next := r.recover(err)
		last := r.emitLast(Event{Type: EventAgentEnd, Messages: r.added, WillRetry: next.again})
		if err == nil {
			err = last
		}
		if !next.again {
			break
		}
		if next.retry {
			if err = r.pause(next, err); err != nil {
				break
			}
		}
	}
	if err != nil && r.broken == nil {
		if last := r.retryEnded(err); last != nil {
			err = errors.Join(err, last)
		}
	}
	if last := r.emitLast(Event{Type: EventSettled, Aborted: errors.Is(err, ErrAborted)}); err == nil {
		err = last
	}
	return err
}

// attempt is the two-level loop: the outer one goes on while a follow-up is
// queued, the inner one while there are tool results or messages to answer.
func (r *run) attempt(waiting []pending) error {
	if err := r.emit(Event{Type: EventAgentStart}); err != nil {
		r.agent.giveBack(waiting)
		return err
	}
	waiting = append(waiting, r.agent.take(&r.agent.steering)...)
	more := true
	for {
		for more || len(waiting) > 0 {
			action, calls, err := r.turn(waiting)
			if err != nil || action == ActionEnd {
				return err
			}
			more = calls || action == ActionContinue
			waiting = r.agent.take(&r.agent.steering)
		}
		if waiting = r.agent.take(&r.agent.followUp); len(waiting) == 0 {
			return nil
		}
	}
}

// turn delivers what waits, gets one response and runs its tool calls. It tells
// whether there are results that the model should see.
func (r *run) turn(waiting []pending) (action Action, calls bool, err error) {
	if err := r.emit(Event{Type: EventTurnStart}); err != nil {
		r.agent.giveBack(waiting)
		return 0, false, err
	}
	if err := r.closeCalls(); err != nil {
		r.agent.giveBack(waiting)
		return 0, false, err
	}
	if err := r.deliver(waiting); err != nil {
		return 0, false, err
	}
	m, cause := r.respond(len(waiting) == 0)
	if r.broken != nil {
		return 0, false, r.broken
	}
	if cause != nil {
		if err := r.emit(Event{Type: EventTurnEnd, Message: &m}); err != nil {
			return 0, false, err
		}
		if m.StopReason == llm.StopAborted {
			return 0, false, r.aborted()
		}
		return 0, false, &ModelError{Message: m, Err: cause}
	}
	results, terminate, err := r.batch(m)
	if err != nil {
		return 0, false, err
	}
	action, err = r.finish(m, results)
	if err != nil {
		return 0, false, err
	}
	return action, len(results) > 0 && !terminate, nil
}

// finish ends a turn that got its response.
func (r *run) finish(m llm.Message, results []llm.Message) (Action, error) {
	action, hookErr := ActionDefault, error(nil)
	if hook := r.agent.hooks.FinishTurn; hook != nil && r.ctx.Err() == nil {
		action, hookErr = hook(r.ctx, Turn{Message: m, ToolResults: results})
	}
	if err := r.emit(Event{Type: EventTurnEnd, Message: &m, ToolResults: results}); err != nil {
		return 0, err
	}
	if r.ctx.Err() != nil {
		return 0, r.aborted()
	}
	if hookErr != nil {
		r.hookFailed = true
		return 0, &ModelError{Message: m, Err: hookError("finishing the turn", hookErr)}
	}
	return action, nil
}

// closeCalls gives a result to each tool call that a crash left without one, so
// that the session holds it too.
func (r *run) closeCalls() error {
	for _, call := range llm.Unanswered(r.agent.Messages()) {
		if err := r.commit(llm.MissingResult(call, r.agent.now().UnixMilli())); err != nil {
			return err
		}
	}
	return nil
}

// deliver moves messages into the transcript. What OnEvent did not take goes
// back to its queue.
func (r *run) deliver(waiting []pending) error {
	for i, p := range waiting {
		if err := r.commit(p.message); err != nil {
			r.agent.giveBack(waiting[i:])
			return err
		}
	}
	for _, p := range waiting {
		if p.from != nil {
			return r.emitQueue()
		}
	}
	return nil
}

// commit announces a whole message and adds it to the transcript.
func (r *run) commit(m llm.Message) error {
	if err := r.emit(Event{Type: EventMessageStart, Message: &m}); err != nil {
		return err
	}
	return r.commitEnd(m)
}

// commitEnd adds a message whose start was announced before.
func (r *run) commitEnd(m llm.Message) error {
	if err := r.emit(Event{Type: EventMessageEnd, Message: &m}); err != nil {
		return err
	}
	r.added = append(r.added, m)
	a := r.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	a.messages = append(a.messages, m)
	return nil
}

func (r *run) replace(messages []llm.Message) {
	a := r.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	a.messages = slices.Clone(messages)
}

// emit hands an event out. After the first error nothing more goes out, and the
// run's context is ended.
func (r *run) emit(e Event) error {
	if r.broken != nil {
		return r.broken
	}
	if err := r.agent.onEvent(r.eventCtx, e); err != nil {
		r.broken = &EventError{Type: e.Type, Err: err}
		r.stop(r.broken)
		return r.broken
	}
	return nil
}

// emitLast hands out an event that ends something, also after an error.
func (r *run) emitLast(e Event) error {
	if err := r.agent.onEvent(r.eventCtx, e); err != nil && r.broken == nil {
		r.broken = &EventError{Type: e.Type, Err: err}
		r.stop(r.broken)
		return r.broken
	}
	return nil
}

func (r *run) emitQueue() error {
	a := r.agent
	a.mu.Lock()
	e := Event{Type: EventQueue, Steering: a.steering.texts(), FollowUp: a.followUp.texts()}
	a.mu.Unlock()
	return r.emit(e)
}

// soundCalls makes the arguments of every tool call valid JSON, so that a message
// can always be written.
func soundCalls(m llm.Message) llm.Message {
	for i, b := range m.Content {
		if b.Type != llm.BlockToolCall || json.Valid(b.Arguments) {
			continue
		}
		m.Content = slices.Clone(m.Content)
		if b.ArgumentsError == "" {
			b.ArgumentsError = "the arguments are not valid JSON: " + string(b.Arguments)
		}
		b.Arguments = json.RawMessage("{}")
		m.Content[i] = b
	}
	return m
}
