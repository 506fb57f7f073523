package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muntin/agent/llm"
)

// a userFile is a models.json in Pi's format.
type userFile struct {
	Providers map[string]userProvider `json:"providers"`

	// Aliases are ours: a name of the user's own for provider/id[:thinking].
	Aliases map[string]string `json:"aliases"`
}

type userProvider struct {
	Name       string               `json:"name"`
	BaseURL    string               `json:"baseUrl"`
	API        string               `json:"api"`
	APIKey     string               `json:"apiKey"`
	Headers    map[string]string    `json:"headers"`
	AuthHeader bool                 `json:"authHeader"`
	Compat     json.RawMessage      `json:"compat"`
	Models     []json.RawMessage    `json:"models"`
	Overrides  map[string]overrides `json:"modelOverrides"`
	Deadlines  llm.Deadlines        `json:"deadlines"` // ours: of all its models
}

type overrides = json.RawMessage

// check tells what is wrong with a file before anybody depends on it.
func (f userFile) check() error {
	if err := f.checkAliases(); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(f.Providers)) {
		p := f.Providers[id]
		if id == "" {
			return errors.New("reading models.json: a provider has no name")
		}
		for i, raw := range p.Models {
			var m llm.Model
			if err := json.Unmarshal(raw, &m); err != nil {
				return fmt.Errorf("reading models.json: providers.%s.models[%d]: %w", id, i, err)
			}
			if m.ID == "" {
				return fmt.Errorf("reading models.json: providers.%s.models[%d]: the id is missing", id, i)
			}
		}
		for model, raw := range p.Overrides {
			var m llm.Model
			if err := json.Unmarshal(raw, &m); err != nil {
				return fmt.Errorf("reading models.json: providers.%s.modelOverrides.%s: %w", id, model, err)
			}
		}
		if _, known := files.Open("data/" + id + ".json"); known != nil && len(p.Models) > 0 && (p.BaseURL == "" || p.API == "") && !builtInProvider(id) {
			return fmt.Errorf("reading models.json: providers.%s: a new provider needs baseUrl and api", id)
		}
	}
	return nil
}

func (f userFile) checkAliases() error {
	for _, name := range slices.Sorted(maps.Keys(f.Aliases)) {
		target, _ := Split(f.Aliases[name])
		_, level := Split(name)
		switch _, twice := f.Aliases[target]; {
		case strings.TrimSpace(name) != name || name == "" || strings.Contains(name, "/") || level != "":
			return fmt.Errorf("reading models.json: aliases: %q is no name: it may have no slash, and no level of thinking behind it", name)
		case strings.TrimSpace(target) == "":
			return fmt.Errorf("reading models.json: aliases.%s: the model is missing", name)
		case twice:
			return fmt.Errorf("reading models.json: aliases.%s: %q is an alias too; name the model itself", name, target)
		}
	}
	return nil
}

// warnings tells what a file has that does nothing here.
func (f userFile) warnings() []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(f.Providers)) {
		p := f.Providers[id]
		for i, raw := range p.Models {
			out = append(out, unused(raw, fmt.Sprintf("providers.%s.models[%d]", id, i), p.API)...)
		}
		for _, model := range slices.Sorted(maps.Keys(p.Overrides)) {
			out = append(out, unused(p.Overrides[model], fmt.Sprintf("providers.%s.modelOverrides.%s", id, model), p.API)...)
		}
	}
	return out
}

