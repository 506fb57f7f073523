package recipes

import (
	"path"
	"slices"
	"strings"

	"muntin/internal/id"
	"muntin/internal/nearest"
	"muntin/recipes/internal/tree"
)

// validate reports what is wrong with values that were read and go together.
func (d *decoder) validate(r *Recipe) {
	top := d.at[r]
	at, given := d.at[&r.Version]
	switch {
	case !given:
		d.Add(top, "the version is missing: write \"muntin: %d\"", Version)
	case r.Version != Version && !d.Reported(at):
		d.Add(at, "recipe version %d: this muntin reads version %d", r.Version, Version)
	}
	d.hasName("recipe", &r.Name, top)
	if r.Board.Plan != "" && path.Clean(r.Board.Plan) == path.Clean(r.Board.Todo) {
		d.Add(d.first(top, &r.Board.Todo, &r.Board.Plan), "board.plan and board.todo are the same file %q", r.Board.Todo)
	}
	if r.Layout.Panes > 0 && slices.Contains([]string{LayoutTogether, LayoutWindows}, r.Layout.Style) {
		d.Add(d.at[&r.Layout.Panes], "layout: panes is for windows of several panes; %q says how many itself", r.Layout.Style)
	}
	for i := range r.Roles {
		d.hasName("role", &r.Roles[i].Name, top)
		if err := id.CheckName("role", r.Roles[i].Name); err != nil {
			d.Add(d.at[&r.Roles[i].Name], "%v", err)
		}
		d.agentValues(&r.Roles[i])
	}
	d.agentList(r, top)
	d.mode(r, top)
	d.dependencies(r)
	for i := range r.Hooks {
		d.missing(d.at[&r.Hooks[i]], "hook", map[string]bool{"on": r.Hooks[i].On == "", "run": r.Hooks[i].Run == nil})
	}
	for i := range r.Notify {
		n := &r.Notify[i]
		d.missing(d.at[n], "notification", map[string]bool{
			"on": n.On == nil, "by": n.By == "", "run": n.By == NotifyCommand && n.Run == nil, "url": n.By == NotifyWebhook && n.URL == "",
		})
	}
}

