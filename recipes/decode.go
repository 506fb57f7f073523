package recipes

import (
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// A place is where a value stands in the file.
type place struct{ line, col int }

func placeOf(n ast.Node) place {
	t := n.GetToken()
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		t = m.Values[0].Key.GetToken() // the node's own is its first colon
	}
	return place{t.Position.Line, t.Position.Column}
}

// A decoder turns the tree into a Recipe and remembers where each value came
// from, by the address of the field it went to.
type decoder struct {
	*problems
	at map[any]place
}

func (d *decoder) addAt(p place, format string, args ...any) { d.add(p.line, p.col, format, args...) }

// A field is one key of a mapping and what reads its value.
type field struct {
	key  string
	read func(ast.Node)
}

func (d *decoder) recipe(root *ast.MappingNode) *Recipe {
	r := &Recipe{
		Board:        Board{Plan: DefaultPlan, Todo: DefaultTodo},
		Attempts:     DefaultAttempts,
		CheckTimeout: DefaultCheckTimeout,
		Layout:       LayoutAuto,
	}
	var short string
	d.at[r] = placeOf(root)
	d.mapping(root, []field{
		{"muntin", d.integer(&r.Version)},
		{"name", text(d, &r.Name)},
		{"description", text(d, &r.Description)},
		{"model", text(d, &r.Model)},
		{"board", d.board(&r.Board)},
		{"check", text(d, &short)},
		{"checks", d.checks(&r.Checks)},
		{"attempts", d.integer(&r.Attempts)},
		{"check_timeout", d.duration(&r.CheckTimeout)},
		{"layout", text(d, &r.Layout)},
		{"agents", d.agents(r)},
	})
	if at, ok := d.at[&short]; ok {
		if r.Checks.Task != "" {
			d.addAt(at, "check and checks.task say the same: keep one of them")
		}
		r.Checks.Task = short
		d.at[&r.Checks.Task] = at
	}
	return r
}

func (d *decoder) board(b *Board) func(ast.Node) {
	return func(n ast.Node) {
		d.mapping(n, []field{{"plan", text(d, &b.Plan)}, {"todo", text(d, &b.Todo)}, {"approve", text(d, &b.Approve)}})
	}
}

func (d *decoder) checks(c *Checks) func(ast.Node) {
	return func(n ast.Node) {
		d.mapping(n, []field{{"task", text(d, &c.Task)}, {"run", text(d, &c.Run)}})
	}
}

func (d *decoder) agents(r *Recipe) func(ast.Node) {
	return func(n ast.Node) {
		d.at[&r.Agents] = placeOf(n)
		list, ok := n.(*ast.SequenceNode)
		if !ok {
			d.addAt(placeOf(n), "agents: want a list of agents, got %s", describe(n))
			return
		}
		r.Agents = make([]Agent, len(list.Values)) // not grown later: fields are known by address
		for i, item := range list.Values {
			d.agent(&r.Agents[i], item)
		}
	}
}

func (d *decoder) agent(a *Agent, n ast.Node) {
	d.at[a] = placeOf(n)
	d.mapping(n, []field{
		{"name", text(d, &a.Name)},
		{"count", d.integer(&a.Count)},
		{"role", text(d, &a.Role)},
		{"model", text(d, &a.Model)},
		{"command", d.command(&a.Command)},
		{"prompt", text(d, &a.Prompt)},
		{"prompt_file", text(d, &a.PromptFile)},
		{"system", text(d, &a.System)},
		{"isolation", text(d, &a.Isolation)},
		{"env", d.list("env", &a.Env)},
		{"dir", text(d, &a.Dir)},
	})
}

// mapping reads the keys of a node; unknown ones are reported.
func (d *decoder) mapping(n ast.Node, fields []field) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.addAt(placeOf(n), "want keys and values, got %s", describe(n))
		return
	}
