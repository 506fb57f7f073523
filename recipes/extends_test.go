package recipes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// files writes texts below a new folder.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const base = `muntin: 1
name: base
description: the base
model: a/base
check: make test
params: {n: {type: int, default: 2}, word: {default: hi}}
worktree: {setup: [one, two], ports: 5}
agents:
  - name: ada
    count: ${n}
    prompt: ${word} ada
    env: [A, B]
    limits: {turns: 5, cost: 1}
  - name: eve
    model: b/eve
    system: be eve
`

func TestExtends(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"sub/base.yaml": base, "child.yaml": `muntin: 1
name: child
extends: ./sub/base.yaml
checks: {run: make all}
params: {word: {default: bye}}
worktree: {setup: [three]}
agents:
  - name: eve
    command: [claude]
  - name: ada
    env: [C]
    limits: {cost: 2}
  - name: zoe
`})
	r, err := Find(filepath.Join(dir, "child.yaml"), Options{Set: map[string]string{"n": "3"}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Name != "child" || r.Description != "the base" || r.Checks != (Checks{Task: "make test", Run: "make all"}) ||
		!reflect.DeepEqual(r.Worktree.Setup, []string{"three"}) || r.Worktree.Ports != 5 || r.Extends != "" {
		t.Errorf("%+v", r)
	}
	ada, eve := r.Agents[0], r.Agents[1]
	if ada.Count != 3 || ada.Prompt != "bye ada" || !reflect.DeepEqual(ada.Env, []string{"C"}) || ada.Limits != (Limits{Turns: 5, Cost: 2}) {
		t.Errorf("ada: %+v", ada)
	}
	if eve.Model != "" || eve.System != "" || eve.Command[0] != "claude" || len(r.Agents) != 3 {
		t.Errorf("eve: %+v", eve)
	}
	out, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("again", out); err != nil {
		t.Errorf("the merged recipe does not stand alone: %v\n%s", err, out)
	}
}

func TestExtendsPlaces(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"base.yaml":  "muntin: 1\nname: base\nagents:\n  - name: a\n    count: 900\n",
		"child.yaml": "muntin: 1\nextends: ./base.yaml\nlayout: tilted\n",
	})
	_, err := Find(filepath.Join(dir, "child.yaml"), Options{})
	want := fmt.Sprintf("%s/base.yaml:5:12: count: 900 is not between 1 and 200\n     5 |     count: 900\n       |            ^\n"+
		"%s/child.yaml:3:9: layout: \"tilted\" is none of", dir, dir)
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestBadExtends(t *testing.T) {
	t.Parallel()
	const child = "muntin: 1\nname: x\nextends: "
	texts := map[string]string{
		"self.yaml":    child + "./self.yaml\n",
		"a.yaml":       child + "./b.yaml\n",
		"b.yaml":       child + "./c.yaml\n",
		"c.yaml":       child + "./a.yaml\n",
		"missing.yaml": child + "./nothing.yaml\n",
		"name.yaml":    child + "wrkers\n",
		"abs.yaml":     child + "/etc/passwd\n",
		"list.yaml":    child + "[a]\n",
		"null.yaml":    child + "\n",
		"empty.yaml":   child + "./nil.yaml\n",
		"nil.yaml":     "",
		"version.yaml": "name: x\nextends: workers\n",
	}
	for i := range 10 {
		texts[fmt.Sprintf("d%d.yaml", i)] = fmt.Sprintf("%s./d%d.yaml\n", child, i+1)
	}
	texts["d10.yaml"] = base
	dir := files(t, texts)
	tests := map[string]string{
		"self":    "self.yaml:3:10: extends goes in a circle: ",
		"a":       "c.yaml:3:10: extends goes in a circle: ",
		"missing": "missing.yaml:3:10: extends: no such recipe: ",
		"name":    `name.yaml:3:10: extends: no such recipe: "wrkers"; did you mean workers?`,
		"abs":     "abs.yaml:3:10: extends: want a name, or a path that begins with ./ or ../",
		"list":    "list.yaml:3:10: extends: want the name of a recipe",
		"null":    "null.yaml:3:",
		"empty":   "nil.yaml:1:1: the recipe is empty",
		"version": "version.yaml:1:1: the version is missing",
		"d0":      "d8.yaml:3:10: extends: more than 8 recipes behind each other: ",
	}
	for name, want := range tests {
		_, err := Find(filepath.Join(dir, name+".yaml"), Options{})
		var e *Error
		if !errors.As(err, &e) || len(e.Problems) != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if name == "a" && !strings.Contains(fmt.Sprint(err), "a.yaml → "+filepath.Join(dir, "b.yaml")) {
			t.Errorf("the chain is not told: %v", err)
		}
	}
	if _, err := Find(filepath.Join(dir, "d2.yaml"), Options{}); err != nil {
		t.Errorf("a chain of 8: %v", err)
	}
}

func TestWhereRecipesComeFrom(t *testing.T) {
	t.Parallel()
	recipe := func(model string) string { return "muntin: 1\nname: x\nmodel: m/" + model + "\nagents: [{name: a}]\n" }
	dir := files(t, map[string]string{
		"user/solo.yaml":                 "muntin: 1\nname: solo\nextends: solo\nmodel: m/user\n",
		"user/mine.yml":                  recipe("user"),
		"user/sly.yaml":                  "muntin: 1\nname: sly\nextends: ours\n",
		"repo/.muntin/recipes/solo.yaml": "muntin: 1\nname: solo\nextends: solo\ndescription: ours\n",
		"repo/.muntin/recipes/ours.yaml": recipe("repo"),
		"repo/.muntin/recipes/bad.yaml":  "muntin: 3\n",
		"file.yaml":                      "muntin: 1\nname: f\nextends: ours\n",
	})
	user, repo := filepath.Join(dir, "user"), filepath.Join(dir, "repo")
	var asked []string
	o := Options{Root: repo, User: user, Trust: func(dir string) (bool, error) {
		asked = append(asked, dir)
		return true, nil
	}}
	for name, want := range map[string]string{"solo": "m/user", "mine": "m/user", "ours": "m/repo", filepath.Join(dir, "file.yaml"): "m/repo"} {
		r, err := Find(name, o)
		if err != nil || r.Model != want {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if r, err := Find("solo", o); err != nil || r.Description != "ours" || r.Agents[0].Role != RoleAssistant {
		t.Errorf("a chain through all places: %+v, %v", r, err)
	}
	if len(asked) == 0 || asked[0] != repo {
		t.Errorf("asked about %q", asked)
	}
	o.Trust = nil
	for _, name := range []string{"solo", "ours", filepath.Join(dir, "file.yaml")} {
		_, err := Find(name, o)
		var u *UntrustedError
		if !errors.As(err, &u) || u.Dir != repo || !strings.HasPrefix(u.Path, repo) {
			t.Errorf("%s without trust: %v", name, err)
		}
	}
	if _, err := Find("sly", Options{Root: repo, User: user, Trust: func(string) (bool, error) { return true, nil }}); !errors.As(err, new(*Error)) {
		t.Errorf("a user's recipe takes what the repository has: %v", err)
	}
	boom := errors.New("boom")
	o.Trust = func(string) (bool, error) { return false, boom }
	if _, err := Find("ours", o); !errors.Is(err, boom) {
		t.Errorf("a trust that fails: %v", err)
	}
	testList(t, Options{Root: repo, User: user, Trust: func(string) (bool, error) { return true, nil }})
}

func testList(t *testing.T, o Options) {
	t.Helper()
	got := map[string]Info{}
	for _, info := range List(o) {
		got[info.Name] = info
	}
	if got["solo"].Source != SourceRepo || got["mine"].Source != SourceUser || got["demo"].Source != SourceBuiltin ||
		got["solo"].Description != "ours" || got["bad"].Problem != "" && got["bad"].Source != SourceRepo {
		t.Errorf("list: %+v", got)
	}
	o.Trust = nil
	for _, info := range List(o) {
		if info.Name == "ours" && (info.Trusted || info.Description != "") {
			t.Errorf("an untrusted recipe was read: %+v", info)
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"p.yaml": `muntin: 1
name: p
params:
  n: {type: int}
  kind: {type: choice, choices: [a, b], default: a}
