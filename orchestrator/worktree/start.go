package worktree

import (
	"context"
	"fmt"
	"strings"
)

// startRefs is where the commits that runs start from are kept when they are
// on no branch of the person's: refs/muntin/start/<run>.
const startRefs = "refs/muntin/start/"

// landedRefs is where commits of agents are kept that were merged in another
// form, squashed or rebased: refs/muntin/landed/<commit>.
const landedRefs = "refs/muntin/landed/"

// Start makes the commit that a run starts from: the commit at with the files
// of tree, the person's uncommitted ones among them. A ref of the run's own
// keeps it; no branch, index or file is touched. When tree is that of at
// already, at itself is returned and nothing is made.
func (m *Manager) Start(ctx context.Context, run, at, tree string) (string, error) {
	out, err := m.run(ctx, "rev-parse", "--verify", at+"^{tree}")
	if err != nil {
		return "", fmt.Errorf("starting from the working files: %w", err)
	}
	if strings.TrimSpace(out) == tree {
		return at, nil
	}
	req := CommitRequest{Tree: tree, Message: "Uncommitted work at the start of run " + run}
	oid, err := m.commitTree(ctx, req, []string{at})
	if err != nil {
		return "", fmt.Errorf("starting from the working files: %w", err)
	}
	if _, err := m.run(ctx, "update-ref", startRefs+run, oid); err != nil {
		return "", fmt.Errorf("starting from the working files: %w", err)
	}
	return oid, nil
}

// DropStart lets go of what Start made, for a run that did not come about.
func (m *Manager) DropStart(ctx context.Context, run string) error {
	if _, err := m.run(ctx, "update-ref", "-d", startRefs+run); err != nil {
		return fmt.Errorf("dropping the start of run %s: %w", run, err)
	}
	return nil
}
