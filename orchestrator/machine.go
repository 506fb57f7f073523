package orchestrator

import (
	"math"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// freeDisk is what the user may still write where path is, or will be: in the
// nearest folder above it that is there. -1: not told.
func freeDisk(path string) int64 {
	for {
		var fs unix.Statfs_t
		if err := unix.Statfs(path, &fs); err == nil {
			return bounded(fs.Bavail) * int64(fs.Bsize) //nolint:unconvert // it is an uint32 on macOS
		}
		if path == filepath.Dir(path) {
			return -1
		}
		path = filepath.Dir(path)
	}
}

// limitOf is a limit of this process, which its children share; -1: none.
func limitOf(resource int) int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return -1
	}
	return bounded(limit.Cur)
}

func bounded(n uint64) int64 {
	const limit = math.MaxInt64 >> 20 // so that it can be multiplied by the size of a block
	if n > limit {
		return limit
	}
	return int64(n)
}

// less is a limit without what is used of it; -1 where there is none.
func less(limit, used int64) int64 {
	if limit < 0 || used < 0 {
		return -1
	}
	return max(limit-used, 0)
}
