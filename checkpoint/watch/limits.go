package watch

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// limitFile has the number of folders that all programs of a user may watch.
const limitFile = "/proc/sys/fs/inotify/max_user_watches"

// unknownLimit stands for a limit that cannot be read: the smallest default of Linux.
const unknownLimit = 8192

func systemLimit() int {
	b, err := os.ReadFile(limitFile)
	if err != nil {
		return unknownLimit
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 1 {
		return unknownLimit
	}
	return n
}

// explain adds to an error of inotify(7) which limit it is and how to raise it.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: the limit of watched folders is reached; raise it with: sudo sysctl fs.inotify.max_user_watches=524288", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: the limit of watchers or of open files is reached; raise it with: sudo sysctl fs.inotify.max_user_instances=1024, or: ulimit -n 4096", err)
	}
	return err
}
