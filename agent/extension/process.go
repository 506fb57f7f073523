package extension

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"muntin/internal/proc"
)

const (
	maxLine    = 32 << 20        // bytes of one frame of an extension
	maxQueue   = 1024            // frames that wait for an extension to read
	patience   = 2 * time.Second // for the answer to a cancel, and for the end after the input has ended
	maxGarbage = 200             // bytes of a line that is no frame, for people
)

// Errors of calls.
var (
	errDeadline = errors.New("it did not answer in time")
	errEnded    = errors.New("it ended")
)

// a process is one run of an extension's program. It ends once.
type process struct {
	peer   peer
	stdin  *os.File
	cancel context.CancelCauseFunc // ends the program
	out    chan []byte             // frames to write
	dead   chan struct{}           // closed when the program has ended and was waited for
	lost   error                   // why it ended, for its peer, which guards it
	ready  chan struct{}           // closed with the first ready
	work   sync.WaitGroup

	mu      sync.Mutex // guards all below
	why     error      // why it ended
	hello   Ready
	last    int64
	calls   map[int64]*call
	asks    int           // dialogs that are open
	asked   time.Time     // since when
	paused  time.Duration // for how long, those before
	resumed chan struct{} // closed when the last dialog closes
	dropped int           // events that found the queue full
	garbled bool          // a line that is no frame was reported
	partial []byte        // of a line
	skip    bool          // the line is too long
}

// a peer is what a process tells of its extension. Its methods are called by the
// goroutine that reads the program's output, ask by one of its own.
type peer interface {
	said(method string, params json.RawMessage)
	ask(ctx context.Context, q Question) Answer
	garbage(line string)
	died(p *process, err error)
}

// a call is a request that waits for its answer.
type call struct {
	done    chan Frame // holds one
	signal  chan struct{}
	updates []json.RawMessage
	timer   *time.Timer // after a cancel
}

// a launch says how to start a program.
type launch struct {
	argv   []string
	dir    string
	env    []string
	stderr io.Writer
}

// start starts a program. ctx bounds its life, and work holds it.
func start(ctx context.Context, work *sync.WaitGroup, l launch, p peer) (*process, error) {
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	pr := &process{
		peer: p, stdin: stdin, cancel: cancel, out: make(chan []byte, maxQueue),
		dead: make(chan struct{}), ready: make(chan struct{}), calls: map[int64]*call{},
	}
	pr.work.Go(func() { pr.write(pr.out) })
	work.Go(func() {
		_, err := proc.Run(ctx, proc.Spec{
			Argv: l.argv, Dir: l.dir, Env: l.env, Stdin: in, Stdout: reader{ctx, pr}, Stderr: l.stderr, Grace: patience, Reap: true,
		})
		_, _ = in.Close(), stdin.Close()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		p.died(pr, err) // before the calls fail: whoever made them may try again at once
		pr.end(err)
		cancel(nil)
		pr.work.Wait()
		close(pr.dead)
	})
	return pr, nil
}

// end fails all calls that wait.
func (p *process) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why = err; err == nil {
		p.why = errEnded
	}
	for id, c := range p.calls {
		if c.timer != nil {
			c.timer.Stop()
		}
		delete(p.calls, id)
		close(c.done)
	}
	close(p.out)
	p.out = nil
}

// write hands frames to the program, one after the other; an empty one ends its
// input.
func (p *process) write(out <-chan []byte) {
	var err error
	for line := range out { // until end closes it
		switch {
		case err != nil:
		case line == nil:
			err = p.stdin.Close()
		default:
			if _, err = p.stdin.Write(line); err != nil && !errors.Is(err, os.ErrClosed) {
				p.cancel(fmt.Errorf("writing to it: %w", err))
			}
		}
	}
}

// close ends the input and waits for the program's end, which is brought about when
// it does not come.
func (p *process) close() {
	p.send(Frame{Type: TypeEvent, Method: EventSessionShutdown})
	p.queue(nil)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.dead:
	case <-timer.C:
		p.cancel(errors.New("it did not end with its input"))
		<-p.dead
	}
}

// send queues a frame; false when the program has ended or does not read.
func (p *process) send(f Frame) bool {
	line, err := encode(f)
	return err == nil && p.queue(line)
}

func (p *process) queue(line []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		return false
	}
	select {
	case p.out <- line:
		return true
	default:
		p.dropped++
		return false
	}
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v) // ends with a newline
	return b.Bytes(), err
}

// an order is a request to a program.
type order struct {
	method   string
	params   any
	deadline time.Duration
	update   func(json.RawMessage) // may be nil
}

