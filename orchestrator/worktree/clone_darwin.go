package worktree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// clone makes a file that shares its blocks with src (clonefile(2), on APFS).
// It reports false where that cannot be.
func clone(src *os.File, to *os.Root, path string) (bool, error) {
	dir, err := to.Open(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	defer dir.Close()
	err = unix.Fclonefileat(int(src.Fd()), int(dir.Fd()), filepath.Base(path), 0)
	if errors.Is(err, unix.EEXIST) {
		return false, fmt.Errorf("cloning %s: %w", path, err)
	}
	return err == nil, nil // another file system, or one that cannot: it is copied
}
