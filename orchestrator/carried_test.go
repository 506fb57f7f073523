package orchestrator

import (
	"strings"
	"testing"

	"muntin/recipes"
)

func recipeOf(t *testing.T, text string) *recipes.Recipe {
	t.Helper()
	r, err := recipes.Parse("test", []byte("muntin: 1\nname: x\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckMode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"agents: [{name: a}]\n": "",
		"agents: [{name: a, adapter: claude, command: [claude]}]\n":                          "",
		"mode: pipeline\nagents: [{name: a}]\n":                                              "",
		"mode: race\nagents: [{name: a, isolation: shared}]\n":                               `"isolation: shared": in mode race`,
		"mode: pipeline\nagents: [{name: a}, {name: b, depends_on: [a], isolation: none}]\n": `agent b has "isolation: none"`,
		"mode: review\nagents: [{name: a}, {name: b, role: reviewer, isolation: none}]\n":    "",
		"roles: {r: {adapter: codex}}\nagents: [{name: a, role: r}]\n":                       "",
		"agents: [{name: a, adapter: generic}]\n":                                            "the adapter generic is of no program of its own",
	} {
		err := CheckMode(recipeOf(t, text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
