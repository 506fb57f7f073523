// Package models makes the provider that a model's name asks for, from the
// catalogue, the user's models.json and the keys there are; and it has the
// commands about them.
package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"strings"

	"muntin/agent/credential"
	"muntin/agent/llm"
	"muntin/agent/llm/anthropic"
	"muntin/agent/llm/catalog"
	"muntin/agent/llm/google"
	"muntin/agent/llm/openai"
	"muntin/agent/llm/responses"
	"muntin/cmd/internal/cli/app"
)

// Options say which model is wanted.
type Options struct {
	Name    string // provider/id[:thinking], or what means one
	BaseURL string // in place of the provider's own
	APIKey  string // $NAME, !command or the key itself

	Deadlines llm.Deadlines // before those of the model
}

// Chosen is a model that can be asked.
type Chosen struct {
	Provider llm.Provider
	Model    llm.Model
	Name     string // provider/id
}

// A Shop is the catalogue with the keys there are.
type Shop struct {
	app     *app.App
	Catalog *catalog.Catalog
	Keys    *credential.Resolver
	Store   *credential.Store
}

// NewShop reads the user's models.json. The store of keys is read when one is
// looked for.
func NewShop(a *app.App) (*Shop, error) {
	if a.Layout.Config == "" {
		return nil, errors.New("finding the folder of settings: neither XDG_CONFIG_HOME nor HOME is an absolute path")
	}
	path := a.Layout.Models()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the models of your own: %w", err)
	}
	c, err := catalog.New(text)
	if err != nil {
		return nil, app.Hint(err, "correct %s", path)
	}
	store := credential.Open(a.Layout.Credentials())
	keys := credential.NewResolver(credential.Sources{Store: store, Getenv: a.Getenv, Environ: a.Environ, Now: a.Now})
	return &Shop{app: a, Catalog: c, Keys: keys, Store: store}, nil
}

// want is the key of a provider.
func want(p catalog.Provider, given string) credential.Want {
	return credential.Want{Provider: p.ID, Given: given, Setting: p.APIKey, Env: p.Env}
}

// Usable tells whether a provider has a key, or needs none.
func (s *Shop) Usable(p catalog.Provider) bool {
	source, err := s.Keys.Find(want(p, ""))
	return err == nil && source != credential.FromNowhere
}

// Open makes the provider for a model.
func (s *Shop) Open(ctx context.Context, o Options) (Chosen, error) {
	named, _, _ := strings.Cut(o.Name, "/")
	p, known := s.Catalog.Provider(named)
	base := o.BaseURL
	if base == "" && p.BaseURLEnv != "" {
		base = s.app.Getenv(p.BaseURLEnv)
	}
	choice, err := s.Catalog.Resolve(o.Name, catalog.Options{HasKey: s.Usable, Exact: known && base != ""})
	if err != nil {
		return Chosen{}, s.explain(o.Name, known, err)
	}
	p, m := choice.Provider, choice.Model
	if base != "" {
		m = s.Catalog.AtBaseURL(p, m, base)
	}
	endpoint, err := s.endpoint(ctx, p, m, o)
	if err != nil {
		return Chosen{}, err
	}
	provider, err := s.dialect(endpoint)
	if err != nil {
		return Chosen{}, err
	}
	return Chosen{Provider: llm.WithLevel(provider, choice.Level), Model: m, Name: p.ID + "/" + m.ID}, nil
}

func (s *Shop) explain(name string, known bool, err error) error {
	var wrong *catalog.NameError
	if errors.As(err, &wrong) && len(wrong.Candidates) == 0 && !known {
		if provider, _, ok := strings.Cut(name, "/"); ok {
			return app.Hint(app.Usage("model %q: there is no provider %q", name, provider), "muntin models lists the providers and their models")
		}
	}
	return app.Hint(app.Usage("%w", err), "write it as provider/id; muntin models %s lists what there is", name)
}

