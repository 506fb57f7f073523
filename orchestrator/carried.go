package orchestrator

import (
	"fmt"
	"slices"

	"muntin/recipes"
)

// CheckMode refuses what a run cannot do without: the mode, and agents that only
// an adapter names. It is the one place that says which of them are carried out.
func CheckMode(r *recipes.Recipe) error {
	if r.Mode != recipes.ModeWorkers {
		return fmt.Errorf("the recipe %s has \"mode: %s\", which this muntin does not carry out yet", r.Name, r.Mode)
	}
	for _, a := range r.Resolve() {
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
		"agents.depends_on",
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
