package recipes

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Reference is the table of all keys as Markdown, made from the same description
// as the reader. It is a part of docs/recipes.md.
func Reference() string {
	w := &reference{}
	w.table("A recipe", reflect.TypeFor[Recipe](), nil)
	for len(w.next) > 0 {
		s := w.next[0]
		w.next = w.next[1:]
		w.table("`"+s.path+"`", s.object(), s.without)
	}
	return w.String()
}

// A reference writes the tables, those of inner mappings after the outer ones.
type reference struct {
	strings.Builder
	next []spot
	seen []reflect.Type
}

func (w *reference) table(title string, t reflect.Type, without []string) {
	fmt.Fprintf(w, "### %s\n\n| key | value | default | what it is |\n| --- | --- | --- | --- |\n", title)
	for _, f := range fieldsOf(t) {
		if slices.Contains(without, f.key) {
			continue
		}
		def := ""
		if f.def != "" {
			def = "`" + f.def + "`"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", f.key, f.kind(), def, f.doc)
		if inner := f.object(); inner != nil && !slices.Contains(w.seen, inner) && !f.keyedAgents() {
			w.seen = append(w.seen, inner)
			w.next = append(w.next, spot{field: f, path: f.key})
		}
	}
	w.WriteByte('\n')
}

// keyedAgents tells the mapping of roles, whose keys the table of agents has.
func (f field) keyedAgents() bool { return f.keyed && len(f.without) > 0 }

// kind is what a value must be, for people.
func (f field) kind() string {
	text := f.one()
	switch t := f.object(); {
	case f.keyedAgents():
		return "names, each with the keys of an agent except " + strings.Join(f.without, ", ")
	case t != nil && f.keyed:
		return "names, each with keys"
	case t != nil && f.list():
		return "list of keys and values"
	case t != nil && f.scalar != "":
		return "text, or keys"
	case t != nil:
		return "keys"
	case f.is == "argv":
		return "list of words, never a shell line"
	case f.list():
		return "list: " + text
	}
	if f.vars != "" {
		text += ", with variables"
	}
	return text
}

// one is the kind of one value.
func (f field) one() string {
	kind, _, _ := strings.Cut(f.is, ":")
	switch kind {
	case "name":
		return "name"
	case "model":
		return "provider/id"
	case "shell":
		return "shell line"
	case "file", "path":
		return kind + " in the repository"
	case "variable":
		return "variable name"
	case "duration", "timeout":
		return "duration, such as 90s, 5m, 1h30m"
	case "size":
		return "size"
	case "event":
		return "`" + strings.Join(events(), "`, `") + "`"
	case "url", "word", "value":
		return kind
	}
	switch {
	case len(f.oneof) > 0:
		return "`" + strings.Join(f.oneof, "`, `") + "`"
	case f.typ.Kind() == reflect.Float64:
		return "number"
	case f.typ.Kind() == reflect.Bool:
		return "`true` or `false`"
	case f.ranged:
		return fmt.Sprintf("%d to %d", f.min, f.max)
	case f.typ.Kind() == reflect.Int:
		return "whole number"
	}
	return "text"
}