func (s *Shop) endpoint(ctx context.Context, p catalog.Provider, m llm.Model, o Options) (llm.Endpoint, error) {
	e := llm.Endpoint{
		Provider: p.ID, Model: m, Headers: map[string]string{}, Now: s.app.Now, Deadlines: o.Deadlines.Over(m.Deadlines),
	}
	var err error
	if e.BaseURL, err = s.fill(m.BaseURL); err != nil {
		return e, app.Hint(fmt.Errorf("the address of %s: %w", p.ID, err), "set the variable")
	}
	if e.BaseURL == "" && p.BaseURLEnv != "" {
		return e, app.Hint(fmt.Errorf("the address of %s is not known", p.ID), "set $%s, or say --base-url", p.BaseURLEnv)
	}
	for name, value := range p.Headers {
		if e.Headers[name], err = s.Keys.Expand(ctx, value); err != nil {
			return e, fmt.Errorf("the header %s of %s in models.json: %w", name, p.ID, err)
		}
	}
	given := ""
	if o.APIKey != "" {
		if given, err = s.Keys.Expand(ctx, o.APIKey); err != nil {
			return e, fmt.Errorf("the key of the command line: %w", err)
		}
	}
	w := want(p, given)
	source, err := s.Keys.Find(w)
	if err != nil {
		return e, err
	}
	switch {
	case source != credential.FromNowhere:
		e.Key = s.Keys.Func(w)
	case p.NoKey, m.BaseURL != p.BaseURL && o.BaseURL+s.app.Getenv(p.BaseURLEnv) != "":
		// a server of one's own, which may need none
	default:
		hint := "run muntin login " + p.ID
		if len(p.Env) > 0 {
			hint = "set $" + p.Env[0] + ", or " + hint
		}
		if p.BaseURLEnv != "" {
			hint += "; or set $" + p.BaseURLEnv + " for a server that needs none"
		}
		return e, app.Hint(fmt.Errorf("there is no key for %s", p.ID), "%s", hint)
	}
	e.KeyHeader = p.KeyHeader
	if h := p.KeyHeaders[m.API]; h != "" {
		e.KeyHeader = h
	}
	if p.AuthHeader {
		e.KeyHeader = "Authorization"
	}
	return e, nil
}

// fill puts the variables that an address names, as {NAME}, into it.
func (s *Shop) fill(address string) (string, error) {
	if !strings.Contains(address, "{") {
		return address, nil
	}
	var missing error
	filled := regexp.MustCompile(`\{(\w+)\}`).ReplaceAllStringFunc(address, func(name string) string {
		name = strings.Trim(name, "{}")
		if name == "location" {
			name = "GOOGLE_CLOUD_LOCATION"
		}
		value := s.app.Getenv(name)
		if value == "" {
			missing = fmt.Errorf("$%s is not set", name)
		}
		return url.PathEscape(value)
	})
	return filled, missing
}

// dialect makes the client for the API that the model is spoken to by.
func (s *Shop) dialect(e llm.Endpoint) (llm.Provider, error) {
	switch e.Model.API {
	case anthropic.API:
		return anthropic.New(anthropic.Options{Endpoint: e}), nil
	case openai.API:
		return openai.New(openai.Options{Endpoint: e}), nil
	case responses.API, "azure-openai-responses":
		return responses.New(responses.Options{Endpoint: e, API: e.Model.API}), nil
	case google.API:
		return google.New(google.Options{Endpoint: e}), nil
	case google.VertexAPI:
		return s.vertex(e), nil
	}
	return nil, app.Hint(fmt.Errorf("model %s/%s: muntin does not speak its API, %s", e.Provider, e.Model.ID, e.Model.API),
		"many models are at several providers: see muntin models %s", e.Model.ID)
}

// vertex is Gemini at Vertex AI: of a project, with an access token as the key, or
// without one, with an API key.
func (s *Shop) vertex(e llm.Endpoint) llm.Provider {
	e.BaseURL = strings.Replace(e.BaseURL, "https://global-aiplatform.", "https://aiplatform.", 1)
	prefix := "/v1"
	if project := s.app.Getenv("GOOGLE_CLOUD_PROJECT"); project != "" {
		prefix += "/projects/" + url.PathEscape(project) + "/locations/" + url.PathEscape(s.app.Getenv("GOOGLE_CLOUD_LOCATION"))
		e.KeyHeader = "Authorization"
	}
	return google.New(google.Options{Endpoint: e, API: google.VertexAPI, ModelPath: func(model string) string {
		return prefix + "/publishers/google/models/" + url.PathEscape(model)
	}})
}
