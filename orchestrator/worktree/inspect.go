package worktree

import (
	"context"
	"fmt"
	"strings"
)

// Inspect tells what Remove would count now, and what could not be looked at.
// The error is the one with which Remove would refuse.
func (m *Manager) Inspect(ctx context.Context, req RemoveRequest) (Losses, []string, error) {
	wt, notes, err := m.guard(ctx, req)
	if err != nil {
		return Losses{}, notes, fmt.Errorf("looking at worktree %s: %w", req.Path, err)
	}
	l, err := m.losses(ctx, wt)
	if err != nil {
		return Losses{}, notes, fmt.Errorf("looking at worktree %s: %w", req.Path, err)
	}
	return l, notes, nil
}

// Patch is the difference of two commits or trees, line by line, in git's form.
func (m *Manager) Patch(ctx context.Context, from, to string) (string, error) {
	out, err := m.run(ctx, "diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", "--no-color",
		"--src-prefix=a/", "--dst-prefix=b/", "--find-renames", "--end-of-options", from, to)
	if err != nil {
		return "", fmt.Errorf("comparing %s with %s: %w", from, to, err)
	}
	return out, nil
}

// Parted returns the commit where the histories of two commits or branches parted.
func (m *Manager) Parted(ctx context.Context, a, b string) (string, error) {
	out, err := m.run(ctx, "merge-base", a, b)
	if err != nil {
		return "", fmt.Errorf("finding where %s and %s parted: %w", a, b, err)
	}
	return strings.TrimSpace(out), nil
}

// Person is who git takes commits to be from here, the zero Identity when it
// has not been told.
func (m *Manager) Person(ctx context.Context) Identity {
	out, err := m.run(ctx, "var", "GIT_AUTHOR_IDENT")
	name, rest, ok := strings.Cut(strings.TrimSpace(out), " <")
	mail, _, closed := strings.Cut(rest, ">")
	if err != nil || !ok || !closed {
		return Identity{}
	}
	return Identity{Name: name, Email: mail}
}

// Adds tells whether a side has anything that the commit into does not have
// the like of: whatever the history says, the merge of both is another tree.
// With a conflict it has.
func (q *Quarantine) Adds(ctx context.Context, s Side, into string) (bool, error) {
	theirs, err := q.commit(ctx, s)
	if err != nil {
		return false, fmt.Errorf("looking for work that is not merged: %w", err)
	}
	tree, conflicts, err := q.git.mergeTree(ctx, q.dir, into, theirs)
	if err != nil || len(conflicts) > 0 {
		return err == nil, err
	}
	now, err := q.git.run(ctx, call{dir: q.dir, args: []string{"rev-parse", "--verify", into + "^{tree}"}})
	if err != nil {
		return false, fmt.Errorf("looking for work that is not merged: %w", err)
	}
	return strings.TrimSpace(now) != tree, nil
}
