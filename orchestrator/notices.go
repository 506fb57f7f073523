package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"muntin/agent/pty"
	"muntin/recipes"
)

// A Notice is an event of a run that hooks and people are told of.
type Notice struct {
	Time  time.Time
	Event recipes.Event
	Agent string // may be empty
	Task  string // may be empty
	Text  string // for people, one line
}

// A Notifier tells hooks and people of notices.
type Notifier interface {
	// Notify carries all out that the recipe wants for the event. It may block as
	// long as that takes, and is called from several goroutines at once. Its
	// error is told in the run's story.
	Notify(ctx context.Context, n Notice) error
}

// wantedEvents are the events that a recipe's hooks and notifications wait for.
func wantedEvents(r *recipes.Recipe) []recipes.Event {
	var list []recipes.Event
	for _, h := range r.Hooks {
		list = append(list, h.On)
	}
	for i := range r.Notify {
		for _, on := range r.Notify[i].On {
			list = append(list, recipes.Event(on))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// notice has hooks and people told, if the recipe wants the event. A notice that a
// crash cut short is not given again: nobody is told twice.
func (r *step) notice(n Notice) {
	if slices.Contains(r.state.Settings.Notices, n.Event) {
		r.emit(Effect{Kind: EffectNotice, Agent: n.Agent, Task: n.Task, On: n.Event, Text: n.Text})
	}
}

// notices compares a step's end with its beginning and tells what has come to be.
func (r *step) notices(before State) {
	if len(r.state.Settings.Notices) == 0 {
		return
	}
	r.readyNotice()
	r.agentNotices(before)
	r.taskNotices(before)
	was, is := before.Phase, r.state.Phase
	switch {
	case is == was:
	case is == PhaseDone:
		r.notice(Notice{Event: recipes.EventRunDone, Text: "all tasks are done"})
	case is == PhaseWaiting && !r.approved() && r.state.Settings.Approval == recipes.ApprovePerson && before.Rev > 0:
		r.notice(Notice{Event: recipes.EventNeedsPerson, Text: "the plan waits for a person: read PLAN.md, then `muntin plan approve`"})
	}
}

// readyNotice tells once that all agents are ready.
func (r *step) readyNotice() {
	if r.state.Announced {
		return
	}
	for _, a := range r.state.Agents {
		if !a.Came && a.State == pty.AgentStarting || a.Restart.Gone {
			return
		}
	}
	r.state.Announced = true
	r.notice(Notice{Event: recipes.EventReady, Text: "all agents are ready"})
}

func (r *step) agentNotices(before State) {
	ended := func(s pty.AgentState) bool { return s == pty.AgentExited || s == pty.AgentUnknown }
	for _, name := range r.state.Order {
		a, was := r.state.Agents[name], before.Agents[name]
		if ended(a.State) && !ended(was.State) {
			r.notice(Notice{Event: recipes.EventExit, Agent: name, Task: a.Task, Text: name + ": " + cmp.Or(a.Note, "its process ended")})
		}
		t := r.state.Trouble(a)
		if t.Kind == before.Trouble(was).Kind {
			continue
		}
		switch {
		case t.Kind == TroubleLimited || t.Kind == TroubleBudget:
			r.notice(Notice{Event: recipes.EventLimited, Agent: name, Task: a.Task, Text: name + ": " + cmp.Or(t.Why, "a limit is reached")})
		case t.NeedsPerson():
			r.notice(Notice{Event: recipes.EventNeedsPerson, Agent: name, Task: a.Task, Text: fmt.Sprintf("%s is %s: %s", name, t.Kind, t.Why)})
		}
	}
}

func (r *step) taskNotices(before State) {
	if before.Rev == 0 {
		return // what the board says at the start is no news
	}
	was := map[string]TaskState{}
	for _, t := range before.Tasks {
		was[t.ID] = t.State
	}
	for _, t := range r.state.Tasks {
		state, known := was[t.ID]
		if !known || t.Group || state == t.State {
			continue
		}
		n := Notice{Task: t.ID, Agent: t.Claim}
		if w, ok := before.workOn(t.ID); ok {
			n.Agent = w.Agent
		}
		switch t.State {
		case TaskDone:
			n.Event, n.Text = recipes.EventTaskDone, fmt.Sprintf("^%s is done: %s", t.ID, firstLine(t.Text))
		case TaskBlocked:
			n.Event, n.Text = recipes.EventTaskBlocked, fmt.Sprintf("^%s is blocked: %s", t.ID, cmp.Or(t.Reason, firstLine(t.Text)))
		case TaskWaiting:
			n.Event, n.Text = recipes.EventNeedsPerson, fmt.Sprintf("^%s needs a person: %s", t.ID, cmp.Or(t.Reason, firstLine(t.Text)))
		case TaskOpen, TaskActive, TaskCancelled:
			continue
		}
		r.notice(n)
	}
}

// notify carries a notice out.
func (c *Crew) notify(ctx context.Context, e Effect) Result {
	if c.Notifier == nil {
		return Result{}
	}
	err := c.Notifier.Notify(ctx, Notice{Time: c.Now(), Event: e.On, Agent: e.Agent, Task: e.Task, Text: e.Text})
	if err != nil {
		return Result{Notice: fmt.Sprintf("telling of %s: %v", e.On, err)}
	}
	return Result{}
}
