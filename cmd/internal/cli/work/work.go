// Package work holds the commands about what agents did: diff, overlap, merge,
// clean, and undo where it brings a removed worktree back.
package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/worktree"
)

// repoOf is the repository of a run as seen from where the run was started, or
// from its main worktree when that place is gone.
func repoOf(run orchestrator.Run) (state.Repo, error) {
	repo, err := state.FindRepo(run.Root)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, state.ErrNoRepo) {
		return state.FindRepo(run.Repo)
	}
	return repo, err
}

// openGit opens the git side of a run's repository.
func openGit(ctx context.Context, a *app.App, run orchestrator.Run) (*worktree.Manager, error) {
	repo, err := repoOf(run)
	if err != nil {
		return nil, err
	}
	return orchestrator.OpenGit(ctx, repo, a.Layout.Repo(repo), a.Now)
}

// completeAgent completes the agents of the run.
func completeAgent(a *app.App, run *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		r, err := a.Run(*run)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, _ := r.AgentNames()
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRun completes the runs of the repository.
func completeRun(a *app.App) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		runs, _ := a.Runs(false)
		var names []cobra.Completion
		for _, r := range runs {
			names = append(names, r.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// cleaned makes paths safe to show, in a line.
func cleaned(paths []string) string {
	const most = 6
	shown := make([]string, 0, most)
	for _, p := range paths[:min(len(paths), most)] {
		shown = append(shown, term.CleanLine(p))
	}
	text := strings.Join(shown, ", ")
	if n := len(paths) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
