// Package know holds the commands that tell what happens and what happened in a
// run: events, wait, top, why, cost, timeline, report, evidence and bisect.
package know

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/worktree"
)

// openGit opens the git side of a run's repository.
func openGit(ctx context.Context, a *app.App, run orchestrator.Run) (*worktree.Manager, error) {
	repo, err := state.FindRepo(run.Root)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, state.ErrNoRepo) {
		repo, err = state.FindRepo(run.Repo)
	}
	if err != nil {
		return nil, err
	}
	return orchestrator.OpenGit(ctx, repo, a.Layout.Repo(repo), a.Now)
}

// ParseTime reads a time of a run: a duration before now (10m), a time of
// today (14:02, 14:02:30), or RFC 3339.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"15:04", "15:04:05", "15:04:05.999"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			y, m, d := now.Date()
			at := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), now.Location())
			if at.After(now) { // of yesterday
				at = at.AddDate(0, 0, -1)
			}
			return at, nil
		}
	}
	return time.Time{}, app.Usage("%q is no time: want 10m (ago), 14:02, 14:02:30, or 2026-01-31T14:02:00Z", text)
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

// width is the terminal's, or 0 where the output goes to no terminal and is cut
// nowhere.
func width(a *app.App) int {
	if !a.Streams.OutTTY {
		return 0
	}
	w, _ := a.Streams.Size()
	return w
}

// cell is foreign text for one line.
func cell(text string) string { return term.CleanLine(text) }

// ago is a duration in its largest units, for a narrow column.
func ago(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
