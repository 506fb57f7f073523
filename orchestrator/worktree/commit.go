package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muntin/internal/state"
)

// An Identity is who a commit says wrote it. The zero value is muntin itself.
type Identity struct {
	Name  string
	Email string
}

// A CommitRequest says what to put on a worktree's branch.
type CommitRequest struct {
	Tree    string // object id of exactly what the commit holds
	Message string
	Author  Identity

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
// the commit, and HEAD and index stay as the agent left them. The error
// matches ErrMoved if the branch moved meanwhile: call again.
func (m *Manager) Commit(ctx context.Context, wt Worktree, req CommitRequest) (string, error) {
	oid, err := m.commit(ctx, wt, req)
	if err != nil {
		return "", fmt.Errorf("committing to %s: %w", wt.Branch, err)
	}
	return oid, nil
}

func (m *Manager) commit(ctx context.Context, wt Worktree, req CommitRequest) (string, error) {
	ref := headsPrefix + wt.Branch
	out, err := m.run(ctx, "rev-parse", ref+"^{commit}", ref+"^{tree}")
	if err != nil {
		return "", err
	}
	tip, tree, _ := strings.Cut(strings.TrimSpace(out), "\n")
	on, err := headBranch(ctx, m.git, wt.Path)
	if err != nil {
		return "", err
	}
	parents := []string{tip}
	if on == wt.Branch {
		merging, err := mergeHeads(wt.Path)
		if err != nil {
			return "", err
		}
		parents = append(parents, merging...)
	}
	if tree == req.Tree && len(parents) == 1 {
		return tip, nil
	}
	oid, err := m.commitTree(ctx, req, parents)
	if err != nil {
		return "", err
	}
	if err := m.move(ctx, moveRequest{branch: wt.Branch, from: tip, to: oid, note: "muntin: commit"}); err != nil {
		return "", err
	}
	if on != wt.Branch {
		return oid, nil
	}
	// A mixed reset writes the index only, keeps sparse entries, and drops
	// MERGE_HEAD, whose merge is now concluded.
	if _, err := m.git.run(ctx, call{dir: wt.Path, args: []string{"reset", "--mixed", "--quiet"}}); err != nil {
		return "", fmt.Errorf("bringing the index in line with %s: %w", oid, err)
	}
	return oid, nil
}

// mergeHeads returns the commits that the worktree at path is merging.
func mergeHeads(path string) ([]string, error) {
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
