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
	leads := r.leads(w)
	if why != w.Held.Why && why != "" && (leads || w.Reads) {
		r.tell(Fact{Agent: w.Agent, Bad: true, Text: fmt.Sprintf("^%s needs a person: %s", w.Task, why)})
	}
	w.Held.Why = why
	show := why
	if r.state.Settings.Flow.Lanes > 1 {
		show = r.course(w.Task).Person // what keeps one of several keeps not the task
	}
	if leads && w.Held.Key == "" && w.Held.Shown != show && w.Stage != StageMarking {
		e := Effect{Kind: EffectMark, Agent: r.claimant(w), Task: w.Task, State: TaskWaiting, Why: show, Held: true}
		if show == "" {
			e.State = TaskActive
		}
		w.Held.Shown = show
		if r.state.Settings.Flow.Loop != nil {
			r.setLoop(w.Task, e.State, show)
		} else {
			w.Held.Key = r.emit(e)
		}
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
	for _, name := range r.state.Order {
		w, ok := r.state.Works[name]
		if !ok || w.Held.Key != key {
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
		if a.Leaves == LeavesForGood {
			r.giveBack(w)
			continue
		}
		over := r.over(a)
		if over != "" && (w.Reads || r.state.Settings.Flow.Lanes > 1 && len(r.lanesOf(w.Task)) > 1) {
			r.lose(w, TaskBlocked, over) // the others go on without it
			continue
		}
		w = r.hold(w, over)
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
		if t.State != TaskActive {
			continue
		}
		a, ours := r.state.Agents[t.Claim]
		_, under := r.state.Orphans[t.ID]
		if !ours {
			a, ours = r.state.Left[t.Claim]
			a.Restart.Gone = true
		}
		if !ours || !a.Restart.Gone || under {
			continue
		}
		_, working := r.state.workOn(t.ID)
		if working || r.state.Works[t.Claim].Task == t.ID {
			continue
		}
		r.tell(Fact{Agent: a.Name, Text: fmt.Sprintf("^%s goes back to the board: %s has ended", t.ID, a.Name)})
		r.state.Orphans[t.ID] = r.emit(Effect{Kind: EffectMark, Agent: a.Name, Task: t.ID, State: TaskOpen})
	}
}
