package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muntin/agent/pty"
	"muntin/internal/state"
)

// An agent is one under its supervisor.
type agent struct {
	t      *trial
	dir    state.AgentDir
	client *pty.Client
	seq    int64 // of the last event that was waited for
}

// agent connects to the supervisor, when it is there.
func (t *trial) agent(ctx context.Context, name string) (*agent, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.limit)
	defer cancel()
	dir := t.dirs.Agent(name)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		client, err := pty.Dial(ctx, dir.Socket)
		if err == nil {
			return &agent{t: t, dir: dir, client: client}, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("connecting to %s: %w", name, err)
		}
	}
}

func (a *agent) close() { _ = a.client.Close() }

func (a *agent) send(ctx context.Context, text string) (string, error) {
	m := newMessage(text)
	_, err := a.client.Send(ctx, m)
	return m.ID, err
}

// turn sends a prompt and waits for the end of its turn.
func (a *agent) turn(ctx context.Context, text string) (end pty.Event, accepted string, err error) {
	msg, err := a.send(ctx, text)
	if err != nil {
		return end, "", err
	}
	got, err := a.await(ctx, "its being accepted", func(e pty.Event) bool {
		return e.Message != nil && e.Message.ID == msg && (e.Message.State == pty.StateAccepted || e.Message.State.Ended())
	})
	if err != nil {
		return end, "", err
	}
	if got.Message.State == pty.StateFailed {
		return end, "", errors.New(got.Message.Why)
	}
	end, err = a.await(ctx, "the end of the turn", endOf(msg))
	if err == nil && end.TurnEnd.Reason != pty.TurnDone {
		err = fmt.Errorf("the turn ended %s: %s", end.TurnEnd.Reason, end.TurnEnd.Error)
	}
	return end, string(got.Message.Evidence), err
}

func startOf(msg string) func(pty.Event) bool {
	return func(e pty.Event) bool { return e.TurnStart != nil && e.TurnStart.Message == msg }
}

func endOf(msg string) func(pty.Event) bool {
	return func(e pty.Event) bool { return e.TurnEnd != nil && e.TurnEnd.Message == msg }
}

var errFound = errors.New("found")

// await waits for an event behind those that were waited for before. When it
// does not come, the error holds what the screen shows.
func (a *agent) await(ctx context.Context, what string, fits func(pty.Event) bool) (found pty.Event, err error) {
	wait, cancel := context.WithTimeout(ctx, a.t.o.limit)
	defer cancel()
	err = a.client.Subscribe(wait, a.seq+1, func(e pty.Event) error {
		if !fits(e) {
			return nil
		}
		found, a.seq = e, e.Seq
		return errFound
	})
	if errors.Is(err, errFound) {
		return found, nil
	}
	return found, fmt.Errorf("waiting for %s: %w%s", what, err, a.shows(ctx))
}

func (a *agent) shows(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client, err := pty.Dial(ctx, a.dir.Socket)
	if err != nil {
		return "; no screen: " + err.Error()
	}
	defer client.Close()
	screen, err := client.Screen(ctx, false)
	if err != nil {
		return "; no screen: " + err.Error()
	}
	return "; the screen:\n" + strings.TrimSpace(strings.Join(screen.Lines, "\n"))
}

// last gives the last event that fits.
func (a *agent) last(fits func(pty.Event) bool) (found pty.Event, err error) {
	_, err = pty.ReadEvents(a.dir, 0, func(e pty.Event, _ int64) error {
		if fits(e) {
			found = e
		}
		return nil
	})
	return found, err
}
