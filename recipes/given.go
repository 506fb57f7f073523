package recipes

import (
	"reflect"
	"slices"
	"strings"
)

// Given are the keys whose values differ from what counts without them, sorted,
// such as "limits.cost" and "agents.tools". What roles say is said of agents.
func (r *Recipe) Given() []string {
	var out []string
	given(reflect.ValueOf(r).Elem(), withDefaults(reflect.TypeFor[Recipe]()), "", &out)
	slices.Sort(out)
	return slices.Compact(out)
}

func given(v, empty reflect.Value, where string, out *[]string) {
	for _, f := range fieldsOf(v.Type()) {
		at, def, key := v.Field(f.index), empty.Field(f.index), strings.TrimPrefix(where+"."+f.key, ".")
		switch {
		case at.Kind() == reflect.Struct:
			given(at, def, key, out)
		case f.key == "agents" || f.keyedAgents():
			for i := range at.Len() {
				given(at.Index(i), withDefaults(f.object()), "agents", out)
			}
		case at.Kind() == reflect.Slice && at.IsNil():
		case !reflect.DeepEqual(at.Interface(), def.Interface()):
			*out = append(*out, key)
		}
	}
}
