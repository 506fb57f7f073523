//go:build !darwin

package worktree

import "os"

// clone reports that there is no way of its own to share blocks here: io.Copy
// does it where it can.
func clone(*os.File, *os.Root, string) (bool, error) { return false, nil }
