package pty

import (
	"bytes"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const (
	drainQuiet = 200 * time.Millisecond // nothing came for so long after the exit: that was all
	drainLimit = 10 * time.Second       // however much still comes
	fenceLimit = time.Second
	flood      = 2 << 10 // so much at once, and there is more behind it
)

// paneFiles are the terminal of the pane, nil where it has none.
type paneFiles struct{ in, out *os.File }

// A relay carries bytes between the pane's terminal and the inner pty, and
// shows them to the recording and the terminal's counters on their way.
type relay struct {
	paneFiles
	t     *terminal
	rec   *recorder
	enter func(mark int64) // a person pressed Enter

	raw     *term.State
	wakeR   *os.File // readable when the input pump must end
	wakeW   *os.File
	inDone  chan struct{}
	outDone chan struct{}

	closing atomic.Int64 // the child has ended; hard end of reading, unix nanoseconds
	broken  atomic.Bool  // the pane's terminal takes no more output
	fencing atomic.Bool  // look for the answer to the fence, pass nothing on
	fenced  chan struct{}
}

// startRelay puts the pane's terminal into raw mode and begins to relay.
func startRelay(pane paneFiles, t *terminal, rec *recorder, enter func(int64)) (*relay, error) {
	r := &relay{
		paneFiles: pane, t: t, rec: rec, enter: enter,
		inDone: make(chan struct{}), outDone: make(chan struct{}), fenced: make(chan struct{}),
	}
	var err error
	if r.wakeR, r.wakeW, err = os.Pipe(); err != nil {
		return nil, err
	}
	if isTerminal(r.in) {
		if r.raw, err = term.MakeRaw(int(r.in.Fd())); err != nil {
			return nil, errors.Join(err, r.wakeR.Close(), r.wakeW.Close())
		}
	}
	go r.pumpIn()
	go r.pumpOut()
	return r, nil
}

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// size is what the terminal has, 80x24 where there is none.
func (p paneFiles) size() unix.Winsize {
	for _, f := range []*os.File{p.in, p.out} {
		if f == nil {
			continue
		}
		if ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && ws.Col > 0 && ws.Row > 0 {
			return *ws
		}
	}
	return unix.Winsize{Row: 24, Col: 80}
}

// resize gives the child the size of the pane.
func (r *relay) resize() error {
	size := r.size()
	r.rec.resize(int(size.Col), int(size.Row))
	return r.t.resize(size)
}

// pumpOut carries the child's output until nobody can write any more.
func (r *relay) pumpOut() {
	defer close(r.outDone)
	buf := make([]byte, 32<<10)
	for {
		n, err := r.t.master.Read(buf)
		if n > 0 {
			if n >= flood {
				n += r.more(buf[n:])
			}
			r.show(buf[:n])
			r.extend()
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Now().UnixNano() < r.closing.Load() && r.pending() > 0 {
			r.extend()
			continue
		}
		if err != nil {
			return
		}
	}
}

// more reads what is there already: a pty gives at most a page at a time, and
// what follows costs much less in larger pieces.
func (r *relay) more(buf []byte) (n int) {
	_ = control(r.t.master, func(fd int) error {
		for len(buf)-n >= os.Getpagesize() {
			got, err := unix.Read(fd, buf[n:])
			if err != nil || got <= 0 {
				return nil // nothing yet, or the end, which the next read tells
			}
			n += got
		}
		return nil
	})
	return n
}

// show gives output to the pane, the recording and the counters. A pane that
// is gone does not stop the child from being read.
func (r *relay) show(b []byte) {
	if r.out != nil && !r.broken.Load() {
		if _, err := r.out.Write(b); err != nil {
			r.broken.Store(true)
		}
	}
	before := r.rec.offset()
	r.rec.output(b)
	if alternate, cleared, changed := r.t.saw(b); changed {
		screen := mainScreen
		if alternate {
			screen = alternateScreen
		}
		r.rec.shows(screen, cleared, before)
	}
}

// extend moves the deadline while the last output still flows.
func (r *relay) extend() {
	if limit := r.closing.Load(); limit != 0 {
		next := min(time.Now().Add(drainQuiet).UnixNano(), limit)
		_ = r.t.master.SetReadDeadline(time.Unix(0, next))
	}
}

// pending is how much the master still has to give.
func (r *relay) pending() int {
	n := 0
	_ = control(r.t.master, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, readQueue)
		return err
	})
	return n
}

// drain carries what the child left behind. It is called once, after the
// child's end; processes of its own that still hold the terminal are given a
// moment, and no more.
func (r *relay) drain() {
	r.t.slave.Close()
	_ = r.t.master.SetWriteDeadline(time.Now()) // nobody reads any more
	r.closing.Store(time.Now().Add(drainLimit).UnixNano())
	r.extend()
	limit := time.NewTimer(drainLimit + drainQuiet)
	defer limit.Stop()
	select {
	case <-r.outDone:
	case <-limit.C: // the pane's terminal does not take it
		r.broken.Store(true)
	}
}

// fence waits until the pane's terminal has drawn everything: it answers a
// status request (DSR 5) only behind the output before it.
func (r *relay) fence() {
	if r.broken.Load() || !isTerminal(r.in) || !isTerminal(r.out) {
		return
	}
	r.fencing.Store(true)
	if _, err := r.out.WriteString("\x1b[5n"); err != nil {
		return
	}
	limit := time.NewTimer(fenceLimit)
	defer limit.Stop()
	select {
	case <-r.fenced:
	case <-r.inDone:
	case <-limit.C:
	}
}

// close ends the input, restores the pane's terminal and waits.
func (r *relay) close() {
	r.wakeW.Close()
	<-r.inDone
	r.wakeR.Close()
	if r.raw != nil {
		_ = term.Restore(int(r.in.Fd()), r.raw)
	}
	_ = r.t.master.SetDeadline(time.Now())
	if !r.broken.Load() {
		<-r.outDone
	}
}

// pumpIn carries the pane's input. It waits with select(2), because a read on
// a terminal cannot be called off, and a terminal that is made non-blocking is
// so for everybody who has it open.
func (r *relay) pumpIn() {
	defer close(r.inDone)
	if r.in == nil {
		return
	}
	var answer []byte
	buf := make([]byte, 4<<10)
	for r.awaitInput() {
		n, err := unix.Read(int(r.in.Fd()), buf)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		if r.fencing.Load() {
			answer = append(answer, buf[:n]...)
			if bytes.Contains(answer, []byte("\x1b[0n")) {
				close(r.fenced)
				return
			}
			continue
		}
		r.pass(buf[:n])
	}
}

// pass gives the child what came from the pane's terminal.
func (r *relay) pass(b []byte) {
	own := byPerson(b)
	mark := r.t.output.Load()
	if err := r.t.keys(b, own); err != nil {
		return // the child is ending
	}
	if own && pressesEnter(b) {
		r.enter(mark)
	}
}

// awaitInput waits for input; it reports false when the pump must end.
func (r *relay) awaitInput() bool {
	in, wake := int(r.in.Fd()), int(r.wakeR.Fd())
	if in >= unix.FD_SETSIZE || wake >= unix.FD_SETSIZE {
		return false
	}
	for {
		var set unix.FdSet
		set.Set(in)
		set.Set(wake)
		_, err := unix.Select(max(in, wake)+1, &set, nil, nil, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && !set.IsSet(wake)
	}
}
