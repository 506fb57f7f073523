package pty

import (
	"context"
	"errors"
	"fmt"

	"muntin/internal/state"
)

// A DeliveryError says that a message was not followed to its end: ctx ended,
// or the supervisor did. Info is how far it had come; it may go on from there.
type DeliveryError struct {
	Info MessageInfo
	Err  error
}

func (e *DeliveryError) Error() string {
	return fmt.Sprintf("message %s is %s: %v", e.Info.ID, e.Info.State, e.Err)
}

// Unwrap gives the reason: context.DeadlineExceeded, ErrLost, …
func (e *DeliveryError) Unwrap() error { return e.Err }

// A Delivery is a message and how far it is followed.
type Delivery struct {
	Message Message
	Until   MessageState      // it is followed to this state, or to an end
	OnState func(MessageInfo) // if not nil, called with each state the message reaches
}

// Deliver is the one way to send a message: it gives it to the agent's
// supervisor and follows it until it reaches the state d.Until, or an end,
// which may be failed: the answer tells. While no supervisor runs the message
// is filed for the next one, and the answer is queued, whatever d.Until is. The
// error is a *DeliveryError where the message was sent and could not be
// followed to where it was wanted; Deliver may be called again with the same
// message: it is not delivered twice.
func Deliver(ctx context.Context, dir state.AgentDir, d Delivery) (MessageInfo, error) {
	if d.OnState == nil {
		d.OnState = func(MessageInfo) {}
	}
	h, err := handOver(ctx, dir, d.Message)
	if err != nil {
		return MessageInfo{}, err
	}
	d.OnState(h.info)
	if h.client == nil {
		return h.info, nil
	}
	defer h.client.Close()
	if reached(h.info, d.Until) {
		return h.info, nil
	}
	return follow(ctx, h.client, dir, following{info: h.info, from: h.from, until: d.Until, onState: d.OnState})
}

func reached(info MessageInfo, until MessageState) bool {
	return info.State.Ended() || info.State.Reached(until)
}

// A handedOver message is with a supervisor, or filed if client is nil.
type handedOver struct {
	client *Client
	info   MessageInfo
	from   int64 // the first event that can be about it
}

// handOver gives the message to the supervisor, or files it where there is
// none or it is just ending. It tries once more after that: a supervisor that
// has just read its inbox would not see the file.
func handOver(ctx context.Context, dir state.AgentDir, m Message) (handedOver, error) {
	h, err := give(ctx, dir, m)
	if !errors.Is(err, ErrNotRunning) && !errors.Is(err, ErrLost) {
		return h, err
	}
	if err := Enqueue(dir, m); err != nil {
		return handedOver{}, err
	}
	h, err = give(ctx, dir, m)
	if !errors.Is(err, ErrNotRunning) && !errors.Is(err, ErrLost) {
		return h, err
	}
	r, _, err := (inbox{dir}).find(m.ID)
	return handedOver{info: r.info()}, err
}

func give(ctx context.Context, dir state.AgentDir, m Message) (h handedOver, err error) {
	client, err := Dial(ctx, dir.Socket)
	if err != nil {
		return handedOver{}, err
	}
	defer func() {
		if err != nil {
			client.Close()
		}
	}()
	info, seq, err := client.send(ctx, m)
	if err != nil {
		return handedOver{}, err
	}
	return handedOver{client: client, info: info, from: seq}, nil
}

type following struct {
	info    MessageInfo
	from    int64
	until   MessageState
	onState func(MessageInfo)
}

var errReached = errors.New("reached")

func follow(ctx context.Context, c *Client, dir state.AgentDir, f following) (MessageInfo, error) {
	id := f.info.ID
	err := c.Subscribe(ctx, f.from, func(ev Event) error {
		if ev.Message == nil || ev.Message.ID != id {
			return nil
		}
		next := *ev.Message
		next.Text = ""
		if next.State == f.info.State || !next.State.Reached(f.info.State) {
			return nil // known from the answer to send
		}
		f.info = next
		f.onState(f.info)
		if reached(f.info, f.until) {
			return errReached
		}
		return nil
	})
	switch {
	case errors.Is(err, errReached):
		return f.info, nil
	case err == nil:
		err = ErrLost // it ended before the message did
	}
	// The supervisor may have written an end that did not reach us.
	if r, known, findErr := (inbox{dir}).find(id); findErr == nil && known && r.State.Ended() {
		f.info = r.info()
		f.onState(f.info)
		return f.info, nil
	}
	return f.info, &DeliveryError{Info: f.info, Err: err}
}
