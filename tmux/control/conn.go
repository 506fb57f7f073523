package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	readBuffer  = 256 << 10
	longestLine = 64 << 20         // bytes; more than a whole history with its escapes
	inFlight    = 1024             // requests; more wait for their turn
	watchdog    = 10 * time.Second // silence after which the server is asked, and given up
	endGrace    = 2 * time.Second  // for the client process to end by itself
	keepStderr  = 4 << 10
)

// Options say how to attach.
type Options struct {
	Argv   []string // tmux and its global options: tmux, -u, -S, path
	Target string   // the session to attach to: "$1"; "": the one tmux picks
	// Flags of the client (tmux(1), attach-session -f). A client for commands
	// wants "no-output" and "ignore-size"; one for output "ignore-size" and
	// "pause-after=1". Without one of no-output and pause-after, a client that
	// is not read stalls the programs in all panes.
	Flags []string
	Env   []string // nil: this process's
	Dir   string
	Queue int           // events held for a reader; 0: 1024
	Watch time.Duration // silence after which the server is asked; 0: 10 s

	shared bool // the events are a Client's
}

var errClosed = errors.New("closed")

// A Conn is one control-mode client, attached until it ends. Its methods may
// be called by several goroutines at once.
type Conn struct {
	opts   Options
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *tail
	word   string // begins every marker
	events *queue
	slots  chan struct{} // one a request under way
	wake   chan struct{} // there is something to write
	ready  chan struct{} // closed when the attach was answered
	down   chan struct{} // closed when no more replies come
	ended  chan struct{} // closed when the process and the goroutines are gone
	frames framer

	mu       sync.Mutex // guards the fields below
	out      []byte     // not yet written
	writing  bool       // the writer is at work on an earlier part
	flight   []*request // sent and not yet popped, oldest first
	seq      uint64
	err      error // why the connection ended
	attached string
	heard    time.Time
	stats    Stats
}

// Dial attaches a client and returns when the server has answered. It never
// starts a server. An *Error holds what tmux said when it refused. ctx limits
// the dialling only; Close ends the connection.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	return dial(ctx, o, newQueue(o.Queue))
}

func dial(ctx context.Context, o Options, events *queue) (*Conn, error) {
	c := &Conn{
		opts: o, word: "muntin-" + rand.Text() + "-", events: events, stderr: &tail{},
		slots: make(chan struct{}, inFlight), wake: make(chan struct{}, 1),
		ready: make(chan struct{}), down: make(chan struct{}), ended: make(chan struct{}), heard: time.Now(),
	}
	if c.opts.Watch <= 0 {
		c.opts.Watch = watchdog
	}
	c.frames = framer{word: c.word, onBlock: c.onBlock, onLine: c.onLine}
	if err := c.start(); err != nil {
		return nil, err
	}
	// Before 3.4 the server may run commands before the attach is done: they
	// wait for its answer.
	select {
	case <-c.ready:
	case <-c.down:
	case <-ctx.Done():
		_ = c.Close() // never attached
		return nil, fmt.Errorf("attaching to tmux: %w", context.Cause(ctx))
	}
	if err := c.refused(); err != nil {
		_ = c.Close() // the refusal says more
		return nil, err
	}
	return c, nil
}

// start starts the client process on pipes of its own, which the server will
// read and write itself.
func (c *Conn) start() error {
	args := append(c.opts.Argv[1:len(c.opts.Argv):len(c.opts.Argv)], "-N", "-C", "attach-session", "-E")
	if len(c.opts.Flags) > 0 {
		args = append(args, "-f", strings.Join(c.opts.Flags, ","))
	}
	if c.opts.Target != "" {
		args = append(args, "-t", c.opts.Target)
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("attaching to tmux: %w", err)
	}
	defer in.Close()
	stdout, out, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("attaching to tmux: %w", err), stdin.Close())
	}
	defer out.Close()
	c.stdin, c.stdout = stdin, stdout
	c.cmd = exec.Command(c.opts.Argv[0], args...)
	c.cmd.Env, c.cmd.Dir = c.opts.Env, c.opts.Dir
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = in, out, c.stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.cmd.WaitDelay = endGrace
	if err := c.cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("attaching to tmux: %w", err), stdin.Close(), stdout.Close())
	}
	var work sync.WaitGroup
	work.Go(c.read)
	work.Go(c.write)
	work.Go(c.watch)
	go func() {
		<-c.down
		stdin.Close()
		kill := time.AfterFunc(endGrace, func() { _ = c.cmd.Process.Kill() })
		_ = c.cmd.Wait() // what it said is in stderr
		kill.Stop()
		work.Wait()
		stdout.Close()
		close(c.ended)
	}()
	return nil
}

