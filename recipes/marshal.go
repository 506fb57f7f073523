package recipes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"muntin/internal/id"
)

// isPlain tells text that YAML reads as itself without quotes.
func isPlain(s string) bool {
	const letters = id.Lower + id.Upper
	return id.Word(s, letters, letters+id.Digits+"_./-", len(s))
}

// Marshal writes the recipe as YAML that Parse reads back to the same. It does
// not use the YAML library's printer, which loses tabs and guesses at types;
// text that could be anything else is quoted as in JSON, which YAML includes.
func (r *Recipe) Marshal() ([]byte, error) {
	w := &writer{}
	w.object("", reflect.ValueOf(r).Elem(), nil)
	if _, err := parse(r.Name, w.Bytes(), true); err != nil { // a required parameter is still without a value
		return nil, fmt.Errorf("writing recipe: %w", err)
	}
	return w.Bytes(), nil
}

// A writer makes the YAML. Values that are empty without being given are left out.
type writer struct{ bytes.Buffer }

// object writes the keys of a struct, one a line.
func (w *writer) object(indent string, v reflect.Value, without []string) {
	for _, f := range fieldsOf(v.Type()) {
		if !slices.Contains(without, f.key) {
			w.field(indent, f, v.Field(f.index))
		}
	}
}

func (w *writer) field(indent string, f field, v reflect.Value) {
	const in = "  "
	kind := v.Kind()
	if kind == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Struct:
		if text, ok := f.asScalar(v); ok {
			w.line(indent, f.key, text)
			return
		}
		var inner writer
		inner.object(indent+in, v, nil)
		if inner.Len() > 0 {
			w.line(indent, f.key, "")
			w.Write(inner.Bytes())
		} else if kind == reflect.Pointer {
			w.line(indent, f.key, "{}")
		}
	case v.Kind() == reflect.Slice:
		if !v.IsNil() {
			w.items(indent, f, v)
		}
	case kind == reflect.Pointer || !v.IsZero() || f.def != "":
		w.line(indent, f.key, f.print(v))
	}
}

// asScalar is the short form of a mapping of which only one key says something.
func (f field) asScalar(v reflect.Value) (string, bool) {
	if f.scalar == "" {
		return "", false
	}
	out := ""
	for _, inner := range fieldsOf(v.Type()) {
		switch at := v.Field(inner.index); {
		case inner.key == f.scalar:
			out = inner.print(at)
		case !at.IsZero():
			return "", false
		}
	}
	return out, true
}

// items writes a list, or a mapping from names.
func (w *writer) items(indent string, f field, v reflect.Value) {
	const in = "  "
	if f.object() == nil {
		out := make([]string, v.Len())
		for i := range out {
			out[i] = f.print(v.Index(i))
		}
		w.line(indent, f.key, "["+strings.Join(out, ", ")+"]")
		return
	}
	if v.Len() == 0 {
		empty := "[]"
		if f.keyed {
			empty = "{}"
		}
		w.line(indent, f.key, empty)
		return
	}
	w.line(indent, f.key, "")
	for i := range v.Len() {
		var inner writer
		inner.object(indent+in+in, v.Index(i), f.without)
		text := inner.String()
		switch {
		case !f.keyed && text == "":
			w.WriteString(indent + in + "- {}\n")
		case !f.keyed:
			w.WriteString(indent + in + "- " + strings.TrimPrefix(text, indent+in+in))
		case text == "":
			w.line(indent+in, scalar(v.Index(i).FieldByName("Name").String()), "{}")
		default:
			w.line(indent+in, scalar(v.Index(i).FieldByName("Name").String()), "")
			w.WriteString(text)
		}
	}
}

// print writes a value so that it is read as itself.
func (f field) print(v reflect.Value) string {
	switch {
	case f.isDuration():
		return time.Duration(v.Int()).String()
	case f.is == "size":
		return formatSize(v.Int())
	case v.Kind() == reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case f.raw:
		return scalar(v.String())
	case f.is == "shell":
		if _, dollars := wholeRef(v.String()); dollars > 0 {
			return scalar("$" + v.String())
		}
		return scalar(v.String())
	}
	return scalar(f.text(v.String()))
}

// line writes a key and its value. Text of several lines is easier to read as a
// block, where it can be one.
func (w *writer) line(indent, key, value string) {
	var text string
	if strings.Contains(value, `\n`) && json.Unmarshal([]byte(value), &text) == nil && isBlock(text) {
		body, hasEnd := strings.CutSuffix(text, "\n")
		mark := "|-"
		if hasEnd {
			mark = "|"
		}
		in := "\n" + strings.Replace(indent, "- ", "  ", 1) + "  "
		fmt.Fprintf(w, "%s%s: %s%s%s\n", indent, key, mark, in, strings.ReplaceAll(body, "\n", in))
		return
	}
	fmt.Fprintf(w, "%s%s:", indent, key)
	if value != "" {
		w.WriteString(" " + value)
	}
	w.WriteByte('\n')
}

// isBlock tells text that a YAML block keeps as it is: lines without spaces at
// the ends, of characters that can be seen.
func isBlock(s string) bool {
	body := strings.TrimSuffix(s, "\n")
	if !strings.Contains(body, "\n") || strings.HasPrefix(body, " ") {
		return false
	}
	for line := range strings.SplitSeq(body, "\n") {
		if line == "" || strings.HasSuffix(line, " ") || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return false
		}
	}
	return true
}

// scalar writes text so that it is read as text.
func scalar(s string) string {
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if isPlain(s) && !slices.Contains(words, strings.ToLower(s)) {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("a string that is no JSON: " + err.Error()) // cannot be
	}
	return strings.TrimRight(b.String(), "\n")
}
