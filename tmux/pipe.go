package tmux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrPiped means: something else has the pane's output piped already.
var ErrPiped = errors.New("the pane's output is piped elsewhere")

// A LostError tells that output was dropped because nobody read it.
type LostError struct{ Bytes int64 }

func (e *LostError) Error() string {
	return fmt.Sprintf("%d bytes of a pane's output were dropped", e.Bytes)
}

const (
	pipeBuffer  = 1 << 20 // bytes held for a reader
	pipeTimeout = 5 * time.Second
	pipeQuiet   = 250 * time.Millisecond // silence after which the sink has nothing left
)

// A Pipe is a copy of what the program in a pane writes. Read may be called by
// one goroutine at a time.
type Pipe struct {
	server *Server
	ref    PaneRef
	dir    string
	file   *os.File
	sink   int           // the process that writes into it
	done   chan struct{} // closed when the copying has ended
	work   sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	more  chan struct{}
	data  []byte
	total int64
	lost  int64
	ended bool
}

// Pipe copies what the program in a pane writes from now on (pipe-pane): unlike
// a View it does not lose the last lines of a program that ends. It is for
// panes that are not ours. A pane has only one pipe; one that is there is left
// alone (ErrPiped). ErrDeadPane; ErrNoSuchPane; ErrStale. ErrNotConnected:
// Connect comes first, as the program's end is an event.
//
// The pane never waits for a reader: of what is not read, one MiB is kept.
func (s *Server) Pipe(ctx context.Context, ref PaneRef) (*Pipe, error) {
	p := &Pipe{server: s, ref: ref, done: make(chan struct{}), more: make(chan struct{}, 1)}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	events, err := s.Events(watching)
	if err == nil {
		err = p.open(ctx)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("piping pane %s: %w", ref.ID, err)
	}
	p.work.Go(p.copy)
	p.work.Go(func() {
		defer cancel()
		p.watch(watching, events)
	})
	return p, nil
}

// watch ends the sink when the program has ended: tmux keeps a dead pane's
// pipe open, and has no command to close it, but it has written all into it
// before it calls the pane dead.
func (p *Pipe) watch(ctx context.Context, events <-chan Event) {
	for p.alive(ctx) {
		if !p.concerned(events) {
			return
		}
	}
	tick := time.NewTicker(pipeQuiet)
	defer tick.Stop()
	for {
		before := p.came()
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		if p.came() == before && !busy(p.sink) {
			p.endSink()
			return
		}
	}
}

// concerned waits for an event that may be about the pane. It is false when
// the copying has ended, or none will come: the pipe goes with the server.
func (p *Pipe) concerned(events <-chan Event) bool {
	for {
		select {
		case <-p.done:
			return false
		case e, ok := <-events:
			if !ok || e.Kind == EventResync || e.Pane.Ref == p.ref {
				return ok
			}
		}
	}
}

// came is how many bytes have come so far.
func (p *Pipe) came() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// busy reports whether a process has something to do, where /proc tells
// (proc_pid_stat(5)).
func busy(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "R") || strings.HasPrefix(rest, "D")
}

// endSink ends the process at the other end, and with it the pane's pipe. It
// lives as long as nobody has seen the end of the file.
func (p *Pipe) endSink() {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(p.sink, syscall.SIGTERM) // it may end this moment by itself
	}
}

// alive reports whether the program runs, as far as one can tell.
func (p *Pipe) alive(ctx context.Context) bool {
	sn, err := p.server.Snapshot(ctx)
	if err != nil {
		return true
	}
	pane, err := sn.Pane(p.ref)
	return err == nil && !pane.Dead
}

// open makes a named pipe and has the pane's output written into it.
func (p *Pipe) open(ctx context.Context) (err error) {
	if p.dir, err = os.MkdirTemp("", "muntin-pipe-"); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		if p.file != nil {
			err = errors.Join(err, p.file.Close())
		}
		err = errors.Join(err, os.RemoveAll(p.dir))
	}()
	path := filepath.Join(p.dir, "out")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return fmt.Errorf("making a named pipe: %w", err)
	}
	if p.file, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return err
	}
	// Until a writer has come, reading would show the end of the file: we are
	// the writer for so long.
	first, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer first.Close()
	if err := p.attach(ctx, path); err != nil {
		return err
	}
	return p.greeted(ctx)
}

// attach has tmux start the sink, unless the pane has a pipe.
func (p *Pipe) attach(ctx context.Context, path string) error {
	at := string(p.ref.ID)
	// The only shell there is: tmux hands the words of pipe-pane to one.
	sink := "exec >" + shellQuote(path) + "; echo $$; exec cat"
	pipe, err := line(Cmd{"pipe-pane", "-O", "-t", at, "--", strings.ReplaceAll(strings.ReplaceAll(sink, "#", "##"), "%", "%%")})
	if err != nil {
		return err
	}
	refuse, err := line(Cmd{"display-message", "-p", "-t", at, refused + "#{?pane_dead,dead,piped}"})
	if err != nil {
		return err
	}
	replies, err := p.server.onPane(ctx, p.ref, Cmd{"if-shell", "-F", "-t", at, "#{||:#{pane_dead},#{pane_pipe}}", refuse, pipe})
	if err != nil {
		return err
	}
	return refusal(replies[0])
}

// greeted waits for the line with its process id that the sink sends first.
func (p *Pipe) greeted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pipeTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var word []byte
	var b [1]byte
	for {
		if _, err := p.file.Read(b[:]); err != nil {
			return fmt.Errorf("waiting for the pipe's other end: %w", err)
		}
		if b[0] == '\n' {
			break
		}
		word = append(word, b[0])
	}
	var err error
	if p.sink, err = strconv.Atoi(string(word)); err != nil || p.sink <= 1 {
		return fmt.Errorf("the pipe's other end greets with %q: %w", word, errReply)
	}
	return nil
}

// copy takes what comes until the other end is closed.
func (p *Pipe) copy() {
	defer close(p.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := p.file.Read(buf)
		p.mu.Lock()
		p.data = append(p.data, buf[:n]...)
		p.total += int64(n)
		if over := len(p.data) - pipeBuffer; over > 0 {
			p.lost += int64(over)
			p.data = append(p.data[:0], p.data[over:]...)
		}
		p.ended = err != nil
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// Read waits for output. A *LostError says once how much was dropped before
// what comes next. io.EOF: the pane is gone, its pipe was closed or replaced.
func (p *Pipe) Read(b []byte) (int, error) {
	for {
		p.mu.Lock()
		lost, ended := p.lost, p.ended
		p.lost = 0
		n := 0
		if lost == 0 {
			n = copy(b, p.data)
			p.data = append(p.data[:0], p.data[n:]...)
		}
		p.mu.Unlock()
		switch {
		case lost > 0:
			return 0, &LostError{Bytes: lost}
		case n > 0 || len(b) == 0:
			return n, nil
		case ended:
			return 0, io.EOF
		}
		select {
		case <-p.more:
		case <-p.done:
		}
	}
}

// Close ends the copying. What was not read yet can still be.
func (p *Pipe) Close() error {
	p.endSink()
	_ = p.file.SetReadDeadline(time.Now().Add(pipeTimeout)) // should the sink not end
	p.work.Wait()
	return errors.Join(p.file.Close(), os.RemoveAll(p.dir))
}

// shellQuote makes one word of sh(1) of a path.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
