package extension

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"muntin/internal/term"
)

const (
	maxCrashes  = 3 // within crashWindow, before an extension is given up
	crashWindow = time.Minute
	maxPending  = 256 // events that wait for a start
	slow        = time.Second
	maxLog      = 1 << 20 // bytes, from which on a log is set aside at a start
)

// a runner keeps one extension's program running while it is needed.
type runner struct {
	host  *Host
	ext   Extension
	flags map[string]any
	turn  chan struct{} // holds one while a program is being started

	mu       sync.Mutex // guards all below
	process  *process   // nil: not started, or ended
	crashes  []time.Time
	broken   error // given up
	pending  []Frame
	starting bool // a goroutine starts the program for the pending events
	lagging  bool // it was told that events are missed
	slowSaid bool
	closed   bool
}

// running gives the program, starting it if needed.
func (r *runner) running(ctx context.Context) (*process, error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	p, broken, closed := r.process, r.broken, r.closed
	r.mu.Unlock()
	switch {
	case closed:
		return nil, errors.New("it was closed")
	case p != nil:
		return p, nil
	case broken != nil:
		return nil, broken
	}
	p, err := r.start(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.crashed(err)
		}
		return nil, fmt.Errorf("starting it: %w", err)
	}
	r.mu.Lock()
	if lost := p.lost; lost != nil {
		r.mu.Unlock()
		r.crashed(lost)
		return nil, lost
	}
	defer r.mu.Unlock()
	r.process = p
	for _, f := range r.pending {
		p.send(f)
	}
	r.pending = nil
	return p, nil
}

// start starts the program and waits until it is ready.
func (r *runner) start(ctx context.Context) (*process, error) {
	o := r.host.opts
	state := StateDir(o.State, r.ext.Name)
	if err := os.MkdirAll(filepath.Join(state, "tmp"), 0o700); err != nil {
		return nil, err
	}
	l, err := r.launch(ctx, state)
	if err != nil {
		return nil, err
	}
	log, err := openLog(LogFile(o.State, r.ext.Name))
	if err != nil {
		return nil, err
	}
	last := &lastLine{to: log}
	l.stderr = last
	p, err := start(r.host.ctx, &r.host.work, l, peering{r, last, log}) //nolint:contextcheck // the program outlives the call
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	to := r.host.attached()
	hello, err := encode(Hello{
		Protocol: Protocol, Version: o.Version, Name: r.ext.Name, Dir: o.Dir, State: state, Session: to.Session,
		Mode: o.Mode, Dialogs: to.UI != nil, Flags: r.flags,
	})
	if err != nil {
		return nil, err
	}
	p.send(Frame{Type: TypeHello, Params: hello[:len(hello)-1]})
	return p, r.await(ctx, p)
}

// await waits for ready. A program that does not get there is ended.
func (r *runner) await(ctx context.Context, p *process) error {
	timer := time.NewTimer(r.ext.Start.or(DefaultStart))
	defer timer.Stop()
	var err error
	select {
	case <-p.ready:
		if p.hello.Protocol == Protocol {
			return nil
		}
		err = fmt.Errorf("it speaks protocol %d, not %d", p.hello.Protocol, Protocol)
	case <-p.dead:
		r.mu.Lock()
		defer r.mu.Unlock()
		return p.lost
	case <-timer.C:
		err = fmt.Errorf("it was not ready within %s", r.ext.Start.or(DefaultStart))
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.cancel(err)
	<-p.dead
	return err
}

// launch is how the program is started.
func (r *runner) launch(ctx context.Context, state string) (launch, error) {
	o, perm := r.host.opts, r.ext.Permissions
	argv := r.ext.Argv()
	l := launch{argv: argv, dir: r.ext.Dir, env: o.Env}
	tmp := filepath.Join(state, "tmp")
	if perm != nil {
		l.env = pick(o.AllEnv, append([]string{"PATH", "HOME", "LANG", "LC_ALL", "TZ"}, perm.Env...))
	}
	l.env = append(l.env[:len(l.env):len(l.env)], "TMPDIR="+tmp)
	if perm == nil || o.Confine == nil {
		return l, nil
	}
	var err error
	l.argv, err = o.Confine(ctx, Confinement{
		Argv: argv, Permission: *perm, Dir: o.Dir, Home: r.ext.Dir, Writable: []string{state}, Env: l.env,
	})
	return l, err
}

// Argv is the program's command, with what lies in its folder by full path.
func (e Extension) Argv() []string {
	argv := append([]string(nil), e.Command...)
	for i, a := range argv {
		if strings.HasPrefix(a, "./") {
			argv[i] = filepath.Join(e.Dir, a)
		}
	}
	return argv
}

func pick(env, names []string) []string {
	var picked []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		for _, n := range names {
			if n == name {
				picked = append(picked, kv)
				break
			}
		}
	}
	return picked
}

