package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muntin/internal/durable"
	"muntin/internal/id"
	"muntin/internal/state"
)

// A RemoveRequest names a worktree to remove, and the branch to delete with
// it, if any; the branch must be one of muntin's.
type RemoveRequest struct {
	Path   string
	Branch string
	// Unused says that the worktree was made for something that did not come
	// about. If it really holds nothing of its own, no trash entry stays.
	Unused bool
	// Fresh says that nobody has worked in it since Spawn, so that its ignored
	// files are those of its preparation, and worth nothing.
	Fresh bool
	// Teardown is run in it before anything is counted or moved. What fails
	// there is a note: the removal goes on.
	Teardown Commands
}

// A RemoveReport is the trash entry of what was removed, and what could not be
// looked at.
type RemoveReport struct {
	Entry
	Notes []string
}

// RefusedError says why a removal was refused. It matches ErrRefused.
type RefusedError struct {
	Path   string
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused to remove %s: %s", e.Path, e.Reason)
}

// Is makes the error match ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// Remove takes a linked worktree away. It is the only way in which muntin
// deletes a working folder, and it loses nothing:
//
//   - It refuses (ErrRefused) the main worktree, whatever is not a linked
//     worktree of this repository inside Root, symlinks resolved, a locked
//     worktree, one with populated submodules (their commits live in it), and
//     a folder in which a live process has its working folder.
//   - It counts at that moment the commits that are on no other branch, and
//     modified, untracked and ignored files.
//   - The head gets a ref. If the files are not all in a commit, Rescue makes
//     one of them, which gets a ref, and the folder itself is kept in the trash.
//   - A trash entry is written before anything moves, and Resume finishes what
//     was interrupted. Restore brings the worktree back.
//
// What lies in a folder that Checkout made is not kept; a commit made there
// is, and without one no trash entry stays.
func (m *Manager) Remove(ctx context.Context, req RemoveRequest) (RemoveReport, error) {
	lock, err := m.lockTrash(ctx)
	if err != nil {
		return RemoveReport{}, fmt.Errorf("removing worktree %s: %w", req.Path, err)
	}
	rep, err := m.remove(ctx, req)
	if err = errors.Join(err, lock.Unlock()); err != nil {
		return rep, fmt.Errorf("removing worktree %s: %w", req.Path, err)
	}
	return rep, nil
}

func (m *Manager) remove(ctx context.Context, req RemoveRequest) (RemoveReport, error) {
	wt, notes, err := m.guard(ctx, req)
	if err != nil {
		return RemoveReport{}, err
	}
	if err := req.Teardown.run(ctx, wt.Path); err != nil {
		notes = append(notes, "teardown: "+err.Error())
	}
	rep := RemoveReport{Notes: notes, Entry: Entry{
		Version: 1, ID: id.New(m.now()), State: EntryRemoving, Time: m.now().UTC(),
		Path: wt.Path, Branch: wt.Branch, Head: wt.Head, DeleteBranch: req.Branch, Unused: req.Unused,
	}}
	e := &rep.Entry
	if e.Losses, err = m.losses(ctx, wt); err != nil {
		return RemoveReport{}, err
	}
	if req.Fresh {
		e.Ignored = 0
	}
	if req.Branch != "" {
		if e.BranchTip, err = m.Tip(ctx, req.Branch); err != nil {
			return RemoveReport{}, err
		}
	}
	e.Kept = !e.Clean() && !m.isExport(wt.Path)
	if e.Kept && m.rescue == nil {
		return RemoveReport{}, &RefusedError{wt.Path, "it has files that are in no commit, and nothing to rescue them with"}
	}
	if err := m.save(*e); err != nil {
		return RemoveReport{}, err
	}
	if err := m.keepCommits(ctx, e); err != nil {
		return rep, m.giveUp(ctx, e, err)
	}
	// One last look: a process may have come in since the guard.
	if pids, _ := holders(ctx, e.Path); len(pids) > 0 {
		return rep, m.giveUp(ctx, e, inUse(e.Path, pids))
	}
	if err := durable.Rename(e.Path, m.keptDir(e.ID)); err != nil {
		return rep, m.giveUp(ctx, e, fmt.Errorf("moving it to the trash: %w", err))
	}
	return rep, m.finish(ctx, e)
}

