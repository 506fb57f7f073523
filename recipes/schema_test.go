package recipes

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"muntin/recipes/builtin"
)

var update = flag.Bool("update", false, "write the schema and the reference in docs anew")

const (
	schemaFile = "../docs/recipe.schema.json"
	docsFile   = "../docs/recipes.md"
)

// compiled is the schema as another implementation reads it.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("recipe.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("recipe.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemaIsCurrent(t *testing.T) {
	t.Parallel()
	if *update {
		if err := os.WriteFile(schemaFile, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(got, Schema()) {
		t.Errorf("%s is not what Schema makes (%v): run go test ./recipes -update", schemaFile, err)
	}
}

func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- reference -->\n", "<!-- /reference -->\n"
	before, rest, ok := strings.Cut(string(src), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the reference", docsFile)
	}
	want := before + begin + "\n" + Reference() + end + after
	if *update {
		if err := os.WriteFile(docsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(src) != want {
		t.Errorf("the reference in %s is not what Reference makes: run go test ./recipes -update", docsFile)
	}
}

func TestSchemaTakesWhatParseTakes(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	texts := map[string][]byte{"full": []byte(full), "everything": []byte(everything)}
	for _, name := range builtin.Names() {
		src, err := builtin.Recipe(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = src
	}
	for name, src := range texts {
		r, err := Parse(name, src)
		if slices.Contains(builtin.Names(), name) { // its parameters have no values yet
			r, err = Find(name, Options{Set: needed(t, name)})
		}
		if err != nil {
			t.Fatal(err)
		}
		written, err := r.Resolved().Marshal()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{src, written} {
			var v any
			if err := yaml.Unmarshal(text, &v); err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(plainJSON(v)); err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
		}
	}
}

// TestSchemaSeesMistakes makes sure that an editor marks what is a mistake of a
// key, a kind or a word.
func TestSchemaSeesMistakes(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	seen := []string{"unknown key", "want keys and values", "want a list", "want text", "want a whole number", "want a number", "want names", " is none of ", "has no value: give", "recipe version"}
	n := 0
	for _, tt := range badRecipes {
		var v any
		if err := yaml.Unmarshal([]byte(tt.src), &v); err != nil {
			continue
		}
		for _, want := range tt.want {
			if strings.Contains(want, "layout: ") || strings.Contains(want, "parameter n") {
				continue // texts and parameters that only the reader knows
			}
			if slices.ContainsFunc(seen, func(w string) bool { return strings.Contains(want, w) }) {
				n++
				if s.Validate(plainJSON(v)) == nil {
					t.Errorf("%s: the schema takes it:\n%s", tt.name, tt.src)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d cases were compared", n)
	}
}

// plainJSON gives a value of YAML the types of JSON.
func plainJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plainJSON(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plainJSON(v[i])
		}
	case uint64:
		return float64(v)
	case int64:
		return float64(v)
	}
	return v
}

// TestCookbook makes sure that the examples in the documents can be used.
func TestCookbook(t *testing.T) {
	t.Parallel()
	n := 0
	for _, doc := range []string{docsFile, "../README.md"} {
		src, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(src), "```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			if !strings.HasPrefix(block, "muntin: 1\n") {
				continue
			}
			n++
			path := filepath.Join(t.TempDir(), "example.yaml")
			if err := os.WriteFile(path, []byte(block), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Find(path, Options{})
			if err != nil {
				t.Errorf("%s: %v", doc, err)
			} else if len(r.Resolve()) == 0 {
				t.Errorf("%s: no agents in\n%s", doc, block)
			}
		}
	}
	if n < 6 {
		t.Errorf("only %d examples were found", n)
	}
}
