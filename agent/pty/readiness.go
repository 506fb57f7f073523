package pty

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muntin/agent/adapter"
)

// Readiness is what an outside agent must show, beside taking prompts by what
// its adapter knows, to be ready. The zero value asks for nothing.
type Readiness struct {
	Text    string                          // stands on its screen, in one line
	Check   func(ctx context.Context) error // returns nil then; called again and again, in a goroutine of its own; ctx ends with the agent
	Timeout time.Duration                   // after this a person is asked for; 0: 1 min
}

// readyAgain is how long to wait before looking again whether an agent is ready.
const readyAgain = time.Second

// A readying is how far the readiness of an agent is known.
type readying struct {
	began   time.Time
	running bool // Check
	checked bool // it has succeeded
	asked   bool // a person was asked for
}

// unready reports whether the agent is not ready yet by what its user says.
func (s *supervisor) unready() bool {
	want, r := s.opt.Ready, &s.readying
	if want.Text == "" && want.Check == nil {
		return false
	}
	missing := ""
	if want.Text != "" && !s.showsText(want.Text) {
		missing = fmt.Sprintf("%q is not on its screen", want.Text)
	} else if want.Check != nil && !r.checked {
		missing = "its ready check does not succeed"
		s.runReadyCheck()
	}
	if missing != "" && !r.asked && time.Since(r.began) >= want.Timeout {
		r.asked = true
		s.apply(s.m.waits(WaitingInfo{For: WaitQuestion, Text: fmt.Sprintf("it is not ready after %s: %s", want.Timeout, missing), Source: adapter.ByNone}))
	}
	return missing != ""
}

func (s *supervisor) showsText(text string) bool {
	screen, err := s.screen.show(s.rec, false)
	if err != nil {
		s.log.Warn("looking at the screen", "error", err)
	}
	return strings.Contains(strings.Join(screen.Lines, "\n"), text)
}

func (s *supervisor) runReadyCheck() {
	if s.readying.running {
		return
	}
	s.readying.running = true
	s.wg.Go(func() {
		err := s.opt.Ready.Check(s.work)
		s.do(s.work, func() {
			s.readying.running, s.readying.checked = false, err == nil
			if err == nil {
				s.look()
			}
		})
	})
}
