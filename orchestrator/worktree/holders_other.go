//go:build !linux

package worktree

import "context"

// holders returns the processes whose working folder is dir or lies in it.
// dir has its symlinks resolved.
func holders(ctx context.Context, dir string) (pids []int, notes []string) {
	return lsofHolders(ctx, dir)
}
