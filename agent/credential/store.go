// Package credential finds the keys of model providers: given on the command line,
// stored, named in the user's settings, or in the environment, in this order. A
// stored one owns its provider: where it fails, nothing else is tried in silence.
//
// Reading never waits for a lock: the store is replaced as a whole, so that any
// number of agents can start while a key is being stored.
package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muntin/internal/durable"
)

// The types of a credential.
const (
	TypeKey   = "api_key"
	TypeOAuth = "oauth"
)

// A Credential is what is stored for a provider. The JSON is that of Pi's
// auth.json.
type Credential struct {
	Type    string            `json:"type"`
	Key     string            `json:"key,omitempty"` // the key, or !command that prints it
	Env     map[string]string `json:"env,omitempty"` // what else the provider needs, by variable
	Access  string            `json:"access,omitempty"`
	Refresh string            `json:"refresh,omitempty"`
	Expires int64             `json:"expires,omitempty"` // Unix milliseconds; 0: never

	// Ours: how a login is renewed. One without them, of another program, never is:
	// it is that program's.
	TokenURL string `json:"tokenUrl,omitempty"`
	ClientID string `json:"clientId,omitempty"`
}

// A Store is a file of credentials, mode 0600. It may be used from several
// goroutines and processes.
type Store struct {
	path string
}

// lockWait bounds how long a change waits for another one.
const lockWait = 10 * time.Second

// Open gives the store at path, which need not exist.
func Open(path string) *Store { return &Store{path: path} }

// Path gives the file of the store.
func (s *Store) Path() string { return s.path }

// Get gives the credential of a provider. ok is false when there is none. It waits
// for nobody.
func (s *Store) Get(provider string) (c Credential, ok bool, err error) {
	entries, err := s.read()
	if err != nil {
		return Credential{}, false, err
	}
	raw, ok := entries[provider]
	if !ok {
		return Credential{}, false, nil
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return Credential{}, false, fmt.Errorf("reading the credential of %s in %s: it is not of the form that muntin writes", provider, s.path)
	}
	return c, true, nil
}

// Providers gives the providers that have a credential, sorted.
func (s *Store) Providers() ([]string, error) {
	entries, err := s.read()
	return slices.Sorted(maps.Keys(entries)), err
}

// Set stores the credential of a provider.
func (s *Store) Set(ctx context.Context, provider string, c Credential) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("storing the credential of %s: %w", provider, err)
	}
	return s.change(ctx, func(entries map[string]json.RawMessage) { entries[provider] = raw })
}

// Remove forgets the credential of a provider. One that is not there is no error.
func (s *Store) Remove(ctx context.Context, provider string) error {
	return s.change(ctx, func(entries map[string]json.RawMessage) { delete(entries, provider) })
}

// read gives the entries as they are, those of other programs too. Its errors
// show nothing of the file.
func (s *Store) read() (map[string]json.RawMessage, error) {
	entries := map[string]json.RawMessage{}
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return entries, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the stored credentials: %w", err)
	}
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("reading the stored credentials: %s is no JSON object; correct it or move it away", s.path)
	}
	if entries == nil { // the file says null
		entries = map[string]json.RawMessage{}
	}
	return entries, nil
}

func (s *Store) change(ctx context.Context, edit func(map[string]json.RawMessage)) (err error) {
	if err := durable.PrivateDir(filepath.Dir(s.path)); err != nil {
		return fmt.Errorf("storing a credential: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock, err := durable.Lock(ctx, s.path+".lock")
	if err != nil {
		return fmt.Errorf("storing a credential: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	entries, err := s.read()
	if err != nil {
		return err
	}
	edit(entries)
	data, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return fmt.Errorf("storing a credential: %w", err)
	}
	// A file that others could read is made anew, with a mode of its own.
	if info, err := os.Stat(s.path); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(s.path, 0o600); err != nil {
			return fmt.Errorf("storing a credential: %w", err)
		}
	}
	return durable.WriteFile(s.path, append(data, '\n'), 0o600)
}
