package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Resume deals with removals that a crash interrupted, and returns them. Where
// the folder is in the trash already, the removal is finished; where it is
// still in its place, nothing has happened to it and it stays: somebody may be
// working in it again. Those that fail are in the error.
func (m *Manager) Resume(ctx context.Context) ([]Entry, error) {
	lock, err := m.lockTrash(ctx)
	if err != nil {
		return nil, fmt.Errorf("resuming removals: %w", err)
	}
	list, err := m.Entries()
	errs := []error{err}
	var done []Entry
	for _, e := range list {
		if e.State != EntryRemoving {
			continue
		}
		if err := m.resume(ctx, &e); err != nil {
			errs = append(errs, fmt.Errorf("resuming the removal of %s: %w", e.Path, err))
			continue
		}
		done = append(done, e)
	}
	return done, errors.Join(errors.Join(errs...), lock.Unlock())
}

func (m *Manager) resume(ctx context.Context, e *Entry) error {
	if _, err := os.Lstat(e.Path); err == nil {
		e.State = EntryKeptOn
		if _, err := os.Lstat(m.keptDir(e.ID)); err == nil {
			// It was moved, and then something new came to its place.
			e.State, e.Kept = EntryRemoved, true
		}
		return m.save(*e)
	}
	return m.finish(ctx, e)
}

// finish carries out what is left of a removal once the folder is in the
// trash. Each step may have been done before.
func (m *Manager) finish(ctx context.Context, e *Entry) error {
	// The folder is in the trash: this drops git's record of it only.
	_, err := m.run(ctx, "worktree", "remove", e.Path)
	if err != nil && !strings.Contains(stderr(err), "is not a working tree") {
		return fmt.Errorf("dropping git's record: %w", err)
	}
	if e.DeleteBranch != "" && e.BranchTip != "" {
		err := m.deleteBranch(ctx, e.DeleteBranch, e.BranchTip)
		if tip, tipErr := m.Tip(ctx, e.DeleteBranch); err != nil && (tipErr != nil || tip != "") {
			return err
		}
	}
	if !e.Kept {
		if err := removeTree(m.keptDir(e.ID)); err != nil {
			return fmt.Errorf("deleting what is in a commit: %w", err)
		}
	}
	if m.isExport(e.Path) && e.Commits == 0 || e.Unused && e.Losses == (Losses{}) {
		e.State = EntryRemoved
		return m.drop(ctx, *e)
	}
	e.State = EntryRemoved
	return m.save(*e)
}

// keepCommits gives refs to all that must survive: the head, the branch to be
// deleted, what is staged, and the files.
func (m *Manager) keepCommits(ctx context.Context, e *Entry) error {
	if err := m.keepRef(ctx, e.ID+"/head", e.Head); err != nil {
		return err
	}
	if e.BranchTip != "" && e.BranchTip != e.Head {
		if err := m.keepRef(ctx, e.ID+"/branch", e.BranchTip); err != nil {
			return err
		}
	}
	if !e.Kept {
		return nil
	}
	if err := m.keepIndex(ctx, e); err != nil {
		return err
	}
	oid, err := m.rescue(ctx, e.Path)
	if err != nil {
		return fmt.Errorf("rescuing its files: %w", err)
	}
	if err := m.keepRef(ctx, e.ID+"/files", oid); err != nil {
		return err
	}
	e.Rescue = oid
	return m.save(*e)
}

// keepIndex keeps what is staged where it differs from the head. The index of
// an unfinished merge is no tree; its files are in the kept folder.
func (m *Manager) keepIndex(ctx context.Context, e *Entry) error {
	_, err := m.git.run(ctx, call{dir: e.Path, args: []string{"diff-index", "--cached", "--quiet", e.Head}})
	if err == nil {
		return nil
	}
	tree, err := m.git.run(ctx, call{dir: e.Path, args: []string{"write-tree"}})
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	req := CommitRequest{Tree: strings.TrimSpace(tree), Message: "index of " + e.Path}
	oid, err := m.commitTree(ctx, req, []string{e.Head})
	if err != nil {
		return err
	}
	e.Index = oid
	return m.keepRef(ctx, e.ID+"/index", oid)
}

func (m *Manager) keepRef(ctx context.Context, name, oid string) error {
	if !isOID(oid) {
		return fmt.Errorf("keeping %s: %q is no object id", name, oid)
	}
	if _, err := m.run(ctx, "update-ref", trashRefs+name, oid); err != nil {
		return fmt.Errorf("keeping %s: %w", name, err)
	}
	return nil
}
