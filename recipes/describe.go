package recipes

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

// A field is one key of a mapping: what its struct tag says.
type field struct {
	index   int
	key     string
	typ     reflect.Type
	is      string
	doc     string
	def     string // "" is no default
	oneof   []string
	ranged  bool
	min     int64
	max     int64
	vars    string
	scalar  string
	keyed   bool
	without []string
	raw     bool // no parameters in its text
}

// fieldsOf reads the description of a struct type. A tag that cannot be is a
// slip in this package, which every test would find.
func fieldsOf(t reflect.Type) []field {
	out := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag
		f := field{
			index: i, key: tag.Get("key"), typ: sf.Type, is: tag.Get("is"), doc: tag.Get("doc"), def: tag.Get("default"),
			oneof: strings.Fields(tag.Get("oneof")), vars: tag.Get("vars"), scalar: tag.Get("scalar"),
			without: strings.Fields(tag.Get("without")), raw: t == reflect.TypeFor[Param](),
		}
		if f.key == "" {
			continue
		}
		_, f.keyed = tag.Lookup("keyed")
		if low, high, ok := strings.Cut(tag.Get("range"), " "); ok {
			f.ranged = true
			f.min, f.max = number(low), number(high)
		}
		out = append(out, f)
	}
	return out
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic("a struct tag with a bad number: " + err.Error())
	}
	return n
}

// object is the struct type of a field's value or items, or nil.
func (f field) object() reflect.Type {
	t := f.typ
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

func (f field) isDuration() bool { return f.typ == reflect.TypeFor[time.Duration]() }

// list tells a list of scalars or of mappings that is written as one.
func (f field) list() bool { return f.typ.Kind() == reflect.Slice && !f.keyed }

// withDefaults is a struct whose fields, and those of structs in it, have the
// values that count when a file does not give them.
func withDefaults(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	for _, f := range fieldsOf(t) {
		at := v.Field(f.index)
		switch {
		case f.typ.Kind() == reflect.Struct:
			at.Set(withDefaults(f.typ))
		case f.def == "":
		case f.isDuration():
			d, err := time.ParseDuration(f.def)
			if err != nil {
				panic("a struct tag with a bad duration: " + err.Error())
			}
			at.SetInt(int64(d))
		case f.typ.Kind() == reflect.String:
			at.SetString(f.def)
		default:
			at.SetInt(number(f.def))
		}
	}
	return v
}

// FillDefaults gives the keys that are empty the values that count when a file
// does not give them: for a recipe that a program makes.
func (r *Recipe) FillDefaults() {
	fill(reflect.ValueOf(r).Elem(), withDefaults(reflect.TypeFor[Recipe]()))
}
