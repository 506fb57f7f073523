package recipes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"muntin/internal/id"
	"muntin/internal/nearest"
	"muntin/recipes/internal/tree"
)

// The types of parameters.
const (
	ParamInt    = "int"
	ParamString = "string"
	ParamBool   = "bool"
	ParamPath   = "path"
	ParamChoice = "choice"
)

// The variables that texts may hold besides parameters: the absolute path of the
// repository, the run's name, the agent's, and its number, which counts from 1
// among the agents of one count.
const (
	VarRepo  = "repo"
	VarRun   = "run"
	VarAgent = "agent"
	VarIndex = "index"
)

func variables() []string { return []string{VarRepo, VarRun, VarAgent, VarIndex} }

// Check tells what is wrong with a value for the parameter, or returns nil.
func (p Param) Check(text string) error {
	if strings.ContainsFunc(text, isControl) {
		return errors.New("the value has a control character in it")
	}
	switch p.Type {
	case ParamInt:
		if _, err := strconv.ParseInt(text, 10, 32); err != nil {
			return fmt.Errorf("want a whole number, got %s", quoted(text))
		}
	case ParamBool:
		if text != "true" && text != "false" {
			return fmt.Errorf("want true or false, got %s", quoted(text))
		}
	case ParamPath:
		if problem := outside(text); problem != "" {
			return errors.New(problem)
		}
	case ParamChoice:
		if !slices.Contains(p.Choices, text) {
			return fmt.Errorf("%s is none of %s", quoted(text), strings.Join(p.Choices, ", "))
		}
	}
	return nil
}

// A value is what a parameter stands for.
type value struct {
	typ  string
	text string
	bad  bool // reported already
}

// isParam tells the name of a parameter or variable.
func isParam(s string) bool { return id.Word(s, id.Lower, id.Lower+id.Digits+"_-", id.MaxName) }

// setParams finds the values of the parameters: what o gives, else the default,
// else what a person answers. The values become the defaults.
func (d *decoder) setParams(r *Recipe, o Options) {
	var known []string
	for i := range r.Params {
		p := &r.Params[i]
		known = append(known, p.Name)
		d.values[p.Name] = d.setParam(p, o)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Set)) {
		if slices.Contains(known, name) {
			continue
		}
		switch near := nearest.Of(name, known); {
		case near != "":
			d.AddAbout("--set "+name, "the recipe has no such parameter: did you mean %q?", near)
		case len(known) == 0:
			d.AddAbout("--set "+name, "the recipe has no parameters")
		default:
			d.AddAbout("--set "+name, "the recipe has no such parameter: it has %s", strings.Join(known, ", "))
		}
	}
}

func (d *decoder) setParam(p *Param, o Options) value {
	bad := value{typ: p.Type, bad: true}
	at := d.at[&p.Name]
	switch {
	case !isParam(p.Name):
		d.Add(at, "parameter name %s: want a letter, then at most %d of a-z, 0-9, '-' and '_'", quoted(p.Name), id.MaxName-1)
	case slices.Contains(variables(), p.Name):
		d.Add(at, "parameter name %q: ${%s} is a variable of muntin's own", p.Name, p.Name)
	case p.Type == ParamChoice && len(p.Choices) == 0:
		d.Add(at, "parameter %s is a choice and has no choices", p.Name)
		return bad
	case p.Type != ParamChoice && p.Choices != nil:
		d.Add(d.at[&p.Choices], "parameter %s has choices: that needs \"type: choice\"", p.Name)
	}
	if p.Default != nil {
		if err := p.Check(*p.Default); err != nil {
			d.Add(d.at[&p.Default], "parameter %s: %v", p.Name, err)
			return bad
		}
	}
	given, ok := o.Set[p.Name]
	if ok {
		if err := p.Check(given); err != nil {
			d.AddAbout("--set "+p.Name, "%v", err)
			return bad
		}
		p.Default = &given
	}
	if p.Default == nil {
		p.Default = d.ask(*p, at, o)
	}
	if p.Default == nil {
		return bad
	}
	return value{typ: p.Type, text: *p.Default}
}

