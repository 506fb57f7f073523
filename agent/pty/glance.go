package pty

import (
	"errors"
	"time"

	"muntin/agent/adapter"
)

// errDialog says that the agent's screen asks a person something: text typed
// now would answer it.
var errDialog = errors.New("the program asks something in its terminal: answer it there")

// dialogAgain is how long to wait before looking whether a dialog has gone.
const dialogAgain = time.Second

// glance tells what the agent's screen shows, by the last lines of it.
func (s *supervisor) glance() adapter.Sight {
	if len(s.opt.Adapter.Sights) == 0 {
		return adapter.Sight{}
	}
	screen, err := s.screen.show(s.rec, false)
	if err != nil {
		s.log.Warn("looking at the screen", "error", err)
		return adapter.Sight{}
	}
	seen, _ := s.opt.Adapter.See(screen.Lines)
	return seen
}

// asks reports whether the screen waits for a person.
func asks(m adapter.Meaning) bool { return m == adapter.MeansApproval || m == adapter.MeansQuestion }

// seen corrects what was concluded from a screen that stands still by what it
// shows. It asks for the next look in each case.
func (w *watch) seen(v verdict, means adapter.Meaning) (verdict, lookAgain) {
	again := lookAgain{after: w.quiet(), output: true}
	switch {
	case asks(means) && w.mode != watchAnswer:
		again.after = 0 // it stands still until a person answers
		if w.blocked {
			return nothing, again
		}
		w.blocked, w.sighted = true, true
		return waits, again
	case asks(means):
		return answered, again // and then it asks
	case means == adapter.MeansLimit && v != isReady:
		if w.limited {
			return nothing, again
		}
		w.limited = true
		return limited, again
	case means == adapter.MeansWorking && v != isReady:
		return nothing, again
	case v == isReady && means != adapter.MeansIdle && w.on.ShowsIdle():
		again.after = w.on.ReadyQuiet
		return nothing, again
	}
	return v, lookAgain{}
}
