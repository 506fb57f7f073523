package extension_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/agent/extension"
)

const whole = `protocol: 1
name: whole
version: "1.0"
command: [sh, ./main.sh]
start: 30s
gates:
  - {on: tool_call, tools: [bash, "w*"], deadline: 1m30s, open: true}
tools:
  - name: t
    description: d
    parameters: {type: object, properties: {a: {type: string}}}
flags:
  - {name: f, type: bool}
permissions: {network: true, read: [.]}
`

func TestManifests(t *testing.T) {
	t.Parallel()
	m, err := extension.ParseManifest([]byte(whole))
	if err != nil || time.Duration(m.Gates[0].Deadline) != 90*time.Second || !m.Permissions.Network {
		t.Fatalf("%+v, %v", m, err)
	}
	if got := string(m.Tools[0].Spec().Parameters); got != `{"properties":{"a":{"type":"string"}},"type":"object"}` {
		t.Error(got)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"protocol":   {"protocol: 1", "protocol: 2", "this muntin speaks 1"},
		"name":       {"name: whole", "name: Whole", "Whole"},
		"no command": {"command: [sh, ./main.sh]", "command: []", "command is missing"},
		"mistyped":   {"start: 30s", "strat: 30s", "strat"},
		"gate":       {"on: tool_call", "on: toolcall", `gate "toolcall"`},
		"pattern":    {`"w*"`, `"[w"`, "syntax error in pattern"},
		"duration":   {"start: 30s", "start: soon", "no duration"},
		"number":     {"start: 30s", "start: 30", "no"},
		"flag":       {"type: bool", "type: int", "want bool or string"},
		"no yaml":    {"protocol: 1", "protocol: [", ""},
	} {
		if _, err := extension.ParseManifest([]byte(strings.Replace(whole, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("protocol: 1\nname: a\ncommand: [b]\ntools: [{name: x, parameters: {1: 2}}]"))
	f.Add([]byte("{}"))
	f.Add([]byte("&a [*a]"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if m, err := extension.ParseManifest(data); err == nil {
			for _, t := range m.Tools {
				_ = t.Spec()
			}
		}
	})
}

func TestLoadOrderAndNames(t *testing.T) {
	t.Parallel()
	write := func(dir, name string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(whole, "name: whole", "name: "+name, 1)
		if err := os.WriteFile(filepath.Join(dir, extension.ManifestName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	user, project, given := t.TempDir(), t.TempDir(), t.TempDir()
	write(filepath.Join(user, "b"), "guard")
	write(filepath.Join(user, "a"), "first")
	write(filepath.Join(project, "x"), "guard") // not in place of the user's
	write(filepath.Join(project, "y"), "own")
	write(given, "own")
	write(filepath.Join(project, "z"), "Bad")
	all, problems := extension.Load(extension.Place{Dir: user, Source: "user"}, extension.Place{Dir: project, Source: "project"},
		extension.Place{Dir: given, Source: "given", One: true}, extension.Place{Dir: filepath.Join(user, "none")})
	var got []string
	for _, e := range all {
		got = append(got, e.Name+" "+e.Source)
	}
	if strings.Join(got, ", ") != "first user, guard user, own given" {
		t.Error(got)
	}
	if len(problems) != 3 {
		t.Errorf("%q", problems)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	m, err := extension.ParseManifest([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	e := extension.Extension{Manifest: m}
	for flag, ok := range map[string]bool{"whole.f": true, "whole.f=false": true, "whole.f=maybe": false, "whole.g=1": false, "other.f": false, "f": false} {
		h, err := extension.New(t.Context(), extension.Options{Extensions: []extension.Extension{e}, Flags: []string{flag}})
		if (err == nil) != ok {
			t.Errorf("%s: %v", flag, err)
		}
		if h != nil {
			h.Close()
		}
	}
}
