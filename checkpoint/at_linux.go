package checkpoint

import (
	"errors"

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

// canSyncAll tells whether syncAll works here.
const canSyncAll = true
