package durable

import "golang.org/x/sys/unix"

// swap exchanges two names in one step: renamex_np(2).
func swap(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }
