package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Everything in the worktree is reached from an open folder and by plain
// names, never through symlinks: an agent that swaps a folder for a symlink
// must not make us read or write elsewhere.

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW

// openRoot opens the worktree's root.
func openRoot(path string) (int, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, dirFlags, 0) })
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// openDir opens the folder rel below root; "" is root itself. A symlink on
// the way is an error (ELOOP or ENOTDIR).
func openDir(root int, rel string) (int, error) {
	if rel == "" {
		rel = "."
	}
	fd, err := retry(func() (int, error) { return openBeneath(root, rel) })
	if errors.Is(err, errNoBeneath) {
		return openSteps(root, rel)
	}
	return fd, err
}

// openSteps is openDir one name at a time, for systems without a call for it.
func openSteps(root int, rel string) (int, error) {
	fd, err := retry(func() (int, error) { return unix.Openat(root, ".", dirFlags, 0) })
	for name := range strings.SplitSeq(rel, "/") {
		if err != nil {
			return -1, err
		}
		parent := fd
		fd, err = retry(func() (int, error) { return unix.Openat(parent, name, dirFlags, 0) })
		_ = unix.Close(parent)
	}
	return fd, err
}

// retry calls open again when a signal interrupted it.
func retry(open func() (int, error)) (int, error) {
	for {
		fd, err := open()
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// lstatAt describes a name in an open folder, without following a symlink.
func lstatAt(dir int, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if !errors.Is(err, unix.EINTR) {
			return st, err
		}
	}
}

// readlinkAt reads the target of a symlink in an open folder.
func readlinkAt(dir int, name string) ([]byte, error) {
	for size := 256; ; size *= 2 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(dir, name, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n < size {
			return buf[:n], nil
		}
	}
}

func statKeyOf(st *unix.Stat_t) statKey {
	return statKey{size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), inode: st.Ino, mode: uint32(st.Mode)} //nolint:unconvert,nolintlint // uint16 on darwin
}

func (k statKey) kind() uint32    { return k.mode & unix.S_IFMT }
func (k statKey) isRegular() bool { return k.kind() == unix.S_IFREG }
func (k statKey) isSymlink() bool { return k.kind() == unix.S_IFLNK }
func (k statKey) isDir() bool     { return k.kind() == unix.S_IFDIR }

// inode returns the inode number of a file, 0 if the system has none.
func inode(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

// A nameKind is what listing a folder tells about a name.
type nameKind uint8

const (
	kindOther nameKind = iota
	kindDir
	kindUnknown // the file system does not say
)
