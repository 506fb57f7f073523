package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Exchange is WriteFile for a file that others write without asking: it returns
// what the file held at the moment it was replaced, so that nothing is lost that
// came after the last look at it. old is nil when there was no file. On a file
// system that cannot exchange two names, old is what was read just before.
func Exchange(path string, data []byte, perm fs.FileMode) (old []byte, err error) {
	temp, err := writeTemp(path, data, perm)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if rm := os.Remove(temp); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("writing %s: %w", path, rm))
		}
	}()
	err = SwapAt(here, temp, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.Rename(temp, path)
	case CannotSwap(err):
		if old, err = os.ReadFile(path); err == nil {
			err = os.Rename(temp, path)
		}
	case err == nil:
		old, err = os.ReadFile(temp)
	}
	if err != nil {
		return old, fmt.Errorf("writing %s: %w", path, err)
	}
	return old, SyncDir(filepath.Dir(path))
}

// writeTemp writes a file beside path, synced, with the mode and owner that path
// has or should get.
func writeTemp(path string, data []byte, perm fs.FileMode) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil {
		perm = info.Mode().Perm()
		keepOwner(f, path)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(perm), f.Sync(), f.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// CannotSwap tells whether an error of SwapAt or MoveAt means that the kernel or the
// file system has no such call, so that the caller has to do without.
func CannotSwap(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOTSUP)
}
