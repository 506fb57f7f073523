package pty

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	creack "github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// A terminal is the inner pty and what is known of it from the bytes that went
// through. Everything that goes to the child goes through write.
type terminal struct {
	master *os.File // not blocking, so that deadlines work
	slave  *os.File // kept open to ask for what is unread

	mu sync.Mutex // one writer at a time: keystrokes and pastes never mix

	base    time.Time
	output  atomic.Int64 // bytes from the child so far
	lastOut atomic.Int64 // when, since base; 0: none yet
	lastKey atomic.Int64 // a person's last key, since base; 0: none yet
	wake    atomic.Bool  // tell of the next output
	onWake  func()
	onSent  func() // a person's text is not there any more
	scan    scanner

	dmu   sync.Mutex // guards draft
	draft draft
}

// openTerminal makes a pty of that size. No child has it yet.
func openTerminal(size unix.Winsize) (*terminal, error) {
	m, s, err := creack.Open()
	if err != nil {
		return nil, err
	}
	// creack/pty's descriptor may be a blocking one, on which no read can be
	// given a deadline; a non-blocking copy of it can.
	fd, err := unix.FcntlInt(m.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	m.Close()
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	t := &terminal{master: os.NewFile(uintptr(fd), "ptmx"), slave: s, base: time.Now(), onWake: func() {}, onSent: func() {}}
	unix.CloseOnExec(int(s.Fd()))
	if err := t.resize(size); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *terminal) close() {
	t.master.Close()
	t.slave.Close()
}

func (t *terminal) resize(size unix.Winsize) error {
	return control(t.master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size)
	})
}

