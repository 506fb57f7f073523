package pty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Subscribe calls fn for each event from the sequence number on: first those
// of the past, then each as it happens, without gaps. It returns nil after the
// exit event, when the supervisor has ended; the error of fn, if it has one;
// ErrLost if the supervisor died or dropped a reader that was too slow: go on
// from the last event that was seen.
func (c *Client) Subscribe(ctx context.Context, from int64, fn func(Event) error) error {
	conn, err := dial(ctx, c.path)
	if err != nil {
		return err
	}
	defer conn.Close()
	frames := newFrameReader(conn)
	answer, err := exchange(ctx, conn, frames, Frame{ID: 1, Op: OpSubscribe, From: from})
	if err != nil {
		return fmt.Errorf("subscribing to events: %w", err)
	}
	if answer.Error != "" {
		return fmt.Errorf("the supervisor refused to be subscribed to: %s", answer.Error)
	}
	defer bound(ctx, conn)()
	exited := false
	for {
		f, err := frames.next()
		switch {
		case err != nil && exited && ctx.Err() == nil && errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("following events: %w", lost(ctx, err))
		case f.Error != "":
			return fmt.Errorf("following events: %s", f.Error)
		case f.Event == nil:
			continue
		}
		exited = f.Event.Kind == EventExit
		if err := fn(*f.Event); err != nil {
			return err
		}
	}
}

// Output calls fn for what the agent prints, from the offset on (-1: from now
// on): first what was kept, then as it comes. Lost in a piece says how much is
// missing before it. It returns nil when the agent has ended; the error of fn,
// if it has one; ErrLost if the supervisor died or dropped a reader that was
// too slow: go on behind the last piece. The text is foreign.
func (c *Client) Output(ctx context.Context, from int64, fn func(Output) error) error {
	conn, err := dial(ctx, c.path)
	if err != nil {
		return err
	}
	defer conn.Close()
	frames := newFrameReader(conn)
	answer, err := exchange(ctx, conn, frames, Frame{ID: 1, Op: OpSubscribe, Output: &Output{Offset: from}})
	if err != nil {
		return fmt.Errorf("subscribing to output: %w", err)
	}
	if answer.Error != "" {
		return fmt.Errorf("the supervisor refused to be subscribed to: %s", answer.Error)
	}
	defer bound(ctx, conn)()
	for {
		f, err := frames.next()
		switch {
		case err != nil:
			return fmt.Errorf("following output: %w", lost(ctx, err))
		case f.Error != "":
			return fmt.Errorf("following output: %s", f.Error)
		case f.Output == nil:
			continue
		case f.Output.End:
			return nil
		}
		if err := fn(*f.Output); err != nil {
			return err
		}
	}
}

// A Link is the built-in agent's connection to its supervisor.
type Link struct {
	conn     net.Conn
	messages chan Message
	done     chan struct{}

	mu sync.Mutex // one report at a time
}

// Attach makes the caller the agent that the supervisor hears and delivers to.
// There is one at a time; a second is refused.
func (c *Client) Attach(ctx context.Context) (*Link, error) {
	conn, err := dial(ctx, c.path)
	if err != nil {
		return nil, err
	}
	frames := newFrameReader(conn)
	answer, err := exchange(ctx, conn, frames, Frame{ID: 1, Op: OpAttach, Version: ProtocolVersion})
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("attaching to the supervisor: %w", err)
	}
	l := &Link{conn: conn, messages: make(chan Message), done: make(chan struct{})}
	go l.read(frames)
	return l, nil
}

func (l *Link) read(frames *frameReader) {
	defer close(l.messages)
	for {
		f, err := frames.next()
		if err != nil {
			return
		}
		if f.Op != OpDeliver || f.Message == nil {
			continue
		}
		select {
		case l.messages <- *f.Message:
		case <-l.done:
			return
		}
	}
}

// Messages gives the messages as they are delivered. A message may come a
// second time, after a link was lost: the agent knows it by its id. The
// channel is closed when the link is.
func (l *Link) Messages() <-chan Message { return l.messages }

// Report tells the supervisor something. It may block while the supervisor is
// busy, and be called from several goroutines.
func (l *Link) Report(r Report) error {
	line, err := encode(Frame{Op: OpReport, Report: &r})
	if err != nil {
		return fmt.Errorf("encoding a report: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.conn.Write(line); err != nil {
		return fmt.Errorf("reporting to the supervisor: %w (%w)", ErrLost, err)
	}
	return nil
}

// Close ends the link and waits until Messages is closed. The supervisor then
// says of a living agent that its state is unknown.
func (l *Link) Close() error {
	l.mu.Lock()
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	err := l.conn.Close()
	l.mu.Unlock()
	for range l.messages { // until it is closed
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
