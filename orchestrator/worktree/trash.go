package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muntin/internal/durable"
	"muntin/internal/id"
)

// trashRefs is where the commits of removed worktrees are kept from gc:
// refs/muntin/trash/<id>/head, /index and /files.
const trashRefs = "refs/muntin/trash/"

// The states of an Entry.
const (
	EntryRemoving = "removing" // written before anything happens
	EntryRemoved  = "removed"
	EntryRestored = "restored"
	EntryKeptOn   = "kept" // the removal was given up, the worktree stayed
)

// An Entry is the record of one removed worktree, a JSON file in the trash.
// What it counts was there at that moment.
type Entry struct {
	Version int       `json:"version"`
	ID      string    `json:"id"` // ULID
	State   string    `json:"state"`
	Time    time.Time `json:"time"`
	Path    string    `json:"path"`
	Branch  string    `json:"branch,omitempty"` // that the worktree was on; empty when detached
	Head    string    `json:"head"`
	// DeleteBranch is a branch that was deleted with the worktree and stood at BranchTip.
	DeleteBranch string `json:"delete_branch,omitempty"`
	BranchTip    string `json:"branch_tip,omitempty"`

	Losses
	Rescue string `json:"rescue,omitempty"` // commit of the files, if some were in no commit
	Index  string `json:"index,omitempty"`  // commit of what was staged, if that was something else
	Unused bool   `json:"unused,omitempty"` // see RemoveRequest
	Kept   bool   `json:"kept,omitempty"`   // the folder itself lies in the trash, ignored files and all
}

// Losses count what a removal would have lost without the trash.
type Losses struct {
	Commits   int `json:"commits"` // on no other branch, local or remote-tracking
	Modified  int `json:"modified"`
	Untracked int `json:"untracked"` // a whole untracked folder counts as one
	Ignored   int `json:"ignored"`   // likewise
}

// Clean tells whether every file of the worktree was as in its commit.
func (l Losses) Clean() bool { return l.Modified == 0 && l.Untracked == 0 && l.Ignored == 0 }

// Entries returns what is in the trash, oldest first. A file there that
// cannot be read is left alone and reported in the error, beside the others.
func (m *Manager) Entries() ([]Entry, error) {
	names, err := filepath.Glob(filepath.Join(escapeGlob(m.trash), "*.json"))
	if err != nil {
		return nil, fmt.Errorf("reading the trash: %w", err)
	}
	slices.Sort(names) // ULIDs sort by time
	var list []Entry
	var errs []error
	for _, name := range names {
		e, err := m.entry(strings.TrimSuffix(filepath.Base(name), ".json"))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, e)
	}
	return list, errors.Join(errs...)
}

func (m *Manager) entry(entryID string) (Entry, error) {
	if !id.Valid(entryID) {
		return Entry{}, fmt.Errorf("reading trash entry: %q is not an id", entryID)
	}
	b, err := os.ReadFile(m.entryFile(entryID))
	if errors.Is(err, os.ErrNotExist) {
		return Entry{}, fmt.Errorf("trash entry %s %w", entryID, ErrMissing)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("reading trash entry: %w", err)
	}
	e, err := parseEntry(b)
	if err == nil && e.ID != entryID {
		err = fmt.Errorf("it is the entry %q", e.ID)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("reading trash entry %s: %w", entryID, err)
	}
	return e, nil
}

func parseEntry(b []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(b, &e); err != nil {
		return Entry{}, err
	}
	if e.Version != 1 {
		return Entry{}, fmt.Errorf("version %d is not known", e.Version)
	}
	if !id.Valid(e.ID) || !filepath.IsAbs(e.Path) || !isOID(e.Head) {
		return Entry{}, errors.New("it lacks id, path or head")
	}
	return e, nil
}

func (m *Manager) save(e Entry) error {
	b, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding trash entry %s: %w", e.ID, err)
	}
	return durable.WriteFile(m.entryFile(e.ID), append(b, '\n'), 0o600)
}

// drop forgets an entry and its refs. It is for exports and unused worktrees,
// in which nothing was worth keeping.
func (m *Manager) drop(ctx context.Context, e Entry) error {
	if _, err := m.run(ctx, "update-ref", "-d", trashRefs+e.ID+"/head"); err != nil {
		return fmt.Errorf("dropping trash entry %s: %w", e.ID, err)
	}
	if err := os.Remove(m.entryFile(e.ID)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("dropping trash entry %s: %w", e.ID, err)
	}
	return nil
}

func (m *Manager) entryFile(entryID string) string { return filepath.Join(m.trash, entryID+".json") }

// keptDir is where the folder of a removed worktree lies.
func (m *Manager) keptDir(entryID string) string { return filepath.Join(m.trash, entryID) }

// lockTrash makes removals and restores take turns, across processes.
func (m *Manager) lockTrash(ctx context.Context) (*durable.Held, error) {
	return durable.Lock(ctx, filepath.Join(m.trash, ".lock"))
}

// Purge frees the disk space of a removed worktree's kept folder. Its commits
// stay, so Restore still brings back everything but ignored files, empty
// folders and what else the rescue commit does not hold.
func (m *Manager) Purge(ctx context.Context, entryID string) error {
	lock, err := m.lockTrash(ctx)
	if err != nil {
		return fmt.Errorf("purging: %w", err)
	}
	e, err := m.entry(entryID)
	if err == nil && e.State != EntryRemoved {
		err = fmt.Errorf("purging %s: its state is %s, not %s", entryID, e.State, EntryRemoved)
	}
	if err == nil && e.Kept {
		e.Kept = false
		if err = m.save(e); err == nil {
			err = removeTree(m.keptDir(entryID))
		}
	}
	return errors.Join(err, lock.Unlock())
}

// removeTree deletes a folder of the trash, also what is read-only in it (Go's
// module cache makes such folders).
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, os.ErrPermission) {
		return err
	}
	walkErr := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a folder needs x; it is about to go
		}
		return err
	})
	return errors.Join(walkErr, os.RemoveAll(dir))
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}
