package pty

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// linkLimit is how long the end of a link is waited for where it must be near:
// the agent has ended, or comes again.
const linkLimit = time.Second

var errAttached = errors.New("attach: the agent is attached already")

// A link is the built-in agent's connection.
type link struct {
	c    *session
	gone chan struct{} // closed when the supervisor has taken note of its end
	mu   sync.Mutex    // one frame at a time
}

func (l *link) send(f Frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.c.reply(f, nil)
}

func (l *link) close() { l.c.conn.Close() }

// attach makes the connection the agent's link, until it ends.
func (c *session) attach(f Frame) error {
	s, l := c.v.s, &link{c: c, gone: make(chan struct{})}
	if err := c.become(l); err != nil {
		return c.reply(f, err)
	}
	defer s.do(context.WithoutCancel(c.v.ctx), func() { s.linkLost(l) })
	if err := l.send(Frame{ID: f.ID, OK: true, Version: ProtocolVersion}); err != nil {
		return err
	}
	for {
		f, err := c.frames.next()
		if err != nil {
			return err
		}
		if f.Op != OpReport || f.Report == nil {
			if err := l.send(Frame{ID: f.ID, Error: fmt.Sprintf("a link takes reports, not %q", f.Op)}); err != nil {
				return err
			}
			continue
		}
		if !s.do(c.v.ctx, func() { s.report(*f.Report) }) {
			return errEnding
		}
	}
}

// become makes l the agent's link. An agent that has lost its link and comes
// again may be faster than the news of the loss: the old one is waited for.
func (c *session) become(l *link) error {
	s := c.v.s
	ctx, cancel := context.WithTimeout(c.v.ctx, linkLimit)
	defer cancel()
	for {
		err, old := errEnding, (*link)(nil)
		s.do(c.v.ctx, func() {
			switch {
			case !s.m.link:
				err = fmt.Errorf("attach: the agent's adapter %q has no link", s.opt.Adapter.Name)
			case s.drained: // the agent has ended: this is somebody else
			case s.link != nil:
				err, old = errAttached, s.link
			default:
				s.link, err = l, nil
			}
		})
		if old == nil {
			return err
		}
		select {
		case <-old.gone:
		case <-ctx.Done():
			return err
		}
	}
}

// linkLost takes note of the end of a link, and of that of the agent, if that
// waited for it.
func (s *supervisor) linkLost(l *link) {
	if s.link != l {
		return
	}
	s.link = nil
	close(l.gone)
	if s.drained {
		s.apply(s.m.exit())
		return
	}
	s.apply(s.m.linkLost())
}