// refused is what tmux said if it did not attach.
func (c *Conn) refused() error {
	select {
	case <-c.down:
		<-c.ended // stderr is complete
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.attached
	if text == "" && c.err != nil {
		if text = strings.TrimSpace(c.stderr.String()); text == "" {
			text = c.err.Error()
		}
	}
	if text == "" {
		return nil
	}
	return &Error{Command: "attach-session", Text: text}
}

// Events is the queue of what the server tells. It is closed after the
// connection's end (unless a Client owns it).
func (c *Conn) Events() <-chan Event { return c.events.ch }

// Down is closed when the connection has ended; Err then says why.
func (c *Conn) Down() <-chan struct{} { return c.down }

// Err is why the connection ended, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Stats counts oddities so far.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// PID is that of the client process.
func (c *Conn) PID() int { return c.cmd.Process.Pid }

// Do carries out a list of commands in one step and returns one reply for each
// that was carried out, without its last line feed. The first that fails ends
// the list, with an *Error. A command that runs others (if-shell) can fail
// inside: then all replies come back with the *Error.
//
// A command that waits (wait-for, run-shell without -b) holds up all others of
// this connection. When ctx ends the commands are still carried out, and their
// replies dropped. ErrDown: nothing was sent. ErrLost: the outcome is unknown.
func (c *Conn) Do(ctx context.Context, cmds ...Cmd) ([]string, error) {
	if len(cmds) == 0 {
		return nil, nil
	}
	r := &request{cmds: cmds, done: make(chan struct{})}
	if err := c.send(ctx, r); err != nil {
		return nil, err
	}
	select {
	case <-r.done:
		return r.replies, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("tmux %s: %w", cmds[0][0], context.Cause(ctx))
	}
}

// Queue is Do whose replies come as a Reply event with this tag, in order with
// the output and the notifications around them.
func (c *Conn) Queue(ctx context.Context, tag int, cmds ...Cmd) error {
	return c.send(ctx, &request{cmds: cmds, tag: tag, queued: true, done: make(chan struct{})})
}

func (c *Conn) send(ctx context.Context, r *request) error {
	select {
	case c.slots <- struct{}{}:
	case <-c.down:
		return ErrDown
	case <-ctx.Done():
		return fmt.Errorf("tmux %s: %w", r.cmds[0][0], context.Cause(ctx))
	}
	err := c.enqueue(r)
	if err != nil {
		<-c.slots
	}
	return err
}

func (c *Conn) enqueue(r *request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return ErrDown
	}
	r.seq = c.seq + 1
	script, err := r.script(c.word)
	if err != nil {
		return err
	}
	c.seq++
	c.out = append(c.out, script...)
	c.flight = append(c.flight, r)
	if c.writeNow(); len(c.out) == 0 {
		return nil
	}
	select {
	case c.wake <- struct{}{}:
	default: // the writer will look already
	}
	return nil
}

// writeNow writes what the pipe takes at once, which saves a switch of
// goroutines a command. What is left is the writer's. It needs the lock.
func (c *Conn) writeNow() {
	select {
	case <-c.ready:
	default:
		return // see write
	}
	if c.writing {
		return
	}
	raw, err := c.stdin.SyscallConn()
	if err != nil {
		return
	}
	n := 0
	if err := raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), c.out) // an error is the writer's to see
		return true
	}); err == nil && n > 0 {
		c.out = c.out[:copy(c.out, c.out[n:])]
	}
}

// write writes what has gathered since the last write, all at once.
func (c *Conn) write() {
	select {
	case <-c.ready:
	case <-c.down:
		return
	}
	var spare []byte
	for {
		select {
		case <-c.wake:
		case <-c.down:
			return
		}
		c.mu.Lock()
		batch := c.out
		c.out = spare[:0]
		c.writing = true
		c.mu.Unlock()
		_, err := c.stdin.Write(batch)
		c.mu.Lock()
		c.writing = false
		more := len(c.out) > 0
		c.mu.Unlock()
		if err != nil {
			c.fail(fmt.Errorf("writing to tmux: %w", err))
			return
		}
		if more {
			select {
			case c.wake <- struct{}{}:
			default:
			}
		}
		spare = batch
		if cap(spare) > readBuffer {
			spare = nil
		}
	}
}

// watch asks a silent server whether it is there, and gives up when it does
// not answer.
func (c *Conn) watch() {
	tick := time.NewTicker(c.opts.Watch)
	defer tick.Stop()
	asked := false
	for {
		select {
		case <-c.down:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		silent := time.Since(c.heard) >= c.opts.Watch
		waiting := len(c.flight) > 0
		c.mu.Unlock()
		switch {
		case !silent:
			asked = false
		case asked && waiting:
			c.fail(ErrStalled)
			return
		case waiting: // for the reply to what was sent
			asked = true
		default:
			asked = true
			_ = c.enqueueProbe()
		}
	}
}

func (c *Conn) enqueueProbe() error {
	r := &request{cmds: []Cmd{{"display-message", "-p", ""}}, done: make(chan struct{})}
	select {
	case c.slots <- struct{}{}:
	default:
		return nil // there are requests under way
	}
	err := c.enqueue(r)
	if err != nil {
		<-c.slots
	}
	return err
}

// fail ends the connection from our side; the reader then ends it for all.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	_ = c.stdout.SetReadDeadline(time.Unix(1, 0)) // wakes the reader
}

// Close detaches the client and waits until it is gone. Commands under way end
// with ErrLost. The panes and the server are left as they are.
func (c *Conn) Close() error {
	c.fail(errClosed)
	<-c.ended
	return nil
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-keepStderr):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