// giveUp ends a removal that has moved nothing yet.
func (m *Manager) giveUp(ctx context.Context, e *Entry, why error) error {
	if _, err := os.Lstat(e.Path); err != nil {
		return why // it was moved after all: Resume goes on
	}
	e.State, e.Kept = EntryKeptOn, false
	return errors.Join(why, m.save(*e))
}

func inUse(path string, pids []int) error {
	return &RefusedError{path, fmt.Sprintf("it is the working folder of process %d", pids[0])}
}

// guard decides whether the worktree may go at all. The notes say what could
// not be looked at.
func (m *Manager) guard(ctx context.Context, req RemoveRequest) (Worktree, []string, error) {
	refuse := func(format string, args ...any) (Worktree, []string, error) {
		return Worktree{}, nil, &RefusedError{req.Path, fmt.Sprintf(format, args...)}
	}
	if !filepath.IsAbs(req.Path) {
		return refuse("the path is not absolute")
	}
	path, err := filepath.EvalSymlinks(req.Path)
	if errors.Is(err, os.ErrNotExist) {
		return Worktree{}, nil, fmt.Errorf("the folder %w", ErrMissing)
	}
	if err != nil {
		return Worktree{}, nil, err
	}
	switch {
	case req.Branch != "" && !strings.HasPrefix(req.Branch, branchPrefix):
		return refuse("branch %s is not one of muntin's", req.Branch)
	case path == m.repo.Main || path == m.repo.CommonDir || inside(path, m.repo.CommonDir):
		return refuse("it is the main worktree")
	case path == m.repo.Root:
		return refuse("muntin was called in it")
	case !inside(m.root, path):
		return refuse("it is not inside %s", m.root)
	}
	found, err := m.registered(ctx, path, req)
	if err != nil {
		return Worktree{}, nil, err
	}
	if found.Locked {
		return refuse("it is locked: %s (hint: git worktree unlock)", found.Reason)
	}
	if found.Head == "" {
		return refuse("its branch has no commit")
	}
	module, err := populatedSubmodule(path)
	if err != nil {
		return Worktree{}, nil, err
	}
	if module != "" {
		return refuse("the repository of its submodule %s would go with it", module)
	}
	pids, notes := holders(ctx, path)
	if len(pids) > 0 {
		return Worktree{}, nil, inUse(req.Path, pids)
	}
	return found, notes, nil
}

// registered finds the worktree at path among the repository's own, and
// refuses what would take another one with it.
func (m *Manager) registered(ctx context.Context, path string, req RemoveRequest) (Worktree, error) {
	list, err := m.List(ctx)
	if err != nil {
		return Worktree{}, err
	}
	found := Worktree{}
	for _, wt := range list {
		where, err := filepath.EvalSymlinks(wt.Path)
		if err != nil {
			continue // its folder is gone, so it is not this one
		}
		switch {
		case where == path && !wt.Main:
			found = wt
			found.Path = path
		case inside(path, where):
			return Worktree{}, &RefusedError{req.Path, "the worktree " + wt.Path + " lies in it"}
		case req.Branch != "" && wt.Branch == req.Branch:
			return Worktree{}, &RefusedError{req.Path, "branch " + req.Branch + " is checked out in " + wt.Path}
		}
	}
	if found.Path == "" {
		return Worktree{}, &RefusedError{req.Path, "it is not a linked worktree of this repository"}
	}
	return found, nil
}

// populatedSubmodule returns a submodule whose repository lies in the
// worktree's own git folder, where git puts it for linked worktrees.
func populatedSubmodule(path string) (string, error) {
	repo, err := state.FindRepo(path)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(filepath.Join(repo.GitDir, "modules"))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return entries[0].Name(), nil
}

// losses counts what is only in this worktree.
func (m *Manager) losses(ctx context.Context, wt Worktree) (Losses, error) {
	var l Losses
	var err error
	if l.Commits, err = m.onlyHere(ctx, wt.Head, wt.Branch); err != nil {
		return l, err
	}
	out, err := m.git.run(ctx, call{dir: wt.Path, args: []string{
		"status", "--porcelain", "-z", "--untracked-files=normal", "--ignored=traditional", "--ignore-submodules=none",
	}})
	if err != nil {
		return l, fmt.Errorf("counting files: %w", err)
	}
	for _, item := range parseStatus(out) {
		switch item.code {
		case "??":
			l.Untracked++
		case "!!":
			l.Ignored++
		default:
			l.Modified++
		}
	}
	return l, nil
}
