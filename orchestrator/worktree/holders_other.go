//go:build !linux

package worktree

import "context"

// holders returns the processes whose working folder is dir or lies in it.
// dir has its symlinks resolved.
func holders(ctx context.Context, dir string) (pids []int, notes []string) {
	return lsofHolders(ctx, dir)
}

// gitWorks tells whether a git works in dir; known tells whether that could be
// seen, which takes too long here.
func gitWorks(string) (works, known bool) { return false, false }