// missing reports the keys that must be there and are not.
func (d *decoder) missing(at tree.Place, what string, keys map[string]bool) {
	var names []string
	for key, is := range keys {
		if is {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	if len(names) > 0 && !d.Any() {
		d.Add(at, "the %s has no %s", what, strings.Join(names, " and no "))
	}
}

func (d *decoder) agentList(r *Recipe, top tree.Place) {
	at, given := d.at[&r.Agents]
	if len(r.Agents) == 0 {
		if !given {
			at = top
		}
		if !given || r.Agents != nil {
			d.Add(at, "a recipe needs at least one agent")
		}
		return
	}
	total := 0
	seen := map[string]tree.Place{}
	for i := range r.Agents {
		a := &r.Agents[i]
		d.hasName("agent", &a.Name, d.at[a])
		d.agentValues(a)
		d.role(r, a)
		total += max(a.Count, 1)
		d.duplicates(a, seen)
	}
	if total > MaxAgents {
		d.Add(at, "%d agents are more than the limit of %d", total, MaxAgents)
	}
}

// duplicates reports names that two agents would have.
func (d *decoder) duplicates(a *Agent, seen map[string]tree.Place) {
	if a.Name == "" {
		return
	}
	at := d.first(d.at[a], &a.Name)
	names := a.expandNames()
	for _, one := range names {
		if before, ok := seen[one]; ok {
			d.Add(at, "agent name %q is taken by the agent in line %d", one, before.Line)
			return
		}
		seen[one] = at
	}
	last := names[len(names)-1]
	if id.CheckName("agent", a.Name) == nil && id.CheckName("agent", last) != nil {
		d.Add(at, "agent name %q is too long for a count of %d: the last would be %q, %d characters are the limit", a.Name, a.Count, last, id.MaxName)
	}
}

// role reports a role that the recipe with roles of its own does not have.
func (d *decoder) role(r *Recipe, a *Agent) {
	known := []string{RoleWorker, RolePlanner, RoleAssistant}
	for i := range r.Roles {
		known = append(known, r.Roles[i].Name)
	}
	at, given := d.at[&a.Role]
	if !given || len(r.Roles) == 0 || slices.Contains(known, a.Role) || d.Reported(at) {
		return
	}
	if near := nearest.Of(a.Role, known); near != "" {
		d.Add(at, "unknown role %q: did you mean %q?", a.Role, near)
		return
	}
	d.Add(at, "unknown role %q: the roles here are %s", a.Role, strings.Join(known, ", "))
}

// agentValues checks the values of an agent, or of a role, that exclude each other.
func (d *decoder) agentValues(a *Agent) {
	if at, given := d.at[&a.Command]; given {
		if a.Model != "" {
			d.Add(at, "model and command exclude each other: a model is for a built-in agent, a command is an outside one")
		}
		if a.System != "" && a.Adapter == "" {
			d.Add(d.at[&a.System], "system is for built-in agents; an outside command has options of its own")
		}
	}
	if a.Prompt != "" && a.PromptFile != "" {
		d.Add(d.at[&a.PromptFile], "prompt and prompt_file exclude each other")
	}
	if a.Ready != nil && a.Ready.Text == "" && a.Ready.Check == "" {
		d.Add(d.at[&a.Ready], "ready: want a text on the screen or a check")
	}
}

// mode checks the settings of the modes.
func (d *decoder) mode(r *Recipe, top tree.Place) {
	at := d.first(top, &r.Mode)
	switch r.Mode {
	case ModeRace:
		if r.Race.Choose == ChooseJudge && r.Race.Judge == "" {
			d.Add(d.first(at, &r.Race.Choose), "race: a judge chooses, and none is named: write \"judge: <role>\"")
		}
		if r.Race.Judge != "" {
			d.someRole(r, "race.judge", r.Race.Judge, d.first(at, &r.Race.Judge))
		}
	case ModeReview:
		d.someRole(r, "review.role", r.Review.Role, d.first(at, &r.Review.Role))
	case ModeLoop:
		if !d.lenient && (r.Loop.Prompt == "" || r.Loop.Until == "") {
			d.Add(d.first(at, r.Loop), "mode loop needs loop.prompt and loop.until")
		}
	case ModeWorkers, ModePipeline:
	}
	for _, m := range []struct {
		mode  Mode
		at    any
		given bool
	}{{ModeRace, &r.Race, r.Race != nil}, {ModeReview, &r.Review, r.Review != nil}, {ModeLoop, &r.Loop, r.Loop != nil}} {
		// What a recipe that is extended says of another mode does no harm.
		if m.given && r.Mode != m.mode && r.Mode != "" && (at == top || d.at[m.at].Source == at.Source) {
			d.Add(d.at[m.at], "%s is for \"mode: %s\", the mode here is %s", m.mode, m.mode, r.Mode)
		}
	}
}

// someRole reports a role that neither an agent has nor the recipe describes.
func (d *decoder) someRole(r *Recipe, what, role string, at tree.Place) {
	var known []string
	for i := range r.Roles {
		known = append(known, r.Roles[i].Name)
	}
	for i := range r.Agents {
		if a := r.Agents[i].Role; a != "" && !slices.Contains(known, a) {
			known = append(known, a)
		}
	}
	if !slices.Contains(known, role) && !d.Reported(at) {
		d.Add(at, "%s: no agent has the role %q", what, role)
	}
}

// dependencies reports agents that wait for none, or for each other.
func (d *decoder) dependencies(r *Recipe) {
	flat := r.flatNames()
	var known []string
	for i := range r.Agents {
		known = append(known, r.Agents[i].Name)
	}
	after := map[string][]string{}
	for i := range r.Agents {
		a := r.complete(r.Agents[i])
		at := d.first(d.at[&r.Agents[i]], &r.Agents[i].DependsOn)
		for _, name := range a.DependsOn {
			switch near := nearest.Of(name, known); {
			case len(flat[name]) > 0:
				for _, one := range r.Agents[i].expandNames() {
					after[one] = append(after[one], flat[name]...)
				}
			case near != "":
				d.Add(at, "depends_on: there is no agent %q: did you mean %q?", name, near)
			default:
				d.Add(at, "depends_on: there is no agent %q", name)
			}
		}
	}
	for i := range r.Agents {
		if chain := cycle(r.Agents[i].expandNames()[0], after); chain != nil {
			d.Add(d.first(d.at[&r.Agents[i]], &r.Agents[i].DependsOn), "depends_on goes in a circle: %s", strings.Join(chain, " → "))
			return
		}
	}
}

// cycle is the way from a name back to itself, or nil.
func cycle(from string, after map[string][]string) []string {
	seen := map[string]bool{}
	var walk func(name string) []string
	walk = func(name string) []string {
		for _, next := range after[name] {
			if next == from {
				return []string{name, next}
			}
			if seen[next] {
				continue
			}
			seen[next] = true
			if chain := walk(next); chain != nil {
				return append([]string{name}, chain...)
			}
		}
		return nil
	}
	return walk(from)
}

// first is the place of the first of the fields that was given, or else at.
func (d *decoder) first(at tree.Place, fields ...any) tree.Place {
	for _, f := range fields {
		if p, ok := d.at[f]; ok {
			return p
		}
	}
	return at
}

// hasName reports a name that is not there.
func (d *decoder) hasName(what string, name *string, fallback tree.Place) {
	if _, given := d.at[name]; !given {
		d.Add(fallback, "the %s has no name", what)
	}
}
