package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"muntin/checkpoint"
	"muntin/internal/state"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// A DiscardRequest names a run that never came up.
type DiscardRequest struct {
	Repo state.Repo
	Dir  state.RepoDir // of Repo
	Run  Run
	Now  func() time.Time
}

// Discard removes what Up made for a run that never came up: its worktrees,
// through the guarded removal, its branches, its checkpoints and its folder.
// Its processes must have ended.
func Discard(ctx context.Context, d DiscardRequest) error {
	run := d.Run
	recipe, err := run.Recipe()
	if err != nil {
		return err
	}
	git, err := OpenGit(ctx, d.Repo, d.Dir, d.Now)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range recipe.Agents {
		if a.Isolation == recipes.IsolationWorktree {
			_, err := git.Remove(ctx, worktree.RemoveRequest{
				Path: run.Dir.Agent(a.Name).Worktree, Branch: worktree.AgentBranch(run.Name, a.Name), Unused: true,
			})
			errs = append(errs, err)
		}
		errs = append(errs, checkpoint.Drop(ctx, d.Repo.Root, CheckpointRef(run.Name, a.Name)))
	}
	errs = append(errs, git.DeleteBranch(ctx, run.Branch, run.Base))
	_ = os.Remove(d.Dir.Worktrees(run.Name)) // stays if something is in it
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clearing away run %s: %w", run.Name, err)
	}
	return os.RemoveAll(run.Dir.Path)
}
