package recipes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Schema is the JSON Schema (draft 2020-12, https://json-schema.org/draft/2020-12)
// of recipes, for editors. It is made from the same description as the reader and
// takes all that the reader takes; the reader finds more mistakes.
func Schema() []byte {
	g := schema{defs: map[string]any{}}
	root := g.object(reflect.TypeFor[Recipe](), nil)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = fmt.Sprintf("muntin recipe, version %d", Version)
	root["$defs"] = g.defs
	root["required"] = []string{"muntin"}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic("a schema that is no JSON: " + err.Error()) // cannot be
	}
	return out.Bytes()
}

// A schema collects the definitions of kinds of mappings.
type schema struct {
	defs map[string]any
}

// object is the schema of a mapping.
func (g schema) object(t reflect.Type, without []string) map[string]any {
	properties := map[string]any{}
	for _, f := range fieldsOf(t) {
		if !slices.Contains(without, f.key) {
			properties[f.key] = g.field(f)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// ref is a reference to the schema of a mapping.
func (g schema) ref(t reflect.Type, without []string) map[string]any {
	name := t.Name()
	if len(without) > 0 {
		name = "Shared" + name
	}
	if _, ok := g.defs[name]; !ok {
		g.defs[name] = g.object(t, without)
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

func (g schema) field(f field) map[string]any {
	var out map[string]any
	t := f.object()
	switch {
	case t != nil && f.keyed:
		out = map[string]any{"type": "object", "additionalProperties": g.ref(t, f.without)}
	case t != nil && f.list():
		out = map[string]any{"type": "array", "items": g.ref(t, f.without)}
	case t != nil && f.scalar != "":
		inner := fieldsOf(t)
		short := inner[slices.IndexFunc(inner, func(i field) bool { return i.key == f.scalar })]
		out = map[string]any{"anyOf": []any{short.scalarSchema(), g.ref(t, nil)}}
	case t != nil:
		out = g.ref(t, nil)
	case f.list():
		out = map[string]any{"type": "array", "items": f.scalarSchema()}
		if f.is == "argv" {
			out["minItems"] = 1
		}
	default:
		out = f.scalarSchema()
	}
	out["description"] = f.doc
	if f.def != "" {
		out["default"] = f.defaultValue()
	}
	return out
}

// parameter is the pattern of a value that a parameter stands for.
const parameter = `^\$\{[a-z][a-z0-9_-]*\}$`

// scalarSchema is the schema of one value.
func (f field) scalarSchema() map[string]any {
	kind := f.typ.Kind()
	switch {
	case f.key == "muntin":
		return map[string]any{"const": Version}
	case f.is == "value":
		return map[string]any{"type": []string{"string", "number", "boolean"}}
	case f.is == "size":
		return map[string]any{"type": []string{"string", "integer"}}
	case f.is == "event":
		return map[string]any{"enum": events()}
	case f.isDuration() || kind == reflect.String && len(f.oneof) == 0 || kind == reflect.Slice || kind == reflect.Pointer:
		return map[string]any{"type": "string"}
	case len(f.oneof) > 0 && f.raw:
		return map[string]any{"enum": f.oneof}
	case len(f.oneof) > 0:
		return map[string]any{"anyOf": []any{map[string]any{"enum": f.oneof}, map[string]any{"type": "string", "pattern": parameter}}}
	}
	number := map[string]any{"type": "integer"}
	if kind == reflect.Bool {
		number = map[string]any{"type": "boolean"}
	}
	if kind == reflect.Float64 {
		number = map[string]any{"type": "number", "minimum": 0}
	}
	if f.ranged {
		number["minimum"], number["maximum"] = f.min, f.max
	}
	return map[string]any{"anyOf": []any{number, map[string]any{"type": "string", "pattern": parameter}}}
}

func (f field) defaultValue() any {
	if f.typ.Kind() == reflect.String || f.isDuration() {
		return f.def
	}
	return number(f.def)
}
