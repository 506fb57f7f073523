package recipes

import (
	"reflect"
	"strings"
)

// A variable in a text that was read is its name between two NULs, which no text
// can have otherwise. So what a text says itself, as "$${agent}" in a file,
// can never be taken for one.
const nul = "\x00"

func mark(name string) string { return nul + name + nul }

// replaceMarks puts what value gives in place of the variables.
func replaceMarks(s string, value func(name string) string) string {
	if !strings.Contains(s, nul) {
		return s
	}
	var out strings.Builder
	for i, part := range strings.Split(s, nul) {
		if i%2 == 1 {
			part = value(part)
		}
		out.WriteString(part)
	}
	return out.String()
}

// unmarked is a text as it could be, for checks of its form.
func unmarked(s string) string { return replaceMarks(s, func(string) string { return "x" }) }

// bind puts the values of variables into all texts below v; other variables stay.
// What it changes it copies first: lists and structs behind pointers may be
// shared with the recipe that v is a copy of.
func bind(v reflect.Value, values map[string]string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(replaceMarks(v.String(), func(name string) string {
			if value, ok := values[name]; ok {
				return value
			}
			return mark(name)
		}))
	case reflect.Struct:
		for i := range v.NumField() {
			bind(v.Field(i), values)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			c := reflect.New(v.Type().Elem())
			c.Elem().Set(v.Elem())
			bind(c.Elem(), values)
			v.Set(c)
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		for i := range c.Len() {
			bind(c.Index(i), values)
		}
		v.Set(c)
	}
}
