package agent

import (
	"context"
	"slices"
	"time"

	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/orchestrator"
	"muntin/recipes"
)

// changedFiles tells, in the pane of a run, which files changed since a time, by the
// checkpoints of the agent's turns. Elsewhere it is not known: nil.
func changedFiles(a *app.App) func(context.Context, time.Time) ([]string, error) {
	name, agent := a.Getenv("MUNTIN_RUN"), a.Getenv("MUNTIN_AGENT")
	if name == "" || agent == "" || a.Getenv("MUNTIN_SOCKET") == "" {
		return nil
	}
	return func(ctx context.Context, since time.Time) (paths []string, err error) {
		store, err := runStore(ctx, a, name, agent)
		if err != nil || store == nil {
			return nil, err
		}
		defer store.Close()
		all, err := store.List(ctx)
		if err != nil || len(all) == 0 {
			return nil, err
		}
		now, err := store.Worktree(ctx)
		if err != nil {
			return nil, err
		}
		changes, err := store.Diff(ctx, before(all, since), now)
		for _, c := range changes {
			paths = append(paths, c.Path)
		}
		return paths, err
	}
}

// runStore opens the checkpoints of an agent of a run; nil when the run has no such
// agent.
func runStore(ctx context.Context, a *app.App, name, agent string) (*checkpoint.Store, error) {
	run, err := a.Run(name)
	if err != nil {
		return nil, err
	}
	recipe, err := run.Recipe()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(recipe.Agents, func(r recipes.Agent) bool { return r.Name == agent })
	if i < 0 {
		return nil, nil
	}
	return checkpoint.Open(ctx, checkpoint.Options{
		Worktree: orchestrator.WorkDir(run.Dir, run.Root, recipe.Agents[i]), Ref: orchestrator.CheckpointRef(name, agent), CacheDir: run.Dir.Agent(agent).Path, Now: a.Now,
	})
}

// before is the newest checkpoint that was taken before a time, else the oldest.
func before(all []checkpoint.Checkpoint, since time.Time) checkpoint.Checkpoint {
	all = slices.SortedFunc(slices.Values(all), func(a, b checkpoint.Checkpoint) int { return a.Time.Compare(b.Time) })
	first := all[0]
	for _, c := range all {
		if !c.Time.After(since) {
			first = c
		}
	}
	return first
}