// request makes one request, starting the program if needed.
func (r *runner) request(ctx context.Context, o order) (json.RawMessage, error) {
	p, err := r.running(ctx)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	res, err := p.request(ctx, o)
	if errors.Is(err, errDeadline) {
		r.host.notify(r.ext.Name, "warning", "it did not answer %s within %s", o.method, o.deadline)
	}
	if took := time.Since(begun); err == nil && took > slow && took < o.deadline && r.first(&r.slowSaid) && o.method != MethodTool && o.method != MethodModel {
		r.host.notify(r.ext.Name, "warning", "it is slow: %s took %s", o.method, took.Round(100*time.Millisecond))
	}
	return res, err
}

// first sets a mark that only the first one finds unset.
func (r *runner) first(mark *bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := *mark
	*mark = true
	return !was
}

// event hands an event to the program, which is started for it in the background.
func (r *runner) event(f Frame) {
	r.mu.Lock()
	p := r.process
	if r.closed || r.broken != nil {
		r.mu.Unlock()
		return
	}
	missed := false
	switch {
	case p != nil:
		missed = !p.send(f)
	case len(r.pending) < maxPending:
		r.pending = append(r.pending, f)
	default:
		missed = true
	}
	begin := p == nil && !r.starting
	r.starting = r.starting || begin
	missed = missed && !r.lagging
	r.lagging = r.lagging || missed
	r.mu.Unlock()
	if missed {
		r.host.notify(r.ext.Name, "warning", "it does not keep up: it misses events")
	}
	if begin {
		r.host.spawn(func() {
			_, err := r.running(r.host.ctx)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.starting = false
			if err != nil {
				r.pending = nil
			}
		})
	}
}

func (r *runner) close() {
	r.turn <- struct{}{} // no start goes on, and none begins
	defer func() { <-r.turn }()
	r.mu.Lock()
	r.closed = true
	p := r.process
	r.mu.Unlock()
	if p != nil {
		p.close()
	}
}

// crashed counts. After too many, the extension is given up until it is reloaded.
func (r *runner) crashed(err error) {
	r.mu.Lock()
	now := time.Now()
	kept := r.crashes[:0]
	for _, t := range r.crashes {
		if now.Sub(t) < crashWindow {
			kept = append(kept, t)
		}
	}
	r.crashes = append(kept, now)
	n := len(r.crashes)
	if n >= maxCrashes {
		r.broken = fmt.Errorf("it was given up after %d failures within %s, the last: %w", n, crashWindow, err)
	}
	broken := r.broken
	r.mu.Unlock()
	if broken != nil {
		r.host.notify(r.ext.Name, "error", "%v; /reload tries it again", broken)
		return
	}
	r.host.notify(r.ext.Name, "error", "%v", err)
}

// peering is what a runner's process tells.
type peering struct {
	*runner
	last *lastLine
	log  io.Closer
}

func (r peering) died(p *process, err error) {
	_ = r.log.Close()
	text := "its program ended"
	if err != nil {
		text = err.Error()
	}
	if line := r.last.text(); line != "" {
		text += ": " + line
	}
	lost := errors.New(text)
	r.mu.Lock()
	p.lost = lost
	was := r.process == p
	if was {
		r.process = nil
	}
	closed := r.closed
	r.mu.Unlock()
	if was && !closed { // else whoever starts it tells
		r.crashed(lost)
	}
}

func (r peering) ask(ctx context.Context, q Question) Answer {
	q.Extension = r.ext.Name
	q.Title, q.Text = term.CleanLine(q.Title), term.Clean(q.Text)
	ui := r.host.attached().UI
	if ui == nil {
		return Answer{}
	}
	if q.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(q.Timeout)*time.Millisecond)
		defer cancel()
	}
	return ui.Ask(ctx, q)
}

func (r peering) garbage(line string) {
	if ui := r.host.attached().UI; ui != nil {
		ui.Notify(Notice{
			Level: "warning", Text: "its program wrote to standard output what is no frame: " + term.CleanLine(line),
			Extension: r.ext.Name, garbage: true,
		})
	}
}

func (r peering) said(method string, params json.RawMessage) {
	switch method {
	case SayNotify:
		var n Notice
		if json.Unmarshal(params, &n) == nil {
			r.host.notify(r.ext.Name, cmp.Or(n.Level, "info"), "%s", term.Clean(n.Text))
		}
	case SayStatus:
		var s Status
		if ui := r.host.attached().UI; json.Unmarshal(params, &s) == nil && ui != nil {
			ui.Status(Status{Text: term.CleanLine(s.Text), Extension: r.ext.Name})
		}
	case SaySend:
		var s Sending
		if send := r.host.attached().Send; json.Unmarshal(params, &s) == nil && send != nil && strings.TrimSpace(s.Text) != "" {
			s.Extension = r.ext.Name
			send(s)
		}
	}
}

// openLog opens a log to append to; a long one is set aside first.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// lastLine passes on what it is given and keeps the last line of it.
type lastLine struct {
	to io.Writer

	mu   sync.Mutex // guards line
	line []byte
}

func (l *lastLine) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.line = append(l.line, b...)
	if len(l.line) > 4096 {
		l.line = append([]byte(nil), l.line[len(l.line)-4096:]...)
	}
	l.mu.Unlock()
	return l.to.Write(b)
}

func (l *lastLine) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(string(l.line))
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return term.CleanLine(text)
}
