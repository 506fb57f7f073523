package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// minPrefix is the shortest commit prefix that Find takes, as in git.
const minPrefix = 4

// List returns the chain's checkpoints, newest first. A chain that was not
// begun is empty.
func (s *Store) List(ctx context.Context) ([]Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Checkpoint
	err := s.walk(ctx, func(r *record) bool {
		all = append(all, r.checkpoint(s.opts.Ref))
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("listing checkpoints of %s: %w", s.opts.Ref, err)
	}
	return all, nil
}

// walk calls fn for each checkpoint of the chain, newest first, until fn returns false.
func (s *Store) walk(ctx context.Context, fn func(*record) bool) error {
	h, err := s.readRef(s.opts.Ref)
	if err != nil {
		return err
	}
	for !h.IsZero() {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		r, err := s.record(h)
		if err != nil {
			return err
		}
		if !fn(r) {
			return nil
		}
		h = r.previous
	}
	return nil
}

// Find returns the checkpoint of the chain that spec names: "latest"; "7" or
// "#7", its id; "turn:3", the newest one taken for turn 3 (0: before the first); or the first four
// or more digits of its commit. Digits only are an id if the chain has it,
// else a commit. The error matches ErrNotFound or ErrAmbiguous.
func (s *Store) Find(ctx context.Context, spec string) (Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	want, err := parseSpec(spec)
	if err != nil {
		return s.byLabel(spec, err)
	}
	var exact, byCommit []*record
	err = s.walk(ctx, func(r *record) bool {
		switch {
		case want.latest, want.id != 0 && r.seq == want.id, want.byTurn && r.meta.Turn == want.turn && (r.meta.Cause == CauseTurn || r.meta.Cause == CauseStart):
			exact = append(exact, r)
			return false
		case want.commit != "" && r.hasPrefix(want.commit):
			byCommit = append(byCommit, r)
		}
		return true
	})
	if err != nil {
		return Checkpoint{}, fmt.Errorf("finding checkpoint %q: %w", spec, err)
	}
	if len(exact) == 0 {
		exact = byCommit
	}
	switch len(exact) {
	case 0:
		return Checkpoint{}, fmt.Errorf("%w %q on %s", ErrNotFound, spec, s.opts.Ref)
	case 1:
		return exact[0].checkpoint(s.opts.Ref), nil
	}
	var which []string
	for _, r := range exact {
		which = append(which, fmt.Sprintf("#%d %s", r.seq, r.hash))
	}
	return Checkpoint{}, fmt.Errorf("%w %q: it could be %s", ErrAmbiguous, spec, strings.Join(which, " or "))
}

// hasPrefix tells whether the commit's hash begins so, now or before a gc.
func (r *record) hasPrefix(digits string) bool {
	return strings.HasPrefix(r.hash.String(), digits) ||
		slices.ContainsFunc(r.was, func(h plumbing.Hash) bool { return strings.HasPrefix(h.String(), digits) })
}

type findSpec struct {
	latest   bool
	byTurn   bool
	id, turn int
	commit   string
}

func parseSpec(spec string) (findSpec, error) {
	bad := fmt.Errorf("%w %q: write an id as #7, a commit (at least %d digits), turn:3, latest or a label", ErrNotFound, spec, minPrefix)
	number := func(text string, least int) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			return 0, bad
		}
		return n, nil
	}
	var want findSpec
	var err error
	if spec == "latest" {
		return findSpec{latest: true}, nil
	}
	if text, ok := strings.CutPrefix(spec, "#"); ok {
		want.id, err = number(text, 1)
		return want, err
	}
	if text, ok := strings.CutPrefix(spec, "turn:"); ok {
		want.byTurn = true
		want.turn, err = number(text, 0)
		return want, err
	}
	low := strings.ToLower(spec)
	if len(low) >= minPrefix && len(low) <= 40 && strings.Trim(low, "0123456789abcdef") == "" {
		want.commit = low
	}
	if n, err := number(spec, 1); err == nil {
		want.id = n
	}
	if want.commit == "" && want.id == 0 {
		return want, bad
	}
	return want, nil
}

// A Chain is one ref with checkpoints.
type Chain struct {
	Ref    string     `json:"ref"`
	Agent  string     `json:"agent"` // as the newest checkpoint names it, else the ref's last part
	Newest Checkpoint `json:"newest"`
}

// Chains returns the chains in the worktree's repository whose ref begins
// with prefix ("" for all, "refs/muntin/checkpoints/<run>/" for those of a run), by name.
func Chains(ctx context.Context, worktree, prefix string) ([]Chain, error) {
	if prefix == "" {
		prefix = namespace
	}
	if !strings.HasPrefix(prefix, namespace) || strings.Contains(prefix, "..") {
		return nil, fmt.Errorf("listing chains: prefix %q must begin with %s", prefix, namespace)
	}
	h, err := place(worktree, false)
	if errors.Is(err, errNoSidecar) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing chains: %w", err)
	}
	common := h.where.Path
	names, err := listRefs(common, prefix)
	if err != nil {
		return nil, fmt.Errorf("listing chains: %w", err)
	}
	odb := openObjects(common)
	defer odb.read.close()
	var chains []Chain
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("listing chains: %w", context.Cause(ctx))
		}
		if strings.HasPrefix(name, labels) { // a name for a checkpoint, no chain
			continue
		}
		h, err := readRef(common, name)
		if err != nil {
			return nil, fmt.Errorf("listing chains: %w", err)
		}
		if h.IsZero() { // removed just now
			continue
		}
		r, err := odb.record(h)
		if errors.Is(err, errNoCheckpoint) { // kept there for another purpose
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing chains: %s: %w", name, err)
		}
		c := Chain{Ref: name, Agent: r.meta.Agent, Newest: r.checkpoint(name)}
		if c.Agent == "" {
			c.Agent = name[strings.LastIndexByte(name, '/')+1:]
		}
		chains = append(chains, c)
	}
	return chains, nil
}

// Drop removes a chain's ref, with all its checkpoints: git's gc deletes them
// when it likes. It is an error (errors.Is ErrNotFound) if there is no such ref.
func Drop(ctx context.Context, worktree, ref string) error {
	if err := checkRef(ref); err != nil {
		return err
	}
	h, err := place(worktree, false)
	if errors.Is(err, errNoSidecar) {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("dropping chain %s: %w", ref, err)
	}
	old, err := readRef(h.where.Path, ref)
	if err != nil {
		return fmt.Errorf("dropping chain: %w", err)
	}
	if old == plumbing.ZeroHash {
		return fmt.Errorf("dropping chain %s: %w", ref, ErrNotFound)
	}
	return deleteRef(ctx, h.where.Path, ref, old)
}
