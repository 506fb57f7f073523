package worktree

import (
	"context"
	"os"
	"strings"
)

// GitVersion returns what git says of its version. The error matches ErrNoGit
// or ErrTooOld when this package cannot work with it.
func GitVersion(ctx context.Context) (string, error) {
	g := git{env: os.Environ()}
	if err := g.check(ctx); err != nil {
		return "", err
	}
	out, err := g.run(ctx, call{args: []string{"version"}})
	return strings.TrimPrefix(strings.TrimSpace(out), "git version "), err
}
