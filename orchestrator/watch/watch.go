// Package watch tells when files change. It watches the folders that files lie
// in, so that editors that save by renaming are seen, and files, even folders,
// that do not exist yet can be added. What it says is a hint to read the file
// again; it never says what changed.
package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Defaults of Options.
const (
	DefaultDebounce = 3 * time.Millisecond
	DefaultResync   = 30 * time.Second
)

// maxDelay bounds, in debounce times, how long a file that changes all the
// time keeps its event back.
const maxDelay = 10

// ErrClosed says that the watcher has been closed or its context has ended.
var ErrClosed = errors.New("the watcher is closed")

// Options change how a Watcher works. Zero values are the defaults.
type Options struct {
	Debounce time.Duration // how long a file must be quiet before its event
	Resync   time.Duration // how often to say Resync without a cause; negative: never
}

// An Event says that the file at Path, as it was given to Add, may have
// changed, come or gone. With Resync any file may have: Path is empty then.
type Event struct {
	Path   string
	Resync bool
}

// A Watcher watches files until its context ends or Close is called. Its
// methods may be called from several goroutines.
type Watcher struct {
	events   chan Event
	requests chan request
	fs       *fsnotify.Watcher
	cancel   context.CancelFunc
	done     chan struct{}
	closeErr error // of fsnotify; read after done
}

// A request to the loop; it answers on reply.
type request struct {
	path   string
	remove bool
	reply  chan error
}

// New starts a watcher. It fails when the system's limits are reached; the
// error says which and how to raise it.
func New(ctx context.Context, opts Options) (*Watcher, error) {
	if opts.Debounce <= 0 {
		opts.Debounce = DefaultDebounce
	}
	if opts.Resync == 0 {
		opts.Resync = DefaultResync
	}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("starting to watch files: %w", explain(err))
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{events: make(chan Event), requests: make(chan request), fs: fs, cancel: cancel, done: make(chan struct{})}
	l := &loop{w: w, opts: opts, folders: newFolders(fs), pending: newQueue()}
	go func() {
		defer close(w.done)
		defer close(w.events)
		l.run(ctx)
		w.closeErr = fs.Close()
	}()
	return w, nil
}

// Add watches the file at path, which need not exist, nor its folder. Nothing
// is said about its present content: read it after Add. Adding twice is no
// error. The error says when a limit of the system is reached, or ErrClosed.
func (w *Watcher) Add(path string) error { return w.ask(request{path: path}) }

// Remove stops watching path; an event of it may still be on its way.
func (w *Watcher) Remove(path string) error { return w.ask(request{path: path, remove: true}) }

// Events is where changes are told. Several changes of a file while nobody
// receives become one event. It is closed when the watcher ends.
func (w *Watcher) Events() <-chan Event { return w.events }

// Close ends the watcher and waits for it. It may be called twice.
func (w *Watcher) Close() error {
	w.cancel()
	<-w.done
	return w.closeErr
}

func (w *Watcher) ask(r request) error {
	r.reply = make(chan error, 1)
	select {
	case w.requests <- r:
	case <-w.done:
		return fmt.Errorf("watching %s: %w", r.path, ErrClosed)
	}
	var err error
	select {
	case err = <-r.reply:
	case <-w.done:
		err = ErrClosed
	}
	if err != nil {
		return fmt.Errorf("watching %s: %w", r.path, err)
	}
	return nil
}

// A loop is the one goroutine that owns everything a watcher knows.
type loop struct {
	w       *Watcher
	opts    Options
	folders *folders
	pending *queue
}

func (l *loop) run(ctx context.Context) {
	var tick <-chan time.Time
	if l.opts.Resync > 0 {
		ticker := time.NewTicker(l.opts.Resync)
		defer ticker.Stop()
		tick = ticker.C
	}
	quiet := time.NewTimer(time.Hour)
	defer quiet.Stop()
	for {
		now := time.Now()
		out, event := l.pending.next(now, l.w.events)
		if wait, ok := l.pending.wait(now); ok {
			quiet.Reset(wait)
		} else {
			quiet.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case out <- event:
			l.pending.sent(event)
		case <-quiet.C:
		case <-tick:
			l.resync()
		case r := <-l.w.requests:
			r.reply <- l.answer(r)
		case e, ok := <-l.w.fs.Events:
			if !ok {
				return
			}
			l.seen(e)
		case _, ok := <-l.w.fs.Errors: // an overflow, or a watch that broke: nothing is certain then
			if !ok {
				return
			}
			l.resync()
		}
	}
}

// seen turns an event of a folder into events of the files in it.
func (l *loop) seen(e fsnotify.Event) {
	now := time.Now()
	for _, path := range l.folders.affected(e) {
		l.pending.changed(path, now, l.opts.Debounce)
	}
}

// resync says that anything may have changed, and looks for folders that have come.
func (l *loop) resync() {
	l.folders.rearmAll()
	l.pending.resync = true
}

func (l *loop) answer(r request) error {
	if r.remove {
		l.folders.remove(r.path)
		return nil
	}
	return l.folders.add(r.path)
}
