package orchestrator

import "time"

// wake says when the time is to be told next: the state knows all that is due,
// so that nobody has to look now and then.
func (r *step) wake() {
	r.state.Wake = time.Time{}
	soonest := func(t time.Time) {
		if !t.IsZero() && (r.state.Wake.IsZero() || t.Before(r.state.Wake)) {
			r.state.Wake = t
		}
	}
	for _, a := range r.state.Agents {
		soonest(a.Restart.At)
		soonest(r.silentAt(a))
		soonest(a.Pause.Until)
	}
}

// due does what the time has come for. Signs of life that were not worth a line
// in the journal come with it, so that its replay decides alike.
func (r *step) due(heard map[string]time.Time) {
	passed := func(t time.Time) bool { return !t.IsZero() && !t.After(r.now) }
	for _, name := range r.state.Order {
		a := r.state.Agents[name]
		if t := heard[name]; t.After(a.Silence.Heard) {
			a.Silence.Heard = t
			r.state.Agents[name] = a
		}
		if passed(a.Restart.At) {
			r.restart(a)
			continue
		}
		if passed(a.Pause.Until) {
			r.resume(a)
			continue
		}
		if passed(r.silentAt(a)) {
			r.silent(a)
		}
	}
}

// resume ends a pause. An agent that waited in its turn goes on by itself, and
// is silent from now on.
func (r *step) resume(a Agent) {
	a.Silence.Heard = r.now
	a.Pause.Until = time.Time{}
	r.state.Agents[a.Name] = a
	r.tell(Fact{Agent: a.Name, Text: a.Name + " may go on: its provider's time has come"})
}

// Heard are the signs of life of the agents whose silence is measured.
func (s State) Heard() map[string]time.Time {
	heard := map[string]time.Time{}
	for name, a := range s.Agents {
		if _, busy := s.Works[a.Name]; busy && !a.Silence.Heard.IsZero() {
			heard[name] = a.Silence.Heard
		}
	}
	return heard
}
