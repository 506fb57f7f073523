package pty

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"muntin/agent/adapter"
	"muntin/internal/id"
	"muntin/internal/state"
)

// ErrNotCancelled says that a message is with the agent already, or has ended.
var ErrNotCancelled = errors.New("the message cannot be cancelled")

// A MessageStatus is a message and how far it has come.
type MessageStatus struct {
	Message
	State    MessageState     `json:"state"`
	Evidence adapter.Evidence `json:"evidence,omitempty"`
	Why      string           `json:"why,omitempty"`
	Changed  time.Time        `json:"changed"` // when it reached the state, as far as is known
}

// Messages lists an agent's messages in the order in which they were filed:
// those that wait, those that are worked on, and those that have ended, whether a
// supervisor runs or not. A file that is no message is told of in err, and the
// others are listed all the same.
func Messages(dir state.AgentDir) ([]MessageStatus, error) {
	byID := map[string]*MessageStatus{}
	var list []record
	var bad []error
	for _, folder := range []string{dir.Inbox(), dir.Done()} {
		files, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("listing messages: %w", err)
		}
		for _, f := range files {
			name, ok := strings.CutSuffix(f.Name(), ".json")
			if !ok || !id.Valid(name) || byID[name] != nil {
				continue
			}
			r, known, err := (inbox{dir}).find(name)
			if err != nil {
				bad = append(bad, err)
				continue
			}
			if known {
				byID[name] = statusOf(r)
				list = append(list, r)
			}
		}
	}
	if err := latest(dir, byID); err != nil {
		return nil, err
	}
	slices.SortFunc(list, byPlace)
	out := make([]MessageStatus, len(list))
	for i, r := range list {
		out[i] = *byID[r.ID]
	}
	return out, errors.Join(bad...)
}

func statusOf(r record) *MessageStatus {
	m := &MessageStatus{Message: r.Message, State: r.State, Why: r.Why, Changed: r.Time}
	if r.Finished != nil {
		m.Changed = *r.Finished
	}
	return m
}

// latest takes the steps between queued and the end from the event log.
func latest(dir state.AgentDir, byID map[string]*MessageStatus) error {
	_, err := ReadEvents(dir, 0, func(ev Event, _ int64) error {
		if ev.Message == nil {
			return nil
		}
		m := byID[ev.Message.ID]
		if m == nil || m.State.Ended() && !ev.Message.State.Ended() {
			return nil
		}
		m.State, m.Changed = ev.Message.State, ev.Time
		m.Evidence, m.Why = ev.Message.Evidence, ev.Message.Why
		return nil
	})
	return err
}

// Cancel takes a message back that has not been handed over: it fails, and
// says so. It works without a supervisor too. ErrNoMessage: the agent has none
// of that id. ErrNotCancelled: it is with the agent already, or has ended; the
// answer tells how far it is.
func Cancel(ctx context.Context, dir state.AgentDir, msg string) (MessageInfo, error) {
	if !id.Valid(msg) {
		return MessageInfo{}, fmt.Errorf("%w: %q", ErrNoMessage, msg)
	}
	r, known, err := (inbox{dir}).find(msg)
	switch {
	case err != nil:
		return MessageInfo{}, err
	case !known:
		return MessageInfo{}, fmt.Errorf("%w: %s", ErrNoMessage, msg)
	case r.State.Ended():
		return r.info(), fmt.Errorf("%w: it is %s", ErrNotCancelled, r.State)
	}
	info, err := cancelAt(ctx, dir, msg)
	if errors.Is(err, ErrNotRunning) {
		return cancelFiled(dir, r)
	}
	return info, err
}

func cancelAt(ctx context.Context, dir state.AgentDir, msg string) (MessageInfo, error) {
	c, err := Dial(ctx, dir.Socket)
	if err != nil {
		return MessageInfo{}, err
	}
	defer c.Close()
	return c.Cancel(ctx, msg)
}

// cancelFiled cancels a message of an agent whose supervisor does not run,
// under the lock that a supervisor would hold. One that may have been handed
// over is left to the next supervisor, which knows what to do with it.
func cancelFiled(dir state.AgentDir, r record) (MessageInfo, error) {
	log, err := openEvents(dir.Events(), time.Now)
	if err != nil {
		return MessageInfo{}, fmt.Errorf("cancelling message %s: %w", r.ID, err)
	}
	defer log.close()
	p, err := log.replay(map[string]bool{r.ID: true})
	if err != nil {
		return MessageInfo{}, err
	}
	if last := p.states[r.ID]; last.Reached(stateTyping) {
		info := r.info()
		if last != "" {
			info.State = last
		}
		return info, fmt.Errorf("%w: it was handed over (%s) before the supervisor ended", ErrNotCancelled, info.State)
	}
	now := time.Now()
	r.State, r.Why, r.Finished = StateFailed, whyCancelled, &now
	info := r.info()
	if err := log.append(Event{Kind: EventMessage, Message: &info}); err != nil {
		return MessageInfo{}, err
	}
	return info, (inbox{dir}).finish(r)
}

// Again makes of a message that has failed a new one, with an id of its own:
// an id is never delivered twice.
func (m MessageStatus) Again(now time.Time) (Message, error) {
	if m.State != StateFailed {
		return Message{}, fmt.Errorf("message %s has not failed, it is %s: only a failed one is sent again", m.ID, m.State)
	}
	again := m.Message
	again.ID, again.Time, again.Deadline, again.RetryOf = id.New(now), now, nil, m.ID
	return again, nil
}