values:
	for _, kv := range m.Values {
		key := kv.Key.GetToken().Value
		for _, f := range fields {
			if f.key != key {
				continue
			}
			if kv.Value == nil || kv.Value.Type() == ast.NullType {
				d.addAt(placeOf(kv.Key), "%s has no value: give one, or leave the key out", key)
			} else {
				f.read(kv.Value)
			}
			continue values
		}
		d.unknownKey(placeOf(kv.Key), key, fields)
	}
}

func (d *decoder) unknownKey(at place, key string, fields []field) {
	var known []string
	for _, f := range fields {
		known = append(known, f.key)
	}
	if near := nearest(key, known); near != "" {
		d.addAt(at, "unknown key %q: did you mean %q?", key, near)
		return
	}
	d.addAt(at, "unknown key %q: the keys here are %s", key, strings.Join(known, ", "))
}

// text reads a string. Numbers and booleans are not taken for text: `check: true`
// would be a guess.
func text[T ~string](d *decoder, to *T) func(ast.Node) {
	return func(n ast.Node) {
		d.at[to] = placeOf(n)
		s, ok := d.stringOf(n)
		if ok {
			*to = T(s)
		}
	}
}

func (d *decoder) stringOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.SequenceNode, *ast.MappingNode, *ast.NullNode:
		d.addAt(placeOf(n), "want text, got %s", describe(n))
	default:
		d.addAt(placeOf(n), "want text, got %s: put it in quotes", describe(n))
	}
	return "", false
}

func (d *decoder) integer(to *int) func(ast.Node) {
	return func(n ast.Node) {
		d.at[to] = placeOf(n)
		if i, ok := n.(*ast.IntegerNode); ok {
			if v, ok := i.Value.(uint64); ok && v < 1<<31 {
				*to = int(v)
				return
			}
			if v, ok := i.Value.(int64); ok && v > -(1<<31) && v < 1<<31 {
				*to = int(v)
				return
			}
			d.addAt(placeOf(n), "%s is out of range", i.Token.Value)
			return
		}
		d.addAt(placeOf(n), "want a whole number, got %s", describe(n))
	}
}

func (d *decoder) duration(to *time.Duration) func(ast.Node) {
	return func(n ast.Node) {
		d.at[to] = placeOf(n)
		s, ok := n.(*ast.StringNode)
		if !ok {
			d.addAt(placeOf(n), "want a duration such as 90s, 5m or 1h30m, got %s", describe(n))
			return
		}
		v, err := time.ParseDuration(s.Value)
		if err != nil {
			d.addAt(placeOf(n), "want a duration such as 90s, 5m or 1h30m, got %q", s.Value)
			return
		}
		*to = v
	}
}

// list reads a list of strings.
func (d *decoder) list(key string, to *[]string) func(ast.Node) {
	return func(n ast.Node) {
		d.at[to] = placeOf(n)
		seq, ok := n.(*ast.SequenceNode)
		if !ok {
			d.addAt(placeOf(n), "%s: want a list, got %s", key, describe(n))
			return
		}
		out := make([]string, len(seq.Values))
		for i, item := range seq.Values {
			d.at[&out[i]] = placeOf(item)
			out[i], ok = d.stringOf(item)
			if !ok {
				out[i] = "invalid" // reported; keeps the checks of the list's content quiet
			}
		}
		*to = out
	}
}

// command reads an argv. A string would have to be split as a shell does it,
// so it is refused with the list that was probably meant.
func (d *decoder) command(to *[]string) func(ast.Node) {
	return func(n ast.Node) {
		s, ok := n.(*ast.StringNode)
		if !ok {
			d.list("command", to)(n)
			return
		}
		d.at[to] = placeOf(n)
		*to = []string{"invalid"} // reported
		words := strings.Fields(s.Value)
		if len(words) == 0 || strings.ContainsAny(s.Value, "'\"\\$`|&;<>(){}*?#~") {
			d.addAt(placeOf(n), "command: want a list of words, such as [bash, -i]; there is no shell to split text")
			return
		}
		d.addAt(placeOf(n), "command: want a list of words: write [%s]", strings.Join(words, ", "))
	}
}
