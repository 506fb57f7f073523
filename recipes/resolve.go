package recipes

import (
	"fmt"
	"reflect"
	"strconv"
)

// Vars are the variables of a run.
type Vars struct {
	Repo string // the absolute path of the repository's top
	Run  string
}

// Bind is a copy of the recipe with the values of ${repo} and ${run} in its
// texts. Those of ${agent} and ${index} come with Resolve.
func (r *Recipe) Bind(v Vars) *Recipe {
	out := *r
	bind(reflect.ValueOf(&out).Elem(), map[string]string{VarRepo: v.Repo, VarRun: v.Run})
	return &out
}

// Resolve is the flat list of agents a run starts: what an agent does not say
// itself is taken from its role, counts are expanded to <name>-1, <name>-2, …,
// and role, isolation, restarts and, for built-in agents, the recipe's model are
// filled in. To use another default model, set r.Model before. An agent that has
// no model even so keeps an empty one. Resolving twice changes nothing more.
func (r *Recipe) Resolve() []Agent {
	var out []Agent
	names := r.flatNames()
	for i := range r.Agents {
		a := r.complete(r.Agents[i])
		var after []string
		for _, name := range a.DependsOn {
			after = append(after, names[name]...)
		}
		a.DependsOn = after
		out = append(out, a.expand()...)
	}
	return out
}

// flatNames tells which agents each name of the recipe stands for.
func (r *Recipe) flatNames() map[string][]string {
	names := map[string][]string{}
	for i := range r.Agents {
		for _, one := range r.Agents[i].expandNames() {
			names[r.Agents[i].Name] = append(names[r.Agents[i].Name], one)
			if one != r.Agents[i].Name {
				names[one] = []string{one}
			}
		}
	}
	return names
}

// complete fills in what the agent's role and the recipe say about it.
func (r *Recipe) complete(a Agent) Agent {
	if a.Role == "" {
		a.Role = RoleWorker
	}
	for i := range r.Roles {
		if r.Roles[i].Name == a.Role {
			a.take(r.Roles[i])
		}
	}
	if a.Isolation == "" {
		a.Isolation = IsolationWorktree
	}
	if a.Restart == "" {
		a.Restart = RestartOnFailure
	}
	if a.Restarts == 0 {
		a.Restarts = defaultRestarts
	}
	if a.Model == "" && a.BuiltIn() {
		a.Model = r.Model
	}
	return a
}

// take gives the agent what its role says and it does not say itself. Of values
// that exclude each other, such as model and command, its own goes first.
func (a *Agent) take(role Agent) {
	if a.Command != nil {
		role.Model = ""
	}
	if a.Model != "" {
		role.Command = nil
	}
	if a.Prompt != "" {
		role.PromptFile = ""
	}
	if a.PromptFile != "" {
		role.Prompt = ""
	}
	role.Name, role.Count, role.Role = "", 0, ""
	fill(reflect.ValueOf(a).Elem(), reflect.ValueOf(role))
	if a.Command != nil && a.Adapter == "" {
		a.System = ""
	}
}

// fill sets the fields that are zero from those of another struct.
func fill(to, from reflect.Value) {
	for i := range to.NumField() {
		switch {
		case to.Field(i).Kind() == reflect.Struct:
			fill(to.Field(i), from.Field(i))
		case to.Field(i).IsZero():
			to.Field(i).Set(from.Field(i))
		}
	}
}

// Resolved is a copy of the recipe with the agents of Resolve: what a run
// writes down as its run.yaml. Bind it first.
func (r *Recipe) Resolved() *Recipe {
	out := *r
	out.Agents = r.Resolve()
	return &out
}

// expandNames are the names of the agents that expand makes.
func (a Agent) expandNames() []string {
	if a.Count == 0 {
		return []string{a.Name}
	}
	out := make([]string, a.Count)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", a.Name, i+1)
	}
	return out
}

// expand makes Count agents of one, each with its name and number in its texts.
func (a Agent) expand() []Agent {
	names := a.expandNames()
	a.Count = 0
	out := make([]Agent, len(names))
	for i := range out {
		out[i] = a
		out[i].Name = names[i]
		bind(reflect.ValueOf(&out[i]).Elem(), map[string]string{VarAgent: names[i], VarIndex: strconv.Itoa(i + 1)})
	}
	return out
}
