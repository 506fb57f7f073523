package orchestrator

import (
	"fmt"

	"muntin/agent/pty"
)

// early tells whether an agent waits for others that have not come yet.
func (r *step) early(a Agent) bool { return r.state.before(a) != "" }

// before names the first agent that another one waits for; "" if there is none.
func (s State) before(a Agent) string {
	for _, name := range a.After {
		if b, ok := s.Agents[name]; ok && !b.Came {
			return name
		}
	}
	return ""
}

// firsts sends first prompts to those whose time has come. Agents that depend on
// none have theirs from the start.
func (r *step) firsts() {
	for _, name := range r.state.Order {
		a := r.state.Agents[name]
		if !a.First || a.State != pty.AgentIdle || a.Pause.on() || r.over(a) != "" || r.early(a) {
			continue
		}
		a.First, a.FirstKey = false, r.emit(Effect{Kind: EffectFirst, Agent: name})
		r.state.Agents[name] = a
	}
}

// firstSent takes the end of the sending of a first prompt.
func (r *step) firstSent(key string, res Result) bool {
	for _, name := range r.state.Order {
		a := r.state.Agents[name]
		if a.FirstKey != key {
			continue
		}
		a.FirstKey = ""
		r.state.Agents[name] = a
		if !res.OK {
			r.tell(Fact{Agent: name, Bad: true, Text: fmt.Sprintf("%s did not take its first prompt: %s", name, res.Error)})
		}
		return true
	}
	return false
}
