package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// holders returns the processes whose working folder is dir or lies in it.
// dir has its symlinks resolved.
func holders(ctx context.Context, dir string) (pids []int, notes []string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return lsofHolders(ctx, dir)
	}
	hidden := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if errors.Is(err, os.ErrPermission) {
			hidden++ // another user's process
		}
		if err == nil && (cwd == dir || inside(dir, cwd)) {
			pids = append(pids, pid)
		}
	}
	if hidden > 0 {
		notes = append(notes, fmt.Sprintf("the working folders of %d processes of other users are not visible", hidden))
	}
	return pids, notes
}

// gitWorks tells whether a git has its working folder at dir or below; known
// tells whether that could be seen.
func gitWorks(dir string) (works, known bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false, false
	}
	for _, e := range entries {
		cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err != nil || cwd != dir && !inside(dir, cwd) {
			continue
		}
		name, err := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		if err == nil && strings.HasPrefix(string(name), "git") {
			return true, true
		}
	}
	return false, true
}
