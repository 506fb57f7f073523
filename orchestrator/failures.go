package orchestrator

import (
	"fmt"
	"time"

	"muntin/agent/pty"
)

// A RestartPolicy says after which ends an agent is started again.
type RestartPolicy string

// The policies. Ending with status 0 is no failure.
const (
	RestartNever     RestartPolicy = ""
	RestartOnFailure RestartPolicy = "on-failure"
	RestartAlways    RestartPolicy = "always"
)

// A Restart is how an agent is brought back, and how often that was needed.
type Restart struct {
	Policy RestartPolicy
	Most   int // ends in a row, counted down by good turns, after which it is given up

	Count int
	At    time.Time // when it is started again; zero: it does not wait for that
	Key   string    // the effect that starts it, while it is carried out
	Gone  bool      // it has ended, and is not started again
	Fresh bool      // it was started, and is not ready yet
}

// The delays before a restart: doubled each time.
const (
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
)

// backoff is how long to wait before the n-th try, from 1 on.
func backoff(n int, first, last time.Duration) time.Duration {
	d := first
	for ; n > 1 && d < last; n-- {
		d *= 2
	}
	return min(d, last)
}

// ended takes the end of an agent: it is started again as its policy has it,
// and keeps its task meanwhile; else its task goes back.
func (r *step) ended(a Agent, clean bool) {
	if a.Leaves != LeavesNot {
		r.leaving(a)
		return
	}
	a.Asks, a.Silence = nil, Silence{}
	a.Restart.Key, a.Restart.At = "", time.Time{}
	p := &a.Restart
	switch {
	case p.Policy == RestartNever || p.Policy == RestartOnFailure && clean:
		r.gone(a)
	case p.Count >= p.Most:
		a.Note += fmt.Sprintf("; it was started again %d times, and is given up", p.Count)
		r.gone(a)
	default:
		p.Count++
		r.startLater(a)
	}
}

// startLater has an agent started again after a while.
func (r *step) startLater(a Agent) {
	wait := backoff(a.Restart.Count, firstBackoff, lastBackoff)
	a.Restart.At = r.now.Add(wait)
	r.state.Agents[a.Name] = a
	r.tell(Fact{Agent: a.Name, Bad: true, Text: fmt.Sprintf("%s: %s; it is started again in %s (%d of %d)", a.Name, a.Note, wait, a.Restart.Count, a.Restart.Most)})
}

// restart starts an agent whose time has come.
func (r *step) restart(a Agent) {
	a.Restart.At = time.Time{}
	a.Restart.Key = r.emit(Effect{Kind: EffectRestart, Agent: a.Name})
	r.state.Agents[a.Name] = a
}

// restarted takes the end of a restart effect. What the agent does then, its
// log tells; until it does, it is starting.
func (r *step) restarted(key string, res Result) bool {
	for _, a := range r.state.Agents {
		if a.Restart.Key != key {
			continue
		}
		a.Restart.Key = ""
		if res.OK {
			a.State, a.Since, a.Note = pty.AgentStarting, r.now, ""
			r.state.Agents[a.Name] = a
			return true
		}
		a.Note = "it could not be started: " + res.Error
		r.ended(a, false)
		return true
	}
	return false
}

// started notes a new life. One that we did not ask for was a person's will:
// what failed before does not count any more.
func (a *Agent) started() {
	if a.Restart.Key == "" && a.State != pty.AgentStarting {
		a.Restart.Count = 0
	}
	a.Restart.Key, a.Restart.At, a.Restart.Gone, a.Restart.Fresh = "", time.Time{}, false, true
	if a.Leaves == LeavesToReturn {
		a.Leaves = LeavesNot
	}
	a.Asks, a.Silence = nil, Silence{}
}

// wentWell counts a turn that was done.
func (a *Agent) wentWell() {
	a.Restart.Count = max(a.Restart.Count-1, 0)
	a.Pause = Pause{}
}

// back follows an agent that is ready. If its turn was cut off in a life before
// this one, and nobody has said so, it is told to go on; a message that waits in
// its inbox is handed over by its supervisor.
func (r *step) back(a Agent) {
	w, ok := r.state.Works[a.Name]
	fresh := a.Restart.Fresh
	a.Restart.Fresh = false
	r.state.Agents[a.Name] = a
	if ok && fresh && w.Stage == StageWorking && !w.Filed {
		r.rest(w, pty.KindPrompt, r.goOnText(w, endedText))
	}
}

// missed follows a prompt that its agent did not take because it has ended.
// While it waits in the inbox, the next supervisor hands it over.
func (r *step) missed(w Work, res Result) {
	if res.State != "" && !pty.MessageState(res.State).Ended() {
		w.Filed = true
		r.move(w, StageWorking, "")
		return
	}
	r.rest(w, pty.KindPrompt, r.goOnText(w, endedText))
}

// message follows what became of a prompt for the agent's task: one that has
// failed with the agent's end is sent anew, as another message.
func (r *step) message(a Agent, m pty.MessageInfo) {
	w, ok := r.state.Works[a.Name]
	if !ok || w.Over || m.Task != w.Task || m.State != pty.StateFailed || m.Kind == pty.KindSteer || m.Kind == pty.KindAbort {
		return
	}
	ended := m.Ended() || a.State == pty.AgentExited || a.State == pty.AgentUnknown
	if ended && (w.Stage == StageWorking || w.Stage == StagePrompting) && !a.Restart.Gone {
		r.rest(w, pty.KindPrompt, r.goOnText(w, endedText))
	}
}

// Why an agent is told to go on.
const (
	endedText = "Your program ended while you worked on this, and was started again. Look at what is there already, and go on."
	limitText = "Your provider took no more requests while you worked on this. It should now: look at what is there already, and go on."
)

// goOnText has an agent go on with its task, whatever it remembers of it.
func (r *step) goOnText(w Work, why string) string {
	return why + "\n\n" + r.prompt(w)
}
