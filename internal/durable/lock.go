package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a waiting Lock asks again: flock(2) itself cannot be
// given up when a context ends.
const lockPoll = 5 * time.Millisecond

// ErrLocked says that another process, or another part of this one, holds the lock.
var ErrLocked = errors.New("locked")

// A Held lock belongs to this process until Unlock or the process's end,
// however it ends.
type Held struct {
	file *flock.Flock
}

// Lock waits for the exclusive lock on path, making the file if needed. It
// gives up when ctx ends, with an error that matches ErrLocked and names the
// holder where it is known.
func Lock(ctx context.Context, path string) (*Held, error) {
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := f.TryLockContext(ctx, lockPoll)
	if ok {
		return held(f)
	}
	if ctx.Err() != nil {
		return nil, lockedError(path)
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// TryLock takes the exclusive lock on path or fails at once with an error
// that matches ErrLocked.
func TryLock(path string) (*Held, error) {
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if !ok {
		return nil, lockedError(path)
	}
	return held(f)
}

// Locked reports whether somebody holds the lock on path now. A missing file is
// locked by nobody. Asking takes the lock in shared mode for a moment, so
// whoever wants it should wait a little rather than give up at once.
func Locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// Holder returns the process id that the last holder of the lock wrote, or 0.
// It does not tell whether the lock is still held.
func Holder(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}

// Unlock gives the lock back. The file stays: removing it would let two
// processes lock two files of one name.
func (h *Held) Unlock() error {
	if err := h.file.Unlock(); err != nil {
		return fmt.Errorf("unlocking %s: %w", h.file.Path(), err)
	}
	return nil
}

func held(f *flock.Flock) (*Held, error) {
	// The pid is for people who ask who holds it; the lock itself is flock's.
	if err := os.WriteFile(f.Path(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("marking lock %s: %w", f.Path(), err), f.Unlock())
	}
	return &Held{file: f}, nil
}

func lockedError(path string) error {
	if pid := Holder(path); pid > 0 {
		return fmt.Errorf("%w by process %d (%s)", ErrLocked, pid, path)
	}
	return fmt.Errorf("%w (%s)", ErrLocked, path)
}
