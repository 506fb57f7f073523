package orchestrator

import (
	"fmt"
	"slices"

	"muntin/agent/pty"
)

// RoleWorker is the role of agents that take tasks from the board.
const RoleWorker = "worker"

// schedule gives ready tasks to idle workers: tasks by priority and then in
// the board's order, agents in the recipe's order.
func (r *step) schedule() {
	if !r.approved() {
		return
	}
	tasks := slices.Clone(r.state.Tasks)
	slices.SortStableFunc(tasks, func(a, b Task) int { return rankOf(a) - rankOf(b) })
	for _, task := range tasks {
		if _, taken := r.state.Work[task.ID]; taken || !task.Ready || task.ID == "" {
			continue
		}
		agent, ok := r.pick(task)
		if !ok {
			continue
		}
		r.assign(task, agent)
	}
}

// pick finds the agent for a task: one that the task names, else, if it names
// none, any worker.
func (r *step) pick(task Task) (Agent, bool) {
	for _, name := range r.state.Order {
		a := r.state.Agents[name]
		if a.Role != RoleWorker && !slices.Contains(task.Names, a.Name) && !slices.Contains(task.Names, a.Role) {
			continue
		}
		if a.State != pty.AgentIdle || a.Task != "" || a.Shared && r.sharedBusy(task) {
			continue
		}
		if len(task.Names) == 0 || slices.Contains(task.Names, a.Name) || slices.Contains(task.Names, a.Role) {
			return a, true
		}
	}
	return Agent{}, false
}

func (r *step) assign(task Task, agent Agent) {
	agent.Task = task.ID
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
