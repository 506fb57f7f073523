package orchestrator

import (
	"fmt"
	"slices"

	"muntin/recipes"
)

// CheckMode refuses what a run cannot do without: agents that cannot take part
// in its mode, and those that only an adapter names. It is the one place that says which of them are carried out.
func CheckMode(r *recipes.Recipe) error {
	flow := flowOf(r.Resolved())
	for _, a := range r.Resolve() {
		if !flow.direct() && a.Isolation != recipes.IsolationWorktree && flow.hands(Agent{Name: a.Name, Role: a.Role}) {
			return fmt.Errorf("agent %s has \"isolation: %s\": in mode %s agents need worktrees of their own", a.Name, a.Isolation, r.Mode)
		}
		if a.Adapter != "" && len(a.Command) == 0 {
			return fmt.Errorf("agent %s has an adapter and no command, which this muntin does not carry out yet: write the command too", a.Name)
		}
	}
	return nil
}

// notCarriedOut are the keys that have no effect yet. Whoever builds one takes it
// out of the list.
func notCarriedOut() []string {
	return []string{
		"layout.panes",
		"hooks", "notify",
	}
}

// NotCarriedOut are the keys of the recipe that have no effect yet.
func NotCarriedOut(r *recipes.Recipe) []string {
	keys := notCarriedOut()
	var out []string
	for _, key := range r.Given() {
		if slices.Contains(keys, key) {
			out = append(out, key)
		}
	}
	styles := []string{recipes.LayoutAuto, recipes.LayoutTogether, recipes.LayoutWindows}
	if !slices.Contains(styles, r.Layout.Style) {
		out = append(out, "layout.style")
	}
	return out
}
