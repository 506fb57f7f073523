package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// errNoBeneath says that the system cannot open a path without following symlinks in one call.
var errNoBeneath = errors.New("no such call")

func openBeneath(root int, rel string) (int, error) {
	how := unix.OpenHow{Flags: dirFlags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(root, rel, &how)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENAMETOOLONG):
		// Old kernels, containers that forbid the call, a rename on the way, or a very deep path.
		return -1, errNoBeneath
	}
	return fd, err
}

// syncAll makes everything written to the file system of fd durable at once.
func syncAll(fd int) error { return unix.Syncfs(fd) }

// birth is when a file was made, in nanoseconds; 0 if the file system does not tell.
func birth(path string) int64 {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &st); err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*int64(time.Second) + int64(st.Btime.Nsec)
}

// canSyncAll tells whether syncAll works here.
const canSyncAll = true

// readNames calls fn for each name in an open folder, in no order, without "." and "..".
func readNames(dir int, buf []byte, fn func(name []byte, kind nameKind)) error {
	for {
		n, err := unix.Getdents(dir, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		for rest := buf[:n]; len(rest) > direntHead; { // struct linux_dirent64 of getdents64(2)
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			if size <= direntHead || size > len(rest) {
				return unix.EIO
			}
			name, _, _ := bytes.Cut(rest[direntHead:size], []byte{0})
			kind := kindOther
			switch rest[18] {
			case unix.DT_DIR:
				kind = kindDir
			case unix.DT_UNKNOWN:
				kind = kindUnknown
			}
			if string(name) != "." && string(name) != ".." {
				fn(name, kind)
			}
			rest = rest[size:]
		}
	}
}

// direntHead is the size of a directory entry before its name.
const direntHead = 19
