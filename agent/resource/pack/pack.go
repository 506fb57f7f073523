// Package pack keeps folders of skills, prompts and themes that others publish:
// from git, from npm, or from a folder of this machine.
//
// What was fetched is pinned: the lock file has the commit or the version, and a
// digest of the files. Nothing changes until somebody asks for an update. No code
// of a package is run to install it: no scripts, no hooks, no dependencies.
package pack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muntin/agent/resource"
	"muntin/internal/durable"
)

const version = 1

// ErrUnknown says that there is no package of a name.
var ErrUnknown = errors.New("no such package")

// A Store is one person's packages.
type Store struct {
	Lock string   // the lock file; people may keep it with their settings
	Dir  string   // where what was fetched is
	Env  []string // of git and npm
	Now  func() time.Time
}

// An Entry is one package.
type Entry struct {
	Name      string    `json:"name"`
	Source    string    `json:"source"`              // as it was asked for
	Version   string    `json:"version,omitempty"`   // the commit, or npm's version; "": a folder, used as it is
	Integrity string    `json:"integrity,omitempty"` // of all its files, see Digest
	At        time.Time `json:"at"`
}

type lockFile struct {
	Version  int     `json:"version"`
	Packages []Entry `json:"packages"`
}

// List gives the packages by name.
func (s Store) List() ([]Entry, error) {
	all, err := s.read()
	return all.Packages, err
}

// Folder is where a package's files are.
func (s Store) Folder(e Entry) string {
	src, err := ParseSource(e.Source)
	if err == nil && src.Kind == FromFolder {
		return src.Where
	}
	return filepath.Join(s.Dir, e.Name, shortened(e.Integrity))
}

// Package tells what of a package is loaded. The error matches fs.ErrNotExist when
// its files are not here.
func (s Store) Package(e Entry) (resource.Package, error) {
	p := resource.Package{Name: e.Name, Dir: s.Folder(e)}
	if _, err := os.Stat(p.Dir); err != nil {
		return p, fmt.Errorf("the files of package %s are not here: %w", e.Name, fs.ErrNotExist)
	}
	err := manifest(&p)
	return p, err
}

// Verify makes sure that a package's files are those that were fetched. A folder
// is used as it is.
func (s Store) Verify(e Entry) error {
	p, err := s.Package(e)
	if err != nil || e.Integrity == "" {
		return err
	}
	digest, err := Digest(p.Dir)
	if err != nil {
		return err
	}
	if digest != e.Integrity {
		return fmt.Errorf("the files of package %s were changed: %s is not what was fetched", e.Name, p.Dir)
	}
	return nil
}

// Add fetches a package, or another version of one, and locks it. A package that
// brings nothing to load is an error.
func (s Store) Add(ctx context.Context, source string) (Entry, error) {
	src, err := ParseSource(source)
	if err != nil {
		return Entry{}, err
	}
	e, err := s.fetch(ctx, src, "")
	if err != nil {
		return Entry{}, fmt.Errorf("adding package %s: %w", source, err)
	}
	return e, s.change(ctx, func(all *lockFile) error {
		i := index(all.Packages, e.Name)
		if i < 0 {
			all.Packages = append(all.Packages, e)
			return nil
		}
		if old, err := ParseSource(all.Packages[i].Source); err != nil || old.Kind != src.Kind || old.Where != src.Where {
			return fmt.Errorf("adding package %s: there is another package %s, from %s", source, e.Name, all.Packages[i].Source)
		}
		all.Packages[i] = e
		return nil
	})
}

// Update fetches what a package's source means now, and reports whether that is
// another version.
func (s Store) Update(ctx context.Context, name string) (was, now Entry, err error) {
	if was, err = s.find(name); err != nil {
		return was, was, err
	}
	now, err = s.Add(ctx, was.Source)
	return was, now, err
}

// Restore fetches the files of a package that are not here, or were changed, in
// the version that is locked. It reports whether there was anything to do.
func (s Store) Restore(ctx context.Context, name string) (bool, error) {
	e, err := s.find(name)
	if err != nil || s.Verify(e) == nil {
		return false, err
	}
	src, err := ParseSource(e.Source)
	if err != nil {
		return false, err
	}
	got, err := s.fetch(ctx, src, e.Version)
	if err != nil {
		return false, fmt.Errorf("fetching package %s: %w", name, err)
	}
	if got.Integrity != e.Integrity {
		return false, fmt.Errorf("fetching package %s: version %s is not what was locked: %s, not %s", name, e.Version, got.Integrity, e.Integrity)
	}
	return true, nil
}

// Remove drops a package and what was fetched of it. A folder stays.
func (s Store) Remove(ctx context.Context, name string) error {
	e, err := s.find(name)
	if err != nil {
		return err
	}
	err = s.change(ctx, func(all *lockFile) error {
		all.Packages = slices.DeleteFunc(all.Packages, func(p Entry) bool { return p.Name == name })
		return nil
	})
	if err == nil && e.Integrity != "" {
		err = os.RemoveAll(filepath.Join(s.Dir, name))
	}
	return err
}

func index(all []Entry, name string) int {
	return slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
}

func (s Store) find(name string) (Entry, error) {
	all, err := s.read()
	if err != nil {
		return Entry{}, err
	}
	i := index(all.Packages, name)
	if i < 0 {
		return Entry{}, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	return all.Packages[i], nil
}

func (s Store) read() (lockFile, error) {
	empty := lockFile{Version: version, Packages: []Entry{}}
	text, err := os.ReadFile(s.Lock)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("reading the packages: %w", err)
	}
	all, err := parseLock(text)
	if err != nil {
		return empty, fmt.Errorf("reading the packages: %s: %w", s.Lock, err)
	}
	return all, nil
}

func parseLock(text []byte) (lockFile, error) {
	var all lockFile
	if err := json.Unmarshal(text, &all); err != nil {
		return all, err
	}
	if all.Version != version {
		return all, fmt.Errorf("version %d: this muntin knows %d", all.Version, version)
	}
	for i, e := range all.Packages {
		src, err := ParseSource(e.Source)
		switch {
		case err != nil:
			return all, err
		case !validName(e.Name) || index(all.Packages, e.Name) != i:
			return all, fmt.Errorf("package name %q is not valid, or there twice", e.Name)
		case src.Kind != FromFolder && (!validDigest(e.Integrity) || e.Version == ""):
			return all, fmt.Errorf("package %s has no version or no integrity", e.Name)
		}
	}
	return all, nil
}

func (s Store) change(ctx context.Context, edit func(*lockFile) error) (err error) {
	for _, dir := range []string{filepath.Dir(s.Lock), s.Dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("keeping the packages: %w", err)
		}
	}
	lock, err := durable.Lock(ctx, filepath.Join(s.Dir, "lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	all, err := s.read()
	if err != nil {
		return err
	}
	if err := edit(&all); err != nil {
		return err
	}
	slices.SortFunc(all.Packages, func(a, b Entry) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", s.Lock, err)
	}
	return durable.WriteFile(s.Lock, append(text, '\n'), 0o600)
}
