package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muntin/checkpoint"
	"muntin/internal/state"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// A DiscardRequest names a run that has ended, or never came up.
type DiscardRequest struct {
	Repo state.Repo
	Dir  state.RepoDir // of Repo
	Run  Run
	Now  func() time.Time

	Environ []string // of the recipe's teardown
}

// Discard removes what Up made for a run that never came up: its worktrees,
// through the guarded removal, its branches, its checkpoints and its folder.
// Its processes must have ended.
func Discard(ctx context.Context, d DiscardRequest) error {
	run := d.Run
	made, err := d.made(ctx)
	if err != nil {
		return err
	}
	if err := made.clear(ctx); err != nil {
		return fmt.Errorf("clearing away run %s: %w", run.Name, err)
	}
	return os.RemoveAll(run.Dir.Path)
}

// made is what a run that is being brought up has in git.
type made struct {
	git     *worktree.Manager
	repo    state.Repo
	dir     state.RepoDir
	info    Info
	recipe  *recipes.Recipe // resolved
	environ []string        // of its setup and teardown
	fresh   bool            // no agent has worked in it
}

// worktrees are the folders of the run's worktrees, without doubles: agents may
// share one. A folder's name is that of its branch.
func (m made) worktrees() []string {
	var paths []string
	run := m.dir.Run(m.info.Name)
	for _, a := range m.recipe.Agents {
		path := WorkDir(run, m.repo.Root, a)
		if a.Isolation != recipes.IsolationNone && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// branch is the branch of one of the worktrees.
func (m made) branch(path string) string {
	return worktree.AgentBranch(m.info.Name, filepath.Base(path))
}

// clear takes all of it away again, through the guarded removal. What has not
// come into being is no error.
func (m made) clear(ctx context.Context) error {
	var errs []error
	for _, path := range m.worktrees() {
		teardown, err := m.commands(path, m.recipe.Worktree.Teardown)
		errs = append(errs, err)
		err = m.remove(ctx, worktree.RemoveRequest{
			Path: path, Branch: m.branch(path), Unused: true, Fresh: m.fresh, Teardown: teardown,
		})
		if !errors.Is(err, worktree.ErrMissing) {
			errs = append(errs, err)
		}
	}
	for _, a := range m.recipe.Agents {
		err := checkpoint.Drop(ctx, m.repo.Root, CheckpointRef(m.info.Name, a.Name))
		if !errors.Is(err, checkpoint.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	_ = os.Remove(m.dir.Worktrees(m.info.Name)) // stays if something is in it
	return errors.Join(append(errs, m.returnPorts(ctx),
		m.git.DeleteBranch(ctx, m.info.Branch, m.info.Base), m.git.DropStart(ctx, m.info.Name))...)
}

// How long processes of panes that were ended may hold their folders, and how
// often that is looked at.
const (
	holdTimeout = 5 * time.Second
	holdLook    = 50 * time.Millisecond
)

// remove removes a worktree. What ran in it has just been told to end: while it
// holds the folder, removal is refused, and tried again.
func (m made) remove(ctx context.Context, req worktree.RemoveRequest) error {
	enough := time.NewTimer(holdTimeout) // of waiting only: a removal itself may take long
	defer enough.Stop()
	tick := time.NewTicker(holdLook)
	defer tick.Stop()
	for {
		_, err := m.git.Remove(ctx, req)
		if !errors.Is(err, worktree.ErrRefused) {
			return err
		}
		select {
		case <-enough.C:
			return err
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
