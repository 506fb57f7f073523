package worktree

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Size is what the files of a commit take on the disk of a new worktree, and
// how many files and folders there are.
type Size struct {
	Bytes   int64 // each file in whole blocks of 4 KiB
	Files   int
	Folders int
}

// block is the unit in which file systems give out space.
const block = 4096

// SizeOf adds up the files of a commit. Submodules are not in it.
func (m *Manager) SizeOf(ctx context.Context, commit string) (Size, error) {
	out, err := m.git.run(ctx, call{dir: m.repo.Main, args: []string{"ls-tree", "-r", "-t", "-l", "-z", commit}})
	if err != nil {
		return Size{}, fmt.Errorf("measuring the files of %s: %w", commit, err)
	}
	var size Size
	for entry := range strings.SplitSeq(out, "\x00") {
		fields := strings.Fields(strings.SplitN(entry, "\t", 2)[0]) // mode type object size
		if len(fields) != 4 {
			continue
		}
		size.Bytes += block
		if fields[1] == "tree" {
			size.Folders++
			continue
		}
		size.Files++
		if n, err := strconv.ParseInt(fields[3], 10, 64); err == nil && n > block {
			size.Bytes += (n - 1) / block * block
		}
	}
	return size, nil
}
