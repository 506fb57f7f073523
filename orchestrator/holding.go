package orchestrator

import (
	"fmt"

	"muntin/agent/pty"
)

// Held is what keeps a task from going on that only a person can change. The
// board shows it as [?] with the reason, and the task stays with its agent. One
// writing is under way at a time, so that the last one stays.
type Held struct {
	Why   string // the reason; empty: nothing holds it
	Shown string // the reason on the board
	Key   string // the effect that writes, while it is carried out
}

// state is what the board says of the task.
func (h Held) state() TaskState {
	if h.Shown != "" {
		return TaskWaiting
	}
	return TaskActive
}

// any tells whether the board may show a reason of ours.
func (h Held) any() bool { return h.Shown != "" || h.Key != "" }

// hold says why a task waits for a person, or with "" that it does not.
func (r *step) hold(w Work, why string) Work {
	if why != w.Held.Why && why != "" {
		r.tell(Fact{Agent: w.Agent, Bad: true, Text: fmt.Sprintf("^%s needs a person: %s", w.Task, why)})
	}
	w.Held.Why = why
	if w.Held.Key == "" && w.Held.Shown != why && w.Stage != StageMarking {
		e := Effect{Kind: EffectMark, Agent: w.Agent, Task: w.Task, State: TaskWaiting, Why: why, Held: true}
		if why == "" {
			e.State = TaskActive
		}
		w.Held.Key, w.Held.Shown = r.emit(e), why
	}
	r.state.Works[w.Agent] = w
	return w
}

// wrote takes the end of a writing of hold or of orphans. What the board said
// meanwhile is looked at now.
func (r *step) wrote(key string, res Result) bool {
	for task, k := range r.state.Orphans {
		if k == key {
			delete(r.state.Orphans, task)
			return true
		}
	}
	for _, w := range r.state.Works {
		if w.Held.Key != key {
			continue
		}
		w.Held.Key = ""
		if !res.OK {
			r.tell(Fact{Agent: w.Agent, Bad: true, Text: fmt.Sprintf("^%s could not be written on the board: %s", w.Task, res.Error)})
		}
		r.compare(r.hold(w, w.Held.Why))
		return true
	}
	return false
}

// rest has a task wait until its agent may be told to go on.
func (r *step) rest(w Work, msg pty.MessageKind, text string) {
	w.Next, w.Filed = Next{Msg: msg, Text: text}, false
	r.move(w, StageResting, "")
}

// proceed tells the agents of resting tasks to go on, where they may.
func (r *step) proceed() {
	for _, name := range r.state.Order {
		a := r.state.Agents[name]
		w, ok := r.state.Works[a.Name]
		if !ok || w.Stage != StageResting {
			continue
		}
		w = r.hold(w, r.over(a))
		if !r.mayPrompt(a) {
			continue
		}
		next := w.Next
		w.Next = Next{}
		r.move(w, StagePrompting, r.emit(Effect{Kind: EffectSend, Task: w.Task, Agent: w.Agent, Msg: next.Msg, Text: next.Text}))
	}
}

// orphans gives tasks back that the board shows with an agent which will not
// come back, and which the run does not have at work.
func (r *step) orphans() {
	for _, t := range r.state.Tasks {
		a, ours := r.state.Agents[t.Claim]
		_, working := r.state.workOn(t.ID)
		_, under := r.state.Orphans[t.ID]
		if t.State != TaskActive || !ours || !a.Restart.Gone || working || under {
			continue
		}
		r.tell(Fact{Agent: a.Name, Text: fmt.Sprintf("^%s goes back to the board: %s has ended", t.ID, a.Name)})
		r.state.Orphans[t.ID] = r.emit(Effect{Kind: EffectMark, Agent: a.Name, Task: t.ID, State: TaskOpen})
	}
}
