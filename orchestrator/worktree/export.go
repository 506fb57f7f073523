package worktree

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"muntin/internal/id"
)

// exportsDir holds the exports, below Root. No run can have this name.
const exportsDir = ".exports"

// Checkout writes a commit (or branch) into a fresh folder, a linked worktree
// with a detached HEAD, so that a check can run on it and may call git there.
// What is written into it later is thrown away by Remove, to which the caller
// hands it when the check has ended; commits made in it are kept like any
// other. Its Branch is empty.
func (m *Manager) Checkout(ctx context.Context, at string) (Worktree, error) {
	out, err := m.run(ctx, "rev-parse", "--verify", "--end-of-options", at+"^{commit}")
	if err != nil {
		return Worktree{}, fmt.Errorf("checking out %s: %w", at, err)
	}
	oid := strings.TrimSpace(out)
	path, err := m.newPath(filepath.Join(m.root, exportsDir, strings.ToLower(id.New(m.now()))))
	if err != nil {
		return Worktree{}, fmt.Errorf("checking out %s: %w", at, err)
	}
	if err := m.add(ctx, addition{path: path, target: oid, detach: true, checkout: true}); err != nil {
		return Worktree{}, fmt.Errorf("checking out %s: %w", at, err)
	}
	return Worktree{Path: path, Head: oid}, nil
}

// isExport tells whether path, symlinks resolved, is what Checkout made.
func (m *Manager) isExport(path string) bool {
	return filepath.Dir(path) == filepath.Join(m.root, exportsDir)
}
