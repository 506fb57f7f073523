package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muntin/internal/state"
)

// An Identity is who a commit says wrote it. The zero value is muntin itself.
type Identity struct {
	Name  string
	Email string
}

// A Basis is what files were on top of when their tree was taken.
type Basis struct {
	Head    string   `json:"head,omitempty"`    // HEAD's commit
	Merging []string `json:"merging,omitempty"` // the commits that a merge was open with
}

// A CommitRequest says what to put on a worktree's branch.
type CommitRequest struct {
	Tree    string // object id of exactly what the commit holds
	Message string
	Author  Identity
	On      Basis // what Tree was on top of; zero: the branch as it is

	when string // of the author, in git's raw format; empty: now
}

// Commit puts a commit of exactly the given tree (that of the checkpoint whose
// check passed) on the worktree's branch and brings the index in line with it;
// the working files are not touched. A merge that the agent has begun and not
// committed is concluded by it: MERGE_HEAD becomes a parent. When the tree is
// that of the branch already and no merge is open there is nothing to commit,
// and the branch's commit is returned.
//
// If an agent has switched its folder to another branch, wt.Branch still gets
// the commit, and HEAD and index stay as the agent left them. If the branch, or the
// open merge, is not what req.On says any more, the agent has gone on since the tree
// was taken: on top of what it did since, the tree would undo that. Then the commit is on
// no branch, and nothing else is changed. The error matches ErrMoved if the branch
// moved meanwhile: call again.
func (m *Manager) Commit(ctx context.Context, wt Worktree, req CommitRequest) (string, error) {
	oid, err := m.commit(ctx, wt, req)
	if err != nil {
		return "", fmt.Errorf("committing to %s: %w", wt.Branch, err)
	}
	return oid, nil
}

func (m *Manager) commit(ctx context.Context, wt Worktree, req CommitRequest) (string, error) {
	b, err := m.stateOf(ctx, wt)
	if err != nil {
		return "", err
	}
	if req.On.Head != "" && (req.On.Head != b.tip || b.on && !slices.Equal(req.On.Merging, b.merging)) {
		return m.commitBeside(ctx, wt, req, b)
	}
	if b.tree == req.Tree && len(b.merging) == 0 {
		return b.tip, nil
	}
	oid, err := m.commitTree(ctx, req, append([]string{b.tip}, b.merging...))
	if err != nil {
		return "", err
	}
	if err := m.move(ctx, moveRequest{branch: wt.Branch, from: b.tip, to: oid, note: "muntin: commit"}); err != nil || !b.on {
		return oid, err
	}
	return oid, m.resetIndex(ctx, wt, oid)
}

// commitBeside makes the commit where the agent was when the tree was taken, unless a
// call before this one has made it.
func (m *Manager) commitBeside(ctx context.Context, wt Worktree, req CommitRequest, b branchState) (string, error) {
	was := append([]string{req.On.Head}, req.On.Merging...)
	out, err := m.run(ctx, "rev-list", "--format=%H %T %P", "--no-commit-header", b.tip, "^"+req.On.Head)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		oid, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if rest != req.Tree+" "+strings.Join(was, " ") {
			continue
		}
		if oid == b.tip && b.on && slices.Equal(b.merging, req.On.Merging) {
			return oid, m.resetIndex(ctx, wt, oid) // it was cut off before that
		}
		return oid, nil
	}
	if tree, err := m.treeOf(ctx, req.On.Head); err != nil || tree == req.Tree && len(was) == 1 {
		return req.On.Head, err
	}
	return m.commitTree(ctx, req, was)
}

// A branchState is where a worktree's branch is.
type branchState struct {
	tip, tree string
	on        bool     // the worktree is on it
	merging   []string // then: what it merges
}

func (m *Manager) stateOf(ctx context.Context, wt Worktree) (b branchState, err error) {
	ref := headsPrefix + wt.Branch
	out, err := m.run(ctx, "rev-parse", ref+"^{commit}", ref+"^{tree}")
	if err != nil {
		return b, err
	}
	b.tip, b.tree, _ = strings.Cut(strings.TrimSpace(out), "\n")
	on, err := headBranch(ctx, m.git, wt.Path)
	if b.on = on == wt.Branch; err != nil || !b.on {
		return b, err
	}
	b.merging, err = MergeHeads(wt.Path)
	return b, err
}

// resetIndex brings the index in line with the branch. A mixed reset writes the
// index only, keeps sparse entries, and drops MERGE_HEAD, whose merge is now
// concluded.
func (m *Manager) resetIndex(ctx context.Context, wt Worktree, oid string) error {
	if _, err := m.git.run(ctx, call{dir: wt.Path, args: []string{"reset", "--mixed", "--quiet"}}); err != nil {
		return fmt.Errorf("bringing the index in line with %s: %w", oid, err)
	}
	return nil
}

// MergeHeads returns the commits that the worktree at path is merging.
func MergeHeads(path string) ([]string, error) {
	repo, err := state.FindRepo(path)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(repo.GitDir, "MERGE_HEAD"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the open merge of %s: %w", path, err)
	}
	return strings.Fields(string(b)), nil
}

// commitTree makes a commit object; no ref points at it yet.
func (m *Manager) commitTree(ctx context.Context, req CommitRequest, parents []string) (string, error) {
	args := []string{"commit-tree", req.Tree, "-F", "-"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	who := req.Author
	if who.Name == "" {
		who.Name = "muntin"
	}
	if who.Email == "" {
		who.Email = "muntin@localhost"
	}
	when := fmt.Sprintf("%d %s", m.now().Unix(), m.now().Format("-0700")) // git's raw date format
	if req.when == "" {
		req.when = when
	}
	env := []string{
		"GIT_AUTHOR_NAME=" + who.Name, "GIT_AUTHOR_EMAIL=" + who.Email, "GIT_AUTHOR_DATE=" + req.when,
		"GIT_COMMITTER_NAME=muntin", "GIT_COMMITTER_EMAIL=muntin@localhost", "GIT_COMMITTER_DATE=" + when,
	}
	message := strings.TrimRight(req.Message, "\n") + "\n"
	out, err := m.git.run(ctx, call{dir: m.repo.Root, args: args, stdin: message, env: env})
	if err != nil {
		return "", fmt.Errorf("making a commit of tree %s: %w", req.Tree, err)
	}
	return strings.TrimSpace(out), nil
}

// A moveRequest moves a branch from one commit to another.
type moveRequest struct {
	branch, from, to, note string
}

// move is a compare and swap: the error matches ErrMoved if the branch does
// not stand at from any more.
func (m *Manager) move(ctx context.Context, r moveRequest) error {
	_, err := m.run(ctx, "update-ref", "-m", r.note, headsPrefix+r.branch, r.to, r.from)
	if err == nil {
		return nil
	}
	return m.moveError(ctx, fmt.Errorf("moving branch %s: %w", r.branch, err), r.branch, r.from)
}

// moveError adds ErrMoved to err if branch does not stand at want.
func (m *Manager) moveError(ctx context.Context, err error, branch, want string) error {
	if tip, tipErr := m.Tip(ctx, branch); tipErr == nil && tip != want {
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	return err
}
