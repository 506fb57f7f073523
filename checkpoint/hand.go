package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"

	"muntin/internal/state"
)

// HandRef is the chain of the checkpoints that are taken by hand in a
// worktree, without a run: refs/muntin/hand/main, or refs/muntin/hand/linked-<name>
// in a linked worktree, named as git names it. It has an answer where there is no
// repository, too.
func HandRef(worktree string) (string, error) {
	repo, err := state.FindRepo(worktree)
	if errors.Is(err, state.ErrNoRepo) {
		return namespace + "hand/main", nil
	}
	if err != nil {
		return "", fmt.Errorf("naming the chain: %w", err)
	}
	if repo.GitDir == repo.CommonDir {
		return namespace + "hand/main", nil
	}
	ref := namespace + "hand/linked-" + filepath.Base(repo.GitDir)
	return ref, checkRef(ref)
}
