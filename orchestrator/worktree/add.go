package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muntin/internal/durable"
)

// adminTries is how often a worktree is registered again when another
// program's git was registering one at the same moment.
const adminTries = 5

// Add makes a linked worktree at path, which must lie in the Manager's Root
// and not exist, on a new branch at the commit at. It checks that the new
// worktree is complete and clean; if it is not, it is taken away again and the
// error matches ErrUnclean. Other errors to test for: ErrUnborn, ErrExists
// (branch or folder). Submodules are left unpopulated, as git leaves them.
// Several calls at once are safe.
func (m *Manager) Add(ctx context.Context, path, branch, at string) (Worktree, error) {
	path, err := m.newPath(path)
	if err != nil {
		return Worktree{}, fmt.Errorf("adding worktree %s: %w", path, err)
	}
	if err := m.CreateBranch(ctx, branch, at); err != nil {
		return Worktree{}, fmt.Errorf("adding worktree %s: %w", path, err)
	}
	err = m.add(ctx, addition{path: path, target: branch, checkout: true})
	if err != nil {
		// Even when ctx has ended, what was begun is cleared away.
		err = errors.Join(err, m.deleteBranch(context.WithoutCancel(ctx), branch, at))
		return Worktree{}, fmt.Errorf("adding worktree %s: %w", path, err)
	}
	return Worktree{Path: path, Branch: branch, Head: at}, nil
}

// newPath makes the parent of a worktree to come, and returns the path with
// symlinks resolved. It refuses places outside Root.
func (m *Manager) newPath(path string) (string, error) {
	clean := filepath.Clean(path)
	parent, err := makeDir(filepath.Dir(clean))
	if err != nil {
		return clean, err
	}
	clean = filepath.Join(parent, filepath.Base(clean))
	if !inside(m.root, clean) {
		return clean, fmt.Errorf("it is not inside %s", m.root)
	}
	if _, err := os.Lstat(clean); err == nil {
		return clean, ErrExists
	}
	return clean, nil
}

// An addition is one `git worktree add`.
type addition struct {
	path     string
	target   string // a branch; with detach, a commit
	detach   bool
	checkout bool // write the files
}

// add registers a worktree and fills it. Nothing is left of it on an error.
func (m *Manager) add(ctx context.Context, a addition) error {
	err := m.register(ctx, a)
	if err == nil && a.checkout {
		err = m.fill(ctx, a.path)
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, m.unregister(context.WithoutCancel(ctx), a.path))
}

// unregister takes away a worktree that is just being made. Its folder is
// minutes old, was empty when we made it, and nobody knows of it yet: the
// guards of Remove have nothing to protect here.
func (m *Manager) unregister(ctx context.Context, path string) error {
	_, err := m.run(ctx, "worktree", "remove", "--force", path)
	if err != nil && !strings.Contains(stderr(err), "is not a working tree") {
		return err
	}
	return nil
}

// register makes git's record of the worktree, without its files. Two gits
// that do this at once break each other: one reads the other's half-written
// record and dies with "failed to read …/commondir: Success"
// (vfarcic/dot-agent-deck#586 has the trace). So ours take turns, and when a
// foreign one came between, we try again. The files, which take the time, are
// written outside the lock.
func (m *Manager) register(ctx context.Context, a addition) error {
	lock, err := durable.Lock(ctx, filepath.Join(m.root, ".lock"))
	if err != nil {
		return err
	}
	args := []string{"worktree", "add", "--quiet", "--no-checkout"}
	if a.detach {
		args = append(args, "--detach")
	}
	args = append(args, a.path, a.target)
	for range adminTries {
		_, err = m.run(ctx, args...)
		if err == nil || !strings.Contains(stderr(err), "commondir") {
			break
		}
	}
	return errors.Join(err, lock.Unlock())
}

// fill writes the files of HEAD into a new worktree, as git-worktree does
// itself, and checks what came of it.
func (m *Manager) fill(ctx context.Context, path string) error {
	args := []string{"reset", "--hard", "--quiet", "--no-recurse-submodules"}
	if _, err := m.git.run(ctx, call{dir: path, args: args}); err != nil {
		return fmt.Errorf("writing the files: %w", err)
	}
	return m.verify(ctx, path)
}

// verify checks that a worktree nobody has worked in is as its commit.
func (m *Manager) verify(ctx context.Context, path string) error {
	out, err := m.git.run(ctx, call{dir: path, args: []string{"status", "--porcelain", "-z", "--untracked-files=normal"}})
	if err != nil {
		return fmt.Errorf("checking the files: %w", err)
	}
	if out == "" || m.onlyLineEndings(ctx, path, out) {
		return nil
	}
	items := parseStatus(out)
	return fmt.Errorf("%w: %d paths differ from the commit, first %s %q", ErrUnclean, len(items), items[0].code, items[0].path)
}

// onlyLineEndings tells whether all that status shows are files whose line
// endings in the repository contradict its own .gitattributes. Git shows those
// as modified in every fresh clone; no agent could ever start in such a
// repository.
func (m *Manager) onlyLineEndings(ctx context.Context, path, status string) bool {
	for _, item := range parseStatus(status) {
		if item.code != " M" {
			return false
		}
	}
	_, err := m.git.run(ctx, call{dir: path, args: []string{"diff", "--quiet", "--no-ext-diff", "--ignore-cr-at-eol"}})
	return err == nil
}

// A statusItem is one line of `git status --porcelain`.
type statusItem struct {
	code string // two letters: index, work tree
	path string
}

// parseStatus reads `git status --porcelain -z` (git-status(1)): a renamed or
// copied path is followed by the one it came from.
func parseStatus(out string) []statusItem {
	var items []statusItem
	parts := splitNul(out)
	for i := 0; i < len(parts); i++ {
		if len(parts[i]) < 4 {
			continue
		}
		item := statusItem{code: parts[i][:2], path: parts[i][3:]}
		items = append(items, item)
		if strings.ContainsAny(item.code, "RC") {
			i++
		}
	}
	return items
}

// inside tells whether path lies in dir, below it. Both are clean and absolute.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