agents: [{name: a, count: "${n}", prompt: "${kind}: [x] # ${n}"}]
`})
	path := filepath.Join(dir, "p.yaml")
	tests := []struct {
		set  map[string]string
		want string
	}{
		{nil, "p.yaml:4:3: parameter n has no value: give one with --set n=…"},
		{map[string]string{"n": "two"}, `--set n: want a whole number, got "two"`},
		{map[string]string{"n": "2", "knd": "a"}, `--set knd: the recipe has no such parameter: did you mean "kind"?`},
		{map[string]string{"n": "2", "kind": "c"}, `--set kind: "c" is none of a, b`},
		{map[string]string{"n": "2", "kind": "a\x1b"}, "--set kind: the value has a control character in it"},
	}
	for _, tt := range tests {
		_, err := Find(path, Options{Set: tt.set})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.set, err, tt.want)
		}
	}
	r, err := Find(path, Options{Set: map[string]string{"kind": "b"}, Ask: func(p Param) (string, error) { return "4", p.Check("4") }})
	if err != nil || r.Agents[0].Count != 4 || r.Agents[0].Prompt != "b: [x] # 4" {
		t.Errorf("asked: %+v, %v", r, err)
	}
	if _, err := Find(path, Options{Ask: func(Param) (string, error) { return "", errors.New("gone") }}); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a person who is gone: %v", err)
	}
	params, err := Params(path, Options{})
	if err != nil || len(params) != 2 || params[0].Default != nil || *params[1].Default != "a" {
		t.Errorf("params: %+v, %v", params, err)
	}
	if err := Check(path, Options{}); err != nil {
		t.Errorf("checked without values: %v", err)
	}
}

// TestValueIsNoTemplate makes sure that what a value says is never read again.
func TestValueIsNoTemplate(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"p.yaml": "muntin: 1\nname: p\nparams: {a: {}, b: {default: B}}\nagents: [{name: x, prompt: \"<${a}>\", command: [echo, \"${a}\"]}]\n"})
	for _, value := range []string{"${b}", "${agent}", "$${b}", "\"]}\nname: evil", "- a: &x", "!!int 3", "'", "true"} {
		r, err := Find(filepath.Join(dir, "p.yaml"), Options{Set: map[string]string{"a": value}})
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		out, err := r.Bind(Vars{"/r", "n"}).Resolved().Marshal()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("run.yaml", out)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []Agent{r.Resolve()[0], back.Agents[0], back.Resolve()[0]} {
			if a.Prompt != "<"+value+">" || a.Command[1] != value {
				t.Errorf("%q became %q and %q", value, a.Prompt, a.Command)
			}
		}
	}
}
