package recipes

import (
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"muntin/internal/id"
)

// maxCheckTimeout is a bound on slips such as 5000m.
const maxCheckTimeout = 24 * time.Hour

// isModel tells provider/id: a provider's name and anything without spaces
// and control characters.
func isModel(s string) bool {
	provider, model, ok := strings.Cut(s, "/")
	return ok && id.Word(provider, id.Lower+id.Digits, id.Lower+id.Digits+"._-", len(provider)) &&
		model != "" && !strings.ContainsFunc(model, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

func isVariable(s string) bool {
	const letters = id.Lower + id.Upper + "_"
	return id.Word(s, letters, letters+id.Digits, len(s))
}

// validate reports what is wrong with values that were read.
func (d *decoder) validate(r *Recipe) {
	top := d.at[r]
	switch _, given := d.at[&r.Version]; {
	case !given:
		d.addAt(top, "the version is missing: write \"muntin: %d\"", Version)
	case r.Version != Version:
		d.addAt(d.at[&r.Version], "recipe version %d: this muntin reads version %d", r.Version, Version)
	}
	d.name("recipe", &r.Name, top)
	d.texts(&r.Description, &r.Checks.Task, &r.Checks.Run)
	d.model(&r.Model)
	d.file("board.plan", &r.Board.Plan)
	d.file("board.todo", &r.Board.Todo)
	if r.Board.Plan != "" && path.Clean(r.Board.Plan) == path.Clean(r.Board.Todo) {
		d.addAt(d.first(top, &r.Board.Todo, &r.Board.Plan), "board.plan and board.todo are the same file %q", r.Board.Todo)
	}
	if r.Attempts < 1 || r.Attempts > MaxAttempts {
		d.addAt(d.at[&r.Attempts], "attempts: %d is not between 1 and %d", r.Attempts, MaxAttempts)
	}
	if r.CheckTimeout <= 0 || r.CheckTimeout > maxCheckTimeout {
		d.addAt(d.at[&r.CheckTimeout], "check_timeout: %v is not between 1ns and %v", r.CheckTimeout, maxCheckTimeout)
	}
	oneOf(d, "board.approve", &r.Board.Approve, ApprovePerson, ApproveAuto)
	oneOf(d, "layout", &r.Layout, LayoutAuto, LayoutTogether, LayoutWindows)
	d.agentList(r, top)
}

func (d *decoder) agentList(r *Recipe, top place) {
	at, given := d.at[&r.Agents]
	if len(r.Agents) == 0 {
		if !given {
			at = top
		}
		if !given || r.Agents != nil {
			d.addAt(at, "a recipe needs at least one agent")
		}
		return
	}
	total := 0
	seen := map[string]place{}
	for i := range r.Agents {
		a := &r.Agents[i]
		d.validateAgent(a)
		if a.Count < 0 || a.Count > MaxAgents {
			continue // reported; not expanded
		}
		total += max(a.Count, 1)
		d.duplicates(a, seen)
	}
	if total > MaxAgents {
		d.addAt(at, "%d agents are more than the limit of %d", total, MaxAgents)
	}
}

// duplicates reports names that two agents would have.
func (d *decoder) duplicates(a *Agent, seen map[string]place) {
	if a.Name == "" {
		return
	}
	at := d.first(d.at[a], &a.Name)
	for _, one := range a.expand() {
		if before, ok := seen[one.Name]; ok {
			d.addAt(at, "agent name %q is taken by the agent in line %d", one.Name, before.line)
			return
		}
		seen[one.Name] = at
	}
	last := a.expand()[max(a.Count, 1)-1].Name
	if id.CheckName("agent", a.Name) == nil && id.CheckName("agent", last) != nil {
		d.addAt(at, "agent name %q is too long for a count of %d: the last would be %q, %d characters are the limit", a.Name, a.Count, last, id.MaxName)
	}
}

func (d *decoder) validateAgent(a *Agent) {
	at := d.at[a]
	d.name("agent", &a.Name, at)
	if _, given := d.at[&a.Role]; given {
		d.name("role", &a.Role, at)
	}
	if p, given := d.at[&a.Count]; given && (a.Count < 1 || a.Count > MaxAgents) {
		d.addAt(p, "count: %d is not between 1 and %d", a.Count, MaxAgents)
	}
	d.model(&a.Model)
	d.argv(a)
	d.texts(&a.Prompt, &a.System)
	if a.Prompt != "" && a.PromptFile != "" {
		d.addAt(d.at[&a.PromptFile], "prompt and prompt_file exclude each other")
	}
	d.file("prompt_file", &a.PromptFile)
	d.inside("dir", &a.Dir)
	oneOf(d, "isolation", &a.Isolation, IsolationWorktree, IsolationShared, IsolationNone)
	for i := range a.Env {
		d.envName(a.Env[i], d.at[&a.Env[i]])
		if slices.Contains(a.Env[:i], a.Env[i]) {
			d.addAt(d.at[&a.Env[i]], "env: %s is named twice", a.Env[i])
		}
	}
}

func (d *decoder) argv(a *Agent) {
	at, given := d.at[&a.Command]
	if !given {
		return
	}
	if a.Model != "" {
		d.addAt(at, "model and command exclude each other: a model is for a built-in agent, a command is an outside one")
	}
	if a.System != "" {
		d.addAt(d.at[&a.System], "system is for built-in agents; an outside command has options of its own")
	}
	if len(a.Command) == 0 && a.Command != nil || len(a.Command) > 0 && a.Command[0] == "" {
		d.addAt(at, "command: want a program and its arguments")
	}
	for i := range a.Command {
		if strings.ContainsRune(a.Command[i], 0) {
			d.addAt(d.at[&a.Command[i]], "command: an argument has a NUL byte in it")
		}
	}
}

func (d *decoder) envName(name string, at place) {
	if isVariable(name) {
		return
	}
	if key, _, ok := strings.Cut(name, "="); ok {
		d.addAt(at, "env: only names, never values: write %q and set it where muntin is started", key)
		return
	}
	d.addAt(at, "env: %q is no variable name", name)
}

// first is the place of the first of the fields that was given, or else at.
func (d *decoder) first(at place, fields ...any) place {
	for _, f := range fields {
		if p, ok := d.at[f]; ok {
			return p
		}
	}
	return at
}

func (d *decoder) name(what string, s *string, fallback place) {
	at, given := d.at[s]
	if !given {
		d.addAt(fallback, "the %s has no name", what)
		return
	}
	if *s == "" && d.reported(at) {
		return
	}
	if err := id.CheckName(what, *s); err != nil {
		d.addAt(at, "%v", err)
	}
}

// reported tells whether a problem at this place is known already.
func (d *decoder) reported(at place) bool {
	return slices.ContainsFunc(d.found, func(p Problem) bool { return p.Line == at.line && p.Col == at.col })
}

func (d *decoder) model(s *string) {
	at, given := d.at[s]
	if given && !d.reported(at) && !isModel(*s) {
		d.addAt(at, "model %q: want provider/id, such as openai/gpt-5", *s)
	}
}

// texts refuses control characters: these texts are shown and handed on.
func (d *decoder) texts(fields ...*string) {
	for _, s := range fields {
		bad := strings.IndexFunc(*s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' })
		if bad >= 0 {
			d.addAt(d.at[s], "the text has a control character in it")
		}
	}
}

func (d *decoder) file(what string, s *string) {
	if _, given := d.at[s]; given && d.inside(what, s) && path.Clean(*s) == "." {
		d.addAt(d.at[s], "%s: want a file, got %q", what, *s)
	}
}

// inside checks that a path stays inside the repository and out of git's own folder.
func (d *decoder) inside(what string, s *string) bool {
	at, given := d.at[s]
	if !given || d.reported(at) {
		return false
	}
	clean := path.Clean(*s)
	switch {
	case *s == "":
		d.addAt(at, "%s: the path is empty", what)
	case strings.ContainsFunc(*s, unicode.IsControl):
		d.addAt(at, "%s: the path has a control character in it", what)
	case path.IsAbs(*s) || strings.HasPrefix(*s, "~"):
		d.addAt(at, "%s: %q is not relative to the top of the repository", what, *s)
	case clean == ".." || strings.HasPrefix(clean, "../"):
		d.addAt(at, "%s: %q leaves the repository", what, *s)
	case slices.ContainsFunc(strings.Split(clean, "/"), func(e string) bool { return strings.EqualFold(e, ".git") }):
		d.addAt(at, "%s: %q is git's own", what, *s)
	default:
		return true
	}
	return false
}

// oneOf checks a value that was given against the words it may be.
func oneOf[T ~string](d *decoder, what string, s *T, allowed ...T) {
	at, given := d.at[s]
	if !given || d.reported(at) || slices.Contains(allowed, *s) {
		return
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	d.addAt(at, "%s: %q is none of %s", what, string(*s), strings.Join(words, ", "))
}
