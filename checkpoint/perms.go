package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

// sharing is core.sharedRepository (git-config(1)): which permissions files
// and folders in the git folder get beside what the umask leaves.
type sharing struct {
	add   fs.FileMode // bits to add
	exact bool        // add is the whole mode of files
}

// parseSharing reads the setting. What git would not take shares nothing.
func parseSharing(value string) sharing {
	switch strings.ToLower(value) {
	case "", "umask", "false", "no", "off", "0":
		return sharing{}
	case "group", "true", "yes", "on", "1":
		return sharing{add: 0o660}
	case "all", "world", "everybody", "2":
		return sharing{add: 0o664}
	}
	n, err := strconv.ParseUint(value, 8, 32)
	if err != nil || n&0o600 != 0o600 || n > 0o777 {
		return sharing{}
	}
	return sharing{add: fs.FileMode(n) &^ 0o111, exact: true}
}

// mode is the mode that a file or folder with mode m should have
// (calc_shared_perm of git's path.c).
func (p sharing) mode(m fs.FileMode, dir bool) fs.FileMode {
	add := p.add
	if m&0o200 == 0 {
		add &^= 0o222
	}
	if m&0o100 != 0 {
		add |= add & 0o444 >> 2
	}
	if p.exact {
		m = m&^0o777 | add
	} else {
		m |= add
	}
	if dir && add&0o060 != 0 {
		m |= fs.ModeSetgid
	}
	return m
}

// adjust gives a new file or folder the permissions that others need.
func (p sharing) adjust(path string) error {
	if p == (sharing{}) {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	now := info.Mode() & (fs.ModePerm | fs.ModeSetgid)
	if want := p.mode(now, info.IsDir()); want != now {
		return os.Chmod(path, want)
	}
	return nil
}

// mkdir makes one folder of the git folder unless it is there.
func (p sharing) mkdir(path string) error {
	err := os.Mkdir(path, 0o777) //nolint:gosec // as git: the umask decides
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.adjust(path)
}

// temp makes a new read-only file, open for writing, whose name begins with
// prefix. Unlike os.CreateTemp it leaves the mode to the umask, as git does.
func (p sharing) temp(dir, prefix string) (*os.File, error) {
	for range 100 {
		name := fmt.Sprintf("%s/%s%08x", dir, prefix, rand.Uint32()) //nolint:gosec // O_EXCL finds a name that is taken
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o444)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := p.adjust(name); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(name))
		}
		return f, nil
	}
	return nil, fmt.Errorf("no free name for a temporary file in %s", dir)
}
