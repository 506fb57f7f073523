package worktree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// copyTree copies a file, symlink or folder with all that is in it: contents,
// permissions and, for files, times, on which build caches rely. Sockets,
// FIFOs and devices are passed over.
func copyTree(ctx context.Context, b bringing) error {
	return fs.WalkDir(b.from.FS(), filepath.ToSlash(b.path), func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, context.Cause(ctx)); err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		path = filepath.FromSlash(path)
		switch info.Mode().Type() {
		case fs.ModeDir:
			// What is in it has to be written, also where it is read-only there.
			return b.to.Mkdir(path, info.Mode().Perm()|0o700)
		case fs.ModeSymlink:
			target, err := b.from.Readlink(path)
			if err != nil {
				return err
			}
			return b.to.Symlink(target, path)
		case 0:
			return copyFile(b, path, info)
		}
		return nil
	})
}

func copyFile(b bringing, path string, info fs.FileInfo) (err error) {
	src, err := b.from.Open(path)
	if err != nil {
		return err
	}
	defer src.Close()
	cloned, err := clone(src, b.to, path)
	if err != nil {
		return err
	}
	if !cloned {
		if err := copyBytes(src, b.to, path); err != nil {
			return err
		}
	}
	if err := b.to.Chmod(path, info.Mode().Perm()); err != nil {
		return err
	}
	return b.to.Chtimes(path, info.ModTime(), info.ModTime())
}

// copyBytes lets the system do it: on Linux io.Copy between files is
// copy_file_range(2), which shares the blocks on file systems that can.
func copyBytes(src *os.File, to *os.Root, path string) error {
	dst, err := to.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
