package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

const editSchema = `{"type":"object","required":["path","edits"],"properties":{
	"path":{"type":"string"},
	"edits":{"type":"array","items":{"type":"object","required":["oldText"],"properties":{"oldText":{"type":"string"}}}},
	"limit":{"type":"integer"},"ratio":{"type":"number"},"all":{"type":"boolean"},
	"mode":{"enum":["a","b",1]},"either":{"type":["string","null"]},"any":{},"free":true,
	"tags":{"type":"array","items":{"type":"string"}}}}`

func mustParse(t testing.TB, text string) *schema {
	t.Helper()
	s, err := parseSchema(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestValidate(t *testing.T) {
	t.Parallel()
	s := mustParse(t, editSchema)
	const ok = `"path":"p","edits":[]`
	tests := map[string]struct{ in, want string }{
		"as it is":              {`{"edits": [ ],"path":"p","n":12345678901234567890}`, `{"edits": [ ],"path":"p","n":12345678901234567890}`},
		"numeric string":        {`{` + ok + `,"limit":" 12 "}`, `{"edits":[],"limit":12,"path":"p"}`},
		"negative string":       {`{` + ok + `,"ratio":"-1.5e3"}`, `{"edits":[],"path":"p","ratio":-1.5e3}`},
		"whole with a point":    {`{` + ok + `,"limit":2.0}`, `{"edits":[],"limit":2,"path":"p"}`},
		"whole with exponent":   {`{` + ok + `,"limit":1e3}`, `{"edits":[],"limit":1000,"path":"p"}`},
		"big numeric string":    {`{` + ok + `,"limit":"12345678901234567"}`, `{"edits":[],"limit":12345678901234567,"path":"p"}`},
		"true":                  {`{` + ok + `,"all":"true"}`, `{"all":true,"edits":[],"path":"p"}`},
		"false":                 {`{` + ok + `,"all":"false"}`, `{"all":false,"edits":[],"path":"p"}`},
		"single value":          {`{"path":"p","edits":{"oldText":"x<&>"}}`, `{"edits":[{"oldText":"x<&>"}],"path":"p"}`},
		"single text":           {`{` + ok + `,"tags":"t"}`, `{"edits":[],"path":"p","tags":["t"]}`},
		"null dropped":          {`{` + ok + `,"limit":null}`, `{"edits":[],"path":"p"}`},
		"null allowed":          {`{` + ok + `,"either":null}`, `{` + ok + `,"either":null}`},
		"null without a type":   {`{` + ok + `,"any":null,"free":null}`, `{` + ok + `,"any":null,"free":null}`},
		"unknown property kept": {`{` + ok + `,"other":{"a":[1]}}`, `{` + ok + `,"other":{"a":[1]}}`},
		"enum of a number":      {`{` + ok + `,"mode":1}`, `{` + ok + `,"mode":1}`},
	}
	for name, tt := range tests {
		got, err := s.validate("x", json.RawMessage(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, tt.want)
		}
	}
}

func TestValidateErrors(t *testing.T) {
	t.Parallel()
	s := mustParse(t, editSchema)
	const ok = `"path":"p","edits":[]`
	tests := map[string]struct{ in, want string }{
		"missing":          {`{}`, "  - path: missing\n  - edits: missing\n"},
		"nested":           {`{"path":"p","edits":[{"oldText":"x"},{}]}`, "  - edits.1.oldText: missing\n"},
		"required null":    {`{"path":null,"edits":[]}`, "  - path: expected string, got null\n"},
		"wrong types":      {`{"path":1,"edits":[1]}`, "  - edits.0: expected object, got number\n  - path: expected string, got number\n"},
		"fraction":         {`{` + ok + `,"limit":1.5}`, "  - limit: expected integer, got number\n"},
		"too big a float":  {`{` + ok + `,"limit":1e300}`, "  - limit: expected integer, got number\n"},
		"no number":        {`{` + ok + `,"limit":"12a"}`, "  - limit: expected integer, got string\n"},
		"plus sign":        {`{` + ok + `,"ratio":"+1"}`, "  - ratio: expected number, got string\n"},
		"yes":              {`{` + ok + `,"all":"yes"}`, "  - all: expected boolean, got string\n"},
		"two types":        {`{` + ok + `,"either":1}`, "  - either: expected string or null, got number\n"},
		"enum":             {`{` + ok + `,"mode":"c"}`, "  - mode: expected one of \"a\", \"b\", 1\n"},
		"no object":        {`[1]`, "  - expected an object, got array\n"},
		"not JSON":         {`{"a":`, "  - not valid JSON: unexpected EOF\n"},
		"two values":       {`{} {}`, "  - more than one JSON value\n"},
		"nothing":          {``, "  - not valid JSON: EOF\n"},
		"string in list":   {`{"path":"p","edits":["x"]}`, "  - edits.0: expected object, got string\n"},
		"text for an edit": {`{"path":"p","edits":"x"}`, "  - edits.0: expected object, got string\n"},
	}
	for name, tt := range tests {
		got, err := s.validate("x", json.RawMessage(tt.in))
		want := "Validation failed for tool \"x\":\n" + tt.want + "\nReceived arguments:\n" + tt.in
		if err == nil || err.Error() != want {
			t.Errorf("%s: %s, %v, want\n%s", name, got, err, want)
		}
	}
	_, err := s.validate("x", json.RawMessage(`{"big":"`+strings.Repeat("é", 5000)+`"}`))
	if err == nil || len(err.Error()) > maxEcho+200 || !strings.HasSuffix(err.Error(), " … (10010 bytes in all)") {
		t.Errorf("the echo of long arguments: %v", err)
	}
}

func TestParseSchema(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"": true, "{}": true, " {} ": true, editSchema: true, `{"properties":{"a":false}}`: true,
		"[]": false, "true": false, "{": false, `{"type":1}`: false, `{"properties":{"a":1}}`: false,
	} {
		if _, err := parseSchema(json.RawMessage(text)); (err == nil) != ok {
			t.Errorf("%q: error %v", text, err)
		}
	}
	free := mustParse(t, "")
	if got, err := free.validate("x", json.RawMessage(`{"a":1}`)); err != nil || string(got) != `{"a":1}` {
		t.Errorf("%s, %v", got, err)
	}
}

// FuzzValidate checks that what passes is a JSON object that passes again
// unchanged, and that the same bytes come back unless a repair was made.
func FuzzValidate(f *testing.F) {
	for _, seed := range []string{
		`{"path":"p","edits":{"oldText":"x"},"limit":"3","all":"true","tags":null}`, `{"path":"p","edits":[],"limit":2.0}`,
		`{"edits":[[]],"path":{}}`, `{"a":1}{}`, `{"limit":"1e400","path":"p","edits":"x"}`, "{\"path\":\"\xff\",\"edits\":[]}",
	} {
		f.Add(editSchema, []byte(seed))
	}
	f.Add(`{"type":"array","items":{"type":"integer"},"enum":[[1]]}`, []byte(`{"a":[1.0]}`))
	f.Add(`{"properties":{"a":{"type":["integer","array"],"enum":["1"]}}}`, []byte(`{"a":"1"}`))
	f.Fuzz(func(t *testing.T, parameters string, args []byte) {
		s, err := parseSchema(json.RawMessage(parameters))
		if err != nil {
			return
		}
		got, err := s.validate("x", args)
		if err != nil {
			return
		}
		var object map[string]any
		if err := json.Unmarshal(got, &object); err != nil || object == nil {
			t.Fatalf("%s passed: %v", got, err)
		}
		again, err := s.validate("x", got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("%s became %s, and then %s, %v", args, got, again, err)
		}
	})
}
