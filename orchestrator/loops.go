package orchestrator

import (
	"fmt"
	"slices"
	"strings"
)

// In mode loop the agents' work is not on the board: each worker has a task that
// the state itself keeps. Everything else is as with the board's tasks.

// loops are the tasks of the loop, made when they are needed first.
func (r *step) loops() []Task {
	if len(r.state.Loops) > 0 {
		return r.state.Loops
	}
	loop := r.state.Settings.Flow.Loop
	text, body, _ := strings.Cut(strings.TrimSpace(loop.Prompt), "\n")
	for _, name := range r.state.Order {
		if a := r.state.Agents[name]; a.Role == RoleWorker {
			r.state.Loops = append(r.state.Loops, Task{
				ID: "loop-" + name, Text: text, Body: body, Check: loop.Until, Names: []string{name}, State: TaskOpen, Ready: true,
			})
		}
	}
	return r.state.Loops
}

// setLoop writes what became of a task of the loop.
func (r *step) setLoop(id string, state TaskState, why string) {
	list := slices.Clone(r.state.Loops)
	for i := range list {
		if list[i].ID == id {
			list[i].State, list[i].Reason, list[i].Ready = state, why, state == TaskOpen
		}
	}
	r.state.Loops, r.state.Tasks = list, list
}

// loopText is the prompt of a round.
func loopText(l Looping, round int) string {
	return fmt.Sprintf("%s\n\n(Round %d of %d. When your turn ends this is run; it decides whether there is another round:\n\n    %s\n)\n",
		strings.TrimSpace(l.Prompt), min(round, l.Max), l.Max, l.Until)
}

// roundText is the prompt of a round after the first, with what the condition
// said.
func roundText(l Looping, round int, res Result) string {
	out := strings.TrimRight(tailOf(res.Output, maxCheckOutput), "\n")
	return loopText(l, round) + fmt.Sprintf("\nAfter the last round it failed: %s\n\n%s\n", res.Error, indent(out))
}
