package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// notifier is what folders needs of fsnotify. Both may be called again for a path.
type notifier interface {
	Add(path string) error
	Remove(path string) error
}

// folders knows which folders must be watched for the files that are wanted.
// A file is watched in the folder it lies in and, if it is a symbolic link, in
// the folder of its target. While a folder does not exist, the nearest one
// above it is watched instead.
type folders struct {
	fs    notifier
	files map[string][]string // path as given → the real paths that stand for it
	// watched are the folders given to fs, as they were then: a watch follows its
	// folder when one above is renamed, and the name may mean another one now.
	watched map[string]os.FileInfo
}

func newFolders(n notifier) *folders {
	return &folders{fs: n, files: map[string][]string{}, watched: map[string]os.FileInfo{}}
}

// add begins to watch the file that path names.
func (f *folders) add(path string) error {
	real, err := f.arm(path)
	if err != nil {
		return err
	}
	f.files[path] = real
	return nil
}

// remove forgets a file.
func (f *folders) remove(path string) {
	delete(f.files, path)
	f.prune()
}

// prune stops watching the folders that no file needs any more.
func (f *folders) prune() {
	needed := map[string]bool{}
	for _, real := range f.files {
		for _, p := range real {
			dir := filepath.Dir(p)
			for f.watched[dir] == nil && dir != filepath.Dir(dir) {
				dir = filepath.Dir(dir)
			}
			needed[dir] = true
		}
	}
	for dir := range f.watched {
		if !needed[dir] {
			f.drop(dir)
		}
	}
}

func (f *folders) drop(dir string) {
	delete(f.watched, dir)
	_ = f.fs.Remove(dir) // an error says that the system dropped it already, with the folder
}

// rearmAll looks again at every folder and file.
func (f *folders) rearmAll() {
	for dir, was := range f.watched {
		if is, err := os.Stat(dir); err != nil || !os.SameFile(is, was) {
			f.drop(dir)
		}
	}
	f.rearm(slices.Collect(maps.Keys(f.files)))
}

// rearm looks again at files: a folder may have come, gone or been replaced.
// Errors are left to the next time: there is always the tick.
func (f *folders) rearm(paths []string) {
	for _, path := range paths {
		if real, err := f.arm(path); err == nil {
			f.files[path] = real
		}
	}
	f.prune()
}

// affected are the files, as given, that an event may be about.
func (f *folders) affected(e fsnotify.Event) []string {
	var out []string
	name := filepath.Clean(e.Name)
	if f.watched[name] != nil && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)) {
		f.drop(name)
	}
	var moved []string // a folder above came or went, or a link may point elsewhere now
	for path, real := range f.files {
		for _, p := range real {
			if p == name || within(p, name) {
				out = append(out, path)
				if p != name || e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
					moved = append(moved, path)
				}
				break
			}
		}
	}
	if len(moved) > 0 {
		f.rearm(moved)
	}
	return out
}

// within reports whether path lies below dir.
func within(path, dir string) bool {
	return len(path) > len(dir)+1 && path[:len(dir)] == dir && path[len(dir)] == filepath.Separator
}

// arm watches the folders of a file and returns the real paths it goes by.
func (f *folders) arm(path string) ([]string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	own, err := f.watchFolder(abs)
	if err != nil {
		return nil, err
	}
	real := []string{own}
	if target, err := filepath.EvalSymlinks(abs); err == nil && target != own {
		target, err = f.watchFolder(target)
		if err != nil {
			return nil, err
		}
		if target != own {
			real = append(real, target)
		}
	}
	return real, nil
}

// watchFolder watches the folder of the file at abs, or the nearest one above
// that exists, and returns the file's path with the links in it resolved: that
// is what events are named by. A folder that comes while its parent is being
// added is found by trying again from the bottom.
func (f *folders) watchFolder(abs string) (string, error) {
	const tries = 100
	for range tries {
		dir, rest := filepath.Dir(abs), filepath.Base(abs)
		real, err := filepath.EvalSymlinks(dir)
		for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest)
			real, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			return "", err
		}
		if err := f.watch(real); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue // it went meanwhile
			}
			return "", err
		}
		if rest == filepath.Base(abs) || !exists(filepath.Join(real, firstElement(rest))) {
			return filepath.Join(real, rest), nil
		}
	}
	return "", fmt.Errorf("folders come and go all the time above %s", abs)
}

func (f *folders) watch(dir string) error {
	if f.watched[dir] != nil {
		return nil
	}
	info, err := os.Stat(dir) // before Add, so that a swap between the two is found later
	if err != nil {
		return err
	}
	if err := f.fs.Add(dir); err != nil {
		return explain(err)
	}
	f.watched[dir] = info
	return nil
}
