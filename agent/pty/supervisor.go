// Package pty is the supervisor that every agent lives in: one session on one
// pseudo-terminal. It relays the pane's bytes both ways, records them, delivers
// messages exactly once, sees turns begin and end, has a checkpoint taken after
// each, and writes down what it saw. It also holds the client of its socket.
// docs/protocol.md describes the socket and the event log.
package pty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muntin/agent/adapter"
)

// A supervisor runs one agent. All of its state belongs to the goroutine of
// loop; others reach it through do.
type supervisor struct {
	opt    Options
	log    *slog.Logger
	events *eventLog
	box    inbox
	m      *machine
	watch  watch
	cues   cues
	term   *terminal
	relay  *relay
	rec    *recorder
	screen screenModel
	child  *child
	server *server
	link   *link                  // the built-in agent's, nil while it has none
	tail   tail                   // of an outside agent's transcript
	said   atomic.Pointer[string] // in the conversation of late

	ops     chan func()
	over    chan struct{} // closed when nobody takes ops any more
	signals chan os.Signal
	outputs chan struct{} // output came while the watch waits for some
	enters  chan int64    // a person pressed Enter, with the output count before
	tick    *time.Timer   // look again
	sent    chan struct{} // a person's text has gone from the pane
	unhold  *time.Timer   // the person may have stopped typing
	expire  *time.Timer   // a message's deadline
	probe   *time.Timer   // read the transcript
	meter   *time.Timer   // tell what the turn uses
	linkEnd *time.Timer   // the link of an agent that has ended is not waited for any longer

	work     context.Context // of deliveries; ends with the child
	stopWork context.CancelFunc

	stopTending context.CancelFunc // ends a call of Maintain; loop's
	wg          sync.WaitGroup     // deliveries, checkpoints, the end of the child

	todo     []effect // what apply has not carried out yet
	applying bool
	filed    int64                  // place of the message that was filed last
	held     bool                   // what OnHeld was told
	readying readying               // of an outside agent
	wasTold  bool                   // the watch's word, before its last look
	advice   bool                   // Advise was called
	measured bool                   // the meter runs
	ending   bool                   // the child has been told to end
	because  string                 // the signal that we were sent, for which it was
	drained  bool                   // it has ended and all of its output is there
	stuck    map[string]MessageInfo // messages that have ended, but whose files could not be moved
}

