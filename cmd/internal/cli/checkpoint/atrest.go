package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
)

// worktreeAtRest makes sure that no agent that works in a worktree has a turn
// running: its files would change under it, and it would change them. The agent that
// calls, as a tool of its own, is not in its own way.
func worktreeAtRest(ctx context.Context, a *app.App, root string) error {
	runs, err := a.Runs(true)
	if err != nil && len(runs) == 0 {
		return err
	}
	for _, run := range runs {
		if !run.Alive() {
			continue
		}
		names, err := run.AgentNames()
		if err != nil {
			return err
		}
		for _, name := range names {
			if run.Name == a.Getenv("MUNTIN_RUN") && name == a.Getenv("MUNTIN_AGENT") {
				continue
			}
			dir := run.Dir.Agent(name)
			workDir, err := workDirOf(run, dir)
			if err != nil {
				return err
			}
			if workDir != root {
				continue
			}
			if err := atRest(ctx, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// atRest makes sure that no turn of the agent is running.
func atRest(ctx context.Context, dir state.AgentDir) error {
	client, err := pty.Dial(ctx, dir.Socket)
	if errors.Is(err, pty.ErrNotRunning) {
		return nil
	}
	if err != nil {
		return err
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	if status.State == pty.AgentWorking {
		return app.NeedsPerson(app.Hint(fmt.Errorf("%s is working (turn %d): its files would change under it", dir.Name, status.Turn),
			"wait for the end of the turn, or end it with `muntin send %s --abort`", dir.Name))
	}
	return nil
}
