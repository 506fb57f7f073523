package tmux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrPiped: something else has the pane's output piped already.
var ErrPiped = errors.New("the pane's output is piped elsewhere")

// A LostError tells that output was dropped because nobody read it.
type LostError struct{ Bytes int64 }

func (e *LostError) Error() string {
	return fmt.Sprintf("%d bytes of a pane's output were dropped", e.Bytes)
}

const (
	pipeBuffer  = 1 << 20 // bytes held for a reader
	pipeTimeout = 5 * time.Second
)

// A Pipe is a copy of what the program in a pane writes. Read may be called by
// one goroutine at a time.
type Pipe struct {
	server *Server
	ref    PaneRef
	dir    string
	file   *os.File
	done   chan struct{} // closed when the copying has ended

	mu    sync.Mutex // guards the fields below
	more  chan struct{}
	data  []byte
	lost  int64
	ended bool
}

// Pipe copies what the program in a pane writes from now on (pipe-pane): unlike
// a View it does not lose the last lines of a program that ends. It is for
// panes that are not ours. A pane has only one pipe; one that is there is left
// alone (ErrPiped). ErrDeadPane; ErrNoSuchPane; ErrStale.
//
// The pane never waits for a reader: of what is not read, one MiB is kept.
func (s *Server) Pipe(ctx context.Context, ref PaneRef) (*Pipe, error) {
	p := &Pipe{server: s, ref: ref, done: make(chan struct{}), more: make(chan struct{}, 1)}
	if err := p.open(ctx); err != nil {
		return nil, fmt.Errorf("piping pane %s: %w", ref.ID, err)
	}
	go p.copy()
	return p, nil
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
	sink := "exec >" + shellQuote(path) + "; echo; exec cat"
	pipe, err := line(Cmd{"pipe-pane", "-O", "-t", at, "--", strings.ReplaceAll(strings.ReplaceAll(sink, "#", "##"), "%", "%%")})
	if err != nil {
		return err
	}
	refuse, err := line(Cmd{"display-message", "-p", "-t", at, "#{?pane_dead,dead,piped}"})
	if err != nil {
		return err
	}
	replies, err := p.server.onPane(ctx, p.ref, Cmd{"if-shell", "-F", "-t", at, "#{||:#{pane_dead},#{pane_pipe}}", refuse, pipe})
	switch {
	case err != nil:
		return err
	case replies[0] == "piped":
		return ErrPiped
	}
	return refusal(replies[0])
}

// greeted waits for the line feed that the sink sends first.
func (p *Pipe) greeted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pipeTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var hello [1]byte
	if _, err := io.ReadFull(p.file, hello[:]); err != nil {
		return errors.Join(fmt.Errorf("waiting for the pipe's other end: %w", err), p.detach(context.WithoutCancel(ctx)))
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

// Close ends the copying, if the pane's pipe is still this one.
func (p *Pipe) Close(ctx context.Context) error {
	var err error
	select {
	case <-p.done: // somebody else has ended it
	default:
		err = p.detach(ctx)
		_ = p.file.SetReadDeadline(time.Unix(1, 0))
		<-p.done
	}
	return errors.Join(err, p.file.Close(), os.RemoveAll(p.dir))
}

func (p *Pipe) detach(ctx context.Context) error {
	_, err := p.server.onPane(ctx, p.ref, Cmd{"pipe-pane", "-t", string(p.ref.ID)})
	for _, gone := range []error{ErrNoSuchPane, ErrNoServer, ErrStale} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}

// shellQuote makes one word of sh(1) of a path.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
