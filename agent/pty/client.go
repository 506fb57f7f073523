package pty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"syscall"
	"time"
)

// ErrNotRunning says that no supervisor serves the socket.
var ErrNotRunning = errors.New("no supervisor is running")

// ErrLost says that the supervisor went away before it had answered.
var ErrLost = errors.New("the supervisor went away")

// A Client talks to a running supervisor. Its methods may be called from
// several goroutines; Hello, Status, Send and Stop take turns on one
// connection. Every method ends when its ctx does, with the context's error.
type Client struct {
	path string

	mu     sync.Mutex // guards the connection: one request at a time
	conn   net.Conn
	frames *frameReader
	id     int64
	err    error // the connection is of no more use
}

// Dial connects to a supervisor's socket. The error matches ErrNotRunning if
// nobody serves it.
func Dial(ctx context.Context, socket string) (*Client, error) {
	conn, err := dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	return &Client{path: socket, conn: conn, frames: newFrameReader(conn)}, nil
}

func dial(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w at %s", ErrNotRunning, socket)
	}
	return nil, fmt.Errorf("connecting to the supervisor: %w", err)
}

// Close ends the connection. Streams of Subscribe and Attach have their own.
func (c *Client) Close() error { return c.conn.Close() }

// Hello asks for the version of the protocol.
func (c *Client) Hello(ctx context.Context) (version int, err error) {
	f, err := c.call(ctx, Frame{Op: OpHello, Version: ProtocolVersion})
	return f.Version, err
}

// Status asks what the agent does now.
func (c *Client) Status(ctx context.Context) (Status, error) {
	f, err := c.call(ctx, Frame{Op: OpStatus})
	if err != nil {
		return Status{}, err
	}
	if f.Status == nil {
		return Status{}, errors.New("the supervisor's answer has no status")
	}
	return *f.Status, nil
}

// Send gives the supervisor a message. It is durable when Send returns. The
// answer is the state it is in, which is more than queued only if the id was
// known already.
func (c *Client) Send(ctx context.Context, m Message) (MessageState, error) {
	info, err := c.send(ctx, m)
	return info.State, err
}

func (c *Client) send(ctx context.Context, m Message) (MessageInfo, error) {
	if err := checkMessage(m); err != nil {
		return MessageInfo{}, err
	}
	f, err := c.call(ctx, Frame{Op: OpSend, Message: &m})
	if err != nil {
		return MessageInfo{}, err
	}
	if f.Info == nil {
		return MessageInfo{}, errors.New("the supervisor's answer has no message state")
	}
	return *f.Info, nil
}

// Stop asks the supervisor to end the agent and itself. It returns when that
// has begun; the exit event tells when it is done.
func (c *Client) Stop(ctx context.Context) error {
	_, err := c.call(ctx, Frame{Op: OpStop})
	return err
}

// call sends a request and returns its answer. An error in the answer becomes
// an error. A connection on which a call was broken off is not used again: an
// old answer could be taken for a new one.
func (c *Client) call(ctx context.Context, f Frame) (Frame, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return Frame{}, c.err
	}
	c.id++
	f.ID = c.id
	answer, err := exchange(ctx, c.conn, c.frames, f)
	if err != nil {
		err = fmt.Errorf("asking the supervisor (%s): %w", f.Op, err)
		c.err = err
		return Frame{}, err
	}
	switch answer.Error {
	case "":
		return answer, nil
	case errEnding.Error():
		return Frame{}, fmt.Errorf("%w: it is just ending", ErrNotRunning)
	}
	return Frame{}, fmt.Errorf("the supervisor refused %s: %s", f.Op, answer.Error)
}

// exchange writes f and reads the next frame with its id.
func exchange(ctx context.Context, conn net.Conn, frames *frameReader, f Frame) (Frame, error) {
	defer bound(ctx, conn)()
	line, err := encode(f)
	if err != nil {
		return Frame{}, err
	}
	if _, err := conn.Write(line); err != nil {
		return Frame{}, lost(ctx, err)
	}
	for {
		answer, err := frames.next()
		if err != nil {
			return Frame{}, lost(ctx, err)
		}
		if answer.ID == f.ID {
			return answer, nil
		}
	}
}

// bound makes the connection's reads and writes end when ctx does. The
// function that it returns lifts that again.
func bound(ctx context.Context, conn net.Conn) (lift func()) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return func() {
		if stop() {
			_ = conn.SetDeadline(time.Time{})
		}
	}
}

// lost makes of a connection's error ctx's, if that ended it, or ErrLost.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w (%w)", ErrLost, err)
}

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
