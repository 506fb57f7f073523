package todo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator/board"
)

func newSet(a *app.App, verb, short string, to board.State) *cobra.Command {
	return onTasks(a, verb, short, func(b *board.Board, id string) error { return set(b, id, to, "") })
}

// onTasks is a command that does one thing to each task it names.
func onTasks(a *app.App, verb, short string, do func(b *board.Board, id string) error) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: verb + " <task>...", Short: short,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Usage("want the id of a task")
			}
			return nil
		},
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			return update(ctx, a, change{ids: args, json: asJSON}, func(b *board.Board) error {
				for _, arg := range args {
					if err := do(b, bare(arg)); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the tasks as JSON")
	return cmd
}

func newBlock(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "block <task> <reason>", Short: "Block a task and say why", Args: app.Args(2, 2, "a task and the reason in quotes"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			return update(ctx, a, change{ids: args[:1], json: asJSON}, func(b *board.Board) error {
				return set(b, bare(args[0]), board.Blocked, args[1])
			})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the task as JSON")
	return cmd
}

func newEdit(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "edit <task> <text>", Short: "Give a task another text", Args: app.Args(2, 2, "a task and its text in quotes"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			return update(ctx, a, change{ids: args[:1], json: asJSON}, func(b *board.Board) error {
				return b.SetText(bare(args[0]), args[1])
			})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the task as JSON")
	return cmd
}

func newClaim(a *app.App) *cobra.Command {
	var name string
	cmd := onTasks(a, "claim", "Take a task, so that nobody else does", func(b *board.Board, id string) error {
		who, err := claimant(a, name)
		if err != nil {
			return err
		}
		t, ok := b.Task(id)
		switch {
		case !ok:
			return fmt.Errorf("%w: ^%s", board.ErrNoTask, id)
		case t.State == board.Claimed && t.Claim == who:
			return nil
		case t.State != board.Open:
			taken := string(t.State)
			if t.Claim != "" {
				taken += " by " + t.Claim
			}
			return fmt.Errorf("claiming ^%s: it is %s", id, taken)
		case len(b.Waits(t)) > 0:
			return fmt.Errorf("claiming ^%s: it waits for %s", id, strings.Join(b.Waits(t), ", "))
		}
		return errors.Join(b.SetClaim(id, who), b.SetState(id, board.Claimed))
	})
	cmd.Flags().StringVar(&name, "as", "", "who takes it (default: the agent in whose pane this runs)")
	return cmd
}

func newRelease(a *app.App) *cobra.Command {
	var name string
	cmd := onTasks(a, "release", "Give a claimed task back", func(b *board.Board, id string) error {
		t, ok := b.Task(id)
		if !ok {
			return fmt.Errorf("%w: ^%s", board.ErrNoTask, id)
		}
		if t.State != board.Claimed {
			return fmt.Errorf("releasing ^%s: it is %s, not claimed", id, t.State)
		}
		who := name
		if who == "" {
			who = a.Getenv("MUNTIN_AGENT")
		}
		if who != "" && who != t.Claim {
			return fmt.Errorf("releasing ^%s: it is claimed by %s, not by %s", id, t.Claim, who)
		}
		return errors.Join(b.SetState(id, board.Open), b.ClearClaim(id, t.Claim))
	})
	cmd.Flags().StringVar(&name, "as", "", "only if this one has it (default: the agent in whose pane this runs)")
	return cmd
}

func claimant(a *app.App, name string) (string, error) {
	if name == "" {
		name = a.Getenv("MUNTIN_AGENT")
	}
	if name == "" {
		return "", app.Usage("say who takes it with --as: this is no agent's pane")
	}
	return name, nil
}

func newLog(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "log [task]", Short: "Show what happened to a task, or to all", Args: app.Args(0, 1, "a task"),
		RunE: a.Interruptible(func(_ context.Context, args []string) error {
			f, err := file(a)
			if err != nil {
				return err
			}
			task := ""
			if len(args) == 1 {
				task = bare(args[0])
			}
			records, err := f.History(task)
			if err != nil {
				return err
			}
			if asJSON {
				if records == nil {
					records = []board.Record{}
				}
				return a.PrintJSON(records)
			}
			return printLog(a, records)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printLog(a *app.App, records []board.Record) error {
	width := 0
	if a.Streams.OutTTY {
		width, _ = a.Streams.Size()
	}
	table := term.NewTable("TIME", "WHO", "TASK", "CHANGE")
	for _, r := range records {
		who := r.Who
		switch {
		case who == "" && r.By == board.Agent:
			who = "muntin"
		case who == "":
			who = string(r.By)
		}
		for _, c := range r.Changes {
			table.Row(a.Theme.Dim.Render(r.Time.Local().Format(time.DateTime)), who, "^"+c.Task, describe(c))
		}
	}
	return table.Write(a.Streams.Out, a.Theme, width)
}

func describe(c board.Change) string {
	from, to := term.CleanLine(c.From), term.CleanLine(c.To)
	switch {
	case c.What == board.Added:
		return "added: " + to
	case c.What == board.Removed:
		return "removed: " + from
	case c.What == board.Marked:
		return from + " → " + to
	case from == "":
		return c.What + ": " + to
	case to == "":
		return c.What + ": no longer " + from
	}
	return c.What + ": " + from + " → " + to
}

// A change says which tasks a command is about and how to answer.
type change struct {
	ids  []string
	json bool
}

func update(ctx context.Context, a *app.App, c change, do func(*board.Board) error) error {
	f, err := file(a)
	if err != nil {
		return err
	}
	b, _, err := f.Update(ctx, func(b *board.Board) error {
		if _, err := b.EnsureIDs(); err != nil {
			return err
		}
		return do(b)
	})
	if err != nil || !c.json {
		return err
	}
	tasks := []board.Task{}
	for _, id := range c.ids {
		if t, ok := b.Task(bare(id)); ok {
			tasks = append(tasks, t)
		}
	}
	return a.PrintJSON(tasks)
}

func set(b *board.Board, task string, to board.State, reason string) error {
	if err := b.SetState(task, to); err != nil {
		return err
	}
	return b.SetReason(task, reason)
}

func bare(id string) string { return strings.TrimPrefix(id, "^") }
