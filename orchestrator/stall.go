package orchestrator

import (
	"fmt"
	"time"

	"muntin/agent/pty"
)

// A Stall says when an agent that works on a task and gives no sign of life is
// nudged, and how often before a person is needed.
type Stall struct {
	After  time.Duration // 0: never
	Nudges int
}

// A Silence is how long a working agent has given no sign of life.
type Silence struct {
	Heard   time.Time // its last event
	Nudges  int       // messages sent since
	Nudged  time.Time // the last of them
	Stalled bool      // it needs a person
}

// alive takes the sign of life that an event is. A message's way is none: it
// tells of its sender.
func (r *step) alive(a *Agent, e pty.Event) {
	switch e.Kind {
	case pty.EventReady, pty.EventTurnStart, pty.EventTool, pty.EventTurnEnd, pty.EventWaiting, pty.EventLimit:
	default:
		return
	}
	stalled := a.Silence.Stalled
	a.Asks, a.Silence = nil, Silence{Heard: e.Time}
	if e.Kind == pty.EventTool {
		a.Pause.Until = time.Time{} // the turn goes on
	}
	if w, ok := r.state.Works[a.Name]; ok && stalled {
		r.tell(Fact{Agent: a.Name, Good: true, Text: a.Name + " goes on"})
		r.hold(w, "")
	}
}

// marked tells whether a sign of life changes what is decided about an agent.
func (a Agent) marked() bool {
	return a.Asks != nil || a.Pause.on() || a.Silence.Nudges > 0 || a.Silence.Stalled
}

// silentAt is when an agent's silence becomes too long; zero: never.
func (r *step) silentAt(a Agent) time.Time {
	after := r.state.Settings.Stall.After
	w, ok := r.state.Works[a.Name]
	if after <= 0 || !ok || w.Stage != StageWorking || a.State != pty.AgentWorking ||
		a.Asks != nil || a.Pause.on() || a.Silence.Stalled {
		return time.Time{}
	}
	if a.Silence.Nudged.After(a.Silence.Heard) {
		return a.Silence.Nudged.Add(after)
	}
	return a.Silence.Heard.Add(after)
}

// silent nudges an agent that has been silent too long, or calls for a person.
func (r *step) silent(a Agent) {
	w := r.state.Works[a.Name]
	since := r.now.Sub(a.Silence.Heard).Round(time.Second)
	if a.Silence.Nudges < r.state.Settings.Stall.Nudges {
		a.Silence.Nudges++
		a.Silence.Nudged = r.now
		r.state.Agents[a.Name] = a
		r.emit(Effect{Kind: EffectSend, Agent: a.Name, Task: w.Task, Msg: pty.KindSteer, Text: nudgeText(w.Task, since)})
		r.tell(Fact{Agent: a.Name, Text: fmt.Sprintf("%s has been silent for %s: nudged", a.Name, since)})
		return
	}
	a.Silence.Stalled = true
	r.state.Agents[a.Name] = a
	r.hold(w, fmt.Sprintf("%s has been silent since %s", a.Name, a.Silence.Heard.Format("15:04 MST")))
}

func nudgeText(task string, since time.Duration) string {
	return fmt.Sprintf("Nothing has been heard of you for %s, and ^%s is yours. If something keeps you waiting, leave it and go on another way; "+
		"if you are done, end your turn.\n", since, task)
}
