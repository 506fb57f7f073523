package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A Style says what history the merge of an agent's work leaves.
type Style string

// The styles. The files are the same with each of them.
const (
	StyleMerge  Style = "merge"  // a merge commit, or a fast-forward; the default
	StyleSquash Style = "squash" // one commit
	StyleRebase Style = "rebase" // the agent's commits again, on top of what is there
)

// A Landing asks for the merge of one branch into another.
type Landing struct {
	Into, From string // branches; From may be a commit's id
	Message    string // of the merge, or of the squashed commit
	Style      Style  // empty: StyleMerge
	Author     Identity
}

// Land merges l.From into l.Into in the style asked for, without a checkout.
// What it returns and when it changes nothing is as with Merge. In the styles
// other than StyleMerge the commits of l.From are not part of l.Into's history
// afterwards: a ref keeps them, and Settle brings the branch over.
func (m *Manager) Land(ctx context.Context, l Landing) (MergeResult, error) {
	land := m.merge
	switch l.Style {
	case "", StyleMerge:
	case StyleSquash, StyleRebase:
		land = m.landFlat
	default:
		return MergeResult{}, fmt.Errorf("merging %s into %s: style %q is not known", l.From, l.Into, l.Style)
	}
	res, err := land(ctx, l)
	if err != nil {
		return MergeResult{}, fmt.Errorf("merging %s into %s: %w", l.From, l.Into, err)
	}
	return res, nil
}

// Try tells what Land would do, and changes no branch. Its result has no
// commit unless one is there already.
func (m *Manager) Try(ctx context.Context, into, from string) (MergeResult, error) {
	res, err := m.try(ctx, into, from)
	if err != nil {
		return MergeResult{}, fmt.Errorf("merging %s into %s: %w", from, into, err)
	}
	return res, nil
}

func (m *Manager) try(ctx context.Context, into, from string) (MergeResult, error) {
	f, err := m.fork(ctx, into, from)
	if err != nil {
		return MergeResult{}, err
	}
	switch f.base {
	case f.theirs:
		return m.result(ctx, MergeResult{Commit: f.ours, UpToDate: true})
	case f.ours:
		return m.result(ctx, MergeResult{Commit: f.theirs, FastForward: true})
	}
	tree, conflicts, err := m.mergeTree(ctx, f.ours, f.theirs)
	if len(conflicts) > 0 {
		tree = ""
	}
	return MergeResult{Tree: tree, Conflicts: conflicts}, err
}

// A fork is two commits and where their histories parted; base is empty when
// they have nothing in common.
type fork struct{ ours, theirs, base string }

func (m *Manager) fork(ctx context.Context, into, from string) (fork, error) {
	ours, theirs, err := m.tips(ctx, into, from)
	if err != nil {
		return fork{}, err
	}
	base, err := m.run(ctx, "merge-base", ours, theirs)
	if err != nil && exitCode(err) != 1 {
		return fork{}, err
	}
	return fork{ours, theirs, strings.TrimSpace(base)}, nil
}

// landFlat lands without a merge commit.
func (m *Manager) landFlat(ctx context.Context, l Landing) (MergeResult, error) {
	f, err := m.fork(ctx, l.Into, l.From)
	if err != nil {
		return MergeResult{}, err
	}
	switch {
	case f.base == f.theirs:
		return m.result(ctx, MergeResult{Commit: f.ours, UpToDate: true})
	case f.base == f.ours && l.Style == StyleRebase && m.linear(ctx, f):
		return m.merge(ctx, l)
	}
	tree, conflicts, err := m.mergeTree(ctx, f.ours, f.theirs)
	if err != nil || len(conflicts) > 0 {
		return MergeResult{Conflicts: conflicts}, err
	}
	now, err := m.treeOf(ctx, f.ours)
	if err != nil {
		return MergeResult{}, err
	}
	if now == tree {
		// All of it is there already: it landed before, in this form.
		return MergeResult{Commit: f.ours, Tree: tree, UpToDate: true}, nil
	}
	tip, last := f.ours, now
	if l.Style == StyleRebase && m.linear(ctx, f) {
		if tip, last, err = m.replay(ctx, f); err != nil {
			return MergeResult{}, err
		}
	}
	if last != tree {
		req := CommitRequest{Tree: tree, Message: l.Message, Author: l.Author}
		if tip, err = m.commitTree(ctx, req, []string{tip}); err != nil {
			return MergeResult{}, err
		}
	}
	if _, err := m.run(ctx, "update-ref", landedRefs+f.theirs, f.theirs); err != nil {
		return MergeResult{}, fmt.Errorf("keeping the agent's commits: %w", err)
	}
	if err := m.forward(ctx, moveRequest{branch: l.Into, from: f.ours, to: tip, note: "muntin: " + string(l.Style)}); err != nil {
		return MergeResult{}, err
	}
	return MergeResult{Commit: tip, Tree: tree}, nil
}

// linear tells whether the agent made no merges. Those may hold the settling
// of a conflict, which none of the single commits has.
func (m *Manager) linear(ctx context.Context, f fork) bool {
	out, err := m.run(ctx, "rev-list", "--merges", "--max-count=1", f.theirs, "^"+f.ours)
	return err == nil && out == ""
}

