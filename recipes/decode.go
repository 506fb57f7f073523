package recipes

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"muntin/internal/nearest"
	"muntin/recipes/internal/tree"
)

// A decoder turns the tree into a Recipe and remembers where each value came
// from, by the address of the field it went to.
type decoder struct {
	*tree.Problems
	at     map[any]tree.Place
	types  map[reflect.Type][]field
	values map[string]value // of the parameters

	lenient bool // parameters may be without a value
}

// A spot is a field of a mapping that is being read.
type spot struct {
	field
	path string // what errors call it: "board.plan"
}

func newDecoder(p *tree.Problems) *decoder {
	return &decoder{Problems: p, at: map[any]tree.Place{}, types: map[reflect.Type][]field{}, values: map[string]value{}}
}

func (d *decoder) fields(t reflect.Type) []field {
	if d.types[t] == nil {
		d.types[t] = fieldsOf(t)
	}
	return d.types[t]
}

// recipe reads a whole recipe. The parameters come first: all other texts may
// have their values in them.
func (d *decoder) recipe(root *tree.Node, o Options) *Recipe {
	r := &Recipe{}
	v := reflect.ValueOf(r).Elem()
	v.Set(withDefaults(v.Type()))
	params := tree.Node{Kind: tree.Map, At: root.At}
	rest := tree.Node{Kind: tree.Map, At: root.At}
	for _, pair := range root.Pairs {
		if pair.Key == "params" {
			params.Pairs = append(params.Pairs, pair)
		} else {
			rest.Pairs = append(rest.Pairs, pair)
		}
	}
	d.object(v, &params, spot{})
	d.setParams(r, o)
	d.object(v, &rest, spot{})
	d.modes(r)
	return r
}

// modes gives the present mode its settings.
func (d *decoder) modes(r *Recipe) {
	switch {
	case r.Mode == ModeRace && r.Race == nil:
		of := withDefaults(reflect.TypeFor[Race]()).Interface().(Race)
		r.Race = &of
	case r.Mode == ModeReview && r.Review == nil:
		of := withDefaults(reflect.TypeFor[Review]()).Interface().(Review)
		r.Review = &of
	case r.Mode == ModeLoop && r.Loop == nil:
		of := withDefaults(reflect.TypeFor[Loop]()).Interface().(Loop)
		r.Loop = &of
	}
}

// object reads the keys of a mapping into a struct; unknown ones are reported.
func (d *decoder) object(v reflect.Value, n *tree.Node, s spot) {
	d.at[v.Addr().Interface()] = n.At
	if n.Kind != tree.Map {
		d.Add(n.At, "want keys and values, got %s", n.Describe())
		return
	}
	fields := d.fields(v.Type())
	for _, pair := range n.Pairs {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == pair.Key })
		switch {
		case i < 0 || slices.Contains(s.without, pair.Key):
			d.unknownKey(pair, fields, s.without)
		case pair.Value.Kind == tree.Null:
			d.Add(pair.KeyAt, "%s has no value: give one, or leave the key out", pair.Key)
		default:
			at := spot{field: fields[i], path: pair.Key}
			if s.path != "" {
				at.path = s.path + "." + pair.Key
			}
			d.value(v.Field(fields[i].index), pair.Value, at)
		}
	}
}

func (d *decoder) unknownKey(pair tree.Pair, fields []field, without []string) {
	var known []string
	for _, f := range fields {
		if !slices.Contains(without, f.key) {
			known = append(known, f.key)
		}
	}
	if near := nearest.Of(pair.Key, known); near != "" {
		d.Add(pair.KeyAt, "unknown key %q: did you mean %q?", pair.Key, near)
		return
	}
	d.Add(pair.KeyAt, "unknown key %q: the keys here are %s", pair.Key, strings.Join(known, ", "))
}

