package control

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = 2 * time.Second
	dialTimeout  = 10 * time.Second
)

// ClientOptions say how to keep a connection.
type ClientOptions struct {
	Options
	// Prepare is called with every new connection before it is used: it makes
	// sure that the server is the one meant, and subscribes. With an error the
	// connection is given up.
	Prepare func(ctx context.Context, c *Conn) error
	// Final reports whether an error of Dial or Prepare is the end, and not a
	// reason to try again. It is called from one goroutine; down is the time
	// since the connection was lost.
	Final func(err error, down time.Duration) bool
}

// A Client keeps a connection to a server: when it is lost, it dials again,
// after 50 ms and then ever less often, down to every two seconds.
type Client struct {
	opts   ClientOptions
	events *queue
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	conn *Conn // nil while there is none; guarded by mu
}

// NewClient dials once, and keeps the connection until Close. ctx limits the
// first dialling only, and lends the rest its values.
func NewClient(ctx context.Context, o ClientOptions) (*Client, error) {
	o.shared = true
	c := &Client{opts: o, events: newQueue(o.Queue), done: make(chan struct{})}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	keep, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	go c.keep(keep, conn)
	return c, nil
}

// Events is the queue of what the server tells: at most as many as Options
// say, then a Resync in place of all. It is closed after Gone, and by Close.
func (c *Client) Events() <-chan Event { return c.events.ch }

// Conn is the present connection, or nil while there is none.
func (c *Client) Conn() *Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn
}

// Do is Conn.Do. ErrDown: there is no connection now; nothing was sent.
func (c *Client) Do(ctx context.Context, cmds ...Cmd) ([]string, error) {
	conn := c.Conn()
	if conn == nil {
		return nil, ErrDown
	}
	return conn.Do(ctx, cmds...)
}

// Close detaches and waits until the client process and all goroutines are
// gone.
func (c *Client) Close() error {
	c.cancel()
	<-c.done
	return nil
}

func (c *Client) dial(ctx context.Context) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := dial(ctx, c.opts.Options, c.events)
	if err != nil {
		return nil, err
	}
	if c.opts.Prepare == nil {
		return conn, nil
	}
	if err := c.opts.Prepare(ctx, conn); err != nil {
		_ = conn.Close() // the reason says more
		return nil, fmt.Errorf("preparing the control connection: %w", err)
	}
	return conn, nil
}

// keep holds conn and its successors until ctx ends or there is no more hope.
func (c *Client) keep(ctx context.Context, conn *Conn) {
	defer close(c.done)
	defer close(c.events.ch)
	for {
		select {
		case <-conn.Down():
		case <-ctx.Done():
		}
		c.set(nil)
		_ = conn.Close() // it is down
		if ctx.Err() != nil {
			return
		}
		c.events.put(Event{Kind: Down, Err: conn.Err()})
		next, err := c.redial(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.events.put(Event{Kind: Gone, Err: err})
			}
			return
		}
		conn = next
		c.set(conn)
		c.events.put(Event{Kind: Up})
	}
}

func (c *Client) set(conn *Conn) {
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
}

// redial tries until there is a connection, ctx ends, or an error is final.
func (c *Client) redial(ctx context.Context) (*Conn, error) {
	lost := time.Now()
	wait := firstBackoff
	for {
		conn, err := c.dial(ctx)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil || c.opts.Final != nil && c.opts.Final(err, time.Since(lost)) {
			return nil, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
		wait = min(2*wait, lastBackoff)
	}
}
