// Package state knows where things are: the repository a command was called
// in, and the folders outside it where muntin keeps what belongs to a run.
// It finds paths; it makes and removes nothing.
package state

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoRepo says that no git repository was found.
var ErrNoRepo = errors.New("not a git repository")

// A Repo is a git repository as seen from one of its worktrees.
type Repo struct {
	Root      string // top of the worktree that was asked from
	Main      string // top of the main worktree; the common git folder of a bare layout
	GitDir    string // this worktree's git folder
	CommonDir string // the git folder all worktrees share
}

// FindRepo looks for the git repository that dir lies in, upwards. The error
// matches ErrNoRepo if there is none. GIT_DIR and its like are not looked at:
// which repository a run belongs to must not depend on the environment.
func FindRepo(dir string) (Repo, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Repo{}, fmt.Errorf("finding the repository of %s: %w", dir, err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return Repo{}, fmt.Errorf("finding the repository of %s: %w", dir, err)
	}
	for top := abs; ; top = filepath.Dir(top) {
		repo, err := openRepo(top)
		if err == nil || !errors.Is(err, ErrNoRepo) {
			return repo, err
		}
		if top == filepath.Dir(top) {
			return Repo{}, fmt.Errorf("%s: %w", abs, ErrNoRepo)
		}
	}
}

// Name is the repository's folder name, for people.
func (r Repo) Name() string {
	base := filepath.Base(r.Main)
	if base == ".git" || base == ".bare" {
		base = filepath.Base(filepath.Dir(r.Main))
	}
	return strings.TrimSuffix(base, ".git")
}

// Key is a short hash that tells repositories of one name apart.
func (r Repo) Key() string {
	sum := sha256.Sum256([]byte(r.CommonDir))
	return hex.EncodeToString(sum[:4])
}

func openRepo(top string) (Repo, error) {
	dotGit := filepath.Join(top, ".git")
	info, err := os.Stat(dotGit)
	if err != nil {
		return Repo{}, ErrNoRepo
	}
	gitDir := dotGit
	if !info.IsDir() {
		if gitDir, err = linkTarget(dotGit, "gitdir: "); err != nil {
			return Repo{}, err
		}
	}
	if _, err := os.Stat(filepath.Join(gitDir, "HEAD")); err != nil {
		return Repo{}, ErrNoRepo
	}
	repo := Repo{Root: top, Main: top, GitDir: gitDir, CommonDir: gitDir}
	common, err := linkTarget(filepath.Join(gitDir, "commondir"), "")
	if errors.Is(err, os.ErrNotExist) {
		return repo, nil
	}
	if err != nil {
		return Repo{}, err
	}
	repo.CommonDir = common
	repo.Main = common
	if filepath.Base(common) == ".git" {
		repo.Main = filepath.Dir(common)
	}
	return repo, nil
}

// linkTarget reads a file of git's that holds a path, relative to its folder.
func linkTarget(file, prefix string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading git's link: %w", err)
	}
	text := strings.TrimRight(string(b), "\r\n")
	target, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return "", fmt.Errorf("reading git's link %s: want %q at its start", file, prefix)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(file), target)
	}
	return filepath.EvalSymlinks(target)
}
