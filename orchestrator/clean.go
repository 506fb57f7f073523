package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"muntin/orchestrator/worktree"
)

// A Leftover is a worktree that a run has left, and what is only in it.
type Leftover struct {
	Run    string `json:"run"`
	Name   string `json:"name"` // the agent's, or that of the shared worktree
	Path   string `json:"path"`
	Branch string `json:"branch"`
	worktree.Losses
	Unmerged []string `json:"unmerged,omitempty"` // files that would change the integration branch
	Refused  string   `json:"refused,omitempty"`  // why it cannot be removed
	Notes    []string `json:"notes,omitempty"`
	Entry    string   `json:"entry,omitempty"` // of the trash, when it was removed
}

// Leftovers returns the worktrees of a run that has ended.
func Leftovers(ctx context.Context, d DiscardRequest) ([]Leftover, error) {
	m, err := d.made(ctx)
	if err != nil {
		return nil, err
	}
	unmerged, err := FindUnmerged(ctx, m.git, d.Run)
	if err != nil {
		return nil, err
	}
	var list []Leftover
	for _, path := range m.worktrees() {
		l := Leftover{Run: d.Run.Name, Name: filepath.Base(path), Path: path, Branch: m.branch(path)}
		l.Losses, l.Notes, err = m.git.Inspect(ctx, worktree.RemoveRequest{Path: path, Branch: l.Branch})
		switch {
		case errors.Is(err, worktree.ErrMissing):
			continue
		case errors.Is(err, worktree.ErrRefused):
			l.Refused = err.Error()
		case err != nil:
			return nil, err
		}
		for _, u := range unmerged {
			if u.Agent == l.Name {
				l.Unmerged = u.Files
			}
		}
		list = append(list, l)
	}
	return list, nil
}

// Clean removes the worktrees of a run that has ended, and their branches,
// through the guarded removal: Manager.Restore brings each back. Checkpoints,
// the conversations and the logs stay, and so does the integration branch
// unless all of it is on another one. The list has what became of each.
func Clean(ctx context.Context, d DiscardRequest, list []Leftover) ([]Leftover, error) {
	m, err := d.made(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i := range list {
		l := &list[i]
		teardown, err := m.commands(l.Path, m.recipe.Worktree.Teardown)
		if err != nil {
			return list, err
		}
		rep, err := m.git.Remove(ctx, worktree.RemoveRequest{Path: l.Path, Branch: l.Branch, Teardown: teardown})
		switch {
		case errors.Is(err, worktree.ErrRefused):
			l.Refused = err.Error()
		case err != nil:
			errs = append(errs, err)
		default:
			l.Losses, l.Notes, l.Entry, l.Refused = rep.Losses, rep.Notes, rep.ID, ""
		}
	}
	_ = os.Remove(m.dir.Worktrees(m.info.Name)) // stays if something is in it
	tip, err := m.git.Tip(ctx, m.info.Branch)
	if err == nil && tip != "" {
		if err = m.git.DeleteBranch(ctx, m.info.Branch, tip); errors.Is(err, worktree.ErrRefused) {
			err = nil // its commits are on no other branch
		}
	}
	return list, errors.Join(append(errs, err, m.returnPorts(ctx))...)
}

// made opens what the run has in git.
func (d DiscardRequest) made(ctx context.Context) (made, error) {
	recipe, err := d.Run.Recipe()
	if err != nil {
		return made{}, err
	}
	git, err := OpenGit(ctx, d.Repo, d.Dir, d.Now)
	if err != nil {
		return made{}, fmt.Errorf("opening the worktrees of run %s: %w", d.Run.Name, err)
	}
	return made{git: git, repo: d.Repo, dir: d.Dir, info: d.Run.Info, recipe: recipe, environ: d.Environ}, nil
}
