package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muntin/agent/pty"
)

// A FleetChange is what a run is from now on: its recipe was changed by Apply.
type FleetChange struct {
	Recipe   string   `json:"recipe"` // the mark of the recipe, see recipeMark
	Settings Settings `json:"settings"`
	Agents   []Agent  `json:"agents"` // as they begin, in the recipe's order
}

// A Leave names the agents that get nothing to do any more, for they are about to
// be ended. It takes the place of the one before.
type Leave struct {
	Remove  []string `json:"remove,omitempty"`
	Restart []string `json:"restart,omitempty"` // they come back
}

// A Leaving says that an agent is about to be ended.
type Leaving string

// The kinds of leaving.
const (
	LeavesNot      Leaving = ""
	LeavesForGood  Leaving = "for-good"
	LeavesToReturn Leaving = "to-return"
)

// leave has agents get nothing to do any more. Work of one that will not come
// back is still checked and merged, but not sent back to it.
func (r *step) leave(l Leave) {
	for _, name := range r.state.Order {
		a := r.state.Agents[name]
		was := a.Leaves
		switch a.Leaves = LeavesNot; {
		case slices.Contains(l.Remove, name):
			a.Leaves = LeavesForGood
		case slices.Contains(l.Restart, name):
			a.Leaves = LeavesToReturn
		}
		if a.Leaves != was && a.Leaves != LeavesNot {
			a.Restart.At = time.Time{}
			r.tell(Fact{Agent: name, Text: name + " is ended when its turn is over"})
		}
		r.state.Agents[name] = a
	}
}

// fleet takes the agents and settings of a changed recipe. What is known of
// agents that stay, or that were there before, is kept.
func (r *step) fleet(c FleetChange) {
	var added, removed []string
	order, agents := []string{}, map[string]Agent{}
	for _, fresh := range c.Agents {
		order = append(order, fresh.Name)
		was, ok := r.state.Agents[fresh.Name]
		if !ok {
			added = append(added, fresh.Name)
			was, ok = r.returning(fresh.Name)
		}
		fresh.State = pty.AgentStarting
		if ok {
			fresh = was.refit(fresh)
		}
		agents[fresh.Name] = fresh
	}
	for _, name := range r.state.Order {
		if _, stays := agents[name]; !stays {
			removed = append(removed, name)
			r.departed(r.state.Agents[name])
		}
	}
	r.state.Recipe, r.state.Settings = c.Recipe, c.Settings
	r.state.Order, r.state.Agents = order, agents
	text := "the recipe was applied"
	if len(added) > 0 {
		text += "; new: " + strings.Join(added, ", ")
	}
	if len(removed) > 0 {
		text += "; removed: " + strings.Join(removed, ", ")
	}
	r.tell(Fact{Good: true, Text: text})
}

// refit is an agent with what a changed recipe says of it.
func (a Agent) refit(fresh Agent) Agent {
	a.After = fresh.After
	a.Role, a.Isolated, a.Shared, a.Limits = fresh.Role, fresh.Isolated, fresh.Shared, fresh.Limits
	a.Restart.Policy, a.Restart.Most = fresh.Restart.Policy, fresh.Restart.Most
	if a.Leaves == LeavesForGood {
		a.Leaves = LeavesNot
	}
	return a
}

// returning is an agent that was removed and is there again: its log goes on
// where it ended, and what it used counts.
func (r *step) returning(name string) (Agent, bool) {
	a, ok := r.state.Left[name]
	if !ok {
		return a, false
	}
	r.state.Left = maps.Clone(r.state.Left)
	delete(r.state.Left, name)
	most := a.Restart
	a.Restart = Restart{Policy: most.Policy, Most: most.Most}
	a.State, a.Since, a.Task, a.Note, a.Doing = pty.AgentStarting, r.now, "", "", ""
	a.First, a.FirstKey, a.Came = false, "", false
	a.Asks, a.Silence, a.Pause, a.Leaves = nil, Silence{}, Pause{}, LeavesToReturn
	return a, true
}

// departed remembers an agent that is no more, and gives its task back.
func (r *step) departed(a Agent) {
	if w, ok := r.state.Works[a.Name]; ok {
		r.giveBack(w)
	}
	r.state.Left = maps.Clone(r.state.Left)
	if r.state.Left == nil {
		r.state.Left = map[string]Agent{}
	}
	r.state.Left[a.Name] = a
}

// giveBack gives a task back to the board, whatever is being done for it.
func (r *step) giveBack(w Work) {
	if w.Stage == StageMarking {
		return // its end is being written
	}
	if w.Over {
		r.free(w)
		return
	}
	if w.Stage == StagePrompting || w.Filed {
		r.emit(Effect{Kind: EffectRecall, Agent: w.Agent, Task: w.Task})
	}
	r.mark(w, TaskOpen, "")
}

// leaving follows the end of an agent that leaves: nobody starts it again but
// Apply.
func (r *step) leaving(a Agent) {
	a.Asks, a.Silence = nil, Silence{}
	a.Note = "it was ended, for the recipe was changed"
	r.state.Agents[a.Name] = a
	r.tell(Fact{Agent: a.Name, Text: fmt.Sprintf("%s has ended, for the recipe was changed", a.Name)})
}