// Run starts the agent on a pty of its own and supervises it until it has
// ended: because it did, because ctx ended, or because of a signal (SIGHUP,
// SIGTERM, SIGINT) or a stop request; then it is given Options.Grace. The
// pane's terminal is restored in each case. ExitInfo tells how the agent
// ended; its code is 128+n for signal n, and 127 with an error if it could not
// be started. An error that matches durable.ErrLocked says that another
// supervisor has this agent.
func Run(ctx context.Context, opt Options) (ExitInfo, error) {
	if err := opt.complete(); err != nil {
		return ExitInfo{Code: 1}, fmt.Errorf("supervising agent %q: %w", opt.Agent, err)
	}
	s := &supervisor{
		opt: opt, log: opt.Log.With("agent", opt.Agent),
		ops: make(chan func()), over: make(chan struct{}),
		signals: make(chan os.Signal, 8), outputs: make(chan struct{}, 1), enters: make(chan int64, 1),
		sent: make(chan struct{}, 1),
		tick: stoppedTimer(), unhold: stoppedTimer(), expire: stoppedTimer(), linkEnd: stoppedTimer(), probe: stoppedTimer(), meter: stoppedTimer(),
		stuck: map[string]MessageInfo{}, stopTending: func() {},
	}
	s.said.Store(new(string))
	// Before the child starts: an early hang-up must not orphan it.
	signal.Notify(s.signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGWINCH)
	defer signal.Stop(s.signals)
	s.work, s.stopWork = context.WithCancel(ctx)
	defer s.stopWork()
	exit, err := s.run(ctx)
	if err != nil {
		return exit, fmt.Errorf("supervising agent %s: %w", opt.Agent, err)
	}
	return exit, nil
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (s *supervisor) run(ctx context.Context) (ExitInfo, error) {
	if err := s.open(); err != nil {
		s.close()
		return ExitInfo{Code: 1}, err
	}
	if err := s.start(ctx); err != nil {
		exit := ExitInfo{Code: 127}
		s.write(Event{Kind: EventExit, Exit: &exit, Error: err.Error()})
		s.close()
		return exit, err
	}
	s.loop(ctx)
	s.stopWork()
	close(s.over)
	s.wg.Wait()
	s.relay.fence()
	s.finish()
	s.close()
	return s.child.exit, nil
}

// open takes hold of everything but the child: the event log first, for it
// tells whether another supervisor has this agent.
func (s *supervisor) open() (err error) {
	if s.events, err = openEvents(s.opt.Dir.Events(), s.opt.Now); err != nil {
		return err
	}
	if s.box, err = openInbox(s.opt.Dir); err != nil {
		return err
	}
	if s.rec, err = openRecorder(s.opt.Dir.Screen(), s.opt.RecordCap, s.opt.Redact); err != nil {
		return err
	}
	size := s.paneFiles().size()
	s.rec.resize(int(size.Col), int(size.Row))
	if s.term, err = openTerminal(size); err != nil {
		return fmt.Errorf("opening a pty: %w", err)
	}
	s.term.onWake = func() { offer(s.outputs, struct{}{}) }
	s.term.onSent = func() { offer(s.sent, struct{}{}) }
	s.term.draft.shell = s.opt.Adapter.Foreground
	s.tail.reader.Format = s.opt.Adapter.Format
	if s.tail.talk = s.opt.Conversation; s.tail.talk.Transcript != "" {
		s.tail.follow(s.tail.talk.Transcript)
	}
	s.cues.on, s.cues.wake = s.opt.Adapter, s.term.onWake
	s.term.scan.heard = s.cues.add
	// The socket is there before the inbox is read: a message that finds none
	// is filed early enough to be read now.
	if s.server, err = listen(s.opt.Dir.Socket, s); err != nil {
		return err
	}
	return s.takeUp()
}

// start starts the child and all that moves.
func (s *supervisor) start(ctx context.Context) (err error) {
	argv, first, err := s.first(ctx)
	if err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:gosec // starting what it is told to is its task
	cmd.Dir, cmd.Env = s.opt.WorkDir, s.opt.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.term.slave, s.term.slave, s.term.slave
	enter := func(mark int64) { offer(s.enters, mark) }
	if s.relay, err = startRelay(s.paneFiles(), s.term, s.rec, enter); err != nil {
		return fmt.Errorf("preparing the pane's terminal: %w", err)
	}
	if s.child, err = startChild(cmd); err != nil {
		s.unstarted(first)
		return fmt.Errorf("starting %s: %w", argv[0], err)
	}
	s.write(Event{Kind: EventStart, Start: &StartInfo{
		Argv: s.withoutPrompt(argv, first), Dir: s.opt.WorkDir, PID: os.Getpid(), ChildPID: s.child.pid, Adapter: s.opt.Adapter.Name,
	}})
	if first != nil {
		s.apply(s.m.delivered(first.rec.ID, adapter.ByProcess))
	}
	s.server.serve()
	return nil
}

// advised writes down what there is to warn of.
func (s *supervisor) advised() {
	if text := s.opt.Advise(s.work); text != "" {
		s.do(s.work, func() { s.write(Event{Kind: EventWarning, Warning: &WarningInfo{Text: clip(text, 512)}}) })
	}
}

func (s *supervisor) paneFiles() paneFiles { return paneFiles{in: s.opt.In, out: s.opt.Out} }

func offer[T any](ch chan T, v T) {
	select {
	case ch <- v:
	default:
	}
}

// loop carries out one thing after the other until the child has ended, its
// last output is drained and nothing is under way any more.
func (s *supervisor) loop(ctx context.Context) {
	ended, cancelled := s.child.done, ctx.Done()
	first := ""
	if e := s.m.main; e != nil {
		first = e.rec.ID
		s.apply(s.m.poke())
	} else {
		s.apply(s.m.boot())
	}
	if !s.m.link {
		s.watch.on = s.opt.Adapter
		switch { // also before its first word: it may start slowly
		case s.opt.Hooked:
			s.watch.trust = adapter.SignalHook.Trust()
		case s.opt.Adapter.Status:
			s.watch.trust = adapter.SignalStatus.Trust()
		}
		s.readying.began = time.Now()
		s.watch.begin(watchReady, first, 0, s.readying.began)
		s.look()
	}
	for !s.m.exited || !s.m.settled() {
		select {
		case fn := <-s.ops:
			fn()
		case <-s.tick.C:
			s.look()
		case <-s.outputs:
			s.look()
		case mark := <-s.enters:
			s.entered(mark)
		case <-s.unhold.C:
			s.apply(s.m.poke())
		case <-s.sent:
			s.apply(s.m.poke())
		case <-s.expire.C:
			s.apply(s.m.expire(s.opt.Now()))
		case <-s.probe.C:
			s.probed()
		case <-s.meter.C:
			s.measure()
		case <-s.linkEnd.C:
			s.apply(s.m.exit())
		case sig := <-s.signals:
			s.signalled(sig)
		case <-cancelled:
			cancelled = nil
			s.end(syscall.SIGHUP, "")
		case <-ended:
			ended = nil
			s.childEnded()
		}
	}
}

// do runs fn in loop and waits for it. It reports false, and fn has not run
// and will not, if the supervisor ended before, or ctx.
func (s *supervisor) do(ctx context.Context, fn func()) bool {
	done := make(chan struct{})
	select {
	case s.ops <- func() { defer close(done); fn() }:
		<-done
		return true
	case <-s.over:
		return false
	case <-ctx.Done():
		return false
	}
}

func (s *supervisor) signalled(sig os.Signal) {
	if sig == syscall.SIGWINCH {
		if err := s.relay.resize(); err != nil {
			s.log.Warn("resizing", "error", err)
		}
		return
	}
	if n, ok := sig.(syscall.Signal); ok {
		s.end(n, unix.SignalName(n))
	}
}

// end ends the child; loop sees when it has. because is the signal that we were
// sent, if that is why.
func (s *supervisor) end(first syscall.Signal, because string) {
	if s.ending {
		return
	}
	s.ending, s.because, s.m.ending = true, because, true
	s.log.Info("ending the agent", "signal", first.String())
	s.wg.Go(func() { s.child.end(first, s.opt.Grace) })
}

// childEnded drains what is left of the child.
func (s *supervisor) childEnded() {
	s.stopWork()
	// What the child left in its session has lost its terminal. After a stop
	// nothing of it may stay.
	last := syscall.SIGHUP
	if s.ending {
		last = syscall.SIGKILL
	}
	s.child.signalSession(last)
	s.relay.drain()
	s.drained = true
	if s.link == nil {
		s.apply(s.m.exit())
		return
	}
	// What it said last may still be on its way: it ends with the link.
	s.linkEnd.Reset(linkLimit)
}

// finish writes the end down, when nothing else can happen.
func (s *supervisor) finish() {
	exit := s.child.exit
	exit.Ended = s.because
	if err := s.rec.close(exit.Code); err != nil {
		s.log.Error("the recording is not complete", "error", err)
	}
	s.write(Event{Kind: EventExit, Exit: &exit})
}

// close gives everything back that was opened.
func (s *supervisor) close() {
	s.stopWork()
	select {
	case <-s.over:
	default:
		close(s.over)
	}
	if s.events != nil {
		if err := s.events.finish(); err != nil {
			s.log.Error("the event log was not synced", "error", err)
		}
	}
	if s.server != nil {
		s.server.close()
	}
	if s.relay != nil {
		s.relay.close()
	}
	if s.rec != nil {
		if err := s.rec.close(1); err != nil {
			s.log.Error("the recording is not complete", "error", err)
		}
	}
	s.screen.close()
	if s.term != nil {
		s.term.close()
	}
	if s.events != nil {
		if err := s.events.close(); err != nil && !errors.Is(err, os.ErrClosed) {
			s.log.Error("the event log was not closed", "error", err)
		}
	}
	s.tick.Stop()
	s.unhold.Stop()
	s.expire.Stop()
	s.linkEnd.Stop()
	s.probe.Stop()
	s.meter.Stop()
}
