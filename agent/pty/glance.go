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
func (s *supervisor) glance() adapter.Seen {
	if len(s.opt.Adapter.Sights) == 0 && s.opt.Adapter.Composer == "" {
		return adapter.Seen{}
	}
	screen, err := s.screen.show(s.rec, false)
	if err != nil {
		s.log.Warn("looking at the screen", "error", err)
		return adapter.Seen{}
	}
	return s.opt.Adapter.See(screen.Lines, *s.said.Load())
}

// say remembers what was said in the conversation of late.
func (s *supervisor) say(text string) {
	if s.opt.Adapter.Composer != "" {
		return // where it stands is known better
	}
	said := lastWords(*s.said.Load()+"\n"+text, maxSaid)
	s.said.Store(&said)
}

// maxSaid is how much of it is remembered: more than a screen holds.
const maxSaid = 16 << 10

// asks reports whether the screen waits for a person.
func asks(m adapter.Meaning) bool { return m == adapter.MeansApproval || m == adapter.MeansQuestion }

// composerPatience is how long after the start the composer is waited for. After
// that its adapter is taken to be wrong about it.
const composerPatience = 45 * time.Second

// stuck is how many times as long as the screen of a turn that is over must a
// screen stand still that says it works: programs at work animate it. What says
// so then stands in something else.
const stuck = 6

// seen corrects what was concluded from a screen that stands still by what it
// shows. It asks for the next look in each case.
func (w *watch) seen(v verdict, s sight) (verdict, lookAgain) {
	shown := s.shows()
	means := shown.Sight.Means
	again := lookAgain{after: w.quiet(), output: true}
	switch {
	case asks(means) && w.mode != watchAnswer:
		again.after = 0 // it stands still until a person answers
		if w.blocked {
			return nothing, again
		}
		w.blocked, w.sighted = true, true
		w.sure = shown.Confidence
		return waits, again
	case asks(means):
		w.sure = shown.Confidence
		return answered, again // and then it asks
	case means == adapter.MeansLimit && v != isReady:
		if w.limited {
			return nothing, again
		}
		w.limited, w.sure = true, shown.Confidence
		return limited, again
	case means == adapter.MeansWorking && v != isReady:
		if s.still < stuck*w.quiet() {
			return nothing, again
		}
		w.sure = adapter.Low
		return v, lookAgain{}
	case v == isReady && means != adapter.MeansIdle && w.on.ShowsIdle():
		again.after = w.on.ReadyQuiet
		return nothing, again
	case v == isReady && means != adapter.MeansIdle && w.on.Composer != "" && !shown.Composer && s.now.Sub(w.since) < composerPatience:
		again.after = w.on.ReadyQuiet // it still loads: what is typed now may be lost
		return nothing, again
	}
	w.sure = w.restSure(shown)
	return v, lookAgain{}
}

// restSure is how sure it is that a still screen is one of a program at rest.
func (w *watch) restSure(shown adapter.Seen) adapter.Confidence {
	switch {
	case shown.Composer || shown.Sight.Means == adapter.MeansIdle:
		return adapter.High
	case len(w.on.Sights) > 0 || w.mode == watchReady && w.on.ReadyPaste:
		return adapter.Medium
	}
	return adapter.Low
}
