package catalog_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muntin/agent/llm"
	"muntin/agent/llm/catalog"
)

func open(t *testing.T, models string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New([]byte(models))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEmbedded reads all that ships.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	if _, err := time.Parse(time.DateOnly, catalog.Date()); err != nil {
		t.Error(err)
	}
	c := open(t, "")
	apis := []string{
		"anthropic-messages", "openai-completions", "openai-responses", "azure-openai-responses", "google-generative-ai",
		"google-vertex", "bedrock-converse-stream",
	}
	withModels, total := map[string]bool{}, 0
	for _, p := range c.Providers() {
		if p.Name == "" || !slices.Contains(apis, p.API) || p.BaseURL == "" && p.BaseURLEnv == "" || len(p.Env) == 0 && !p.NoKey {
			t.Errorf("provider %+v", p)
		}
		seen := map[string]bool{}
		for _, m := range c.Models(p.ID) {
			total++
			withModels[p.ID] = true
			if seen[m.ID] || m.ID == "" || m.Name == "" || m.Provider != p.ID || !slices.Contains(apis, m.API) || m.ContextWindow <= 0 || m.MaxTokens <= 0 ||
				m.Price.Input < 0 || m.Price.Output < 0 || !slices.Contains(m.Input, "text") {
				t.Errorf("model %+v", m)
			}
			seen[m.ID] = true
		}
	}
	data, err := filepath.Glob("data/*.json")
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, file := range data {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		size += int(info.Size())
		if id := strings.TrimSuffix(filepath.Base(file), ".json"); id != "date" && !withModels[id] {
			t.Errorf("the models of %s belong to no provider", id)
		}
	}
	if size > 300_000 || total < 1000 {
		t.Errorf("%d models in %d bytes, want at most 300,000", total, size)
	}
}

func TestQuirksOfProviders(t *testing.T) {
	t.Parallel()
	c := open(t, "")
	for name, want := range map[string]string{
		"mistral/devstral-latest":      `"exact":9`,
		"deepseek/deepseek-v4-pro":     `"thinkingFormat":"deepseek"`,
		"openrouter/some/new-model":    `"thinkingFormat":"openrouter"`,
		"google/gemini-3.1-pro":        `"thinkingLevels":true`,
		"groq/llama-3.3-70b-versatile": `max_completion_tokens`,
	} {
		choice, err := c.Resolve(name, catalog.Options{})
		if err != nil && !strings.Contains(err.Error(), "one of several") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && !strings.Contains(strings.ReplaceAll(string(choice.Model.Compat), " ", ""), want) {
			t.Errorf("%s: compat %s, want %s", name, choice.Model.Compat, want)
		}
	}
}

const user = `{"providers":{
	"anthropic":{"baseUrl":"http://proxy.test","headers":{"X-A":"$TOKEN"},"compat":{"allowEmptySignature":true},
		"modelOverrides":{"claude-opus-5":{"contextWindow":7,"cost":{"input":1}}}},
	"mine":{"name":"My server","baseUrl":"http://localhost:9/v1","api":"openai-completions","apiKey":"!pass show mine","compat":{"a":1},
		"models":[{"id":"qwen3:8b","reasoning":true,"compat":{"thinkingFormat":"qwen"}},{"id":"qwen3-2026-01-01","name":"Old"},{"id":"qwen3"}]},
	"openai":{"models":[{"id":"gpt-5","contextWindow":5}]}}}`

