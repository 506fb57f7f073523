package recipes

import (
	"reflect"
	"strings"
)

// A Command is something that a recipe would run.
type Command struct {
	Where string   // the key, such as "checks.task" or "agent claude"
	Argv  []string // a program and its arguments
	Shell string   // or a line for the shell
}

// Commands are all programs and shell lines that the recipe has in it, in its
// order: what a person has to look at before trusting it. Built-in agents, which
// run what their model asks for, and adapters, which name programs, are not
// among them.
func (r *Recipe) Commands() []Command {
	var out []Command
	collect(reflect.ValueOf(r.Resolved()).Elem(), "", &out)
	return out
}

func collect(v reflect.Value, where string, out *[]Command) {
	for _, f := range fieldsOf(v.Type()) {
		at, key := v.Field(f.index), strings.TrimPrefix(where+"."+f.key, ".")
		if at.Kind() == reflect.Pointer {
			if at.IsNil() {
				continue
			}
			at = at.Elem()
		}
		switch {
		case at.Kind() == reflect.Struct:
			collect(at, key, out)
		case f.key == "roles": // the agents have them
		case f.object() != nil:
			for i := range at.Len() {
				name := key
				if n := at.Index(i).FieldByName("Name"); n.IsValid() {
					name = strings.TrimSuffix(f.key, "s") + " " + n.String()
				}
				collect(at.Index(i), name, out)
			}
		case f.is == "argv" && at.Len() > 0:
			argv := make([]string, at.Len())
			for i := range argv {
				argv[i] = f.text(at.Index(i).String())
			}
			*out = append(*out, Command{Where: key, Argv: argv})
		case f.is == "shell" && at.Kind() == reflect.Slice:
			for i := range at.Len() {
				*out = append(*out, Command{Where: key, Shell: at.Index(i).String()})
			}
		case f.is == "shell" && !at.IsZero():
			*out = append(*out, Command{Where: key, Shell: at.String()})
		}
	}
}

// text is a text of a recipe as a file has it: with variables as ${name}.
func (f field) text(s string) string {
	return replaceMarks(strings.ReplaceAll(s, "${", "$${"), func(name string) string { return "${" + name + "}" })
}
