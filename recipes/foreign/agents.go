package foreign

import (
	"path/filepath"
	"slices"
	"strings"

	"muntin/recipes"
	"muntin/recipes/internal/tree"
)

// subagent reads a sub-agent of Claude Code: front matter, and the text of its
// system prompt. It becomes a role, with one agent of it.
func (im *importer) subagent(f File) {
	text := strings.ReplaceAll(strings.TrimPrefix(string(f.Text), "\ufeff"), "\r\n", "\n")
	start := tree.Place{Source: tree.NewSource(f.Name, f.Text), Line: 1, Col: 1}
	rest, ok := strings.CutPrefix(text, "---\n")
	head, body, closed := strings.Cut(rest, "\n---")
	if !ok || !closed || len(f.Text) > recipes.MaxSize {
		im.problems.Add(start, "want front matter: keys and values between two lines of \"---\", in a file of at most %d bytes", recipes.MaxSize)
		return
	}
	_, body, _ = strings.Cut(body, "\n")
	root := im.parse(File{f.Name, []byte("#\n" + head)}) // in its own line, so that places are right
	if root == nil {
		return
	}
	base := filepath.Base(f.Name)
	name := im.agentName(first(im.text(root, "name"), strings.TrimSuffix(base, ".md")))
	role := recipes.Agent{Name: name, System: strings.TrimSpace(clean(body))}
	im.model(root, &role)
	im.tools(root, &role)
	if description := im.text(root, "description"); description != "" && im.recipe.Description == "" {
		im.recipe.Description = description
	}
	im.rest(root, "")
	im.recipe.Roles = append(im.recipe.Roles, role)
	im.recipe.Agents = append(im.recipe.Agents, recipes.Agent{Name: name, Role: name})
}

// model takes the model over when it is the id of one.
func (im *importer) model(root *tree.Node, role *recipes.Agent) {
	n := root.Get("model")
	switch id := im.text(root, "model"); {
	case id == "" || id == "inherit":
	case strings.HasPrefix(id, "claude-") && recipes.IsModel("anthropic/"+id):
		role.Model = "anthropic/" + id
	default:
		im.lose(n.At, "model %s: a short name; write provider/id", id)
	}
}

// tools takes over those that the built-in agent has, under its names.
func (im *importer) tools(root *tree.Node, role *recipes.Agent) {
	names := map[string]string{
		"Read": "read", "Write": "write", "Edit": "edit", "MultiEdit": "edit", "Bash": "bash", "Grep": "grep", "Glob": "find", "LS": "ls",
	}
	n := root.Take("tools").Value
	if n == nil || n.Kind == tree.Null {
		return
	}
	var words []string
	for _, item := range list(n) {
		words = append(words, strings.Split(item.Text, ",")...)
	}
	role.Tools = []string{}
	for _, word := range words {
		word = strings.TrimSpace(word)
		tool, ok := names[word]
		switch {
		case word == "":
		case !ok:
			im.lose(n.At, "tools: the built-in agent has no %s", word)
		case !slices.Contains(role.Tools, tool):
			role.Tools = append(role.Tools, tool)
		}
	}
}

// goose reads a recipe of Goose: instructions, a prompt and parameters for one
// agent. Checks that it retries until they pass become mode loop.
func (im *importer) goose(f File) {
	root := im.parse(f)
	if root == nil {
		return
	}
	root.Take("version")
	r := im.recipe
	r.Name = slug(im.text(root, "title"), "")
	r.Description = strings.TrimSpace(im.text(root, "description"))
	var keys []string
	for _, n := range list(root.Take("parameters").Value) {
		if key := im.gooseParam(n); key != "" {
			keys = append(keys, key)
		}
	}
	a := recipes.Agent{Name: im.agentName(first(r.Name, "goose")), Role: recipes.RoleAssistant}
	at := root.At
	a.System = im.template(at, im.text(root, "instructions"), keys)
	a.Prompt = im.template(at, im.text(root, "prompt"), keys)
	if a.System == "" && a.Prompt == "" {
		im.problems.Add(root.At, "there are neither instructions nor a prompt")
		return
	}
	im.gooseSettings(root.Take("settings").Value, &a)
	im.gooseRetry(root.Take("retry").Value, &a)
	im.rest(root, "")
	r.Agents = append(r.Agents, a)
}

