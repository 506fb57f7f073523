package worktree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Conflict is a path that a merge could not settle.
type Conflict struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`   // git's word: contents, modify/delete, add/add, rename/delete, …
	Detail string `json:"detail"` // git's sentence
	Hunks  []Hunk `json:"hunks,omitempty"`

	stages [3]string // objects of base, ours and theirs; empty where a side has none
}

// A MergeResult tells what a merge did. With Conflicts it did nothing.
type MergeResult struct {
	Commit      string     `json:"commit,omitempty"` // where the branch stands now
	Tree        string     `json:"tree,omitempty"`
	Conflicts   []Conflict `json:"conflicts,omitempty"`
	UpToDate    bool       `json:"up_to_date,omitempty"`
	FastForward bool       `json:"fast_forward,omitempty"`
}

// OverwriteError says that bringing a checked-out branch forward would have
// overwritten files that are changed or untracked there. Nothing was changed.
type OverwriteError struct {
	Dir   string
	Paths []string

	to string // the commit that it was to be brought to
}

func (e *OverwriteError) Error() string {
	return fmt.Sprintf("local files in %s would be overwritten: %s", e.Dir, strings.Join(e.Paths, ", "))
}

// Merge merges the branch from into the branch into, fast-forward where that
// is possible, without a checkout. Conflicts are not an error: they are in the
// result, and nothing has changed. If into is checked out somewhere, that
// folder's files come along, or the error is an *OverwriteError. The error
// matches ErrMoved if somebody else moved into meanwhile (call again) and
// ErrMissing if one of the branches is not there.
func (m *Manager) Merge(ctx context.Context, into, from, message string) (MergeResult, error) {
	return m.Land(ctx, Landing{Into: into, From: from, Message: message})
}

// Update brings an agent's worktree up to the branch to: a fast-forward where
// possible, else a merge commit. With conflicts nothing has changed, and the
// agent may merge by itself: Commit concludes a merge that it leaves open. The
// agent must be idle. The error is an *OverwriteError when the worktree holds
// changes that are in the way, and matches ErrOffBranch if it is not on its
// branch.
func (m *Manager) Update(ctx context.Context, wt Worktree, to string) (MergeResult, error) {
	on, err := headBranch(ctx, m.git, wt.Path)
	if err != nil {
		return MergeResult{}, fmt.Errorf("updating worktree %s: %w", wt.Path, err)
	}
	if on != wt.Branch {
		return MergeResult{}, fmt.Errorf("updating worktree %s: %w: want %s, have %q", wt.Path, ErrOffBranch, wt.Branch, on)
	}
	message := "Merge " + to + " into " + wt.Branch
	res, err := m.Merge(ctx, wt.Branch, to, message)
	over := overwrite(err, wt.Path)
	if over == nil {
		return res, err
	}
	mended, mendErr := m.mend(ctx, over)
	if mendErr != nil || !mended {
		return res, errors.Join(err, mendErr)
	}
	return m.Merge(ctx, wt.Branch, to, message)
}

func (m *Manager) merge(ctx context.Context, l Landing) (MergeResult, error) {
	f, err := m.fork(ctx, l.Into, l.From)
	if err != nil {
		return MergeResult{}, err
	}
	switch f.base {
	case f.theirs:
		return m.result(ctx, MergeResult{Commit: f.ours, UpToDate: true})
	case f.ours:
		if err := m.forward(ctx, moveRequest{branch: l.Into, from: f.ours, to: f.theirs, note: "muntin: fast-forward"}); err != nil {
			return MergeResult{}, err
		}
		return m.result(ctx, MergeResult{Commit: f.theirs, FastForward: true})
	}
	tree, conflicts, err := m.mergeTree(ctx, f.ours, f.theirs)
	if err != nil || len(conflicts) > 0 {
		return MergeResult{Conflicts: conflicts}, err
	}
	oid, err := m.commitTree(ctx, CommitRequest{Tree: tree, Message: l.Message, Author: l.Author}, []string{f.ours, f.theirs})
	if err != nil {
		return MergeResult{}, err
	}
	if err := m.forward(ctx, moveRequest{branch: l.Into, from: f.ours, to: oid, note: "muntin: merge"}); err != nil {
		return MergeResult{}, err
	}
	return MergeResult{Commit: oid, Tree: tree}, nil
}

// tips reads both branches at one moment.
func (m *Manager) tips(ctx context.Context, into, from string) (ours, theirs string, err error) {
	out, err := m.run(ctx, "for-each-ref", "--format=%(refname) %(objectname)", headsPrefix+into, headsPrefix+from)
	if err != nil {
		return "", "", err
	}
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		name, oid, _ := strings.Cut(line, " ")
		if name == headsPrefix+into {
			ours = oid
		}
		if name == headsPrefix+from {
			theirs = oid
		}
	}
	if isOID(from) {
		theirs = from
	}
	if ours == "" {
		return "", "", fmt.Errorf("branch %s %w", into, ErrMissing)
	}
	if theirs == "" {
		return "", "", fmt.Errorf("branch %s %w", from, ErrMissing)
	}
	return ours, theirs, nil
}

func (m *Manager) result(ctx context.Context, res MergeResult) (MergeResult, error) {
	tree, err := m.run(ctx, "rev-parse", "--verify", res.Commit+"^{tree}")
	res.Tree = strings.TrimSpace(tree)
	return res, err
}

// mergeTree merges two commits in the object store (git-merge-tree(1)).
func (m *Manager) mergeTree(ctx context.Context, ours, theirs string) (string, []Conflict, error) {
	return m.git.mergeTree(ctx, m.repo.Root, ours, theirs)
}

func (g git) mergeTree(ctx context.Context, dir, ours, theirs string) (string, []Conflict, error) {
	out, err := g.run(ctx, call{dir: dir, args: []string{"merge-tree", "--write-tree", "-z", ours, theirs}})
	if err != nil && exitCode(err) != 1 {
		return "", nil, err
	}
	clean := err == nil
	tree, conflicts, err := parseMergeTree(out)
	if err != nil {
		return "", nil, err
	}
	if !clean && len(conflicts) == 0 {
		return "", nil, errors.New("reading git's merge: it reports a conflict without a path")
	}
	if clean {
		return tree, nil, nil
	}
	return tree, conflicts, g.fillHunks(ctx, dir, conflicts)
}

// parseMergeTree reads `git merge-tree --write-tree -z`: the tree; with
// conflicts then one "mode oid stage\tpath" for each stage, an empty item, and
// messages, each a count of paths, the paths, a type and a sentence.
func parseMergeTree(out string) (string, []Conflict, error) {
	items := strings.Split(out, "\x00")
	tree, items := items[0], items[1:]
	if !isOID(tree) {
		return "", nil, fmt.Errorf("reading git's merge: %.80q is no tree", tree)
	}
	var list conflictList
	for len(items) > 0 && items[0] != "" {
		stage, path, ok := strings.Cut(items[0], "\t")
		f := strings.Fields(stage)
		if !ok || len(f) != 3 || !isOID(f[1]) || len(f[2]) != 1 || f[2] < "1" || f[2] > "3" {
			return "", nil, fmt.Errorf("reading git's merge: cannot read %.80q", items[0])
		}
		list.add(path)
		list[list.find(path)].stages[f[2][0]-'1'] = f[1]
		items = items[1:]
	}
	if len(items) > 0 {
		items = items[1:]
	}
	for len(items) > 1 {
		n, err := strconv.Atoi(items[0])
		if err != nil || n < 0 || len(items)-3 < n {
			return "", nil, fmt.Errorf("reading git's merge: cannot read the message at %.80q", items[0])
		}
		if kind, ok := strings.CutPrefix(items[n+1], "CONFLICT ("); ok {
			list.explain(items[1:n+1], strings.TrimSuffix(kind, ")"), strings.TrimSpace(items[n+2]))
		}
		items = items[n+3:]
	}
	return tree, list, nil
}

type conflictList []Conflict

func (l *conflictList) find(path string) int {
	return slices.IndexFunc(*l, func(c Conflict) bool { return c.Path == path })
}

func (l *conflictList) add(path string) {
	if l.find(path) < 0 {
		*l = append(*l, Conflict{Path: path})
	}
}

// explain gives the kind to those of a message's paths that are in conflict.
// A message may name others too: where a renamed file came from.
func (l *conflictList) explain(paths []string, kind, detail string) {
	if len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool { return l.find(p) >= 0 }) {
		l.add(paths[0])
	}
	for _, path := range paths {
		if i := l.find(path); i >= 0 && (*l)[i].Kind == "" {
			(*l)[i].Kind, (*l)[i].Detail = kind, detail
		}
	}
}

func isOID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// forward moves a branch to a descendant. Where the branch is checked out,
// files, index and branch move together, or not at all.
func (m *Manager) forward(ctx context.Context, r moveRequest) error {
	list, err := m.List(ctx)
	if err != nil {
		return err
	}
	for _, wt := range list {
		if wt.Branch == r.branch && !wt.Gone && !wt.Bare {
			return m.forwardIn(ctx, wt.Path, r)
		}
	}
	return m.move(ctx, r)
}

// forwardIn fast-forwards the worktree at dir. git-merge overwrites ignored
// files unless it is told not to.
func (m *Manager) forwardIn(ctx context.Context, dir string, r moveRequest) error {
	args := []string{
		"-c", "merge.autoStash=false", "-c", "merge.verifySignatures=false",
		"merge", "--ff-only", "--quiet", "--no-overwrite-ignore", r.to,
	}
	_, err := m.git.run(ctx, call{dir: dir, args: args})
	if err == nil {
		return nil
	}
	if paths := overwritten(stderr(err)); len(paths) > 0 {
		return &OverwriteError{Dir: dir, Paths: paths, to: r.to}
	}
	return m.moveError(ctx, fmt.Errorf("fast-forwarding %s: %w", dir, err), r.branch, r.from)
}

// overwritten picks the paths out of git's complaint. They are the lines that
// begin with a tab, below a sentence with "overwritten" or "lose".
func overwritten(msg string) []string {
	if !strings.Contains(msg, "overwritten") && !strings.Contains(msg, "lose untracked files") {
		return nil
	}
	var paths []string
	for line := range strings.Lines(msg) {
		if path, ok := strings.CutPrefix(line, "\t"); ok {
			paths = append(paths, strings.TrimSuffix(path, "\n"))
		}
	}
	return paths
}
