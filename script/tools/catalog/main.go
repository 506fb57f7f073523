// Command catalog makes the model catalogue of agent/llm/catalog from the data of
// the npm package @earendil-works/pi-ai (MIT), which gathers the facts of
// models.dev and of the providers: catalog DATA_DIR OUT_DIR.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

type model struct {
	ID, Name, API string
	BaseURL       string `json:"baseUrl"`
	Type          string
	Reasoning     bool
	Input         []string
	Thinking      map[string]*string `json:"thinkingLevelMap"`
	Window        int                `json:"contextWindow"`
	Max           int                `json:"maxTokens"`
	Headers       map[string]string
	Compat        map[string]any
	Cost          struct {
		Input, Output         float64
		CacheRead, CacheWrite float64
		Tiers                 []tier
	}
}

type tier struct {
	Above                 int `json:"inputTokensAbove"`
	Input, Output         float64
	CacheRead, CacheWrite float64
}

// A group is what several models of a provider have in common.
type group struct {
	API       string             `json:"api"`
	BaseURL   string             `json:"baseUrl,omitempty"`
	Reasoning bool               `json:"reasoning,omitempty"`
	Input     []string           `json:"input"`
	Thinking  map[string]*string `json:"thinkingLevelMap,omitempty"`
	Headers   map[string]string  `json:"headers,omitempty"`
	Compat    map[string]any     `json:"compat,omitempty"`
	Models    [][]any            `json:"models"` // id, name, window, max, prices, then tiers
}

// known are the fields of compat that the dialects read, and the value that says
// nothing.
func known() map[string]map[string]any {
	return map[string]map[string]any{
		"openai-completions": {
			"supportsReasoningEffort": true, "maxTokensField": "", "thinkingFormat": "", "requiresReasoningContentOnAssistantMessages": false,
			"supportsUsageInStreaming": true, "sendSessionAffinityHeaders": false, "chatTemplateArgs": nil, "cacheControlFormat": "",
			"zaiToolStream": false, "supportsLongCacheRetention": true,
		},
		"openai-responses": {"sessionAffinityFormat": "", "supportsReasoningEffort": true, "supportsLongCacheRetention": true},
		"anthropic-messages": {
			"forceAdaptiveThinking": false, "sendSessionAffinityHeaders": false, "allowEmptySignature": false,
			"supportsEagerToolInputStreaming": true, "supportsCacheControlOnTools": true, "supportsLongCacheRetention": true,
		},
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: catalog DATA_DIR OUT_DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	files, err := filepath.Glob(filepath.Join(in, "*.json"))
	if err != nil {
		return err
	}
	manifest := struct{ GeneratedAt string }{}
	if err := read(filepath.Join(in, ".manifest.json"), &manifest); err != nil {
		return err
	}
	if err := write(filepath.Join(out, "date.json"), strings.SplitN(manifest.GeneratedAt, "T", 2)[0]); err != nil {
		return err
	}
	for _, file := range files {
		provider := strings.TrimSuffix(filepath.Base(file), ".json")
		var byAPI map[string]map[string]model
		if strings.HasPrefix(provider, ".") {
			continue
		}
		if err := read(file, &byAPI); err != nil {
			return err
		}
		groups := grouped(byAPI)
		if len(groups) == 0 || foreign(provider) {
			continue
		}
		if err := write(filepath.Join(out, provider+".json"), groups); err != nil {
			return err
		}
	}
	return nil
}

// foreign are providers whose service is bound to the identity of another program.
func foreign(provider string) bool {
	return slices.Contains([]string{"github-copilot", "openai-codex", "radius", "typesafe"}, provider)
}

func grouped(byAPI map[string]map[string]model) []*group {
	byKey := map[string]*group{}
	batch := regexp.MustCompile(`[:-]batch$`)
	for _, models := range byAPI {
		for _, m := range models {
			if m.Type != "chat" || batch.MatchString(m.ID) {
				continue
			}
			g := common(m)
			key, _ := json.Marshal(g) // of plain values
			if byKey[string(key)] == nil {
				byKey[string(key)] = g
			}
			g = byKey[string(key)]
			g.Models = append(g.Models, row(m))
		}
	}
	var out []*group
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		g := byKey[key]
		slices.SortFunc(g.Models, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
		out = append(out, g)
	}
	return out
}

func common(m model) *group {
	g := &group{API: m.API, BaseURL: m.BaseURL, Reasoning: m.Reasoning, Input: m.Input, Thinking: m.Thinking, Headers: m.Headers, Compat: map[string]any{}}
	if m.API == "mistral-conversations" { // the same models speak Chat Completions
		g.API, g.BaseURL = "openai-completions", m.BaseURL+"/v1"
	}
	if strings.Contains(m.API, "google") && levels(m.ID) {
		g.Compat["thinkingLevels"] = true
	}
	for name, value := range m.Compat {
		if nothing, ok := known()[g.API][name]; ok && value != nothing {
			g.Compat[name] = value
		}
	}
	return g
}

// levels tells the models of Google that think by level and not by budget.
func levels(id string) bool {
	return regexp.MustCompile(`gemini-3(\.\d+)?-(pro|flash)|gemini-([4-9]|[1-9]\d)|gemini-flash(-lite)?-latest|gemma-?4`).MatchString(strings.ToLower(id))
}

func row(m model) []any {
	name := m.Name
	if name == m.ID {
		name = ""
	}
	out := []any{m.ID, name, m.Window, m.Max, m.Cost.Input, m.Cost.Output, m.Cost.CacheRead, m.Cost.CacheWrite}
	for _, t := range m.Cost.Tiers {
		out = append(out, []any{t.Above, t.Input, t.Output, t.CacheRead, t.CacheWrite})
	}
	return out
}

func read(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// write puts a row of a group on a line, so that a change shows as one.
func write(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	text := strings.NewReplacer(`"models":[[`, "\"models\":[\n[", `],["`, "],\n[\"", `]},{"api"`, "]},\n{\"api\"").Replace(string(data))
	return os.WriteFile(path, []byte(text+"\n"), 0o644)
}
