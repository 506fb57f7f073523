package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muntin/internal/durable"
)

// Change rewrites a file by edit, under a lock, if edit changes it. A file that
// does not exist begins empty and gets perm; one that is a symbolic link stays one.
func Change(ctx context.Context, l Location, edit func([]byte) ([]byte, error)) (err error) {
	for _, dir := range []string{filepath.Dir(l.Path), filepath.Dir(l.Lock)} {
		if err := os.MkdirAll(dir, l.Perm|0o100|l.Perm&0o044>>2); err != nil {
			return fmt.Errorf("changing settings: %w", err)
		}
	}
	lock, err := durable.Lock(ctx, l.Lock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	now, err := Read("", l.Path)
	if err != nil {
		return err
	}
	next, err := edit(now.Data)
	if err != nil {
		return fmt.Errorf("changing %s: %w", l.Path, err)
	}
	if string(next) == string(now.Data) {
		return nil
	}
	path, err := filepath.EvalSymlinks(l.Path)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = l.Path, nil
	}
	if err != nil {
		return fmt.Errorf("changing settings: %w", err)
	}
	return durable.WriteFile(path, next, l.Perm)
}

// A Location is a file that is changed, the lock that its writers share, and the
// mode that it gets when it is made.
type Location struct {
	Path, Lock string
	Perm       fs.FileMode
}