// ask gets the value of a parameter from a person, or reports that it has none.
func (d *decoder) ask(p Param, at tree.Place, o Options) *string {
	switch {
	case d.lenient || d.Any():
		return nil // nobody is asked about a recipe that cannot be used
	case o.Ask == nil:
		d.Add(at, "parameter %s has no value: give one with --set %s=…", p.Name, p.Name)
		return nil
	}
	text, err := o.Ask(p)
	if err == nil {
		err = p.Check(text)
	}
	if err != nil {
		d.Add(at, "parameter %s: %v", p.Name, err)
		return nil
	}
	return &text
}

// expand puts the values of parameters into a text, and marks for the variables,
// whose values are known later (see bind). A shell's text is the shell's, which
// has such variables of its own: only a parameter that is the whole text is
// replaced there.
func (d *decoder) expand(n *tree.Node, s spot) (string, bool) {
	text := n.Text
	if strings.Contains(text, "\x00") {
		d.Add(n.At, "the text has a control character in it")
		return "", false
	}
	if s.raw || !strings.Contains(text, "${") {
		return text, true
	}
	if s.is == "shell" {
		name, dollars := wholeRef(text)
		if dollars != 1 {
			return text[min(dollars, 1):], true
		}
		return d.reference(n.At, name, s)
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			out.WriteString(before)
			return out.String(), true
		}
		if literal, ok := strings.CutSuffix(before, "$"); ok {
			out.WriteString(literal + "${")
			text = after
			continue
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			name = "" // no name
		}
		value, ok := d.reference(n.At, name, s)
		if !ok {
			return "", false
		}
		out.WriteString(before + value)
		text = rest
	}
}

// wholeRef takes a text apart that is ${name}, perhaps with further dollars
// before it. Without any it is another text.
func wholeRef(text string) (name string, dollars int) {
	rest := strings.TrimLeft(text, "$")
	dollars = len(text) - len(rest)
	name, ok := strings.CutPrefix(rest, "{")
	name, closed := strings.CutSuffix(name, "}")
	if !ok || !closed || !isParam(name) {
		return "", 0
	}
	return name, dollars
}

// reference is what stands for ${name} in a text.
func (d *decoder) reference(at tree.Place, name string, s spot) (string, bool) {
	if v, ok := d.values[name]; ok {
		return v.text, !v.bad
	}
	switch {
	case slices.Contains(variables(), name):
		if s.vars == "agent" || s.vars == "run" && (name == VarRepo || name == VarRun) {
			return mark(name), true
		}
		d.Add(at, "${%s} has no value here", name)
	case !isParam(name):
		d.Add(at, "\"${\" begins the name of a parameter, as in ${n}: write \"$${\" for the characters themselves")
	default:
		known := append(slices.Sorted(maps.Keys(d.values)), variables()...)
		if near := nearest.Of(name, known); near != "" {
			d.Add(at, "${%s}: there is no such parameter: did you mean ${%s}? (\"$${\" stands for the characters themselves)", name, near)
		} else {
			d.Add(at, "${%s}: there is no such parameter; write \"$${\" for the characters themselves", name)
		}
	}
	return "", false
}

// typed is a number or boolean as it stands there, or that of the parameter that
// is the whole text. The value is not parsed as YAML: its type is the parameter's.
func (d *decoder) typed(n *tree.Node, s spot) (*tree.Node, bool) {
	name, dollars := wholeRef(n.Text)
	if n.Kind != tree.Text || dollars != 1 {
		return n, true
	}
	v, ok := d.values[name]
	switch {
	case !ok:
		_, _ = d.reference(n.At, name, spot{field: field{is: s.is}})
		return n, false
	case v.bad:
		return n, false
	case v.typ != ParamInt:
		d.Add(n.At, "%s: the parameter %s is of the type %s, want int", s.path, name, v.typ)
		return n, false
	}
	i, err := strconv.ParseInt(v.text, 10, 64)
	if err != nil {
		panic("a checked number that is none: " + err.Error())
	}
	return &tree.Node{Kind: tree.Int, Text: v.text, Int: i, At: n.At}, true
}

// IsParam reports whether a parameter can have the name.
func IsParam(name string) bool { return isParam(name) && !slices.Contains(variables(), name) }

// Ref is what stands for ${name} in a text of a recipe that a program makes.
func Ref(name string) string { return mark(name) }
