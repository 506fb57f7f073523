package checkpoint

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// errNoBeneath says that the system cannot open a path without following symlinks in one call.
var errNoBeneath = errors.New("no such call")

func openBeneath(root int, rel string) (int, error) {
	fd, err := unix.Openat(root, rel, dirFlags&^unix.O_NOFOLLOW|unix.O_NOFOLLOW_ANY, 0)
	if errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.EINVAL) {
		return -1, errNoBeneath
	}
	return fd, err
}

// syncAll makes everything written to the file system of fd durable at once.
func syncAll(int) error { return errors.ErrUnsupported }

// birth is when a file was made, in nanoseconds; 0 if the file system does not tell.
func birth(path string) int64 {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0
	}
	return unix.TimespecToNsec(st.Btim)
}

// canSyncAll tells whether syncAll works here.
const canSyncAll = false

// readNames calls fn for each name in an open folder, in no order, without "." and "..".
func readNames(dir int, _ []byte, fn func(name []byte, kind nameKind)) error {
	fd, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "")
	defer f.Close()
	list, err := f.ReadDir(-1)
	for _, d := range list {
		kind := kindOther
		if d.IsDir() {
			kind = kindDir
		}
		fn([]byte(d.Name()), kind)
	}
	return err
}
