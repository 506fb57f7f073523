package know

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
)

// NewEvidence makes `muntin evidence`.
func NewEvidence(a *app.App) *cobra.Command {
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "evidence <task>",
		Short: "What was done for a task, as the body of a pull request",
		Long: "Write what was done for a task as Markdown for a pull request: the task, who did it, the\n" +
			"commits, the changed files, the checks with the end of their output, and the\n" +
			"checkpoints by which every turn can be looked at again.",
		Example: "  muntin evidence sum | gh pr create --title Sum --body-file -",
		Args:    app.Args(1, 1, "a task"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			run, err := a.Run(name)
			if err != nil {
				return err
			}
			s, err := storyOf(ctx, a, run)
			if err != nil {
				return err
			}
			t, err := s.task(strings.TrimPrefix(args[0], "^"))
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.PrintJSON(t)
			}
			_, err = fmt.Fprint(a.Streams.Out, t.markdown(s))
			return err
		}),
	}
	cmd.Flags().StringVar(&name, "run", "", "the run (default: the living one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// task finds what was done for a task.
func (s story) task(id string) (taskStory, error) {
	var ids []string
	for _, t := range s.Tasks {
		if t.ID == id {
			return t, nil
		}
		ids = append(ids, "^"+cell(t.ID))
	}
	return taskStory{}, app.Hint(app.Usage("run %s has no task ^%s", s.Run, cell(id)), "its tasks are %s", strings.Join(ids, ", "))
}

func (t taskStory) markdown(s story) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", md(t.Text))
	by := "nobody"
	if len(t.Agents) > 0 {
		by = strings.Join(t.Agents, ", ")
	}
	fmt.Fprintf(&b, "Task `^%s` of run %s is %s. Done by %s in %s, %d tokens, cost %s.\n", cell(t.ID), md(s.Run), t.State, md(by),
		count(t.Turns, "turn"), t.Used.Tokens(), costText(t.Used))
	if t.Reason != "" {
		fmt.Fprintf(&b, "\n> %s\n", md(t.Reason))
	}
	if len(t.Commits) > 0 {
		fmt.Fprintf(&b, "\n### Commits\n\n")
		for _, c := range t.Commits {
			fmt.Fprintf(&b, "- %s on %s\n", c, md(s.Branch))
		}
	}
	if len(t.Files) > 0 {
		added, deleted := sum(t.Files)
		fmt.Fprintf(&b, "\n### Changes\n\n%s, +%d -%d\n\n", count(len(t.Files), "file"), added, deleted)
		for _, f := range t.Files {
			fmt.Fprintf(&b, "- %s\n", md(statLine(f)))
		}
	}
	if s.Untold != "" {
		fmt.Fprintf(&b, "\nThe changes cannot be told: %s\n", md(s.Untold))
	}
	for i, c := range t.Checks {
		if i == 0 {
			fmt.Fprintf(&b, "\n### Checks\n")
		}
		text := strings.TrimSpace(c.Output + "\n" + c.Error)
		fmt.Fprintf(&b, "\n%s at %s: %s\n\n%s\n", md(c.Check), c.Time.UTC().Format("2006-01-02 15:04:05 MST"), passed(c), fenced(text))
	}
	if len(t.Checkpoints) > 0 {
		fmt.Fprintf(&b, "\n### Checkpoints\n\n")
		for _, c := range t.Checkpoints {
			fmt.Fprintf(&b, "- %s\n", md(c))
		}
	}
	return b.String()
}

// fenced is foreign text as a code block, with a fence that is not in it.
func fenced(text string) string {
	text = term.Clean(text)
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
