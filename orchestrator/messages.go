package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"muntin/agent/pty"
)

// A Starter brings an agent's program back.
type Starter interface {
	// StartAgent runs the agent's supervisor in its pane again, and makes the
	// pane where it is gone. One that runs is left alone, which is no error. It
	// returns when the program was seen to start, or not to.
	StartAgent(ctx context.Context, agent string) error
}

// restart starts an agent again, unless somebody else has done so.
func (c *Crew) restart(ctx context.Context, e Effect) error {
	if c.Starter == nil {
		return errors.New("there is nothing to start it with")
	}
	return c.Starter.StartAgent(ctx, e.Agent)
}

// send delivers a message and waits until the agent took it. Messages that
// need no answer (a steer into a turn that has just ended) count as sent when
// they are queued. Where the agent has ended the result says so.
func (c *Crew) send(ctx context.Context, e Effect) (Result, error) {
	until := pty.StateAccepted
	if e.Msg == pty.KindAbort || e.Msg == pty.KindSteer {
		until = pty.StateQueued
	}
	dir := c.Members[e.Agent].Dir
	m := pty.Message{ID: e.ID, Kind: e.Msg, Text: e.Text, From: orchestratorName, Task: e.Task, Time: c.Now()}
	info, err := pty.Deliver(ctx, dir, pty.Delivery{Message: m, Until: until})
	var broken *pty.DeliveryError
	if errors.As(err, &broken) {
		info = broken.Info
	}
	res := Result{State: string(info.State)}
	switch {
	case errors.Is(err, pty.ErrLost) || errors.Is(err, pty.ErrNotRunning):
		res.Gone = true
	case err != nil:
	case info.State == pty.StateFailed:
		err = errors.New(info.Why)
		res.Gone = info.Ended() || hasEnded(ctx, dir.Socket)
	case !info.State.Reached(until):
		res.Gone = true
		err = fmt.Errorf("%w: the message waits in its inbox", pty.ErrNotRunning)
	}
	return res, err
}

// first sends an agent the recipe's first prompt.
func (c *Crew) first(ctx context.Context, e Effect) (Result, error) {
	text, err := c.Prompts(e.Agent)
	if err != nil || text == "" {
		return Result{}, err
	}
	m := pty.Message{ID: e.ID, Kind: pty.KindPrompt, Text: text, From: "recipe", Time: c.Now()}
	_, err = pty.Deliver(ctx, c.Members[e.Agent].Dir, pty.Delivery{Message: m, Until: pty.StateAccepted})
	return Result{}, err
}

// orchestratorName is whom our messages are from.
const orchestratorName = "orchestrator"

// hasEnded asks whether an agent's program has ended.
func hasEnded(ctx context.Context, socket string) bool {
	client, err := pty.Dial(ctx, socket)
	if err != nil {
		return errors.Is(err, pty.ErrNotRunning)
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		return errors.Is(err, pty.ErrLost) || errors.Is(err, pty.ErrNotRunning)
	}
	return status.State == pty.AgentExited
}

// recall takes back our messages about a task that wait in an agent's inbox.
// One that was handed over is left alone.
func (c *Crew) recall(ctx context.Context, e Effect) error {
	dir := c.Members[e.Agent].Dir
	list, err := pty.Messages(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range list {
		if m.State.Ended() || m.Task != e.Task || m.From != orchestratorName {
			continue
		}
		if _, err := pty.Cancel(ctx, dir, m.ID); !errors.Is(err, pty.ErrNotCancelled) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
