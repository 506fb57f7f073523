package tmux

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	startDeadline = 2 * time.Second
	startPoll     = 10 * time.Millisecond
	lastLines     = 5
)

// A StartError tells that a pane was made but its program did not start, or
// has ended with an error.
type StartError struct {
	Pane   PaneRef
	Name   string   // the program
	Dir    string   // where it was to start
	Path   string   // where it started, if that is the trouble
	Status int      // exit status; -1: not known or ended by a signal
	Signal string   // what tmux 3.3 and later call the signal that ended it
	Lines  []string // the last lines it wrote, at most 5; tmux can lose them when the end comes at once
}

func (e *StartError) Error() string {
	var what string
	switch {
	case e.Path != "":
		return fmt.Sprintf("%s in pane %s started in %s and not in %s", e.Name, e.Pane.ID, e.Path, e.Dir)
	case e.Signal != "":
		what = "was ended by signal " + e.Signal
	case e.Status >= 0:
		what = fmt.Sprintf("ended with status %d", e.Status)
	default:
		what = "ended"
	}
	msg := fmt.Sprintf("%s in pane %s %s", e.Name, e.Pane.ID, what)
	if len(e.Lines) > 0 {
		msg += ": " + strings.Join(e.Lines, " | ")
	}
	return msg
}

// Failed looks at panes whose programs are expected to run and returns a
// *StartError, joined, for each that has ended with a status other than 0 or
// by a signal, or is gone. Panes that run are no error, nor is their silence.
func (s *Server) Failed(ctx context.Context, refs ...PaneRef) error {
	var sn Snapshot
	err := s.watch(ctx, func() (done bool, err error) {
		sn, err = s.Snapshot(ctx)
		return !unreaped(sn, refs), err
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, ref := range refs {
		p, err := sn.Pane(ref)
		switch {
		case err != nil:
			errs = append(errs, err)
		case p.Dead && p.Status != 0:
			errs = append(errs, s.startError(ctx, p, "program", ""))
		}
	}
	return errors.Join(errs...)
}

// verify waits until the programs of new panes run, in their folders, or have
// ended, and reports those that failed. A program that ended well is no error.
func (s *Server) verify(ctx context.Context, session SessionID, panes []started) error {
	epoch := panes[0].ref.Epoch
	var sn Snapshot
	look := func() (done bool, err error) {
		sn, err = s.list(ctx, epoch, Cmd{"list-panes", "-s", "-t", string(session) + ":"})
		if errors.Is(err, ErrNoServer) || errors.Is(err, ErrNoSuchSession) {
			sn, err = Snapshot{Epoch: epoch}, nil // all panes closed on exit
		}
		return s.settled(sn, panes), err
	}
	// Two looks in a row have to agree: tmux reads a process's name and folder one
	// after the other, and between them it may have begun or ended.
	err := s.watch(ctx, func() (bool, error) {
		if done, err := look(); !done || err != nil {
			return false, err
		}
		return look()
	})
	if err != nil {
		return fmt.Errorf("looking at new panes: %w", err)
	}
	return s.failures(ctx, sn, panes)
}

// watch calls look until it is done, fails, or startDeadline has passed.
func (s *Server) watch(ctx context.Context, look func() (done bool, err error)) error {
	deadline := time.Now().Add(startDeadline)
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		done, err := look()
		if done || err != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// settled reports whether each pane's program runs or has ended with a known
// status. Until its exec the new process is a copy of the tmux server and goes
// by its name, or has no folder that tmux can see.
func (s *Server) settled(sn Snapshot, panes []started) bool {
	refs := make([]PaneRef, len(panes))
	for i, st := range panes {
		refs[i] = st.ref
		p, err := sn.Pane(st.ref)
		if err == nil && !p.Dead && (p.Path == "" || slices.Contains(s.before(st.spec), p.Command)) {
			return false
		}
	}
	return !unreaped(sn, refs)
}

// unreaped reports whether a dead pane's status is not known yet: tmux can see
// a terminal close before it sees why.
func unreaped(sn Snapshot, refs []PaneRef) bool {
	for _, ref := range refs {
		if p, err := sn.Pane(ref); err == nil && p.unreaped() {
			return true
		}
	}
	return false
}

func (p Pane) unreaped() bool { return p.Dead && p.Status < 0 && p.Signal == "" }

// before are the names that a pane's process goes by before it is its program.
func (s *Server) before(p PaneSpec) []string {
	names := []string{"", "tmux", "tmux:", filepath.Base(s.exec.argv[0])}
	if p.Argv[0] == "env" && p.program() != "env" {
		names = append(names, "env")
	}
	return names
}

func (s *Server) failures(ctx context.Context, sn Snapshot, panes []started) error {
	var errs []error
	for _, st := range panes {
		p, err := sn.Pane(st.ref)
		name, dir := st.spec.program(), st.spec.Dir
		switch {
		case err != nil && st.spec.CloseOnExit:
		case err != nil:
			errs = append(errs, &StartError{Pane: st.ref, Name: name, Dir: dir, Status: -1})
		case p.Dead && p.Status != 0:
			errs = append(errs, s.startError(ctx, p, name, dir))
		case !p.Dead && s.fellBack(p.Path, dir):
			errs = append(errs, &StartError{Pane: st.ref, Name: name, Dir: dir, Path: p.Path, Status: -1})
		}
	}
	return errors.Join(errs...)
}

func (s *Server) startError(ctx context.Context, p Pane, name, dir string) *StartError {
	return &StartError{
		Pane: p.Ref, Name: name, Dir: dir,
		Status: p.Status, Signal: p.Signal, Lines: s.lastLines(ctx, p.Ref),
	}
}

// fellBack reports whether tmux could not enter dir and used what it uses
// instead: the home folder or the root. A program that has moved on by itself
// to some other folder is its own affair.
func (s *Server) fellBack(path, dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || path == real || path == dir {
		return false
	}
	home := ""
	for _, kv := range s.env {
		if v, ok := strings.CutPrefix(kv, "HOME="); ok {
			home = v
		}
	}
	return path == "/" || path == home
}

// lastLines reads what a dead pane shows, without tmux's own note about it.
func (s *Server) lastLines(ctx context.Context, ref PaneRef) []string {
	// tmux's note has pushed the screen's first line up.
	text, err := s.Capture(ctx, ref, CaptureOptions{Join: true, History: lastLines})
	if err != nil {
		return nil
	}
	var lines []string
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "Pane is dead") {
			lines = append(lines, l)
		}
	}
	return lines[max(0, len(lines)-lastLines):]
}
