package tool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"muntin/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env is a set of tools in a fresh folder.
type env struct {
	t     *testing.T
	set   *Set
	dir   string
	spill string
}

func newEnv(t *testing.T, change ...func(*Options)) *env {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := &env{t: t, dir: filepath.Join(dir, "work"), spill: filepath.Join(dir, "spill")}
	if err := os.Mkdir(e.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	opts := Options{Dir: e.dir, Env: append(os.Environ(), "HOME="+dir), SpillDir: e.spill}
	for _, f := range change {
		f(&opts)
	}
	if e.set, err = New(opts); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *env) file(name, content string) string {
	e.t.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		e.t.Fatal(err)
	}
	return path
}

func (e *env) content(name string) string {
	e.t.Helper()
	b, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil {
		e.t.Fatal(err)
	}
	return string(b)
}

type args map[string]any

func (e *env) try(name string, a args) (agent.ToolResult, error) {
	return e.call(e.t.Context(), name, a)
}

func (e *env) call(ctx context.Context, name string, a args) (agent.ToolResult, error) {
	e.t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		e.t.Fatal(err)
	}
	tools, err := e.set.Tools(name)
	if err != nil {
		e.t.Fatal(err)
	}
	return tools[0].Run(ctx, raw, nil)
}

func (e *env) must(name string, a args) string {
	e.t.Helper()
	res, err := e.try(name, a)
	if err != nil || res.IsError {
		e.t.Fatalf("%s %v: %v, %s", name, a, err, textOf(res))
	}
	return textOf(res)
}

// fails runs a call that must fail, with words in its error.
func (e *env) fails(name string, a args, words ...string) {
	e.t.Helper()
	res, err := e.try(name, a)
	if err == nil {
		e.t.Fatalf("%s %v: no error, got %q", name, a, textOf(res))
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			e.t.Errorf("%s %v: error %q does not say %q", name, a, err, w)
		}
	}
}

func textOf(r agent.ToolResult) string {
	var s string
	for _, b := range r.Content {
		s += b.Text
	}
	return s
}
