// Package durable is the one way to change files so that a kill at any moment
// loses nothing: whole files by temp, fsync and rename; logs by one append a
// line; exclusive access by an operating-system lock.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// WriteFile replaces the file at path with data. A reader sees the old
// content or the new, never a part, also after a power loss: the data is
// synced before the rename and the folder after it. A file that existed keeps its
// mode, and its owner and group where the system lets us set them; a new one gets
// perm, less the umask.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	dir := filepath.Dir(path)
	opts := []renameio.Option{renameio.WithTempDir(dir), renameio.WithPermissions(perm), renameio.WithExistingPermissions()}
	f, err := renameio.NewPendingFile(path, opts...)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() { _ = f.Cleanup() }() // nothing after the rename; a temp file that stays does no harm
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	keepOwner(f.File, path)
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return SyncDir(dir)
}

// keepOwner gives f the owner and group of the file at path. Where only root may,
// it gives the group, and where that is refused too it leaves f as it is: a new
// file under our own name is better than none.
func keepOwner(f *os.File, path string) {
	old, err := os.Stat(path)
	if err != nil {
		return
	}
	is, err := f.Stat()
	if err != nil {
		return
	}
	want, ok1 := old.Sys().(*syscall.Stat_t)
	have, ok2 := is.Sys().(*syscall.Stat_t)
	if !ok1 || !ok2 || want.Uid == have.Uid && want.Gid == have.Gid {
		return
	}
	if f.Chown(int(want.Uid), int(want.Gid)) != nil && f.Chown(-1, int(want.Gid)) != nil {
		return
	}
	_ = f.Chmod(old.Mode()) // a change of owner drops the set-id bits
}

// Rename moves a file within one file system and makes the move durable.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("moving %s: %w", from, err)
	}
	if err := SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	if filepath.Dir(from) == filepath.Dir(to) {
		return nil
	}
	return SyncDir(filepath.Dir(from))
}

// SyncDir makes the names in a folder durable. File systems that cannot sync
// a folder answer EINVAL or ENOTSUP, which is not an error here.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing folder: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return fmt.Errorf("syncing folder %s: %w", dir, err)
	}
	return nil
}
