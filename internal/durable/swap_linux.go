package durable

import "golang.org/x/sys/unix"

// SwapAt exchanges two names in an open folder in one step, by renameat2(2).
// CannotSwap tells from the error whether the file system has no such call.
func SwapAt(dir int, a, b string) error {
	return unix.Renameat2(dir, a, dir, b, unix.RENAME_EXCHANGE)
}

// MoveAt gives a file another name in an open folder, if nothing has that name:
// else the error is EEXIST. CannotSwap tells whether the file system has no such call.
func MoveAt(dir int, from, to string) error {
	return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
}

// here stands for the present folder.
const here = unix.AT_FDCWD