// value reads one value into a field.
func (d *decoder) value(v reflect.Value, n *tree.Node, s spot) {
	d.at[v.Addr().Interface()] = n.At
	switch {
	case s.isDuration():
		d.duration(v, n, s)
	case s.object() != nil:
		d.structs(v, n, s)
	case s.list():
		d.list(v, n, s)
	case s.typ.Kind() == reflect.String:
		if text, ok := d.text(n, s); ok {
			v.SetString(text)
		}
	case s.typ.Kind() == reflect.Pointer: // *string
		if text, ok := d.text(n, s); ok {
			v.Set(reflect.ValueOf(&text))
		}
	case s.typ.Kind() == reflect.Float64:
		d.float(v, n, s)
	case s.typ.Kind() == reflect.Bool:
		d.boolean(v, n, s)
	case s.is == "size":
		d.size(v, n, s)
	default:
		d.integer(v, n, s)
	}
}

// structs reads a mapping, or several of them.
func (d *decoder) structs(v reflect.Value, n *tree.Node, s spot) {
	switch {
	case s.typ.Kind() == reflect.Pointer:
		v.Set(reflect.New(s.typ.Elem()))
		v.Elem().Set(withDefaults(s.typ.Elem()))
		d.object(v.Elem(), n, s)
	case s.typ.Kind() == reflect.Struct && s.scalar != "" && n.Scalar():
		fields := d.fields(s.typ)
		f := fields[slices.IndexFunc(fields, func(f field) bool { return f.key == s.scalar })]
		d.value(v.Field(f.index), n, spot{field: f, path: s.path})
	case s.typ.Kind() == reflect.Struct:
		d.object(v, n, s)
	case s.keyed:
		d.named(v, n, s)
	case n.Kind != tree.List:
		d.Add(n.At, "%s: want a list of %s, got %s", s.path, s.key, n.Describe())
	default:
		items := reflect.MakeSlice(s.typ, len(n.Items), len(n.Items)) // not grown later: fields are known by address
		v.Set(items)
		empty := withDefaults(s.typ.Elem())
		for i, item := range n.Items {
			items.Index(i).Set(empty)
			d.object(items.Index(i), item, spot{field: field{without: s.without}})
		}
	}
}

// named reads a mapping from names to items, which are structs with a Name.
func (d *decoder) named(v reflect.Value, n *tree.Node, s spot) {
	if n.Kind != tree.Map {
		d.Add(n.At, "%s: want names, each with keys and values, got %s", s.path, n.Describe())
		return
	}
	items := reflect.MakeSlice(s.typ, len(n.Pairs), len(n.Pairs))
	v.Set(items)
	empty := withDefaults(s.typ.Elem())
	for i, pair := range n.Pairs {
		item, name := items.Index(i), items.Index(i).FieldByName("Name")
		item.Set(empty)
		name.SetString(pair.Key)
		d.object(item, pair.Value, spot{field: field{without: s.without}})
		d.at[name.Addr().Interface()] = pair.KeyAt
	}
}

// text reads a string. Numbers and booleans are not taken for text: `check: true`
// would be a guess.
func (d *decoder) text(n *tree.Node, s spot) (string, bool) {
	literal := n.Kind == tree.Bool || n.Kind == tree.Int || n.Kind == tree.Float
	switch {
	case literal && s.is == "value":
		return n.Text, true
	case literal:
		d.Add(n.At, "want text, got %s: put it in quotes", n.Describe())
		return "", false
	case n.Kind != tree.Text:
		d.Add(n.At, "want text, got %s", n.Describe())
		return "", false
	}
	text, ok := d.expand(n, s)
	return text, ok && d.check(text, n.At, s)
}

// list reads a list of strings.
func (d *decoder) list(v reflect.Value, n *tree.Node, s spot) {
	if s.is == "argv" && n.Kind == tree.Text {
		d.splitHint(n, s)
		return
	}
	if n.Kind != tree.List {
		d.Add(n.At, "%s: want a list, got %s", s.path, n.Describe())
		return
	}
	out := make([]string, len(n.Items))
	for i, item := range n.Items {
		text, ok := d.text(item, s)
		out[i] = text
		if ok && s.is != "argv" && s.is != "shell" && slices.Contains(out[:i], text) {
			d.Add(item.At, "%s: %s is named twice", s.path, text)
		}
	}
	if s.is == "argv" && len(n.Items) > 0 && n.Items[0].Kind == tree.Text && out[0] == "" || s.is == "argv" && len(out) == 0 {
		d.Add(n.At, "%s: want a program and its arguments", s.path)
	}
	v.Set(reflect.ValueOf(out))
}