// request asks the program and waits for the answer, ctx, the deadline or the
// program's end. The time in which a dialog of the program is open does not count.
func (p *process) request(ctx context.Context, o order) (json.RawMessage, error) {
	params, err := encode(o.params)
	if err != nil {
		return nil, err
	}
	c := &call{done: make(chan Frame, 1), signal: make(chan struct{}, 1)}
	p.mu.Lock()
	p.last++
	id, begun, paused := p.last, time.Now(), p.pausedSoFar()
	if p.why == nil {
		p.calls[id] = c
	}
	gone := p.why
	p.mu.Unlock()
	if gone != nil {
		return nil, gone
	}
	if !p.send(Frame{Type: TypeRequest, ID: id, Method: o.method, Params: bytes.TrimSuffix(params, []byte("\n"))}) {
		p.abandon(id)
		return nil, errors.New("it does not read its input")
	}
	timer := time.NewTimer(o.deadline)
	defer timer.Stop()
	var resumed <-chan struct{} // not nil while the deadline waits for a dialog
	for {
		select {
		case <-c.signal:
			p.deliver(c, o.update)
		case f, ok := <-c.done:
			p.deliver(c, o.update)
			switch {
			case !ok:
				return nil, p.ending()
			case f.Error != "":
				return nil, errors.New(f.Error)
			}
			return f.Result, nil
		case <-ctx.Done():
			p.abandon(id)
			return nil, context.Cause(ctx)
		case <-timer.C:
			var left time.Duration
			if left, resumed = p.left(begun, paused, o.deadline); resumed != nil {
				continue
			}
			if left <= 0 {
				p.abandon(id)
				return nil, errDeadline
			}
			timer.Reset(left)
		case <-resumed:
			resumed = nil
			timer.Reset(0) // look how much is left
		}
	}
}

// left is how much of a deadline is left; resumed is not nil while a dialog is open.
func (p *process) left(begun time.Time, paused, deadline time.Duration) (time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	worked := time.Since(begun) - (p.pausedSoFar() - paused)
	if p.asks > 0 {
		return deadline - worked, p.resumed
	}
	return deadline - worked, nil
}

// pausedSoFar needs the lock.
func (p *process) pausedSoFar() time.Duration {
	if p.asks > 0 {
		return p.paused + time.Since(p.asked)
	}
	return p.paused
}

// deliver hands out the updates that have come, in the caller's goroutine: the one
// that reads must never wait for the agent, which may wait for another answer.
func (p *process) deliver(c *call, update func(json.RawMessage)) {
	p.mu.Lock()
	updates := c.updates
	c.updates = nil
	p.mu.Unlock()
	for _, u := range updates {
		if update != nil {
			update(u)
		}
	}
}

func (p *process) ending() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// abandon tells the program that nobody waits for an answer. When it does not even
// answer then, it hangs, and is ended.
func (p *process) abandon(id int64) {
	p.send(Frame{Type: TypeCancel, ID: id})
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.calls[id]; c != nil {
		c.timer = time.AfterFunc(patience, func() {
			p.cancel(errors.New("it hung: it did not answer even when the call was cancelled"))
		})
	}
}

// a reader takes the program's output.
type reader struct {
	ctx context.Context
	p   *process
}

func (r reader) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		end := i >= 0
		piece := b
		if end {
			piece, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		p := r.p
		if len(p.partial)+len(piece) > maxLine {
			p.skip, p.partial = true, nil
		}
		if !p.skip {
			p.partial = append(p.partial, piece...)
		}
		if !end {
			continue
		}
		if p.skip {
			p.garbage("a line of more than 32 MiB")
		} else {
			p.line(r.ctx, p.partial)
		}
		p.partial, p.skip = p.partial[:0], false
	}
	return n, nil
}

// line handles one line of the program.
func (p *process) line(ctx context.Context, line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	var f Frame
	if err := json.Unmarshal(line, &f); err != nil || f.Type == "" {
		p.garbage(string(line))
		return
	}
	switch f.Type {
	case TypeReady:
		p.isReady(f.Params)
	case TypeResponse, TypeUpdate:
		p.answered(f)
	case TypeEvent:
		p.peer.said(f.Method, f.Params)
	case TypeRequest:
		p.asking(ctx, f)
	default:
		p.garbage(string(line))
	}
}

func (p *process) isReady(params json.RawMessage) {
	var r Ready
	if err := json.Unmarshal(params, &r); err != nil {
		p.garbage("ready: " + err.Error())
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ready:
	default:
		p.hello = r
		close(p.ready)
	}
}

func (p *process) answered(f Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[f.ID]
	if c == nil {
		return // it was given up
	}
	if f.Type == TypeUpdate {
		c.updates = append(c.updates, f.Params)
		select {
		case c.signal <- struct{}{}:
		default:
		}
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	delete(p.calls, f.ID)
	c.done <- f
}

// asking answers a request of the program. A dialog may take long.
func (p *process) asking(ctx context.Context, f Frame) {
	var q Question
	err := json.Unmarshal(f.Params, &q)
	if f.Method != SayAsk || err != nil {
		p.send(Frame{Type: TypeResponse, ID: f.ID, Error: fmt.Sprintf("request %q: there is only ask, with a question", f.Method)})
		return
	}
	p.dialog(1)
	p.work.Go(func() {
		defer p.dialog(-1)
		result, err := encode(p.peer.ask(ctx, q))
		if err == nil {
			p.send(Frame{Type: TypeResponse, ID: f.ID, Result: bytes.TrimSuffix(result, []byte("\n"))})
		}
	})
}

func (p *process) dialog(change int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asks == 0 {
		p.asked, p.resumed = time.Now(), make(chan struct{})
	}
	if p.asks += change; p.asks == 0 {
		p.paused += time.Since(p.asked)
		close(p.resumed)
	}
}

// garbage reports the first line that is no frame.
func (p *process) garbage(line string) {
	p.mu.Lock()
	first := !p.garbled
	p.garbled = true
	p.mu.Unlock()
	if first {
		if len(line) > maxGarbage {
			line = line[:maxGarbage] + "…"
		}
		p.peer.garbage(line)
	}
}
