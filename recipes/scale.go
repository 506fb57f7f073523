package recipes

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNoRole says that no agent of a recipe has a role.
var ErrNoRole = errors.New("no agent has the role")

// Scale gives the recipe n agents of a role: the last ones go, or the last of
// them gets more beside it. Agents keep their names. The error matches ErrNoRole
// when there is none to make more of, and says so when n is out of range or the
// agents that others depend on would go.
func (r *Recipe) Scale(role string, n int) error {
	agents := slices.Clone(r.Agents)
	total, all, last := 0, 0, -1
	for i := range agents {
		all += max(agents[i].Count, 1)
		if r.complete(agents[i]).Role == role {
			total += max(agents[i].Count, 1)
			last = i
		}
	}
	switch {
	case last < 0:
		return fmt.Errorf("%w %s", ErrNoRole, role)
	case n < 0 || all-total+n < 1 || all-total+n > MaxAgents:
		return fmt.Errorf("a run has 1 to %d agents: %d of the role %s would make %d", MaxAgents, n, role, all-total+n)
	}
	if n > total {
		agents = r.grow(agents, last, n-total)
	} else {
		agents = r.shrink(agents, role, total-n)
	}
	out := *r
	out.Agents = agents
	flat := out.flatNames()
	for i := range agents {
		for _, name := range out.complete(agents[i]).DependsOn {
			if len(flat[name]) == 0 {
				return fmt.Errorf("agent %s depends on %s, which would go", agents[i].Name, name)
			}
		}
	}
	r.Agents = agents
	return nil
}

// grow adds more agents like the one at i.
func (r *Recipe) grow(agents []Agent, i, more int) []Agent {
	like := agents[i]
	if like.Count > 0 {
		agents[i].Count += more
		return agents
	}
	taken := map[string]bool{}
	for k := range agents {
		for _, name := range agents[k].expandNames() {
			taken[name] = true
		}
	}
	base := withoutNumber(like.Name)
	for k := 2; more > 0; k++ {
		name := fmt.Sprintf("%s-%d", base, k)
		if taken[name] {
			continue
		}
		like.Name = name
		i++
		agents = slices.Insert(agents, i, like)
		more--
	}
	return agents
}

// shrink takes agents of a role away, last first.
func (r *Recipe) shrink(agents []Agent, role string, less int) []Agent {
	for i := len(agents) - 1; i >= 0 && less > 0; i-- {
		if r.complete(agents[i]).Role != role {
			continue
		}
		n := max(agents[i].Count, 1)
		if n <= less {
			agents = slices.Delete(agents, i, i+1)
			less -= n
			continue
		}
		agents[i].Count -= less
		less = 0
	}
	return agents
}

// withoutNumber is a name without the -N that a count gave it.
func withoutNumber(name string) string {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	if i < len(name) && i > 1 && name[i-1] == '-' {
		return name[:i-1]
	}
	return name
}