// replay makes the agent's commits again on top of ours, one after another,
// leaving out what is there already. It stops before the first that does not
// apply by itself: all of them together do, so the rest is one commit. It
// returns the last commit made, or ours, and its tree.
func (m *Manager) replay(ctx context.Context, f fork) (tip, tree string, err error) {
	tip = f.ours
	if tree, err = m.treeOf(ctx, tip); err != nil {
		return "", "", err
	}
	out, err := m.run(ctx, "rev-list", "--reverse", "--topo-order", "--no-merges", "--right-only", "--cherry-pick", f.ours+"..."+f.theirs)
	if err != nil {
		return "", "", err
	}
	for commit := range strings.FieldsSeq(out) {
		next, conflicts, err := m.pick(ctx, commit, tip)
		if err != nil {
			return "", "", err
		}
		if len(conflicts) > 0 {
			break
		}
		if next == tree {
			continue
		}
		if tip, err = m.again(ctx, commit, tip, next); err != nil {
			return "", "", err
		}
		tree = next
	}
	return tip, tree, nil
}

// pick merges the change of one commit into another. Git before 2.40 cannot be
// told the base of a merge-tree, so both sides are put on a commit of it.
func (m *Manager) pick(ctx context.Context, commit, onto string) (string, []Conflict, error) {
	base, err := m.side(ctx, commit+"^^{tree}")
	if err != nil {
		return "", nil, err
	}
	ours, err := m.side(ctx, onto+"^{tree}", base)
	if err != nil {
		return "", nil, err
	}
	theirs, err := m.side(ctx, commit+"^{tree}", base)
	if err != nil {
		return "", nil, err
	}
	return m.mergeTree(ctx, ours, theirs)
}

// side makes a commit of a tree for merge-tree to read. No ref ever points at
// it, and it is the same object each time.
func (m *Manager) side(ctx context.Context, tree string, parents ...string) (string, error) {
	return m.git.side(ctx, m.repo.Root, tree, parents...)
}

func (g git) side(ctx context.Context, dir, tree string, parents ...string) (string, error) {
	c := call{dir: dir, args: []string{"commit-tree", tree, "-m", "muntin"}}
	for _, p := range parents {
		c.args = append(c.args, "-p", p)
	}
	const who, mail, when = "muntin", "muntin@localhost", "@0 +0000"
	c.env = []string{
		"GIT_AUTHOR_NAME=" + who, "GIT_AUTHOR_EMAIL=" + mail, "GIT_AUTHOR_DATE=" + when,
		"GIT_COMMITTER_NAME=" + who, "GIT_COMMITTER_EMAIL=" + mail, "GIT_COMMITTER_DATE=" + when,
	}
	out, err := g.run(ctx, c)
	return strings.TrimSpace(out), err
}

// again makes a commit like another one, with the same author, date and
// message, of a tree on a parent.
func (m *Manager) again(ctx context.Context, like, parent, tree string) (string, error) {
	out, err := m.run(ctx, "log", "-1", "--no-show-signature", "--encoding=UTF-8", "--date=raw", "--format=%an%x00%ae%x00%ad%x00%B", like)
	if err != nil {
		return "", err
	}
	parts := strings.SplitN(out, "\x00", 4)
	if len(parts) < 4 {
		return "", errors.New("reading git's log: cannot read the commit " + like)
	}
	req := CommitRequest{Tree: tree, Message: parts[3], Author: Identity{Name: parts[0], Email: parts[1]}, when: "@" + parts[2]}
	return m.commitTree(ctx, req, []string{parent})
}

func (m *Manager) treeOf(ctx context.Context, commit string) (string, error) {
	out, err := m.run(ctx, "rev-parse", "--verify", commit+"^{tree}")
	return strings.TrimSpace(out), err
}

// Settle brings an agent's branch and folder over to the branch into after a
// Land that was not a merge: without it the agent's next work would carry its
// old commits along. It does so only when all of the agent's work is in into
// and no file is in the way; else it changes nothing and reports false, and
// Update merges as always. The agent must be idle.
func (m *Manager) Settle(ctx context.Context, wt Worktree, into string) (bool, error) {
	ok, err := m.settle(ctx, wt, into)
	if err != nil {
		return false, fmt.Errorf("settling worktree %s: %w", wt.Path, err)
	}
	return ok, nil
}

func (m *Manager) settle(ctx context.Context, wt Worktree, into string) (bool, error) {
	on, err := headBranch(ctx, m.git, wt.Path)
	if err != nil || on != wt.Branch {
		return false, err
	}
	f, err := m.fork(ctx, into, wt.Branch)
	if err != nil || f.base == f.theirs {
		return false, err // it is there, or Update fast-forwards it
	}
	tree, conflicts, err := m.mergeTree(ctx, f.ours, f.theirs)
	if err != nil || len(conflicts) > 0 {
		return false, err
	}
	if now, err := m.treeOf(ctx, f.ours); err != nil || now != tree {
		return false, err
	}
	if _, err := m.run(ctx, "update-ref", landedRefs+f.theirs, f.theirs); err != nil {
		return false, err
	}
	// Two trees: what is as in the first becomes as in the second, and git
	// refuses, changing nothing, where a file is not.
	_, err = m.git.run(ctx, call{dir: wt.Path, args: []string{"read-tree", "-m", "-u", f.theirs, f.ours}})
	if exitCode(err) == 128 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, m.move(ctx, moveRequest{branch: wt.Branch, from: f.theirs, to: f.ours, note: "muntin: settle"})
}
