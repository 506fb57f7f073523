package wire

import (
	"context"
	"fmt"
	"sync"
	"time"

	"muntin/agent/llm"
)

// a watchdog cancels a request that has been silent for too long.
type watchdog struct {
	cancel context.CancelCauseFunc

	mu      sync.Mutex // guards all below
	timer   *time.Timer
	what    string
	limit   time.Duration
	stopped bool
}

// set starts a new wait. A limit below 0 waits for ever.
func (w *watchdog) set(what string, limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.what, w.limit = what, limit
	if limit < 0 || w.stopped {
		return
	}
	w.timer = time.AfterFunc(limit, func() {
		w.cancel(&llm.Error{Class: llm.ClassRetryable, Message: fmt.Sprintf("%s for %s", what, limit)})
	})
}

// alive begins the wait anew; it costs little when it is the same wait.
func (w *watchdog) alive(what string, limit time.Duration) {
	w.mu.Lock()
	same := w.timer != nil && w.what == what && w.limit == limit
	if same {
		w.timer.Reset(limit)
	}
	w.mu.Unlock()
	if !same {
		w.set(what, limit)
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
