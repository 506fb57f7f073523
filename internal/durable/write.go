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
// synced before the rename and the folder after it. The mode is perm, without
// the umask applied when the file existed, else with it.
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
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return SyncDir(dir)
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