// foreground is the terminal's foreground process group, 0 if unknown.
func (t *terminal) foreground() int {
	pgrp := 0
	_ = control(t.master, func(fd int) (err error) {
		pgrp, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return pgrp
}

// unread is how many bytes the child has not read yet. What was written passes
// through a queue of the kernel, in which it is not counted; Linux empties that
// queue when it is asked whether there is something to read (n_tty_poll), so
// that a zero behind that question is a proof.
func (t *terminal) unread() int {
	n := 0
	_ = control(t.slave, func(fd int) (err error) {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // a descriptor
		n, err = unix.IoctlGetInt(fd, readQueue)
		return err
	})
	return n
}

// lineMode reports whether the terminal collects whole lines (ICANON).
func (t *terminal) lineMode() bool {
	on := false
	_ = control(t.slave, func(fd int) error {
		tio, err := unix.IoctlGetTermios(fd, getTermios)
		on = err == nil && tio.Lflag&unix.ICANON != 0
		return err
	})
	return on
}

// saw takes note of output of the child, and reports whether it changed
// something about the screen as a whole: which one is shown, and if it was
// emptied.
func (t *terminal) saw(b []byte) (alternate, cleared, changed bool) {
	fresh, before := t.scan.fresh.Load(), t.scan.altScr.Load()
	t.scan.feed(b)
	t.lastOut.Store(int64(time.Since(t.base)) | 1)
	t.output.Add(int64(len(b)))
	if t.wake.CompareAndSwap(true, false) {
		t.onWake()
	}
	alternate, cleared = t.scan.altScr.Load(), t.scan.fresh.Load() != fresh
	return alternate, cleared, cleared || alternate != before
}

// still is for how long there was no output: since the last, or since the
// terminal was made.
func (t *terminal) still() time.Duration {
	return time.Since(t.base) - time.Duration(t.lastOut.Load())
}

// typed is for how long no person has typed; hours if none ever did.
func (t *terminal) typed() time.Duration {
	last := t.lastKey.Load()
	if last == 0 {
		return 24 * time.Hour
	}
	return time.Since(t.base) - time.Duration(last)
}

// keys gives the child what came from the pane's own terminal.
func (t *terminal) keys(b []byte, byPerson bool) error {
	if byPerson {
		t.lastKey.Store(int64(time.Since(t.base)) | 1)
		t.drafted(b)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.master.Write(b)
	return err
}

func (t *terminal) drafted(keys []byte) {
	t.dmu.Lock()
	had := t.draft.n > 0
	t.draft.feed(keys)
	sent := had && t.draft.n == 0
	t.dmu.Unlock()
	if sent {
		t.onSent()
	}
}

// undraft says that no text of a person's can stand in the program any more.
func (t *terminal) undraft() {
	t.dmu.Lock()
	defer t.dmu.Unlock()
	t.draft.n = 0
}

// A guard says for how long a person's keys keep messages out.
type guard struct{ keys, draft time.Duration }

// guarded says why nothing must be typed now, and how long to wait before it
// is asked again; nil if nobody is in the way.
func (t *terminal) guarded(g guard) (again time.Duration, why error) {
	typed := t.typed()
	if typed < g.keys {
		return g.keys - typed, errTyping
	}
	t.dmu.Lock()
	defer t.dmu.Unlock()
	if t.draft.n > 0 && typed < g.draft {
		return g.draft - typed, errDraft
	}
	return 0, nil
}

// A pasting is what to paste and how.
type pasting struct {
	text   []byte        // made by pasteBytes
	submit []byte        // the key after it
	delay  time.Duration // between the two
	guard  guard         // not while a person is in the way
	before func() error  // called when nothing can stop the paste any more, before its first byte
}

// A pasted is what became of it.
type pasted struct {
	mark int64 // output count when the submit key was written
	read bool  // the child has read it all
}

// stallLimit is how long a child that does not read may keep a person's keys
// waiting behind a paste.
const stallLimit = 2 * time.Second

// paste types the text and the submit key as one block. It waits for the child
// to read: before, so that the text does not go to something that was typed
// ahead; between text and key; and after. It ends early with ctx.
func (t *terminal) paste(ctx context.Context, p pasting) (pasted, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitReadLocked(ctx); err != nil {
		return pasted{}, err
	}
	if _, why := t.guarded(p.guard); why != nil {
		return pasted{}, why
	}
	if err := p.before(); err != nil {
		return pasted{}, err
	}
	if _, err := t.master.Write(p.text); err != nil {
		return pasted{}, err
	}
	if err := t.waitReadLocked(ctx); err != nil {
		return pasted{}, err
	}
	if err := wait(ctx, p.delay); err != nil {
		return pasted{}, err
	}
	done := pasted{mark: t.output.Load()}
	if _, err := t.master.Write(p.submit); err != nil {
		return pasted{}, err
	}
	done.read = t.waitRead(ctx, stallLimit) == nil
	return done, nil
}

// press types keys at once, without waiting for anything.
func (t *terminal) press(keys []byte) (pasted, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := pasted{mark: t.output.Load()}
	_, err := t.master.Write(keys)
	return done, err
}

// waitReadLocked waits like waitRead, with mu held. A child that stalls gets a
// person's keys (an interrupt, perhaps) in between.
func (t *terminal) waitReadLocked(ctx context.Context) error {
	err := t.waitRead(ctx, stallLimit)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	t.mu.Unlock()
	err = t.waitRead(ctx, 0)
	t.mu.Lock()
	return err
}

// waitRead waits until the child has read everything, at most limit (0: as
// long as ctx lasts).
func (t *terminal) waitRead(ctx context.Context, limit time.Duration) error {
	const shortest, longest = 50 * time.Microsecond, 20 * time.Millisecond
	start := time.Now()
	for pause := shortest; t.unread() > 0; pause = min(pause+pause/2, longest) {
		if limit > 0 && time.Since(start) > limit {
			return os.ErrDeadlineExceeded
		}
		if err := nap(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// nap is wait for times that a timer of Go's is too coarse for: in a process
// that is at rest none ends in less than a millisecond.
func nap(ctx context.Context, d time.Duration) error {
	if d > 2*time.Millisecond {
		return wait(ctx, d)
	}
	limit := unix.NsecToTimeval(int64(d))
	_, _ = unix.Select(0, nil, nil, nil, &limit) // a signal may end it early
	return ctx.Err()
}

// wait pauses for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// control runs an ioctl on the file without giving up its non-blocking mode,
// as Fd would.
func control(f *os.File, fn func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = fn(int(fd)) }); err != nil {
		return err
	}
	return os.NewSyscallError("ioctl", inner)
}
