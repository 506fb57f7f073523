package models

import (
	"fmt"
	"io/fs"
	"os"

	"muntin/agent/credential"
	"muntin/agent/llm/catalog"
)

// An Access is a way to ask a provider that somebody has set up. It has names only,
// never a key.
type Access struct {
	Provider string
	From     string // where its key is
	Wrong    string // why it cannot be used; "": it can
	Do       string // what makes it usable
}

// Accesses gives those that there are, sorted by provider. No command is run, and
// nobody is asked. The error is one of reading the store of keys.
func (s *Shop) Accesses() ([]Access, error) {
	var out []Access
	for _, p := range s.Catalog.Providers() {
		source, err := s.Keys.Find(want(p, ""))
		if err != nil {
			return out, err
		}
		a := Access{Provider: p.ID, From: string(source)}
		switch source {
		case credential.FromStore:
			if err := s.checkStored(p, &a); err != nil {
				return out, err
			}
		case credential.FromEnvironment:
			a.From = "$" + s.variable(p.Env)
		case credential.FromSettings:
			a.From = "models.json"
		default:
			login, err := s.ambient(p)
			switch {
			case err != nil:
				a.From, a.Wrong, a.Do = "credentials of AWS", err.Error(), cloudHint(p)
			case login != "":
				a.From = login
			case p.BaseURLEnv != "" && s.app.Getenv(p.BaseURLEnv) != "":
				a.From = "$" + p.BaseURLEnv + ", without a key"
			}
		}
		if a.From != "" {
			out = append(out, a)
		}
	}
	return out, nil
}

// variable gives the first of the variables that is set.
func (s *Shop) variable(names []string) string {
	for _, name := range names {
		if s.app.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

func (s *Shop) checkStored(p catalog.Provider, a *Access) error {
	c, _, err := s.Store.Get(p.ID)
	if err != nil {
		return err
	}
	switch {
	case c.Ended(s.app.Now()) && !c.Renewable():
		a.Wrong, a.Do = "the login has expired", "run muntin login "+p.ID
	case c.Key == "" && c.Access == "":
		a.Wrong, a.Do = "what is stored has no key", "run muntin login "+p.ID
	}
	return nil
}

// Exposed tells whether others than the user can read the stored keys, and how that
// is corrected.
func (s *Shop) Exposed() (found, do string) {
	info, err := os.Stat(s.Store.Path())
	if err != nil || info.Mode().Perm()&fs.FileMode(0o077) == 0 {
		return "", ""
	}
	return fmt.Sprintf("%s has mode %o: others can read the keys", s.Store.Path(), info.Mode().Perm()), "chmod 600 " + s.Store.Path()
}