func (im *importer) gooseParam(n *tree.Node) string {
	if n.Kind != tree.Map {
		im.problems.Add(n.At, "parameters: want keys and values, got %s", n.Describe())
		return ""
	}
	key := im.text(n, "key")
	kind := im.text(n, "input_type")
	p := recipes.Param{Name: key, Type: recipes.ParamString, Description: im.text(n, "description")}
	if !recipes.IsParam(key) || slices.ContainsFunc(im.recipe.Params, func(o recipes.Param) bool { return o.Name == key }) {
		im.lose(n.At, "the parameter %s: its name is not possible here", key)
		return ""
	}
	switch kind {
	case "number":
		p.Type = recipes.ParamInt
	case "boolean":
		p.Type = recipes.ParamBool
	case "select":
		p.Type = recipes.ParamChoice
		for _, o := range list(n.Take("options").Value) {
			if text := clean(o.Text); !slices.Contains(p.Choices, text) {
				p.Choices = append(p.Choices, text)
			}
		}
		if len(p.Choices) == 0 {
			p.Type = recipes.ParamString
		}
	case "", "string":
	default:
		im.lose(n.At, "the parameter %s: the type %s; it is text here", key, kind)
	}
	n.Take("requirement") // without a default it is required
	if v := n.Get("default"); v != nil {
		text := im.text(n, "default")
		if err := p.Check(text); err != nil {
			im.lose(v.At, "the default of the parameter %s: %v", key, err)
		} else {
			p.Default = &text
		}
	}
	im.rest(n, "")
	im.recipe.Params = append(im.recipe.Params, p)
	return key
}

// template turns {{ key }} into ${key}.
func (im *importer) template(at tree.Place, text string, keys []string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "{{")
		out.WriteString(before)
		if !found {
			break
		}
		name, rest, closed := strings.Cut(after, "}}")
		switch key := strings.TrimSpace(name); {
		case closed && slices.Contains(keys, key):
			out.WriteString(recipes.Ref(key))
			text = rest
		default:
			im.lose(at, "the template {{%s: it stays in the text as it is", strings.TrimSpace(name[:min(len(name), 40)]))
			out.WriteString("{{")
			text = after
		}
	}
	if strings.Contains(out.String(), "{%") {
		im.lose(at, "the template {%%: it stays in the text as it is")
	}
	return out.String()
}

func (im *importer) gooseSettings(n *tree.Node, a *recipes.Agent) {
	if n == nil || n.Kind != tree.Map {
		return
	}
	provider, model := im.text(n, "goose_provider"), im.text(n, "goose_model")
	if full := provider + "/" + model; recipes.IsModel(full) {
		a.Model = full
	} else if provider+model != "" {
		im.lose(n.At, "settings: the model %s of %s", model, provider)
	}
	if v := n.Get("max_turns"); v != nil && v.Kind == tree.Int && v.Int > 0 && v.Int <= 1_000_000 {
		a.Limits.Turns = int(v.Int)
		n.Take("max_turns")
	}
	im.rest(n, "")
}

func (im *importer) gooseRetry(n *tree.Node, a *recipes.Agent) {
	if n == nil || n.Kind != tree.Map {
		return
	}
	var until []string
	for _, c := range list(n.Take("checks").Value) {
		if command := im.text(c, "command"); command != "" {
			until = append(until, command)
		}
	}
	rounds := 0
	if v := n.Get("max_retries"); v != nil && v.Kind == tree.Int && v.Int >= 1 && v.Int <= 1000 {
		rounds = int(v.Int)
		n.Take("max_retries")
	}
	switch {
	case len(until) == 0 || a.Prompt == "":
		im.lose(n.At, "retry: it needs a check that is a command, and a prompt")
	default:
		im.recipe.Mode = recipes.ModeLoop
		im.recipe.Loop = &recipes.Loop{Prompt: a.Prompt, Until: until[0], Max: rounds}
		if rounds == 0 {
			im.recipe.Loop.Max = 20
		}
		a.Prompt = ""
	}
	if len(until) > 1 {
		im.lose(n.At, "retry: the checks after the first")
	}
	im.rest(n, "")
}
