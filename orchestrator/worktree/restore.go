package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muntin/internal/durable"
)

// Restore brings a removed worktree back to its place: its branch, index and
// files. If its branch has moved or is in use elsewhere, the worktree comes
// back with a detached HEAD at its commit. The error matches ErrExists when
// something stands in its place and ErrMissing when there is no such entry.
func (m *Manager) Restore(ctx context.Context, entryID string) (Worktree, error) {
	lock, err := m.lockTrash(ctx)
	if err != nil {
		return Worktree{}, fmt.Errorf("restoring %s: %w", entryID, err)
	}
	wt, err := m.restore(ctx, entryID)
	if err = errors.Join(err, lock.Unlock()); err != nil {
		return Worktree{}, fmt.Errorf("restoring %s: %w", entryID, err)
	}
	return wt, nil
}

func (m *Manager) restore(ctx context.Context, entryID string) (Worktree, error) {
	e, err := m.entry(entryID)
	if err != nil {
		return Worktree{}, err
	}
	if e.State != EntryRemoved {
		return Worktree{}, fmt.Errorf("its state is %s, not %s", e.State, EntryRemoved)
	}
	path, err := m.newPath(e.Path)
	if err != nil {
		return Worktree{}, fmt.Errorf("%s: %w", e.Path, err)
	}
	if e.DeleteBranch != "" && e.BranchTip != "" {
		if err := m.CreateBranch(ctx, e.DeleteBranch, e.BranchTip); err != nil && !errors.Is(err, ErrExists) {
			return Worktree{}, err
		}
	}
	wt, err := m.readd(ctx, path, e)
	if err != nil {
		return Worktree{}, err
	}
	if err := m.restoreFiles(ctx, path, e); err != nil {
		return Worktree{}, fmt.Errorf("bringing back its files: %w", err)
	}
	e.State, e.Kept = EntryRestored, false
	return wt, m.save(e)
}

// readd registers the worktree again, on its branch if that still stands
// where it stood and is free.
func (m *Manager) readd(ctx context.Context, path string, e Entry) (Worktree, error) {
	if e.Branch != "" {
		tip, err := m.Tip(ctx, e.Branch)
		if err != nil {
			return Worktree{}, err
		}
		if tip == e.Head {
			if err := m.add(ctx, addition{path: path, target: e.Branch}); err == nil {
				return Worktree{Path: path, Branch: e.Branch, Head: e.Head}, nil
			}
		}
	}
	err := m.add(ctx, addition{path: path, target: e.Head, detach: true})
	return Worktree{Path: path, Head: e.Head}, err
}

// restoreFiles fills the worktree at path, which holds its .git file only:
// from the kept folder where there is one, else from the commits.
func (m *Manager) restoreFiles(ctx context.Context, path string, e Entry) error {
	kept := m.keptDir(e.ID)
	entries, err := os.ReadDir(kept)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	haveKept := err == nil
	for _, entry := range entries {
		if entry.Name() == ".git" {
			continue // it points at a record that is gone
		}
		if err := durable.Rename(filepath.Join(kept, entry.Name()), filepath.Join(path, entry.Name())); err != nil {
			return err
		}
	}
	if haveKept {
		if err := os.RemoveAll(kept); err != nil {
			return err
		}
	} else if err := m.writeFiles(ctx, path, e); err != nil {
		return err
	}
	staged := e.Head
	if e.Index != "" {
		staged = e.Index
	}
	if _, err := m.git.run(ctx, call{dir: path, args: []string{"read-tree", staged}}); err != nil {
		return err
	}
	// The exit status only says whether something differs.
	_, err = m.git.run(ctx, call{dir: path, args: []string{"update-index", "-q", "--refresh"}})
	if err != nil && exitCode(err) != 1 {
		return err
	}
	return m.sparse(ctx, path)
}

// sparse leaves the paths out again that a sparse checkout leaves out: the
// index that was just read has them all.
func (m *Manager) sparse(ctx context.Context, path string) error {
	out, err := m.git.run(ctx, call{dir: path, args: []string{"config", "--type=bool", "core.sparseCheckout"}})
	if exitCode(err) == 1 || err == nil && strings.TrimSpace(out) != "true" {
		return nil
	}
	if err == nil {
		_, err = m.git.run(ctx, call{dir: path, args: []string{"sparse-checkout", "reapply"}})
	}
	return err
}

// writeFiles writes the files of the rescue commit, or of the head where all
// was committed, through an index of its own.
func (m *Manager) writeFiles(ctx context.Context, path string, e Entry) error {
	from := e.Head
	if e.Rescue != "" {
		from = e.Rescue
	}
	index := filepath.Join(m.trash, e.ID+".index")
	_, err := m.git.run(ctx, call{dir: path, args: []string{"read-tree", "-m", "-u", from}, env: []string{"GIT_INDEX_FILE=" + index}})
	if rmErr := os.Remove(index); rmErr != nil && !errors.Is(rmErr, os.ErrNotExist) {
		err = errors.Join(err, rmErr)
	}
	return err
}
