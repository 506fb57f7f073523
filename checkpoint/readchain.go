package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ReadChain returns the checkpoints of the chain at ref in the worktree's
// repository, newest first; none if there is no such chain. It opens no store:
// nothing is made, locked, recovered or cached, and the worktree that the chain
// is of may be gone.
func ReadChain(ctx context.Context, worktree, ref string) ([]Checkpoint, error) {
	if !strings.HasPrefix(ref, namespace) || strings.Contains(ref, "..") {
		return nil, fmt.Errorf("reading a chain: ref %q must begin with %s", ref, namespace)
	}
	h, err := place(worktree, false)
	if errors.Is(err, errNoSidecar) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the chain %s: %w", ref, err)
	}
	next, err := readRef(h.where.Path, ref)
	if err != nil {
		return nil, fmt.Errorf("reading the chain %s: %w", ref, err)
	}
	odb := openObjects(h.where.Path)
	defer odb.read.close()
	var all []Checkpoint
	for !next.IsZero() {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading the chain %s: %w", ref, context.Cause(ctx))
		}
		r, err := odb.record(next)
		if err != nil {
			return nil, fmt.Errorf("reading the chain %s: %w", ref, err)
		}
		all = append(all, r.checkpoint(ref))
		next = r.previous
	}
	return all, nil
}
