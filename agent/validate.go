package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// a schema is the part of JSON Schema that is checked before a tool runs: type,
// properties, required, items and enum. Other keywords are told to the model but
// not checked here; a tool checks for itself what it depends on.
type schema struct {
	Type       typeNames          `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	Enum       []json.RawMessage  `json:"enum"`
}

// typeNames is one name or a list of them.
type typeNames []string

func (t *typeNames) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = typeNames{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// UnmarshalJSON takes the boolean schemas, too: both allow anything here.
func (s *schema) UnmarshalJSON(data []byte) error {
	var b bool
	if json.Unmarshal(data, &b) == nil {
		return nil
	}
	type plain schema
	return json.Unmarshal(data, (*plain)(s))
}

// parseSchema reads the parameters of a tool. Empty parameters allow any object.
func parseSchema(parameters json.RawMessage) (*schema, error) {
	s := &schema{}
	if len(parameters) == 0 {
		return s, nil
	}
	if !bytes.HasPrefix(bytes.TrimSpace(parameters), []byte("{")) {
		return nil, errors.New("not a JSON object")
	}
	if err := json.Unmarshal(parameters, s); err != nil {
		return nil, err
	}
	return s, nil
}

// maxEcho is how much of the received arguments an error repeats to the model.
const maxEcho = 2000

// validate checks the arguments of a call. It gives them back as they are, or
// with these repairs where the schema does not fit otherwise: a numeric string
// becomes a number, "true" and "false" become booleans, a single value becomes a
// list of one, and an optional property that is null is dropped.
func (s *schema) validate(tool string, args json.RawMessage) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber() // big integers stay exact
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, invalid(tool, []string{"not valid JSON: " + err.Error()}, args)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, invalid(tool, []string{"more than one JSON value"}, args)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, invalid(tool, []string{"expected an object, got " + typeOf(value)}, args)
	}
	c := &checker{}
	c.object(s, object, "")
	if len(c.problems) > 0 {
		return nil, invalid(tool, c.problems, args)
	}
	if !c.changed {
		return args, nil
	}
	return encode(object)
}

func encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

func invalid(tool string, problems []string, args json.RawMessage) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Validation failed for tool %q:\n", tool)
	for _, p := range problems {
		fmt.Fprintf(&b, "  - %s\n", p)
	}
	echo := strings.ToValidUTF8(string(args), "\uFFFD")
	if len(echo) > maxEcho {
		echo = strings.ToValidUTF8(echo[:maxEcho], "") + fmt.Sprintf(" … (%d bytes in all)", len(args))
	}
	fmt.Fprintf(&b, "\nReceived arguments:\n%s", echo)
	return errors.New(b.String())
}

// a checker walks a value, repairs it in place and collects what is wrong.
type checker struct {
	problems []string
	changed  bool
}

func (c *checker) problem(path, text string) {
	if path == "" {
		path = "arguments"
	}
	c.problems = append(c.problems, path+": "+text)
}

// value checks v and gives what it has become.
func (c *checker) value(s *schema, v any, path string) any {
	if s == nil {
		return v
	}
	if len(s.Type) > 0 {
		fitted, changed, ok := fit(s.Type, v)
		if !ok {
			c.problem(path, fmt.Sprintf("expected %s, got %s", strings.Join(s.Type, " or "), typeOf(v)))
			return v
		}
		c.changed = c.changed || changed
		v = fitted
	}
	switch t := v.(type) {
	case map[string]any:
		c.object(s, t, path)
	case []any:
		for i := range t {
			t[i] = c.value(s.Items, t[i], join(path, strconv.Itoa(i)))
		}
	}
	if len(s.Enum) > 0 && !inEnum(s.Enum, v) {
		c.problem(path, "expected one of "+enumText(s.Enum))
	}
	return v
}

func (c *checker) object(s *schema, object map[string]any, path string) {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			c.problem(join(path, name), "missing")
		}
	}
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names) // problems come in a fixed order
	for _, name := range names {
		sub := s.Properties[name]
		if sub == nil {
			continue
		}
		optional := !slices.Contains(s.Required, name)
		if object[name] == nil && optional && len(sub.Type) > 0 && !slices.Contains(sub.Type, "null") {
			delete(object, name)
			c.changed = true
			continue
		}
		object[name] = c.value(sub, object[name], join(path, name))
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// fit makes v fit one of the types, as it is if that can be.
func fit(types []string, v any) (fitted any, changed, ok bool) {
	for _, t := range types {
		if is(t, v) {
			return v, false, true
		}
	}
	for _, t := range types {
		if fitted, ok := coerce(t, v); ok {
			return fitted, true, true
		}
	}
	return v, false, false
}

func is(t string, v any) bool {
	n, isNumber := v.(json.Number)
	switch t {
	case "integer":
		return isNumber && !strings.ContainsAny(n.String(), ".eE")
	case "number":
		return isNumber
	case "string", "boolean", "null", "array", "object":
		return typeOf(v) == t
	}
	return true // a type that we do not know forbids nothing
}

func coerce(t string, v any) (any, bool) {
	text, isText := v.(string)
	switch t {
	case "integer":
		return wholeNumber(v)
	case "number":
		if n := json.Number(strings.TrimSpace(text)); isText && isJSONNumber(n.String()) {
			return n, true
		}
	case "boolean":
		if isText && (text == "true" || text == "false") {
			return text == "true", true
		}
	case "array":
		if v != nil {
			return []any{v}, true
		}
	}
	return nil, false
}

// wholeNumber takes "12", 12.0 and 1.2e1 for 12. Beyond 2^53 a form with a point
// or an exponent is not exact, and is refused.
func wholeNumber(v any) (any, bool) {
	var text string
	switch t := v.(type) {
	case string:
		text = strings.TrimSpace(t)
	case json.Number:
		text = t.String()
	}
	if !isJSONNumber(text) {
		return nil, false
	}
	if !strings.ContainsAny(text, ".eE") {
		return json.Number(text), true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f > 1<<53 || f < -(1<<53) || f != math.Trunc(f) {
		return nil, false
	}
	return json.Number(strconv.FormatInt(int64(f), 10)), true
}

func isJSONNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text))
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func inEnum(enum []json.RawMessage, v any) bool {
	got, err := encode(v)
	if err != nil {
		return false
	}
	for _, e := range enum {
		var want any
		dec := json.NewDecoder(bytes.NewReader(e))
		dec.UseNumber()
		if dec.Decode(&want) != nil {
			continue
		}
		if text, err := encode(want); err == nil && bytes.Equal(text, got) {
			return true
		}
	}
	return false
}

func enumText(enum []json.RawMessage) string {
	parts := make([]string, len(enum))
	for i, e := range enum {
		parts[i] = string(e)
	}
	return strings.Join(parts, ", ")
}
