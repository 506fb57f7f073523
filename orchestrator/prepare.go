package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"muntin/checkpoint"
	"muntin/internal/id"
	"muntin/internal/state"
	"muntin/orchestrator/ports"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// worktrees makes the run's branch and the agents' worktrees, several at once,
// with all that the recipe wants in them.
func (u *bringUp) worktrees(ctx context.Context) error {
	u.made = made{git: u.git, repo: u.Repo, dir: u.Dir, info: u.info, recipe: u.Recipe.Resolved(), environ: u.Environ, fresh: true}
	u.undos = append(u.undos, func(ctx context.Context) error { return u.made.clear(ctx) })
	if u.Recipe.Worktree.From == recipes.FromWorking {
		if err := u.startFromWorking(ctx); err != nil {
			return err
		}
	}
	if err := u.git.CreateBranch(ctx, u.info.Branch, u.info.Base); err != nil {
		return err
	}
	if err := u.made.lendPorts(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, path := range u.made.worktrees() {
		group.Go(func() error {
			setup, err := u.made.commands(path, u.Recipe.Worktree.Setup)
			if err != nil {
				return err
			}
			made, err := u.git.Spawn(ctx, worktree.Spawn{
				Path: path, Branch: u.made.branch(path), At: u.info.Base,
				Preparation: worktree.Preparation{Copy: u.Recipe.Worktree.Copy, Link: u.Recipe.Worktree.Link, Setup: setup},
			})
			u.mu.Lock()
			defer u.mu.Unlock()
			for _, m := range made.Missing {
				if !slices.Contains(u.info.Missing, m) {
					u.info.Missing = append(u.info.Missing, m)
				}
			}
			return err
		})
	}
	return group.Wait()
}

// startFromWorking makes the person's files as they are now, committed or not,
// what the run starts from. Their index, HEAD and files stay as they are.
func (u *bringUp) startFromWorking(ctx context.Context) error {
	ref := "refs/muntin/working/" + strings.ToLower(id.New(u.Now()))
	store, err := checkpoint.Open(ctx, checkpoint.Options{Worktree: u.Repo.Root, Ref: ref, Now: u.Now})
	if err != nil {
		return fmt.Errorf("starting from the working files: %w", err)
	}
	saved, _, err := store.Save(ctx, checkpoint.Meta{Run: u.Name, Cause: checkpoint.CauseManual, Note: "the start of a run"})
	if err == nil && store.Where().Sidecar {
		err = fmt.Errorf("checkpoints of this repository are kept outside of it: %s", store.Where().Reason)
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("starting from the working files: %w", err)
	}
	base, err := u.git.Start(ctx, u.Name, u.info.Base, saved.Tree)
	if err != nil {
		return err
	}
	u.info.Base, u.made.info.Base = base, base
	return checkpoint.Drop(ctx, u.Repo.Root, ref)
}

// portOwner names an agent among those of all runs.
func portOwner(run state.RunDir, agent string) string { return run.Agent(agent).Path }

// PortsEnv is what an agent finds its block of ports by, nothing if it has none.
func PortsEnv(run state.RunDir, agent string) ([]string, error) {
	lease, err := ports.Book{Path: run.Ports()}.Of(portOwner(run, agent))
	return lease.Env(), err
}

func (m made) lendPorts(ctx context.Context) error {
	if m.recipe.Worktree.Ports == 0 {
		return nil
	}
	run := m.dir.Run(m.info.Name)
	for _, a := range m.recipe.Agents {
		want := ports.Lease{Owner: portOwner(run, a.Name), Count: m.recipe.Worktree.Ports, Dir: run.Path}
		if _, err := (ports.Book{Path: run.Ports()}).Take(ctx, want); err != nil {
			return err
		}
	}
	return nil
}

func (m made) returnPorts(ctx context.Context) error {
	run := m.dir.Run(m.info.Name)
	var errs []error
	for _, a := range m.recipe.Agents {
		errs = append(errs, ports.Book{Path: run.Ports()}.Release(ctx, portOwner(run, a.Name)))
	}
	return errors.Join(errs...)
}

// commands are the lines of a recipe as they are run in the worktree at path.
// In one that several agents share they run for the first of them.
func (m made) commands(path string, lines []string) (worktree.Commands, error) {
	run := m.dir.Run(m.info.Name)
	name := filepath.Base(path)
	for _, a := range m.recipe.Agents {
		if WorkDir(run, m.repo.Root, a) == path {
			name = a.Name
			break
		}
	}
	env, err := PortsEnv(run, name)
	if err != nil {
		return worktree.Commands{}, err
	}
	env = append(append(append([]string{}, m.environ...), env...),
		"MUNTIN_RUN="+m.info.Name, "MUNTIN_AGENT="+name, "MUNTIN_REPO="+m.repo.Root)
	return worktree.Commands{Lines: lines, Env: env, Timeout: m.recipe.CheckTimeout}, nil
}
