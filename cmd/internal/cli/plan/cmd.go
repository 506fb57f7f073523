// Package plan holds the commands about PLAN.md. They work in any repository, and
// in an agent's worktree on the plan of its run.
package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/resources"
	"muntin/internal/durable"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/board"
	"muntin/recipes"
)

// NewCmd makes `muntin plan`.
func NewCmd(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan", Short: "Show, approve and edit the plan", Args: cobra.ArbitraryArgs, RunE: app.Subcommand,
		Long: "The plan is PLAN.md: goal, approach and decisions, for people and agents. Its front\n" +
			"matter says how far it is (status: draft, approved or done). In a run whose recipe\n" +
			"has `board: {approve: person}` no task is given out before the plan is approved.",
	}
	cmd.AddCommand(newShow(a), newApprove(a), newEdit(a), newDiff(a))
	return cmd
}

// A plan is the file, and where its text is kept as it was approved.
type plan struct {
	orchestrator.PlanFile
	approved string
}

func open(a *app.App) (plan, error) {
	path, root := a.Getenv("MUNTIN_PLAN"), a.Getenv("MUNTIN_REPO")
	repo, err := a.Repo()
	if path != "" && root != "" {
		repo, err = state.FindRepo(root)
	} else if err == nil {
		path = filepath.Join(repo.Root, recipes.DefaultPlan)
	}
	if err != nil {
		return plan{}, err
	}
	dir := a.Layout.Repo(repo)
	if err := os.MkdirAll(dir.Path, 0o700); err != nil {
		return plan{}, fmt.Errorf("making the repository's state folder: %w", err)
	}
	return plan{orchestrator.NewPlanFile(dir, path, ""), strings.TrimSuffix(dir.BoardLock(path), ".lock") + "-approved.md"}, nil
}

func (p plan) text() (string, error) {
	b, err := os.ReadFile(p.File.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", app.Hint(fmt.Errorf("there is no plan: %s does not exist", p.File.Path), "write one with `muntin plan edit`")
	}
	return string(b), err
}

// Markdown is the plan as people read it, without its front matter.
func Markdown(a *app.App) (string, error) {
	p, err := open(a)
	if err != nil {
		return "", err
	}
	text, err := p.text()
	return term.Clean(string(board.PlanBody([]byte(text)))), err
}

// A view is the plan as JSON.
type view struct {
	Path   string       `json:"path"`
	Status board.Status `json:"status"`
	Text   string       `json:"text"`
}

func newShow(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show", Short: "Print the plan and its status", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(context.Context, []string) error {
			p, err := open(a)
			if err != nil {
				return err
			}
			text, err := p.text()
			if err != nil {
				return err
			}
			status, err := board.PlanStatus([]byte(text))
			if err != nil {
				return fmt.Errorf("%s: %w", p.File.Path, err)
			}
			if asJSON {
				return a.PrintJSON(view{p.File.Path, status, text})
			}
			_, err = fmt.Fprint(a.Streams.Out, term.Clean(text))
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newApprove(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "approve", Short: "Let the work begin", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			if who := a.Getenv("MUNTIN_AGENT"); who != "" {
				return app.Usage("agent %s may not approve the plan: a person does", who)
			}
			p, err := open(a)
			if err != nil {
				return err
			}
			if err := p.SetStatus(ctx, board.PlanApproved); err != nil {
				return err
			}
			text, err := p.text()
			if err != nil {
				return err
			}
			if err := p.keep(text); err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(view{p.File.Path, board.PlanApproved, text})
			}
			fmt.Fprintf(a.Streams.Out, "%s is approved\n", filepath.Base(p.File.Path))
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newEdit(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "edit", Short: "Open the plan in $VISUAL or $EDITOR", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			p, err := open(a)
			if err != nil {
				return err
			}
			if _, err := os.Stat(p.File.Path); errors.Is(err, fs.ErrNotExist) {
				if err := durable.WriteFile(p.File.Path, []byte("---\nstatus: draft\n---\n\n# Plan\n"), 0o644); err != nil {
					return fmt.Errorf("making the plan: %w", err)
				}
			}
			editor, err := resources.Editor(a)
			if err != nil {
				return err
			}
			return a.Edit(ctx, editor, p.File.Path)
		}),
	}
}
