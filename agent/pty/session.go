package pty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"muntin/internal/durable"
)

var errEnding = errors.New("the supervisor is ending")

// A session is one connection to the socket.
type session struct {
	v      *server
	conn   *net.UnixConn
	frames *frameReader
}

// serve carries out one request. An error ends the connection.
func (c *session) serve(f Frame) error {
	s := c.v.s
	switch f.Op {
	case OpHello:
		return c.reply(Frame{ID: f.ID, OK: true, Version: ProtocolVersion}, nil)
	case OpStatus:
		st, ok := s.status(c.v.ctx)
		if !ok {
			return c.reply(f, errEnding)
		}
		return c.reply(Frame{ID: f.ID, OK: true, Status: &st}, nil)
	case OpSend:
		if f.Message == nil {
			return c.reply(f, errors.New("send: no message"))
		}
		info, seq, err := s.send(c.v.ctx, *f.Message)
		return c.reply(Frame{ID: f.ID, OK: true, Info: &info, From: seq}, err)
	case OpStop:
		if !s.do(c.v.ctx, func() { s.end(syscall.SIGHUP, "") }) {
			return c.reply(f, errEnding)
		}
		return c.reply(Frame{ID: f.ID, OK: true}, nil)
	case OpSubscribe:
		if f.Output != nil {
			return c.followOutput(f)
		}
		if err := c.reply(Frame{ID: f.ID, OK: true}, nil); err != nil {
			return err
		}
		return c.follow(max(f.From, 1))
	case OpCancel:
		info, err := s.cancel(c.v.ctx, f.Cancel)
		answer := Frame{ID: f.ID, OK: true}
		if info.ID != "" {
			answer.Info = &info
		}
		return c.reply(answer, err)
	case OpScreen:
		sc, err := s.screen.show(s.rec, f.Style)
		if err != nil {
			return c.reply(f, err)
		}
		sc.Title, sc.Alternate = s.cues.lastTitle(), s.term.scan.altScr.Load()
		return c.reply(Frame{ID: f.ID, OK: true, Screen: &sc}, nil)
	case OpResize:
		if err := s.resize(f.Size); err != nil {
			return c.reply(f, err)
		}
		return c.reply(Frame{ID: f.ID, OK: true}, nil)
	case OpAttach:
		return c.attach(f)
	case OpHook:
		return c.hook(f)
	case OpDeliver, OpReport:
	}
	return c.reply(f, fmt.Errorf("unknown request %q", f.Op))
}

// reply sends f, or the error as the answer to f.
func (c *session) reply(f Frame, err error) error {
	if err != nil {
		f = Frame{ID: f.ID, Error: err.Error()}
	}
	line, encErr := encode(f)
	if encErr != nil {
		return encErr
	}
	return c.write(line)
}

func (c *session) write(line []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	_, err := c.conn.Write(line)
	return err
}

// follow sends the events from the sequence number on: those of the log, and
// then each as it is written. The log itself is the queue, so that a slow
// reader costs no memory; one that takes nothing for writeLimit is dropped.
func (c *session) follow(from int64) error {
	ctx, stop := c.untilGone()
	defer stop()
	log := c.v.s.events
	at := log.offset(from)
	for {
		next, err := durable.Lines(log.path, at, func(line []byte, _ int64) error {
			if seqOf(line) < from {
				return ctx.Err()
			}
			frame := make([]byte, 0, len(line)+12)
			frame = append(append(append(frame, `{"event":`...), line...), '}', '\n')
			return errors.Join(ctx.Err(), c.write(frame))
		})
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.v.s.log.Warn("a subscriber that does not read was dropped", "from", from)
			}
			return err
		}
		at = next
		more, ended := log.more(at)
		if ended {
			return io.EOF
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// untilGone is for a connection on which only the supervisor speaks from now
// on: its context ends when the client goes. stop ends the connection.
func (c *session) untilGone() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(c.v.ctx)
	gone := make(chan struct{})
	c.v.wg.Go(func() { // the client has nothing more to say but that it goes
		defer close(gone)
		_, _ = io.Copy(io.Discard, c.conn)
		if c.v.closing.Load() {
			return // it was told to say nothing more; the last events are for it
		}
		cancel()
	})
	return ctx, func() {
		c.conn.Close()
		<-gone
		cancel()
	}
}

// seqOf reads the sequence number at the start of an event's line.
func seqOf(line []byte) int64 {
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	if !ok {
		return 0
	}
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, _ := strconv.ParseInt(string(rest[:end]), 10, 64)
	return n
}
