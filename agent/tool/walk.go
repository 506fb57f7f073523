package tool

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muntin/checkpoint/ignore"
	"muntin/internal/state"
)

// maxIgnoreFile is the largest .gitignore that is read.
const maxIgnoreFile = 1 << 20

// errStop ends a walk early, without an error.
var errStop = errors.New("enough")

// An entry is one path that a walk finds.
type entry struct {
	rel  string // below the walk's root, with slashes
	path string
	kind fs.FileMode // its type bits; symbolic links are not followed
}

// walk visits what lies below root in the order of the names, hidden files too,
// without .git and what git would ignore. Folders that cannot be read are left
// out. visit ends the walk with errStop.
func (s *Set) walk(ctx context.Context, root string, visit func(entry) error) error {
	w := walker{ctx: ctx, root: root, visit: visit}
	scope, prefix := s.outerScope(root)
	w.prefix = prefix
	err := w.folder("", scope)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

type walker struct {
	ctx    context.Context
	root   string
	prefix string // of the root below the repository's top, "" or with a slash at its end
	visit  func(entry) error
}

// folder visits the entries of the folder rel, "" for the root.
func (w *walker) folder(rel string, scope *ignore.Scope) error {
	dir := filepath.Join(w.root, filepath.FromSlash(rel))
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil //nolint:nilerr // what cannot be read is not found, as with every search program
	}
	within := strings.TrimSuffix(w.prefix+rel, "/")
	scope = scope.Enter(within, ignoreFile(filepath.Join(dir, ".gitignore")))
	for _, item := range list {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		name := item.Name()
		if name == ".git" {
			continue
		}
		e := entry{rel: name, path: filepath.Join(dir, name), kind: item.Type()}
		if rel != "" {
			e.rel = rel + "/" + name
		}
		if scope.Match(w.prefix+e.rel, item.IsDir()) == ignore.Ignored {
			continue
		}
		if err := w.visit(e); err != nil {
			return err
		}
		if item.IsDir() {
			if err := w.folder(e.rel, scope); err != nil {
				return err
			}
		}
	}
	return nil
}

// outerScope is what holds for root from above it: in a repository its info/exclude
// and the .gitignore of each folder from its top down, everywhere the user's own
// list. prefix is where root lies below the top.
func (s *Set) outerScope(root string) (scope *ignore.Scope, prefix string) {
	global := ignoreFile(filepath.Join(s.configHome(), "git", "ignore"))
	repo, err := state.FindRepo(root)
	if err != nil {
		return ignore.Root(global), ""
	}
	scope = ignore.Root(global, ignoreFile(filepath.Join(repo.CommonDir, "info", "exclude")))
	below, err := filepath.Rel(repo.Root, root)
	if err != nil || below == "." || strings.HasPrefix(below, "..") {
		return scope, ""
	}
	dir, within := repo.Root, ""
	for part := range strings.SplitSeq(filepath.ToSlash(below), "/") {
		scope = scope.Enter(within, ignoreFile(filepath.Join(dir, ".gitignore")))
		dir, within = filepath.Join(dir, part), strings.TrimPrefix(within+"/"+part, "/")
	}
	return scope, within + "/"
}

func (s *Set) configHome() string {
	if dir := lookup(s.env, "XDG_CONFIG_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(s.home, ".config")
}

// ignoreFile reads a list of patterns; a missing or odd file is an empty one.
func ignoreFile(path string) *ignore.List {
	info, err := os.Lstat(path) // git does not follow a link here either
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return ignore.Parse(content, false)
}

// searchRoot finds what a search starts at: the folder, or the one file.
func (s *Set) searchRoot(name string) (root string, isDir bool, err error) {
	if name == "" {
		name = "."
	}
	path, err := s.path(name)
	if err != nil {
		return "", false, err
	}
	if path, err = realPath(path); err != nil {
		return "", false, plainError(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", false, plainError(err)
	}
	if !info.IsDir() {
		if err := checkRegular(info); err != nil {
			return "", false, err
		}
	}
	return path, info.IsDir(), nil
}
