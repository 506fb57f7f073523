package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muntin/internal/state"
)

// A Place is a folder that trust is asked about. Main is only for a linked
// worktree that follows its main worktree: each folder of it up to Top is
// taken together with the same one under Main, and what is above Top does not
// count, but what is above Main does. Otherwise Main is empty.
type Place struct {
	Dir  string
	Top  string // of the worktree that Dir lies in; needed with Main
	Main string // of the main worktree, or the bare repository
}

// PlaceOf is where dir is. A worktree that muntin made, under its own state
// folder, follows the repository that it was made of. That a folder says by
// itself what it belongs to is not enough: the repository must know it.
func PlaceOf(layout state.Layout, dir string) Place {
	p := Place{Dir: dir}
	repo, err := state.FindRepo(dir)
	if err != nil || repo.Main == repo.Root {
		return p
	}
	ours, err := Canonical(layout.State)
	if err != nil || !below(repo.Root, ours) || !registered(repo) {
		return p
	}
	return Place{Dir: dir, Top: repo.Root, Main: repo.Main}
}

// registered reports whether the repository lists the worktree as its own: its
// folder for the worktree links back. See "gitdir" in gitrepository-layout(5).
func registered(repo state.Repo) bool {
	if filepath.Dir(repo.GitDir) != filepath.Join(repo.CommonDir, "worktrees") {
		return false
	}
	text, err := os.ReadFile(filepath.Join(repo.GitDir, "gitdir"))
	if err != nil {
		return false
	}
	back := strings.TrimRight(string(text), "\r\n")
	if !filepath.IsAbs(back) { // worktree.useRelativePaths
		back = filepath.Join(repo.GitDir, back)
	}
	back, err = Canonical(back)
	return err == nil && back == filepath.Join(repo.Root, ".git")
}

// chain is the folders whose decisions count, the nearest first.
func (p Place) chain() ([]string, error) {
	dir, err := Canonical(p.Dir)
	if err != nil {
		return nil, err
	}
	if p.Main == "" {
		return upwards(dir), nil
	}
	top, err := Canonical(p.Top)
	if err != nil {
		return nil, err
	}
	main, err := Canonical(p.Main)
	if err != nil {
		return nil, err
	}
	if !below(dir, top) {
		return nil, fmt.Errorf("looking trust up: %s is not in %s", dir, top)
	}
	var chain []string
	for d := dir; ; d = filepath.Dir(d) {
		chain = append(chain, d, filepath.Join(main, strings.TrimPrefix(d, top)))
		if d == top {
			return append(chain, upwards(main)[1:]...), nil
		}
	}
}

// upwards is dir and the folders above it, to the root.
func upwards(dir string) []string {
	all := []string{dir}
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		all = append(all, dir)
	}
	return all
}

// below reports whether dir is top or lies in it; both are canonical.
func below(dir, top string) bool {
	return dir == top || strings.HasPrefix(dir, strings.TrimSuffix(top, "/")+"/")
}

// Canonical is the absolute path of dir without symbolic links. What does not
// exist of it is taken as it is written.
func Canonical(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the folder %s: %w", dir, err)
	}
	rest := ""
	for at := abs; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return "", fmt.Errorf("finding the folder %s: %w", dir, err)
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
