// Package worktree is the one place where muntin runs git: linked worktrees
// for agents, the commits and merges of their work, and the guarded removal.
//
// Branches. A run's integration branch is muntin/<run>/merged and an agent's
// is muntin/<run>/<agent> (see [Integration] and [AgentBranch]). Git keeps a
// branch as a file, so muntin/<run> could not exist beside muntin/<run>/a;
// the agent name "merged" is reserved for that reason.
//
// Rules. Git is called with argv, with no hooks, no prompts, no automatic gc
// and without the GIT_* variables that would point it at another repository.
// Branches move by compare and swap only. Nothing is checked out, stashed or
// reset in a folder that is not ours, with one exception that a person asks
// for: a merge into a branch that is checked out fast-forwards that folder,
// and refuses when that would overwrite something. Removal goes through
// [Manager.Remove]; there is no way around it and no force.
package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muntin/internal/id"
	"muntin/internal/state"
)

// Merged is the last part of an integration branch's name; no agent may have it.
const Merged = "merged"

const branchPrefix = "muntin/"

// Integration is the name of the run's integration branch.
func Integration(run string) string { return branchPrefix + run + "/" + Merged }

// AgentBranch is the name of an agent's branch in a run.
func AgentBranch(run, agent string) string { return branchPrefix + run + "/" + agent }

// BranchRef is the full name of a branch.
func BranchRef(branch string) string { return headsPrefix + branch }

// CheckNames returns an error unless run and agent can name branches. The
// agent may be empty.
func CheckNames(run, agent string) error {
	if err := id.CheckName("run", run); err != nil {
		return err
	}
	if agent == "" {
		return nil
	}
	if agent == Merged {
		return fmt.Errorf("agent name %q is reserved for the run's integration branch", agent)
	}
	return id.CheckName("agent", agent)
}

// Errors that callers branch on.
var (
	ErrNoGit     = errors.New("git is not installed")
	ErrTooOld    = errors.New("git is too old")
	ErrUnborn    = errors.New("the repository has no commit yet")
	ErrExists    = errors.New("exists already")
	ErrMissing   = errors.New("does not exist")
	ErrMoved     = errors.New("the branch was moved by somebody else")
	ErrOffBranch = errors.New("the worktree is not on its branch")
	ErrUnclean   = errors.New("the new worktree is not clean and complete")
	ErrRefused   = errors.New("refused to remove")
)

// Options say what a Manager works on.
type Options struct {
	Repo  state.Repo
	Root  string           // the folder our worktrees live in; made if needed
	Trash string           // where removed worktrees go; on the file system of Root; made if needed
	Env   []string         // environment of git; nil: this process's
	Now   func() time.Time // nil: time.Now
	// Rescue makes a commit of everything in the folder at path, untracked
	// files included, and returns its object id. It may block. Remove calls it
	// before anything that is not in a commit leaves its place; without it
	// Remove refuses to touch a worktree that is not clean.
	Rescue func(ctx context.Context, path string) (oid string, err error)
}

// A Manager does everything muntin does with git in one repository. Its
// methods may be called from several goroutines and from several processes.
type Manager struct {
	git    git
	repo   state.Repo
	root   string // symlinks resolved
	trash  string // symlinks resolved
	now    func() time.Time
	rescue func(ctx context.Context, path string) (string, error)
}

// Open checks that git is there and new enough, and makes the folders. The
// error matches ErrNoGit or ErrTooOld if it is not.
func Open(ctx context.Context, opts Options) (*Manager, error) {
	m := &Manager{repo: opts.Repo, now: opts.Now, rescue: opts.Rescue}
	if m.now == nil {
		m.now = time.Now
	}
	env := opts.Env
	if env == nil {
		env = os.Environ()
	}
	m.git.env = cleanEnv(env)
	if err := m.git.check(ctx); err != nil {
		return nil, err
	}
	var err error
	if m.root, err = makeDir(opts.Root); err != nil {
		return nil, fmt.Errorf("making the folder of worktrees: %w", err)
	}
	m.git.root = m.root
	if m.trash, err = makeDir(opts.Trash); err != nil {
		return nil, fmt.Errorf("making the trash folder: %w", err)
	}
	return m, nil
}

// Head returns the commit that the worktree muntin was called in stands on,
// on a branch or detached. An unborn HEAD (a repository without a commit on
// this branch) is no error: unborn is true and oid empty.
func (m *Manager) Head(ctx context.Context) (oid string, unborn bool, err error) {
	out, err := m.run(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err == nil {
		return strings.TrimSpace(out), false, nil
	}
	if exitCode(err) != 1 {
		return "", false, fmt.Errorf("reading HEAD of %s: %w", m.repo.Root, err)
	}
	if _, symErr := m.run(ctx, "symbolic-ref", "--quiet", "HEAD"); symErr != nil {
		return "", false, fmt.Errorf("reading HEAD of %s: %w", m.repo.Root, errors.Join(err, symErr))
	}
	return "", true, nil
}

// HeadBranch returns the short name of the branch that the worktree muntin
// was called in is on, or "" when its HEAD is detached.
func (m *Manager) HeadBranch(ctx context.Context) (string, error) {
	return headBranch(ctx, m.git, m.repo.Root)
}

// A Worktree is one working folder of the repository.
type Worktree struct {
	Path   string `json:"path"`
	Branch string `json:"branch,omitempty"` // short name; empty when detached or bare
	Head   string `json:"head,omitempty"`   // commit; empty when unborn or bare
	Main   bool   `json:"main,omitempty"`
	Bare   bool   `json:"bare,omitempty"`
	Locked bool   `json:"locked,omitempty"`
	Reason string `json:"reason,omitempty"` // why it is locked
	Gone   bool   `json:"gone,omitempty"`   // its folder is not there
}

// List returns all worktrees of the repository, the main one first.
func (m *Manager) List(ctx context.Context) ([]Worktree, error) {
	out, err := m.run(ctx, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, fmt.Errorf("listing worktrees: %w", err)
	}
	return parseList(out), nil
}

// parseList reads `git worktree list --porcelain -z`: records of attributes,
// each ended by NUL, with an empty one after each record (git-worktree(1)).
func parseList(out string) []Worktree {
	var list []Worktree
	for record := range strings.SplitSeq(out, "\x00\x00") {
		w := Worktree{Main: len(list) == 0}
		for attr := range strings.SplitSeq(record, "\x00") {
			key, value, _ := strings.Cut(attr, " ")
			switch key {
			case "worktree":
				w.Path = value
			case "HEAD":
				if strings.Trim(value, "0") != "" {
					w.Head = value
				}
			case "branch":
				w.Branch = strings.TrimPrefix(value, headsPrefix)
			case "bare":
				w.Bare = true
			case "locked":
				w.Locked, w.Reason = true, value
			case "prunable":
				w.Gone = true
			}
		}
		if w.Path != "" {
			list = append(list, w)
		}
	}
	return list
}

// run calls git in the worktree muntin was called in.
func (m *Manager) run(ctx context.Context, args ...string) (string, error) {
	return m.git.run(ctx, call{dir: m.repo.Root, args: args})
}

func makeDir(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%q is not an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}
