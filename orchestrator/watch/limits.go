package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// explain adds to an error of the system's limits which limit it is and how to
// raise it: inotify(7) and kqueue(2) answer with errors that speak of disks
// and files.
func explain(err error) error { return explainFor(runtime.GOOS, err) }

func explainFor(goos string, err error) error {
	switch {
	case goos == "linux" && errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: the limit of watched folders is reached; raise it with: sudo sysctl fs.inotify.max_user_watches=524288", err)
	case goos == "linux" && errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: the limit of watchers or of open files is reached; raise it with: sudo sysctl fs.inotify.max_user_instances=1024, or: ulimit -n 4096", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: the limit of open files is reached; raise it with: ulimit -n 4096, or: sudo sysctl kern.maxfilesperproc=65536", err)
	case errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%w: the system's limit of open files is reached; raise it with: sudo sysctl %s", err, maxFiles(goos))
	}
	return err
}

func maxFiles(goos string) string {
	if goos == "linux" {
		return "fs.file-max=1048576"
	}
	return "kern.maxfiles=131072"
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func firstElement(path string) string {
	first, _, _ := strings.Cut(path, string(filepath.Separator))
	return first
}
