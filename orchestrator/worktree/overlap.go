package worktree

import (
	"context"
	"fmt"
	"os"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// A Side is one party to a merge to come: a commit, and on top of it files that
// may be in no commit of a branch yet, as a checkpoint has them.
type Side struct {
	Tip  string // the commit of its branch
	Tree string // its files now; empty: those of Tip
}

// A Quarantine is a place to merge in without a trace: what git makes there
// goes into a folder of its own, which Close removes.
type Quarantine struct {
	git git
	dir string // where git is called
	tmp string

	mu   sync.Mutex
	made map[Side]string // the commits of sides
}

// Quarantine makes one. Its methods may be called from several goroutines.
func (m *Manager) Quarantine() (*Quarantine, error) {
	tmp, err := os.MkdirTemp("", "muntin-objects-")
	if err != nil {
		return nil, fmt.Errorf("making a place for trial merges: %w", err)
	}
	g := m.git
	g.env = append(g.env[:len(g.env):len(g.env)],
		"GIT_OBJECT_DIRECTORY="+tmp, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quoteAlternate(filepath.Join(m.repo.CommonDir, "objects")))
	return &Quarantine{git: g, dir: m.repo.Root, tmp: tmp, made: map[Side]string{}}, nil
}

// Close removes what the merges left.
func (q *Quarantine) Close() error { return os.RemoveAll(q.tmp) }

// quoteAlternate writes a path as GIT_ALTERNATE_OBJECT_DIRECTORIES has it,
// where a colon separates (git(1)).
func quoteAlternate(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// Clash tells where the work of two sides will conflict when both are merged.
func (q *Quarantine) Clash(ctx context.Context, a, b Side) ([]Conflict, error) {
	ours, err := q.commit(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("comparing two agents' work: %w", err)
	}
	theirs, err := q.commit(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("comparing two agents' work: %w", err)
	}
	_, conflicts, err := q.git.mergeTree(ctx, q.dir, ours, theirs)
	if err != nil {
		return nil, fmt.Errorf("comparing two agents' work: %w", err)
	}
	return conflicts, nil
}

func (q *Quarantine) commit(ctx context.Context, s Side) (string, error) {
	if s.Tree == "" {
		return s.Tip, nil
	}
	q.mu.Lock()
	oid, ok := q.made[s]
	q.mu.Unlock()
	if ok {
		return oid, nil
	}
	oid, err := q.git.side(ctx, q.dir, s.Tree, s.Tip)
	if err == nil {
		q.mu.Lock()
		q.made[s] = oid
		q.mu.Unlock()
	}
	return oid, err
}

// Standings returns where the agents of a run and its integration branch are:
// for each name the tip of its branch and, from the refs below checkpoints
// (as refs/muntin/checkpoints/<run>), its latest checkpoint. An agent without
// a branch of its own is not in it.
func (m *Manager) Standings(ctx context.Context, run, checkpoints string) (map[string]Side, error) {
	heads := headsPrefix + branchPrefix + run + "/"
	out, err := m.run(ctx, "for-each-ref", "--format=%(refname) %(objectname) %(tree)", heads, checkpoints+"/")
	if err != nil {
		return nil, fmt.Errorf("reading where the agents are: %w", err)
	}
	all, trees := map[string]Side{}, map[string]string{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		if name, ok := strings.CutPrefix(f[0], heads); ok {
			all[name] = Side{Tip: f[1]}
		} else if name, ok := strings.CutPrefix(f[0], checkpoints+"/"); ok {
			trees[name] = f[2]
		}
	}
	for name, tree := range trees {
		if s, ok := all[name]; ok {
			s.Tree = tree
			all[name] = s
		}
	}
	return all, nil
}

// Touched returns the paths that a side has changed since its history parted
// from that of the commit base.
func (m *Manager) Touched(ctx context.Context, s Side, base string) ([]string, error) {
	from, err := m.run(ctx, "merge-base", s.Tip, base)
	if err != nil {
		return nil, fmt.Errorf("finding what changed: %w", err)
	}
	to := s.Tree
	if to == "" {
		to = s.Tip
	}
	return m.Changed(ctx, strings.TrimSpace(from), to)
}

// Changed returns the paths that differ between two commits or trees.
func (m *Manager) Changed(ctx context.Context, from, to string) ([]string, error) {
	out, err := m.run(ctx, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--end-of-options", from, to)
	if err != nil {
		return nil, fmt.Errorf("finding what changed: %w", err)
	}
	return splitNul(out), nil
}

// Meet returns the paths, of both, that are the same or of which one is a
// folder that the other lies in. Where there are none, two sides cannot
// conflict, but for the renames of folders.
func Meet(a, b []string) []string {
	haveA, haveB := withFolders(a), withFolders(b)
	var both []string
	for _, side := range []struct {
		paths []string
		other map[string]bool
	}{{a, haveB}, {b, haveA}} {
		for _, path := range side.paths {
			if _, ok := side.other[path]; ok || underFile(side.other, path) {
				both = append(both, path)
			}
		}
	}
	slices.Sort(both)
	return slices.Compact(both)
}

// withFolders has the paths, true, and the folders that they lie in, false.
func withFolders(paths []string) map[string]bool {
	all := map[string]bool{}
	for _, path := range paths {
		for dir := pathpkg.Dir(path); dir != "."; dir = pathpkg.Dir(dir) {
			if _, ok := all[dir]; ok {
				break
			}
			all[dir] = false
		}
	}
	for _, path := range paths {
		all[path] = true
	}
	return all
}

func underFile(all map[string]bool, path string) bool {
	for dir := pathpkg.Dir(path); dir != "."; dir = pathpkg.Dir(dir) {
		if all[dir] {
			return true
		}
	}
	return false
}
