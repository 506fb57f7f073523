package durable

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// PrivateDir makes sure that dir is a folder that only this user can enter,
// making it if needed. It refuses one that belongs to somebody else or that
// others may enter, and one in a folder where others could exchange it (a
// sticky one, such as /tmp, is well).
func PrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range []struct {
		path string
		mask fs.FileMode // bits that must not be set
	}{{dir, 0o077}, {filepath.Dir(dir), 0o022}} {
		info, err := os.Lstat(d.path)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		uid := os.Getuid()
		above := d.mask == 0o022
		switch {
		case above && info.Mode()&fs.ModeSymlink != 0: // a link of the system's, as macOS has them
			continue
		case !info.IsDir():
			return fmt.Errorf("%s is no folder", d.path)
		case !ok || int(st.Uid) != uid && !(above && st.Uid == 0):
			return fmt.Errorf("the folder %s belongs to another user", d.path)
		case info.Mode().Perm()&d.mask != 0 && !(above && info.Mode()&fs.ModeSticky != 0):
			return fmt.Errorf("the folder %s has mode %#o, others can reach into it; chmod 700 %s", d.path, info.Mode().Perm(), d.path)
		}
	}
	return nil
}
