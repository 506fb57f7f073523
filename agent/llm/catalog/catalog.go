// Package catalog knows models by name: which provider has them, what they can do
// and what they cost. It ships with the program, and users add to it in the format
// of Pi's models.json. A provider's models are read when somebody asks for them,
// so that a start costs nothing.
package catalog

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"muntin/agent/llm"
)

// The files of data are made by script/catalog; providers.json is written by hand.
//
//go:embed providers.json data
var files embed.FS

// A Provider is one service that has models.
type Provider struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Env     []string `json:"env"` // variables that may hold its key, in this order
	API     string   `json:"api"` // of models that the catalogue does not know
	BaseURL string   `json:"baseUrl"`
	NoKey   bool     `json:"noKey"` // a server of one's own, which needs none

	BaseURLEnv string                     `json:"baseUrlEnv"` // the variable that may hold another base URL
	CustomAPI  string                     `json:"customApi"`  // the API at another base URL; "": the same
	KeyHeader  string                     `json:"keyHeader"`  // "": that of the API
	KeyHeaders map[string]string          `json:"keyHeaders"` // the same by API, before it
	Compat     map[string]json.RawMessage `json:"compat"`     // by API; see llm.Model

	// From models.json.
	APIKey     string            `json:"-"` // $NAME, !command or the key itself
	AuthHeader bool              `json:"-"` // the key goes as a bearer token, whatever the API
	Headers    map[string]string `json:"-"` // the values as APIKey
	Deadlines  llm.Deadlines     `json:"-"` // of models that the catalogue does not know
}

// A Catalog is the catalogue that ships with the program, with what a user adds.
// It may be used from several goroutines.
type Catalog struct {
	user userFile

	mu        sync.Mutex // guards the rest
	providers []Provider
	models    map[string][]llm.Model
}

// New makes a catalogue. models is the text of a models.json, or nil.
func New(models []byte) (*Catalog, error) {
	c := &Catalog{models: map[string][]llm.Model{}}
	if len(models) > 0 {
		if err := json.Unmarshal(models, &c.user); err != nil {
			return nil, fmt.Errorf("reading models.json: %w", err)
		}
	}
	return c, c.user.check()
}

// Aliases gives the user's own names and the models that they stand for.
func (c *Catalog) Aliases() map[string]string { return maps.Clone(c.user.Aliases) }

// Warnings tells what models.json has that does nothing here.
func (c *Catalog) Warnings() []string { return c.user.warnings() }

// Date gives the day of the facts, as 2006-01-02.
func Date() string {
	var date string
	data, err := files.ReadFile("data/date.json")
	if err == nil {
		err = json.Unmarshal(data, &date)
	}
	if err != nil {
		panic("catalog: the embedded date: " + err.Error())
	}
	return date
}

// Providers gives all providers, sorted by id.
func (c *Catalog) Providers() []Provider {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all())
}

// Provider gives the provider of an id.
func (c *Catalog) Provider(id string) (Provider, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.provider(id)
}

func (c *Catalog) provider(id string) (Provider, bool) {
	i := slices.IndexFunc(c.all(), func(p Provider) bool { return p.ID == id })
	if i < 0 {
		return Provider{}, false
	}
	return c.providers[i], true
}

// all reads the providers at the first call.
func (c *Catalog) all() []Provider {
	if c.providers != nil {
		return c.providers
	}
	data, err := files.ReadFile("providers.json")
	if err == nil {
		err = json.Unmarshal(data, &c.providers)
	}
	if err != nil {
		panic("catalog: the embedded providers: " + err.Error())
	}
	for _, id := range slices.Sorted(maps.Keys(c.user.Providers)) {
		u := c.user.Providers[id]
		i := slices.IndexFunc(c.providers, func(p Provider) bool { return p.ID == id })
		if i < 0 {
			c.providers = append(c.providers, Provider{ID: id, Name: id})
			i = len(c.providers) - 1
		}
		u.apply(&c.providers[i])
	}
	slices.SortFunc(c.providers, func(a, b Provider) int { return compare(a.ID, b.ID) })
	return c.providers
}

// KeyVariables gives the variables that may hold the key of a built-in provider.
func KeyVariables() []string {
	var names []string
	for _, p := range (&Catalog{}).all() {
		names = append(names, p.Env...)
	}
	return names
}

// Models gives the known models of a provider, sorted by id.
func (c *Catalog) Models(provider string) []llm.Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.of(provider))
}

// of reads a provider's models at the first call.
func (c *Catalog) of(provider string) []llm.Model {
	if models, ok := c.models[provider]; ok {
		return models
	}
	p, ok := c.provider(provider)
	if !ok {
		return nil
	}
	models := builtIn(p)
	if u, ok := c.user.Providers[provider]; ok {
		models = u.models(p, models)
	}
	slices.SortFunc(models, func(a, b llm.Model) int { return compare(a.ID, b.ID) })
	c.models[provider] = models
	return models
}

// mayHave tells, without reading them, whether a model of a provider can have a
// text in its id or name.
func (c *Catalog) mayHave(provider, text string) bool {
	if _, ok := c.user.Providers[provider]; ok || c.models[provider] != nil {
		return true
	}
	data, err := files.ReadFile("data/" + provider + ".json")
	return err == nil && bytes.Contains(bytes.ToLower(data), bytes.ToLower([]byte(text)))
}

// a group is what several models of a file have in common. A row has id, name,
// window, output limit, the four prices, and then the tiers.
type group struct {
	llm.Model
	Models [][]json.RawMessage `json:"models"`
}

func builtIn(p Provider) []llm.Model {
	data, err := files.ReadFile("data/" + p.ID + ".json")
	if err != nil {
		return nil // a provider whose models only its user knows
	}
	var groups []group
	if err := json.Unmarshal(data, &groups); err != nil {
		panic("catalog: the embedded models of " + p.ID + ": " + err.Error())
	}
	var out []llm.Model
	for _, g := range groups {
		g.Model.Provider = p.ID
		if g.Model.BaseURL == "" {
			g.Model.BaseURL = p.BaseURL
		}
		g.Model.Compat = merged(p.Compat[g.API], g.Model.Compat)
		for _, row := range g.Models {
			out = append(out, filled(g.Model, row))
		}
	}
	return out
}

func filled(m llm.Model, row []json.RawMessage) llm.Model {
	to := []any{&m.ID, &m.Name, &m.ContextWindow, &m.MaxTokens, &m.Price.Input, &m.Price.Output, &m.Price.CacheRead, &m.Price.CacheWrite}
	for i, raw := range row {
		if i < len(to) {
			mustDecode(raw, to[i])
			continue
		}
		var t [5]float64
		mustDecode(raw, &t)
		m.Price.Tiers = append(m.Price.Tiers, llm.Tier{Above: int(t[0]), Input: t[1], Output: t[2], CacheRead: t[3], CacheWrite: t[4]})
	}
	if m.Name == "" {
		m.Name = m.ID
	}
	return m
}

// mustDecode is for the embedded data, which a test reads as a whole.
func mustDecode(raw json.RawMessage, to any) {
	if err := json.Unmarshal(raw, to); err != nil {
		panic("catalog: the embedded models: " + err.Error())
	}
}

// Custom gives a model of a provider that the catalogue does not know. Nothing is
// known of it but how its server is spoken to.
func (c *Catalog) Custom(p Provider, id string) llm.Model {
	return llm.Model{ID: id, Name: id, Provider: p.ID, API: p.API, BaseURL: p.BaseURL, Compat: p.Compat[p.API], Deadlines: p.Deadlines}
}

// AtBaseURL gives the model at another base URL: of a server of one's own that
// stands in for the provider's.
func (c *Catalog) AtBaseURL(p Provider, m llm.Model, base string) llm.Model {
	m.BaseURL = base
	if p.CustomAPI == "" || p.CustomAPI == m.API {
		return m
	}
	m.API, m.Compat = p.CustomAPI, nil // what holds at the provider's own host need not hold there
	return m
}

// merged lays the fields of more over those of base.
func merged(base, more json.RawMessage) json.RawMessage {
	if len(base) == 0 || len(more) == 0 {
		if len(more) > 0 {
			return more
		}
		return base
	}
	fields := map[string]json.RawMessage{}
	for _, object := range []json.RawMessage{base, more} {
		if err := json.Unmarshal(object, &fields); err != nil {
			return more // no object; its dialect says so
		}
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return more
	}
	return out
}
