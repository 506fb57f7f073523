package orchestrator

import (
	"fmt"
	"slices"

	"muntin/agent/pty"
)

// RoleWorker is the role of agents that take tasks from the board.
const RoleWorker = "worker"

// schedule gives ready tasks to idle workers: tasks by priority and then in
// the board's order, agents in turn.
func (r *step) schedule() {
	if !r.approved() {
		return
	}
	tasks := slices.Clone(r.state.Tasks)
	slices.SortStableFunc(tasks, func(a, b Task) int { return rankOf(a) - rankOf(b) })
	for _, task := range tasks {
		if r.full() {
			return
		}
		if _, taken := r.state.workOn(task.ID); taken || !task.Ready || task.ID == "" {
			continue
		}
		agent, ok := r.pick(task)
		if !ok {
			continue
		}
		r.assign(task, agent)
	}
}

// full tells whether as many tasks are at work as may be. Those that wait for
// a person do not count.
func (r *step) full() bool {
	most := r.state.Settings.MaxParallel
	if most == 0 {
		return false
	}
	for _, w := range r.state.Works {
		if !r.stuck(w) {
			most--
		}
	}
	return most <= 0
}

// pick finds the agent for a task: one that the task names, else, if it names
// none, any worker; of several the one whose last task is the longest ago.
func (r *step) pick(task Task) (best Agent, ok bool) {
	for _, name := range r.state.Order {
		a := r.state.Agents[name]
		named := slices.Contains(task.Names, a.Name) || slices.Contains(task.Names, a.Role)
		switch {
		case !named && (len(task.Names) > 0 || a.Role != RoleWorker):
		case a.Task != "" || !r.mayPrompt(a) || ok && a.Given >= best.Given || a.Shared && r.sharedBusy(task):
		default:
			best, ok = a, true
		}
	}
	return best, ok
}

// mayPrompt tells whether an agent can be given something to do now.
func (r *step) mayPrompt(a Agent) bool {
	return a.State == pty.AgentIdle && !a.Pause.on() && r.over(a) == ""
}

func (r *step) assign(task Task, agent Agent) {
	agent.Task, agent.Given = task.ID, r.state.Effects+1
	r.state.Agents[agent.Name] = agent
	r.state.RunCheck = RunCheck{} // what was checked is no longer all there is
	w := Work{Task: task.ID, Agent: agent.Name, Text: task.Text + "\n" + task.Body}
	r.move(w, StageClaiming, r.emit(Effect{Kind: EffectClaim, Task: task.ID, Agent: agent.Name}))
	r.tell(Fact{Agent: agent.Name, Text: fmt.Sprintf("%s takes ^%s", agent.Name, task.ID)})
}

// rankOf orders priorities: !1 first, tasks without one last.
func rankOf(t Task) int {
	if t.Priority == 0 {
		return 4
	}
	return t.Priority
}
