package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// keptRefs hold the commits that Place took off an agent's branch.
const keptRefs = "refs/muntin/kept/"

// Place puts an agent's worktree, branch and files, exactly at a commit, and
// returns that. What it held goes nowhere: commits that the new place does not
// have get a ref, and files that are not committed a rescue checkpoint.
// Files that git ignores stay. The agent must be idle.
func (m *Manager) Place(ctx context.Context, wt Worktree, at string) (string, error) {
	oid, err := m.place(ctx, wt, at)
	if err != nil {
		return "", fmt.Errorf("putting worktree %s at %s: %w", wt.Path, at, err)
	}
	return oid, nil
}

func (m *Manager) place(ctx context.Context, wt Worktree, at string) (string, error) {
	out, err := m.run(ctx, "rev-parse", "--verify", "--end-of-options", at+"^{commit}")
	if err != nil {
		return "", err
	}
	oid := strings.TrimSpace(out)
	status, err := m.git.run(ctx, call{dir: wt.Path, args: []string{"status", "--porcelain", "--untracked-files=all"}})
	if err != nil {
		return "", err
	}
	if status != "" {
		if m.rescue == nil {
			return "", errors.New("it has changes, and there is nothing to rescue them with")
		}
		saved, err := m.rescue(ctx, wt.Path)
		if err != nil {
			return "", fmt.Errorf("rescuing its files: %w", err)
		}
		if _, err := m.run(ctx, "update-ref", keptRefs+saved, saved); err != nil {
			return "", err
		}
	}
	if err := m.keepTips(ctx, wt, oid); err != nil {
		return "", err
	}
	if _, err := m.git.run(ctx, call{dir: wt.Path, args: []string{"checkout", "--quiet", "--force", "--no-track", "-B", wt.Branch, oid}}); err != nil {
		return "", err
	}
	if status == "" {
		return oid, nil
	}
	_, err = m.git.run(ctx, call{dir: wt.Path, args: []string{"clean", "--quiet", "--force", "-d"}})
	return oid, err
}

// keepTips gives refs to the commits of the worktree that to does not have.
func (m *Manager) keepTips(ctx context.Context, wt Worktree, to string) error {
	out, err := m.git.run(ctx, call{dir: wt.Path, args: []string{"rev-parse", "HEAD", headsPrefix + wt.Branch}})
	if err != nil {
		return err
	}
	for tip := range strings.FieldsSeq(out) {
		_, err := m.run(ctx, "merge-base", "--is-ancestor", tip, to)
		if err == nil {
			continue
		}
		if exitCode(err) != 1 {
			return err
		}
		if _, err := m.run(ctx, "update-ref", keptRefs+tip, tip); err != nil {
			return err
		}
	}
	return nil
}
