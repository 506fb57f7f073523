// Package models makes the provider that a model's name asks for, from the
// catalogue, the user's models.json and the keys there are; and it has the
// commands about them.
package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"muntin/agent/credential"
	"muntin/agent/llm"
	"muntin/agent/llm/catalog"
	"muntin/agent/llm/oauth"
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
	keys := credential.NewResolver(credential.Sources{
		Store: store, Getenv: a.Getenv, Environ: a.Environ, Now: a.Now, Renew: renew(a.Now), Go: a.Background.Go,
	})
	return &Shop{app: a, Catalog: c, Keys: keys, Store: store}, nil
}

// renew renews logins.
func renew(now func() time.Time) func(context.Context, credential.Credential) (credential.Credential, error) {
	return func(ctx context.Context, c credential.Credential) (credential.Credential, error) {
		token, err := oauth.Refresh{TokenURL: c.TokenURL, ClientID: c.ClientID}.Token(ctx, c.Refresh)
		if err == nil {
			c = withToken(c, token, now())
		}
		return c, err
	}
}

func withToken(c credential.Credential, token oauth.Token, now time.Time) credential.Credential {
	c.Access, c.Refresh, c.Expires = token.Access, token.Refresh, 0
	if token.Expires > 0 {
		c.Expires = now.Add(token.Expires).UnixMilli()
	}
	return c
}

// want is the key of a provider.
func want(p catalog.Provider, given string) credential.Want {
	return credential.Want{Provider: p.ID, Given: given, Setting: p.APIKey, Env: p.Env}
}

// Usable tells whether a provider has a key, or a login of the machine.
func (s *Shop) Usable(p catalog.Provider) bool {
	source, err := s.Keys.Find(want(p, ""))
	if err == nil && source != credential.FromNowhere {
		return true
	}
	login, err := s.ambient(p)
	return err == nil && login != ""
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
	provider, err := s.dialect(endpoint, base != "")
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
		return e, app.Hint(fmt.Errorf("the address of %s: %w", p.ID, err), "set the variable%s", orBase(p))
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
	login, wrong := s.ambient(p)
	switch {
	case source != credential.FromNowhere:
		e.Key = s.Keys.Func(w)
	case login != "":
		// its dialect sees to that
	case p.NoKey, m.BaseURL != p.BaseURL && o.BaseURL+s.app.Getenv(p.BaseURLEnv) != "":
		// a server of one's own, which may need none
	case wrong != nil:
		return e, app.Hint(fmt.Errorf("there is no key for %s: %w", p.ID, wrong), "%s", keyHint(p))
	default:
		return e, app.Hint(fmt.Errorf("there is no key for %s", p.ID), "%s", keyHint(p))
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

// keyHint says how a provider gets a key.
func keyHint(p catalog.Provider) string {
	hint := "run muntin login " + p.ID
	if ways := cloudHint(p); ways != "" {
		hint = ways + ", or " + hint
	}
	if len(p.Env) > 0 {
		hint = "set $" + p.Env[0] + ", or " + hint
	}
	if p.BaseURLEnv != "" {
		hint += "; or set $" + p.BaseURLEnv + " for a server that needs none"
	}
	return hint
}

func orBase(p catalog.Provider) string {
	if p.BaseURLEnv == "" {
		return ""
	}
	return ", or $" + p.BaseURLEnv + " to the whole address"
}