// splitHint refuses an argv that was written as a string. It would have to be
// split as a shell does it, so the list that was probably meant is told.
func (d *decoder) splitHint(n *tree.Node, s spot) {
	words := strings.Fields(n.Text)
	if len(words) == 0 || strings.ContainsAny(n.Text, "'\"\\$`|&;<>(){}*?#~") {
		d.Add(n.At, "%s: want a list of words, such as [bash, -i]; there is no shell to split text", s.path)
		return
	}
	d.Add(n.At, "%s: want a list of words: write [%s]", s.path, strings.Join(words, ", "))
}

func (d *decoder) boolean(v reflect.Value, n *tree.Node, s spot) {
	n, ok := d.typed(n, s)
	switch {
	case !ok:
	case n.Kind != tree.Bool:
		d.Add(n.At, "%s: want true or false, got %s", s.path, n.Describe())
	default:
		v.SetBool(n.Bool)
	}
}

func (d *decoder) integer(v reflect.Value, n *tree.Node, s spot) {
	n, ok := d.typed(n, s)
	switch {
	case !ok:
	case n.Kind != tree.Int:
		d.Add(n.At, "want a whole number, got %s", n.Describe())
	case n.Big:
		d.Add(n.At, "%s is out of range", n.Text)
	case s.ranged && (n.Int < s.min || n.Int > s.max):
		d.Add(n.At, "%s: %d is not between %d and %d", s.path, n.Int, s.min, s.max)
	case n.Int > 1<<31 && v.Kind() == reflect.Int || n.Int < -1<<31:
		d.Add(n.At, "%s is out of range", n.Text)
	default:
		v.SetInt(n.Int)
	}
}

// maxCost is a bound on slips, in US dollars.
const maxCost = 1_000_000

func (d *decoder) float(v reflect.Value, n *tree.Node, s spot) {
	n, ok := d.typed(n, s)
	f := n.Float
	switch {
	case !ok:
		return
	case n.Kind == tree.Int:
		f = float64(n.Int)
	case n.Kind != tree.Float:
		d.Add(n.At, "want a number, got %s", n.Describe())
		return
	}
	if !(f >= 0 && f <= maxCost) { // also what is no number
		d.Add(n.At, "%s: %s is not between 0 and %d", s.path, n.Text, maxCost)
		return
	}
	v.SetFloat(f)
}

// Bounds on slips such as 5000m.
const (
	maxTimeout  = 24 * time.Hour
	maxDuration = 365 * 24 * time.Hour
)

func (d *decoder) duration(v reflect.Value, n *tree.Node, s spot) {
	if n.Kind != tree.Text {
		d.Add(n.At, "want a duration such as 90s, 5m or 1h30m, got %s", n.Describe())
		return
	}
	text, ok := d.expand(n, s)
	if !ok {
		return
	}
	least, most := time.Duration(0), maxDuration
	if s.is == "timeout" {
		least, most = 1, maxTimeout
	}
	t, err := time.ParseDuration(text)
	switch {
	case err != nil:
		d.Add(n.At, "want a duration such as 90s, 5m or 1h30m, got %q", text)
	case t < least || t > most:
		d.Add(n.At, "%s: %v is not between %v and %v", s.path, t, least, most)
	default:
		v.SetInt(int64(t))
	}
}

func (d *decoder) size(v reflect.Value, n *tree.Node, s spot) {
	const want = "%s: want a size such as 512MiB or 2GB, got %s"
	switch n.Kind {
	case tree.Int:
		if n.Big || n.Int < 0 {
			d.Add(n.At, "%s is out of range", n.Text)
			return
		}
		v.SetInt(n.Int)
	case tree.Text:
		text, ok := d.expand(n, s)
		if !ok {
			return
		}
		bytes, ok := parseSize(text)
		if !ok {
			d.Add(n.At, want, s.path, quoted(text))
			return
		}
		v.SetInt(bytes)
	default:
		d.Add(n.At, want, s.path, n.Describe())
	}
}
