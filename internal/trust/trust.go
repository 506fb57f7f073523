// Package trust remembers which folders a person trusts, so that what a
// repository brings along (settings, skills, prompts, extensions, recipes) is
// used only where the person said so.
//
// Trust is not a sandbox. It decides what is read and believed, and keeps
// nothing in once that has happened; who can write the store can grant trust.
package trust

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"muntin/internal/durable"
)

// version is of the file's format.
const version = 1

// maxFile bounds what is read of a store; a decision takes about 100 bytes.
const maxFile = 8 << 20

// A Store is the file of one person's decisions. It holds nothing in memory, so
// several processes may use one file at the same time.
type Store struct {
	file string
	now  func() time.Time
}

// A Decision is what was said about one folder.
type Decision struct {
	Folder  string    `json:"folder"` // canonical: absolute, without symbolic links
	Trusted bool      `json:"trusted"`
	At      time.Time `json:"at"`
}

// A Verdict is what holds for a folder. Its Decision is the one that it follows
// from, of the folder itself or of one above; without one Known is false, and
// the folder is to be treated as not trusted.
type Verdict struct {
	Known bool
	Decision
}

// contents is the file.
type contents struct {
	Version int               `json:"version"`
	Folders map[string]record `json:"folders"`
}

type record struct {
	Trusted bool      `json:"trusted"`
	At      time.Time `json:"at"`
}

// NewStore makes a store of a file, which need not exist, nor its folder.
func NewStore(file string, now func() time.Time) *Store { return &Store{file: file, now: now} }

// Lookup tells what holds for a place: the decision about the nearest folder,
// the place itself or one above it. Only the person's own file is read, nothing
// in the place.
func (s *Store) Lookup(p Place) (Verdict, error) {
	all, err := s.read()
	if err != nil || len(all.Folders) == 0 {
		return Verdict{}, err
	}
	chain, err := p.chain()
	if err != nil {
		return Verdict{}, err
	}
	for _, folder := range chain {
		if r, ok := all.Folders[folder]; ok {
			return Verdict{Known: true, Decision: Decision{Folder: folder, Trusted: r.Trusted, At: r.At}}, nil
		}
	}
	return Verdict{}, nil
}

// Decide keeps a decision about a folder and all below it, in place of an
// earlier one about the same folder. The folder must exist.
func (s *Store) Decide(ctx context.Context, dir string, trusted bool) (Decision, error) {
	folder, err := Canonical(dir)
	if err != nil {
		return Decision{}, err
	}
	info, err := os.Stat(folder)
	if err != nil {
		return Decision{}, fmt.Errorf("deciding on trust: %w", err)
	}
	if !info.IsDir() {
		return Decision{}, fmt.Errorf("deciding on trust: %s is not a folder", folder)
	}
	d := Decision{Folder: folder, Trusted: trusted, At: s.now().UTC().Truncate(time.Second)}
	return d, s.change(ctx, func(all map[string]record) bool {
		all[folder] = record{Trusted: d.Trusted, At: d.At}
		return true
	})
}

// Forget drops the decision about a folder, which need not exist any more, and
// reports whether there was one. Decisions about folders above and below stay.
func (s *Store) Forget(ctx context.Context, dir string) (was bool, err error) {
	folder, err := Canonical(dir)
	if err != nil {
		return false, err
	}
	err = s.change(ctx, func(all map[string]record) bool {
		_, was = all[folder]
		delete(all, folder)
		return was
	})
	return was, err
}

// List gives all decisions, by folder.
func (s *Store) List() ([]Decision, error) {
	all, err := s.read()
	if err != nil {
		return nil, err
	}
	list := make([]Decision, 0, len(all.Folders))
	for _, folder := range slices.Sorted(maps.Keys(all.Folders)) {
		r := all.Folders[folder]
		list = append(list, Decision{Folder: folder, Trusted: r.Trusted, At: r.At})
	}
	return list, nil
}

// change rewrites the file under its lock, if edit says that it must be.
func (s *Store) change(ctx context.Context, edit func(map[string]record) bool) (err error) {
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		return fmt.Errorf("keeping decisions on trust: %w", err)
	}
	lock, err := durable.Lock(ctx, s.file+".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	all, err := s.read()
	if err != nil || !edit(all.Folders) {
		return err
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", s.file, err)
	}
	return durable.WriteFile(s.file, append(text, '\n'), 0o600)
}

// read reads the file. One that cannot be understood is an error and never an
// empty store: what it denied must not be asked for again by a broken line.
func (s *Store) read() (contents, error) {
	empty := contents{Version: version, Folders: map[string]record{}}
	info, err := os.Stat(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("reading decisions on trust: %w", err)
	}
	if err := private(info); err != nil {
		return empty, fmt.Errorf("reading decisions on trust: %s %w", s.file, err)
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return empty, fmt.Errorf("reading decisions on trust: %w", err)
	}
	all, err := parse(text)
	if err != nil {
		return empty, fmt.Errorf("reading decisions on trust: %s: %w", s.file, err)
	}
	return all, nil
}

// private makes sure that nobody else could have written the file.
func private(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	case info.Size() > maxFile:
		return fmt.Errorf("is larger than %d MiB", maxFile>>20)
	case !ok || int(st.Uid) != os.Getuid():
		return errors.New("belongs to another user")
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("has mode %#o, others can write it; chmod 600 it", info.Mode().Perm())
	}
	return nil
}

func parse(text []byte) (contents, error) {
	var all contents
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&all); err != nil {
		return all, err
	}
	if dec.More() {
		return all, errors.New("there is more than one object")
	}
	if all.Version != version {
		return all, fmt.Errorf("version %d: this muntin knows %d", all.Version, version)
	}
	if all.Folders == nil {
		all.Folders = map[string]record{}
	}
	for folder := range all.Folders {
		if !filepath.IsAbs(folder) || filepath.Clean(folder) != folder || strings.ContainsRune(folder, 0) {
			return all, fmt.Errorf("folder %q is not a clean absolute path", folder)
		}
	}
	return all, nil
}
