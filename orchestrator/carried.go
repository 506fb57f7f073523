package orchestrator

import (
	"fmt"

	"muntin/agent/adapter"
	"muntin/recipes"
)

// CheckMode refuses what a run cannot do without: agents that can take part in
// its mode, and a program for each of them. It is the one place that says which of
// them are carried out.
func CheckMode(r *recipes.Recipe) error {
	flow := flowOf(r.Resolved())
	for _, a := range r.Resolve() {
		if !flow.direct() && a.Isolation != recipes.IsolationWorktree && flow.hands(Agent{Name: a.Name, Role: a.Role}) {
			return fmt.Errorf("agent %s has \"isolation: %s\": in mode %s agents need worktrees of their own", a.Name, a.Isolation, r.Mode)
		}
		if !a.BuiltIn() && len(Program(a)) == 0 {
			return fmt.Errorf("agent %s: the adapter %s is of no program of its own: write the command too", a.Name, a.Adapter)
		}
	}
	return nil
}

// Program is the command line of an outside agent: its own, or the program that
// its adapter is for, which has the adapter's name. It is empty for a built-in
// agent, and for an adapter that fits many programs.
func Program(a recipes.Agent) []string {
	switch {
	case len(a.Command) > 0 || a.Adapter == "":
		return a.Command
	case a.Adapter == adapter.BuiltIn || a.Adapter == adapter.Generic || a.Adapter == adapter.Shell:
		return nil
	}
	return []string{a.Adapter}
}
