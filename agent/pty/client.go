package pty

import (
	"context"
	"errors"
	"fmt"
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
	info, _, err := c.send(ctx, m)
	return info.State, err
}

// send is Send, and tells the number of the first event that can come after
// the answer.
func (c *Client) send(ctx context.Context, m Message) (info MessageInfo, seq int64, err error) {
	if err := checkMessage(m); err != nil {
		return MessageInfo{}, 0, err
	}
	f, err := c.call(ctx, Frame{Op: OpSend, Message: &m})
	if err != nil {
		return MessageInfo{}, 0, err
	}
	if f.Info == nil {
		return MessageInfo{}, 0, errors.New("the supervisor's answer has no message state")
	}
	return *f.Info, f.From, nil
}

// Stop asks the supervisor to end the agent and itself. It returns when that
// has begun; the exit event tells when it is done.
func (c *Client) Stop(ctx context.Context) error {
	_, err := c.call(ctx, Frame{Op: OpStop})
	return err
}

// Cancel takes a message back that has not been handed over. ErrNoMessage and
// ErrNotCancelled as for the function of that name, which works without a
// supervisor too.
func (c *Client) Cancel(ctx context.Context, id string) (MessageInfo, error) {
	f, err := c.call(ctx, Frame{Op: OpCancel, Cancel: id})
	switch {
	case err != nil:
		return MessageInfo{}, err
	case f.Info == nil:
		return MessageInfo{}, fmt.Errorf("%w: %s", ErrNoMessage, id)
	case f.Info.State != StateFailed || f.Info.Why != whyCancelled:
		return *f.Info, fmt.Errorf("%w: it is %s", ErrNotCancelled, f.Info.State)
	}
	return *f.Info, nil
}

// Screen gives what the agent's terminal shows; with style, its lines hold
// colours and attributes as SGR sequences. The text is foreign: clean it before
// it is shown.
func (c *Client) Screen(ctx context.Context, style bool) (Screen, error) {
	f, err := c.call(ctx, Frame{Op: OpScreen, Style: style})
	if err != nil {
		return Screen{}, err
	}
	if f.Screen == nil {
		return Screen{}, errors.New("the supervisor's answer has no screen")
	}
	return *f.Screen, nil
}

// Resize sets the size of the agent's terminal. It is refused where the agent
// runs in a pane: the size of the pane decides then.
func (c *Client) Resize(ctx context.Context, cols, rows int) error {
	_, err := c.call(ctx, Frame{Op: OpResize, Size: &Size{Cols: cols, Rows: rows}})
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
	if ctx.Err() != nil {
		return Frame{}, ctx.Err()
	}
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
