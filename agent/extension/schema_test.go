package extension_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"muntin/agent/extension"
	"muntin/agent/llm"
)

var update = flag.Bool("update", false, "write docs/extension.schema.json")

// TestTheSchemaIsCurrent makes the schema of the protocol and the manifest from the Go
// types and compares it with the one in docs; -update writes it.
func TestTheSchemaIsCurrent(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "docs", "extension.schema.json")
	want := schemaText(t)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("docs/extension.schema.json is not current: go test ./agent/extension -run Schema -update (%v)", err)
	}
}

func schemaText(t *testing.T) []byte {
	t.Helper()
	text := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }
	o := &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[extension.Duration](): text(),
		reflect.TypeFor[json.RawMessage]():    {},
		reflect.TypeFor[llm.Message]():        {Type: "object", Description: "a message, as in docs/sessions.md"},
		reflect.TypeFor[llm.Block]():          {Type: "object", Description: "a block of a message: {type: text, text}, {type: image, data, mimeType}, …"},
		reflect.TypeFor[llm.Usage]():          {Type: "object", Description: "tokens: input, output, cacheRead, cacheWrite, totalTokens"},
	}}
	root := &jsonschema.Schema{
		Schema: "https://json-schema.org/draft/2020-12/schema", Title: "muntin extensions, protocol 1",
		Description: "A line of the protocol is a Frame. Its params or result are of the definition that docs/extensions.md names for its method. An extension.yaml is a Manifest.",
		Ref:         "#/$defs/Frame", Defs: map[string]*jsonschema.Schema{},
	}
	for _, v := range []any{
		extension.Frame{}, extension.Manifest{}, extension.Hello{}, extension.Ready{}, extension.Input{}, extension.InputResult{}, extension.Start{},
		extension.StartResult{}, extension.Context{}, extension.ContextResult{}, extension.Request{}, extension.RequestResult{}, extension.ToolCall{},
		extension.ToolCallResult{}, extension.ToolResult{}, extension.ToolResultResult{}, extension.Turn{}, extension.TurnResult{},
		extension.Compaction{}, extension.CompactionResult{}, extension.Switch{}, extension.SwitchResult{}, extension.UserBash{},
		extension.UserBashResult{}, extension.ToolOutput{}, extension.CommandCall{}, extension.CommandResult{}, extension.ModelRequest{},
		extension.ModelResult{}, extension.Question{}, extension.Answer{}, extension.Notice{}, extension.Status{}, extension.Sending{},
	} {
		s, err := jsonschema.ForType(reflect.TypeOf(v), o)
		if err != nil {
			t.Fatalf("%T: %v", v, err)
		}
		root.Defs[reflect.TypeOf(v).Name()] = s
	}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// TestTheSchemaTakesTheExamples checks the schema against real manifests, by itself.
func TestTheSchemaTakesTheExamples(t *testing.T) {
	t.Parallel()
	var root jsonschema.Schema
	if err := json.Unmarshal(schemaText(t), &root); err != nil {
		t.Fatal(err)
	}
	manifest, err := root.Defs["Manifest"].Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := extension.ParseManifest([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	if err := manifest.Validate(v); err != nil {
		t.Error(err)
	}
	v["strat"] = "30s"
	if err := manifest.Validate(v); err == nil {
		t.Error("a mistyped key was taken")
	}
}