// unused looks for fields of a model that are known to Pi, and not acted upon.
func unused(raw json.RawMessage, where, api string) []string {
	var m struct {
		API         string          `json:"api"`
		Sampling    json.RawMessage `json:"samplingParams"`
		ByLevel     json.RawMessage `json:"samplingParamsByThinkingLevel"`
		PromptCache json.RawMessage `json:"promptCache"`
		Limits      struct {
			Images struct {
				Resize json.RawMessage `json:"resize"`
			} `json:"images"`
		} `json:"inputLimits"`
	}
	_ = json.Unmarshal(raw, &m) // check has read it
	if m.API != "" {
		api = m.API
	}
	var out []string
	say := func(field string, value json.RawMessage, why string) {
		if len(value) > 0 {
			out = append(out, "models.json: "+where+"."+field+": "+why)
		}
	}
	if api != "" && !strings.Contains(api, "openai") {
		const why = "is not sent: only Chat Completions and Responses take it"
		say("samplingParams", m.Sampling, why)
		say("samplingParamsByThinkingLevel", m.ByLevel, why)
	}
	say("inputLimits.images.resize", m.Limits.Images.Resize, "has no effect: images are made smaller by one rule for all models")
	say("promptCache", m.PromptCache, "has no effect: muntin never warms a cache")
	return out
}

func builtInProvider(id string) bool {
	var all []Provider
	data, err := files.ReadFile("providers.json")
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	return err == nil && slices.ContainsFunc(all, func(p Provider) bool { return p.ID == id })
}

// apply changes a provider, built-in or new, by what the user says of it.
func (u userProvider) apply(p *Provider) {
	set := func(to *string, value string) {
		if value != "" {
			*to = value
		}
	}
	set(&p.Name, u.Name)
	set(&p.BaseURL, u.BaseURL)
	set(&p.API, u.API)
	set(&p.APIKey, u.APIKey)
	p.AuthHeader = u.AuthHeader
	p.Headers = u.Headers
	p.Deadlines = u.Deadlines
	if len(u.Compat) > 0 {
		compat := map[string]json.RawMessage{}
		for api, base := range p.Compat {
			compat[api] = merged(base, u.Compat)
		}
		if _, ok := compat[p.API]; !ok {
			compat[p.API] = u.Compat
		}
		p.Compat = compat
	}
	if u.BaseURL != "" && u.APIKey == "" && len(p.Env) == 0 {
		p.NoKey = true
	}
}

// models adds the user's own models to those that are known, and changes those
// that the user has something to say about.
func (u userProvider) models(p Provider, known []llm.Model) []llm.Model {
	out := make([]llm.Model, 0, len(known)+len(u.Models))
	for _, m := range known {
		if u.BaseURL != "" {
			m.BaseURL = u.BaseURL
		}
		m.Compat, m.Deadlines = merged(m.Compat, u.Compat), u.Deadlines
		if raw, ok := u.Overrides[m.ID]; ok {
			m = over(m, raw)
		}
		out = append(out, m)
	}
	for _, raw := range u.Models {
		base := llm.Model{Provider: p.ID, API: p.API, BaseURL: p.BaseURL, ContextWindow: 128_000, MaxTokens: 16_384, Input: []string{"text"}, Deadlines: u.Deadlines}
		m := over(base, raw)
		if m.Name == "" {
			m.Name = m.ID
		}
		var own struct {
			Compat json.RawMessage `json:"compat"`
		}
		_ = json.Unmarshal(raw, &own) // check has read it
		m.Compat = merged(p.Compat[m.API], own.Compat)
		out = slices.DeleteFunc(out, func(k llm.Model) bool { return k.ID == m.ID })
		out = append(out, m)
	}
	return out
}

// over lays the fields that raw has over m. Maps are not shared with m.
func over(m llm.Model, raw json.RawMessage) llm.Model {
	provider, compat := m.Provider, m.Compat
	m.Thinking, m.Headers, m.Compat = maps.Clone(m.Thinking), maps.Clone(m.Headers), nil
	m.Sampling, m.SamplingByLevel = maps.Clone(m.Sampling), maps.Clone(m.SamplingByLevel)
	m.Input, m.Price.Tiers = slices.Clone(m.Input), slices.Clone(m.Price.Tiers)
	_ = json.Unmarshal(raw, &m) // check has read it
	m.Provider, m.Compat = provider, merged(compat, m.Compat)
	return m
}
