package control

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// read takes the server's lines until its end. It never waits for anything
// but the server.
func (c *Conn) read() {
	r := bufio.NewReaderSize(heardReader{c}, readBuffer)
	var long []byte
	var err error
	for {
		var part []byte
		part, err = r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, part...); len(long) > longestLine {
				err = fmt.Errorf("a line of tmux is longer than %d bytes", longestLine)
				break
			}
			continue
		}
		if err != nil {
			break
		}
		line := part
		if len(long) > 0 {
			long = append(long, part...)
			line = long
		}
		c.frames.feed(line[:len(line)-1])
		long = long[:0]
		if cap(long) > 4*readBuffer {
			long = nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("server exited") // unless it said why
	}
	c.finish(err)
}

// heardReader notes when the server was heard last.
type heardReader struct{ c *Conn }

func (h heardReader) Read(p []byte) (int, error) {
	n, err := h.c.stdout.Read(p)
	if n > 0 {
		h.c.mu.Lock()
		h.c.heard = time.Now()
		h.c.mu.Unlock()
	}
	return n, err
}

// finish ends the connection: what is under way is lost.
func (c *Conn) finish(err error) {
	c.frames.finish()
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	err = c.err
	flight := c.flight
	c.flight = nil
	c.mu.Unlock()
	for _, r := range flight {
		r.settle()
		r.finish(fmt.Errorf("%w: %w", ErrLost, err))
		if r.queued {
			c.emit(Event{Kind: Reply, Tag: r.tag, Replies: r.replies, Err: r.err})
		}
	}
	close(c.down)
	if !c.opts.shared {
		close(c.events.ch)
	}
}

// onLine takes a line outside of all blocks.
func (c *Conn) onLine(line []byte) {
	e, ok := parse(line)
	if !ok {
		c.mu.Lock()
		c.stats.Unknown++
		c.mu.Unlock()
		return
	}
	if e.Kind == Notice && e.Name == "exit" {
		c.mu.Lock()
		if c.err == nil {
			c.err = exitError(e.Text)
		}
		c.mu.Unlock()
		return
	}
	c.emit(e)
}

// exitError is why the server sent the client away: "server exited", "too far
// behind", or nothing when its session has ended.
func exitError(reason string) error {
	if reason == "" {
		reason = "detached"
	}
	return errors.New(reason)
}

// emit queues an event.
func (c *Conn) emit(e Event) {
	if dropped := c.events.put(e); dropped > 0 {
		c.mu.Lock()
		c.stats.Dropped += dropped
		c.mu.Unlock()
	}
}

// onBlock takes the reply to one command.
func (c *Conn) onBlock(b block) {
	select {
	case <-c.ready:
	default: // the first block is the attach itself
		if b.failed {
			c.mu.Lock()
			c.attached = strings.TrimSpace(string(b.text))
			c.mu.Unlock()
		}
		close(c.ready)
		return
	}
	if !b.ours {
		return // of a hook or a key
	}
	c.mu.Lock()
	var r *request
	if len(c.flight) > 0 {
		r = c.flight[0]
	}
	c.mu.Unlock()
	last, isMarker := c.markerOf(b, r)
	switch {
	case r == nil:
		c.mu.Lock()
		c.stats.Unknown++
		c.mu.Unlock()
	case !isMarker:
		r.take(b)
	case last:
		if len(r.cmds) == 1 && r.blocks > len(r.errs) {
			r.next() // it has no marker of its own
		}
		c.answer(r)
		c.mu.Lock()
		c.flight[0] = nil
		c.flight = c.flight[1:]
		c.mu.Unlock()
		<-c.slots
	default:
		if r.next() {
			c.answer(r)
		}
	}
}

// answer hands the result of a request out, once.
func (c *Conn) answer(r *request) {
	if r.answered {
		return
	}
	r.finish(nil)
	if r.queued {
		c.emit(Event{Kind: Reply, Tag: r.tag, Replies: r.replies, Err: r.err})
	}
}

// markerOf tells whether the block is a marker of r, and whether the last.
func (c *Conn) markerOf(b block, r *request) (last, ok bool) {
	if r == nil {
		return false, false
	}
	text, last := bytes.CutPrefix(b.text, []byte(unknownCommand))
	rest, ok := bytes.CutPrefix(text, []byte(c.word))
	if !ok || last != b.failed {
		return false, false
	}
	seq, _, inLine := strings.Cut(strings.TrimSuffix(string(rest), "\n"), " ")
	return last, inLine != last && seq == strconv.FormatUint(r.seq, 10)
}