func TestModelsJSON(t *testing.T) {
	t.Parallel()
	c := open(t, user)
	choice, err := c.Resolve("mine/qwen3:8b:high", catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := choice.Model
	if choice.Level != llm.LevelHigh || m.ID != "qwen3:8b" || m.API != "openai-completions" || m.BaseURL != "http://localhost:9/v1" || !m.Reasoning ||
		m.ContextWindow != 128_000 || m.MaxTokens != 16_384 || string(m.Compat) != `{"a":1,"thinkingFormat":"qwen"}` || choice.Provider.APIKey != "!pass show mine" {
		t.Errorf("%+v", choice)
	}
	opus, err := c.Resolve("anthropic/claude-opus-5", catalog.Options{})
	if err != nil || opus.Model.ContextWindow != 7 || opus.Model.Price.Input != 1 || opus.Model.Price.Output == 0 || opus.Model.BaseURL != "http://proxy.test" ||
		!strings.Contains(string(opus.Model.Compat), "allowEmptySignature") || opus.Provider.Headers["X-A"] != "$TOKEN" {
		t.Errorf("%+v, %v", opus, err)
	}
	if gpt, err := c.Resolve("openai/gpt-5", catalog.Options{}); err != nil || gpt.Model.ContextWindow != 5 || gpt.Model.API != "openai-responses" {
		t.Errorf("%+v, %v", gpt, err)
	}
	for text, says := range map[string]string{
		`{"providers":[]}`: "reading models.json",
		`{"providers":{"x":{"models":[{"id":"a"}]}}}`:                      "needs baseUrl and api",
		`{"providers":{"openai":{"models":[{"name":"a"}]}}}`:               "providers.openai.models[0]: the id is missing",
		`{"providers":{"openai":{"models":[{"id":3}]}}}`:                   "providers.openai.models[0]",
		`{"providers":{"openai":{"modelOverrides":{"gpt-5":{"cost":3}}}}}`: "modelOverrides.gpt-5",
		`{`: "reading models.json",
	} {
		if _, err := catalog.New([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	c := open(t, user)
	tests := []struct {
		name  string
		o     catalog.Options
		want  string // provider/id, or what the error says after "error: "
		level llm.Level
	}{
		{"anthropic/claude-opus-5", catalog.Options{}, "anthropic/claude-opus-5", ""},
		{"anthropic/CLAUDE-opus-5:max", catalog.Options{}, "anthropic/claude-opus-5", llm.LevelMax},
		{"anthropic/opus-5:off", catalog.Options{}, "anthropic/claude-opus-5", llm.LevelOff},
		{"anthropic/opus", catalog.Options{}, "error: may be one of several: anthropic/claude-opus-4-5", ""},
		{"anthropic/opus-4-5", catalog.Options{}, "anthropic/claude-opus-4-5", ""}, // beside the same with a date
		{"openai/gpt-5", catalog.Options{}, "openai/gpt-5", ""},
		{"openai/no-such-model", catalog.Options{}, "openai/no-such-model", ""},
		{"openai/gpt", catalog.Options{Exact: true}, "openai/gpt", ""},
		{"ollama/qwen3:8b", catalog.Options{}, "ollama/qwen3:8b", ""},
		{"ollama/qwen3:8b:low", catalog.Options{}, "ollama/qwen3:8b", llm.LevelLow},
		{"openrouter/anthropic/claude-opus-5", catalog.Options{}, "openrouter/anthropic/claude-opus-5", ""},
		{"qwen3:8b", catalog.Options{}, "mine/qwen3:8b", ""},
		{"mine/qwen3", catalog.Options{}, "mine/qwen3", ""},
		{"deepseek-v4-pro", catalog.Options{HasKey: func(p catalog.Provider) bool { return p.ID == "deepseek" }}, "deepseek/deepseek-v4-pro", ""},
		{"deepseek-v4-pro", catalog.Options{HasKey: func(catalog.Provider) bool { return false }}, "error: may be one of several", ""},
		{"claude-opus-5", catalog.Options{HasKey: func(p catalog.Provider) bool { return p.ID == "anthropic" }}, "anthropic/claude-opus-5", ""},
		{"utter nonsense", catalog.Options{}, "error: there is no model", ""},
		{"", catalog.Options{}, "error: there is no model", ""},
		{"nobody/x-y-z", catalog.Options{}, "error: there is no model", ""},
	}
	for _, tt := range tests {
		got, err := c.Resolve(tt.name, tt.o)
		if says, ok := strings.CutPrefix(tt.want, "error: "); ok {
			var name *catalog.NameError
			if !errors.As(err, &name) || !strings.Contains(err.Error(), says) {
				t.Errorf("%q: %v, %v, want an error with %q", tt.name, got.Model.ID, err, says)
			}
			continue
		}
		if id := got.Provider.ID + "/" + got.Model.ID; err != nil || id != tt.want || got.Level != tt.level || got.Model.Provider != got.Provider.ID {
			t.Errorf("%q: %s %q, %v, want %s %q", tt.name, id, got.Level, err, tt.want, tt.level)
		}
	}
}

func TestAtBaseURL(t *testing.T) {
	t.Parallel()
	c := open(t, "")
	choice, err := c.Resolve("openai/gpt-5", catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := c.AtBaseURL(choice.Provider, choice.Model, "http://x.test/v1"); m.API != "openai-completions" || m.BaseURL != "http://x.test/v1" || m.Compat != nil {
		t.Errorf("%+v", m)
	}
}

// FuzzResolve: whatever the name, it is one model or a NameError.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"anthropic/claude-opus-5:high", "opus", "a/b/c:d", ":", "/", "ollama/", "\xff:off", strings.Repeat("x/", 50)} {
		f.Add(seed)
	}
	c, err := catalog.New(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got, err := c.Resolve(name, catalog.Options{})
		var wrong *catalog.NameError
		if err != nil && !errors.As(err, &wrong) || err == nil && (got.Model.ID == "" || got.Provider.ID == "") {
			t.Fatalf("%+v, %v", got, err)
		}
		if model, level := catalog.Split(name); level != "" && model+":"+string(level) != name {
			t.Fatalf("%q is split into %q and %q", name, model, level)
		}
	})
}

func BenchmarkResolveExact(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		c, _ := catalog.New(nil)
		if _, err := c.Resolve("anthropic/claude-opus-5", catalog.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolveAnywhere(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		c, _ := catalog.New(nil)
		if _, err := c.Resolve("deepseek-flash", catalog.Options{HasKey: func(p catalog.Provider) bool { return p.ID == "deepseek" }}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAliasesAndDeadlines(t *testing.T) {
	t.Parallel()
	c := open(t, `{"aliases":{"fast":"own/small:low","best":"anthropic/claude-opus-4-5"},
		"providers":{
			"own":{"baseUrl":"http://x.test","api":"anthropic-messages","deadlines":{"connect":"5s","whole":"none"},
				"models":[{"id":"small","samplingParams":{"top_p":1},"inputLimits":{"images":{"maxPerRequest":3,"resize":{"maxWidth":10}}}},
					{"id":"big","deadlines":{"whole":"3h"}}]},
			"groq":{"deadlines":{"idle":"30s"}}}}`)
	for name, want := range map[string]struct {
		id    string
		level llm.Level
		whole time.Duration
	}{"fast": {"small", llm.LevelLow, -1}, " fast:high": {"small", llm.LevelHigh, -1}, "own/big": {"big", "", 3 * time.Hour}, "own/new": {"new", "", -1}} {
		got, err := c.Resolve(name, catalog.Options{})
		if err != nil || got.Model.ID != want.id || got.Level != want.level || got.Model.Deadlines.Whole != want.whole || got.Model.Deadlines.Connect != 5*time.Second {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
	if got, err := c.Resolve("best", catalog.Options{}); err != nil || got.Provider.ID != "anthropic" {
		t.Errorf("best: %+v, %v", got, err)
	}
	if m := c.Models("groq"); len(m) == 0 || m[0].Deadlines.Idle != 30*time.Second {
		t.Errorf("groq: %+v", m)
	}
	if w := c.Warnings(); len(w) != 2 || !strings.Contains(w[0], "models[0].samplingParams") || !strings.Contains(w[1], "resize") {
		t.Errorf("warnings %q", w)
	}
	for _, wrong := range []string{
		`{"aliases":{"a/b":"x/y"}}`, `{"aliases":{"a:high":"x/y"}}`, `{"aliases":{"":"x/y"}}`, `{"aliases":{"a":""}}`,
		`{"aliases":{"a":"b:high","b":"x/y"}}`, `{"providers":{"groq":{"deadlines":{"idle":"soon"}}}}`,
	} {
		if _, err := catalog.New([]byte(wrong)); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}
