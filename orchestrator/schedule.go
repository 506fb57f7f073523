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
	if !r.approved() || !slices.ContainsFunc(r.state.Order, r.idles) {
		return
	}
	tasks := slices.Clone(r.state.Tasks)
	slices.SortStableFunc(tasks, func(a, b Task) int { return r.rankOf(a) - r.rankOf(b) })
	for _, task := range tasks {
		if r.full() {
			return
		}
		c, between := r.state.Courses[task.ID]
		if task.ID == "" || !task.Ready && !between {
			continue
		}
		if _, taken := r.state.workOn(task.ID); taken {
			continue
		}
		if agents := r.pick(task, c.Step); len(agents) > 0 {
			r.assign(task, agents)
		}
	}
}

// idles tells whether an agent could be given something now.
func (r *step) idles(name string) bool {
	_, busy := r.state.Works[name]
	return !busy && r.mayPrompt(r.state.Agents[name])
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
func (r *step) pick(task Task, step int) []Agent {
	able := 0
	var idle []Agent
	for _, name := range r.state.Order {
		a := r.state.Agents[name]
		if !r.suits(task, a, step) {
			continue
		}
		w, busy := r.state.Works[name]
		if r.able(a) && !a.Pause.on() && !(busy && r.stuck(w)) {
			able++
		}
		if !busy && r.mayPrompt(a) && !r.pathsTaken(task, a) {
			idle = append(idle, a)
		}
	}
	need := min(r.state.Settings.Flow.lanes(), able)
	if len(idle) < need {
		return nil
	}
	slices.SortStableFunc(idle, func(a, b Agent) int { return a.Given - b.Given })
	return idle[:need]
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
