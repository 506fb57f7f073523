package worktree

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// CreateBranch makes a branch at a commit. The error matches ErrExists if
// there is one of that name, and ErrUnborn if at is empty, as Head returns it
// for a repository without commits.
func (m *Manager) CreateBranch(ctx context.Context, name, at string) error {
	if at == "" {
		return fmt.Errorf("creating branch %s: %w (hint: git commit --allow-empty -m start)", name, ErrUnborn)
	}
	in := fmt.Sprintf("create %s%s %s\n", headsPrefix, name, at)
	_, err := m.git.run(ctx, call{dir: m.repo.Root, args: []string{"update-ref", "-m", "muntin: create", "--stdin"}, stdin: in})
	if err == nil {
		return nil
	}
	if tip, tipErr := m.Tip(ctx, name); tipErr == nil && tip != "" {
		return fmt.Errorf("creating branch %s: %w", name, ErrExists)
	}
	return fmt.Errorf("creating branch %s at %s: %w", name, at, err)
}

// DeleteBranch removes one of our branches that stands at the commit old. It
// refuses (ErrRefused) a branch that is not muntin's and one with commits that
// are on no other branch: those go with Remove, which keeps them. The error
// matches ErrMoved if the branch stands elsewhere. A branch that is not there
// is no error.
func (m *Manager) DeleteBranch(ctx context.Context, name, old string) error {
	tip, err := m.Tip(ctx, name)
	if err != nil || tip == "" {
		return err
	}
	only, err := m.onlyHere(ctx, old, name)
	if err != nil {
		return fmt.Errorf("deleting branch %s: %w", name, err)
	}
	if only > 0 {
		return fmt.Errorf("deleting branch %s: %w: %d commits are on no other branch", name, ErrRefused, only)
	}
	return m.deleteBranch(ctx, name, old)
}

// deleteBranch is DeleteBranch where the commits are kept already.
func (m *Manager) deleteBranch(ctx context.Context, name, old string) error {
	if !strings.HasPrefix(name, branchPrefix) {
		return fmt.Errorf("deleting branch %s: %w: it is not one of muntin's", name, ErrRefused)
	}
	if _, err := m.run(ctx, "update-ref", "-d", headsPrefix+name, old); err != nil {
		return m.moveError(ctx, fmt.Errorf("deleting branch %s: %w", name, err), name, old)
	}
	return nil
}

// onlyHere counts the commits up to oid that are on no branch but this one,
// local or remote-tracking, and that no ref of muntin's own keeps in another form.
func (m *Manager) onlyHere(ctx context.Context, oid, branch string) (int, error) {
	args := []string{"rev-list", "--count", oid, "--not"}
	if branch != "" {
		args = append(args, "--exclude="+branch)
	}
	out, err := m.run(ctx, append(args, "--branches", "--remotes", "--glob="+startRefs, "--glob="+landedRefs)...)
	if err != nil {
		return 0, fmt.Errorf("counting commits: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		return 0, fmt.Errorf("counting commits: %w", err)
	}
	return n, nil
}

// Tip returns the commit a branch stands at, "" when there is no such branch.
func (m *Manager) Tip(ctx context.Context, branch string) (string, error) {
	out, err := m.run(ctx, "rev-parse", "--verify", "--quiet", headsPrefix+branch+"^{commit}")
	if exitCode(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading branch %s: %w", branch, err)
	}
	return strings.TrimSpace(out), nil
}

// Ahead counts the commits of branch that base does not have, and the other
// way round. Both may be branches or commits.
func (m *Manager) Ahead(ctx context.Context, branch, base string) (ahead, behind int, err error) {
	out, err := m.run(ctx, "rev-list", "--left-right", "--count", "--end-of-options", branch+"..."+base)
	if err != nil {
		return 0, 0, fmt.Errorf("comparing %s with %s: %w", branch, base, err)
	}
	left, right, _ := strings.Cut(strings.TrimSpace(out), "\t")
	if ahead, err = strconv.Atoi(left); err == nil {
		behind, err = strconv.Atoi(right)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("comparing %s with %s: cannot read %q", branch, base, out)
	}
	return ahead, behind, nil
}

// A FileStat is the size of the change of one file, in lines.
type FileStat struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"` // no line counts
}

// DiffStat returns the files that differ between two commits or trees, by path.
func (m *Manager) DiffStat(ctx context.Context, from, to string) ([]FileStat, error) {
	out, err := m.run(ctx, "diff-tree", "-r", "-z", "--numstat", "--no-renames", "--end-of-options", from, to)
	if err != nil {
		return nil, fmt.Errorf("comparing %s with %s: %w", from, to, err)
	}
	return parseNumstat(out)
}

// parseNumstat reads `--numstat -z` without renames: added, deleted and path
// with tabs between them, "-" for the counts of a binary file (git-diff(1)).
func parseNumstat(out string) ([]FileStat, error) {
	var stats []FileStat
	for _, item := range splitNul(out) {
		parts := strings.SplitN(item, "\t", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("reading git's numstat: cannot read %q", item)
		}
		f := FileStat{Path: parts[2], Binary: parts[0] == "-"}
		if !f.Binary {
			var errA, errD error
			f.Added, errA = strconv.Atoi(parts[0])
			f.Deleted, errD = strconv.Atoi(parts[1])
			if errA != nil || errD != nil {
				return nil, fmt.Errorf("reading git's numstat: cannot read %q", item)
			}
		}
		stats = append(stats, f)
	}
	return stats, nil
}
