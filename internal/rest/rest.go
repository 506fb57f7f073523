// Package rest stops Bubble Tea's renderer while a program has nothing to draw,
// so that a program at rest does not wake up.
package rest

import (
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	tea "charm.land/bubbletea/v2"
)

// Bubble Tea's renderer wakes up 60 times a second for as long as a program
// runs, whether there is something to draw or not: at rest that is all that a
// program of ours would do. Its ticker cannot be reached by its API. Until
// https://github.com/charmbracelet/bubbletea/pull/1796 (or 1776) is in a
// release, we stop the ticker ourselves when nothing has happened for a while,
// and start it again with the next message. If the field is not there, or of
// another type, nothing is stopped and only the rest is lost.
const (
	frameTime = time.Second / 60
	restAfter = 250 * time.Millisecond
)

// A Pause stops a program's renderer while it has nothing to draw.
type Pause struct {
	program *tea.Program
	out     *Output

	mu     sync.Mutex // guards the fields below
	ticker *time.Ticker
	timer  *time.Timer
	last   time.Time // when something happened
	closed bool
}

// New makes the pause of a program that writes to out; nil when what it writes is
// never slow. Nothing is stopped before the first Wake.
func New(p *tea.Program, out *Output) *Pause { return &Pause{program: p, out: out} }

// Wake lets the renderer run until nothing has happened for restAfter. It is
// called from the program's own goroutine, after the renderer was started.
func (p *Pause) Wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	if p.timer != nil {
		p.ticker.Reset(frameTime)
		p.timer.Reset(restAfter)
		return
	}
	if p.ticker = rendererTicker(p.program); p.ticker != nil {
		p.timer = time.AfterFunc(restAfter, p.rest)
	}
}

// rest stops the renderer, unless something happened or is being written.
func (p *Pause) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if quiet := time.Since(p.last); quiet < restAfter || p.out != nil && p.out.writing.Load() > 0 {
		p.timer.Reset(max(restAfter-quiet, frameTime))
		return
	}
	p.ticker.Stop()
}

// Close ends it. The program stops its ticker itself.
func (p *Pause) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// rendererTicker returns the ticker of a running program's renderer, or nil.
func rendererTicker(p *tea.Program) *time.Ticker {
	field := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*time.Ticker]() {
		return nil
	}
	ticker := (**time.Ticker)(unsafe.Pointer(field.UnsafeAddr())) //nolint:gosec // see the top of the file
	return *ticker
}

// An Output is the terminal, and knows when somebody is writing to it: a slow
// terminal must not be taken for rest.
type Output struct {
	*os.File
	writing atomic.Int32
}

// Write writes to the terminal.
func (o *Output) Write(b []byte) (int, error) {
	o.writing.Add(1)
	defer o.writing.Add(-1)
	return o.File.Write(b)
}
