package recipes

import (
	"reflect"
	"slices"
	"strings"
)

// A Change is a key whose value differs between two recipes, as a file has it.
type Change struct {
	Key  string `json:"key"` // such as limits.turns
	From string `json:"from"`
	To   string `json:"to"` // empty: it is not given any more
}

// A Delta is what makes one recipe into another.
type Delta struct {
	Added    []string            `json:"added"`    // agents, by name
	Removed  []string            `json:"removed"`  // agents, by name
	Changed  map[string][]Change `json:"changed"`  // agents that both have, by name
	Settings []Change            `json:"settings"` // everything else
}

// Empty tells that the recipes come to the same.
func (d Delta) Empty() bool {
	return len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.Settings) == 0
}

// Diff compares two recipes as runs have them: both are Resolved, and bound.
// Agents are the same by their name. Names, descriptions and parameters of the
// recipes make no difference, and of a role only its limits: the rest is in its
// agents.
func Diff(from, to *Recipe) Delta {
	d := Delta{Added: []string{}, Removed: []string{}, Changed: map[string][]Change{}, Settings: []Change{}}
	before := map[string]Agent{}
	for _, a := range from.Agents {
		before[a.Name] = a
		if !slices.ContainsFunc(to.Agents, func(b Agent) bool { return b.Name == a.Name }) {
			d.Removed = append(d.Removed, a.Name)
		}
	}
	for _, b := range to.Agents {
		a, ok := before[b.Name]
		if !ok {
			d.Added = append(d.Added, b.Name)
			continue
		}
		if changes := compare(reflect.ValueOf(a), reflect.ValueOf(b), ""); len(changes) > 0 {
			d.Changed[b.Name] = changes
		}
	}
	d.Settings = append(d.Settings, compare(reflect.ValueOf(*from), reflect.ValueOf(*to), "")...)
	d.Settings = append(d.Settings, roleLimits(from, to)...)
	return d
}

// compare walks two structs of the same type.
func compare(a, b reflect.Value, where string) []Change {
	var out []Change
	for _, f := range fieldsOf(a.Type()) {
		x, y, key := a.Field(f.index), b.Field(f.index), strings.TrimPrefix(where+"."+f.key, ".")
		top := where == "" && a.Type() == reflect.TypeFor[Recipe]()
		switch {
		case top && slices.Contains([]string{"name", "description", "params", "roles", "agents", "model", "extends"}, f.key):
		case x.Kind() == reflect.Struct:
			out = append(out, compare(x, y, key)...)
		case x.Kind() == reflect.Pointer && !x.IsNil() && !y.IsNil():
			out = append(out, compare(x.Elem(), y.Elem(), key)...)
		case !reflect.DeepEqual(x.Interface(), y.Interface()):
			out = append(out, Change{Key: key, From: f.shown(x), To: f.shown(y)})
		}
	}
	return out
}

// shown is a value as a line of a file.
func (f field) shown(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.Slice && v.IsNil():
		return ""
	case v.IsZero() && f.def == "" && v.Kind() == reflect.String:
		return ""
	}
	var w writer
	w.field("", f, v)
	text := strings.TrimSpace(strings.TrimPrefix(w.String(), f.key+":"))
	if text == "" && v.Kind() != reflect.Pointer && v.Kind() != reflect.Slice {
		return f.print(v)
	}
	return strings.Join(strings.Fields(text), " ")
}

func roleLimits(from, to *Recipe) []Change {
	limits := func(r *Recipe) map[string]Limits {
		out := map[string]Limits{}
		for i := range r.Roles {
			out[r.Roles[i].Name] = r.Roles[i].Limits
		}
		return out
	}
	was, is := limits(from), limits(to)
	names := []string{}
	for name := range was {
		names = append(names, name)
	}
	for name := range is {
		if _, ok := was[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []Change
	for _, name := range names {
		out = append(out, compare(reflect.ValueOf(was[name]), reflect.ValueOf(is[name]), "roles."+name+".limits")...)
	}
	return out
}
