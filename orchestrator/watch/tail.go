package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"muntin/internal/durable"
)

// ErrShrunk says that a log that is followed became shorter than what was read
// of it: it is not the append-only file it was.
var ErrShrunk = errors.New("the log became shorter")

// A Line is one line of a log that is followed.
type Line struct {
	Path string // as given to Add
	Data []byte // without the newline; valid until the function it is given to returns
	Next int64  // byte offset behind the line: where to go on after a restart
	Err  error  // the log cannot be followed any more; Data is empty
}

// A Tail follows append-only JSONL logs: every whole line once, in the order
// of the log. A last line that is still being written waits for its end.
type Tail struct {
	w    *Watcher
	fn   func(Line) error
	add  chan followed
	ctx  context.Context //nolint:containedctx // ends with the Tail itself, which made it
	stop context.CancelFunc
	done chan struct{}

	once sync.Once
	err  error // read after done
}

// A followed log and how far it was read.
type followed struct {
	path string
	from int64
}

// Follow starts to follow logs; Add names them. fn is called for each line,
// from one goroutine, never twice at a time; while it works, nothing is read. An
// error of fn ends the tail. The tail lives until then, until ctx ends, or
// until Close.
func Follow(ctx context.Context, opts Options, fn func(Line) error) (*Tail, error) {
	ctx, stop := context.WithCancel(ctx)
	w, err := New(ctx, opts)
	if err != nil {
		stop()
		return nil, err
	}
	t := &Tail{w: w, fn: fn, add: make(chan followed), ctx: ctx, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		t.err = errors.Join(t.run(), w.Close())
		stop()
	}()
	return t, nil
}

// Add follows the log at path from a byte offset: 0, or a Line.Next of before.
// The log need not exist yet. Adding a log again goes on from the new offset.
// Add does not wait for lines and must not be called from the tail's function.
func (t *Tail) Add(path string, from int64) error {
	if err := t.w.Add(path); err != nil {
		return err
	}
	select {
	case t.add <- followed{path, from}:
		return nil
	case <-t.done:
		return fmt.Errorf("following %s: %w", path, ErrClosed)
	}
}

// Wait returns when the tail has ended: with fn's error, or nil when ctx ended
// or Close was called.
func (t *Tail) Wait() error {
	<-t.done
	return t.err
}

// Close ends the tail, waits for it, and returns what Wait does.
func (t *Tail) Close() error {
	t.once.Do(t.stop)
	return t.Wait()
}

func (t *Tail) run() error {
	logs := map[string]int64{}
	for {
		select {
		case <-t.ctx.Done():
			return nil
		case f := <-t.add:
			logs[f.path] = f.from
			if err := t.read(logs, f.path); err != nil {
				return t.ended(err)
			}
		case e, ok := <-t.w.Events():
			if !ok {
				return nil
			}
			if err := t.event(logs, e); err != nil {
				return t.ended(err)
			}
		}
	}
}

// ended hides the error of a context that ended while lines were read.
func (t *Tail) ended(err error) error {
	if t.ctx.Err() != nil && errors.Is(err, t.ctx.Err()) {
		return nil
	}
	return err
}

func (t *Tail) event(logs map[string]int64, e Event) error {
	if !e.Resync {
		return t.read(logs, e.Path)
	}
	for path := range logs {
		if err := t.read(logs, path); err != nil {
			return err
		}
	}
	return nil
}

// read hands out the lines of a log that are new.
func (t *Tail) read(logs map[string]int64, path string) error {
	from, ok := logs[path]
	if !ok {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.Size() < from {
		return t.fail(logs, path, fmt.Errorf("%w: %s has %d bytes, %d were read", ErrShrunk, path, info.Size(), from))
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t.fail(logs, path, fmt.Errorf("following log: %w", err))
	}
	var stopped error
	next, err := durable.Lines(path, from, func(data []byte, next int64) error {
		if stopped = t.ctx.Err(); stopped == nil {
			stopped = t.fn(Line{Path: path, Data: data, Next: next})
		}
		return stopped
	})
	if stopped != nil {
		return stopped
	}
	if err != nil {
		return t.fail(logs, path, err)
	}
	logs[path] = next
	return nil
}

// fail tells that one log is lost and goes on with the others.
func (t *Tail) fail(logs map[string]int64, path string, err error) error {
	delete(logs, path)
	return t.fn(Line{Path: path, Err: err})
}
