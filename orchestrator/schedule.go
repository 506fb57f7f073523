package orchestrator

import (
	"fmt"
	"slices"

	"muntin/agent/pty"
)

// RoleWorker is the role of agents that take tasks from the board.
const RoleWorker = "worker"

// schedule gives ready tasks to idle agents: first those that are between two
// steps, then by priority and in the board's order; agents in turn.
func (r *step) schedule() {
	if !r.approved() {
		return
	}
	c := r.crowd()
	if len(c.idle) == 0 {
		return
	}
	for _, task := range r.waiting() {
		if r.full() || len(c.idle) == 0 {
			return
		}
		if agents := r.pick(task, c); len(agents) > 0 {
			r.assign(task, agents)
			c = r.crowd()
		}
	}
}

// waiting are the tasks that could be given out, in their order.
func (r *step) waiting() []Task {
	var list []Task
	taken := map[string]bool{}
	for _, w := range r.state.Works {
		taken[w.Task] = taken[w.Task] || !w.Over
	}
	for _, task := range r.state.Tasks {
		_, between := r.state.Courses[task.ID]
		if task.ID != "" && (task.Ready || between) && !taken[task.ID] {
			list = append(list, task)
		}
	}
	slices.SortStableFunc(list, func(a, b Task) int { return r.rankOf(a) - r.rankOf(b) })
	return list
}

// A crowd are the agents that tasks can be given to now, and all that may get one
// some time, also when a person has to help those out of what they are at.
type crowd struct{ idle, able []Agent }

func (r *step) crowd() crowd {
	var c crowd
	for _, name := range r.state.Order {
		a := r.state.Agents[name]
		_, busy := r.state.Works[name]
		if !r.able(a) {
			continue
		}
		if !a.Pause.on() {
			c.able = append(c.able, a)
		}
		if !busy && r.mayPrompt(a) {
			c.idle = append(c.idle, a)
		}
	}
	slices.SortStableFunc(c.idle, func(a, b Agent) int { return a.Given - b.Given })
	return c
}

// full tells whether as many tasks are at work as may be. Those that wait for
// a person do not count.
func (r *step) full() bool {
	most := r.state.Settings.MaxParallel
	if most == 0 {
		return false
	}
	at := map[string]bool{}
	for _, w := range r.state.Works {
		if !r.stuck(w) {
			at[w.Task] = true
		}
	}
	return len(at) >= most
}

// pick finds the agents for a step of a task, as many as there are lanes or, if
// there are fewer agents, all that can come. It is none before they are all idle.
// Of several those are taken whose last task is the longest ago.
func (r *step) pick(task Task, c crowd) []Agent {
	step, lanes := r.course(task.ID).Step, r.state.Settings.Flow.lanes()
	var idle []Agent
	for _, a := range c.idle {
		if len(idle) < lanes && r.suits(task, a, step) && !r.pathsTaken(task, a) {
			idle = append(idle, a)
		}
	}
	if len(idle) == lanes || len(idle) == 0 {
		return idle
	}
	for _, a := range c.able {
		if !slices.ContainsFunc(idle, func(b Agent) bool { return b.Name == a.Name }) && r.suits(task, a, step) {
			return nil // it comes later
		}
	}
	return idle
}

// suits tells whether an agent is one for a step of a task: one that the task
// names, else, if it names none, any that does the step.
func (r *step) suits(task Task, a Agent, step int) bool {
	flow := r.state.Settings.Flow
	if len(flow.Steps) > 0 {
		return flow.takes(a, step)
	}
	names := slices.DeleteFunc(slices.Clone(task.Names), func(n string) bool { return flow.several() && n == r.state.Settings.Run })
	if len(names) == 0 {
		return flow.takes(a, step)
	}
	return slices.Contains(names, a.Name) || slices.Contains(names, a.Role)
}

// mayPrompt tells whether an agent can be given something to do now.
func (r *step) mayPrompt(a Agent) bool {
	return a.State == pty.AgentIdle && a.Leaves == LeavesNot && !a.Pause.on() && r.over(a) == "" && !r.early(a) && !a.First && a.FirstKey == ""
}

// able tells whether an agent may be given something some time.
func (r *step) able(a Agent) bool {
	return !a.Restart.Gone && a.Leaves != LeavesForGood && r.over(a) == ""
}

// assign gives a step of a task to agents. The claim is one for all of them; a
// task between steps has it.
func (r *step) assign(task Task, agents []Agent) {
	r.state.RunCheck = RunCheck{} // what was checked is no longer all there is
	flow := r.state.Settings.Flow
	_, between := r.state.Courses[task.ID]
	if !flow.direct() && !between {
		r.setCourse(task.ID, Course{})
	}
	key := ""
	for _, agent := range agents {
		agent.Task, agent.Given = task.ID, r.state.Effects+1
		r.state.Agents[agent.Name] = agent
		w := Work{Task: task.ID, Agent: agent.Name, Text: task.Text + "\n" + task.Body}
		switch {
		case flow.Loop != nil:
			r.setLoop(task.ID, TaskActive, "")
			r.prepare(w)
		case between:
			r.prepare(w)
		default:
			if key == "" {
				key = r.emit(Effect{Kind: EffectClaim, Task: task.ID, Agent: r.claimant(w)})
			}
			r.move(w, StageClaiming, key)
		}
		r.tell(Fact{Agent: agent.Name, Text: fmt.Sprintf("%s takes ^%s", agent.Name, task.ID)})
	}
}

// rankOf orders tasks: those between steps, then !1 first, tasks without a
// priority last.
func (r *step) rankOf(t Task) int {
	if _, between := r.state.Courses[t.ID]; between {
		return 0
	}
	if t.Priority == 0 {
		return 4
	}
	return t.Priority
}
