// Package todo holds the commands about the board's tasks. They work in any
// repository, and in an agent's worktree on the board of its run.
package todo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator/board"
	"muntin/recipes"
)

// NewCmd makes `muntin todo`.
func NewCmd(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "todo", Short: "List, add and settle tasks of the board", Args: cobra.ArbitraryArgs, RunE: app.Subcommand,
		Long: "The board is TODO.md: plain Markdown that people, agents and these commands edit\nat the same time. Inside a run's pane it is the run's.",
	}
	cmd.AddCommand(newLs(a), newAdd(a), newEdit(a), newClaim(a), newRelease(a),
		newSet(a, "done", "Tick a task", board.Done), newSet(a, "reopen", "Open a task again", board.Open),
		newSet(a, "cancel", "Cancel a task", board.Cancelled), newBlock(a), newLog(a))
	return cmd
}

// Markdown is the board as people read it; it says so when there is none.
func Markdown(a *app.App) (string, error) {
	f, err := file(a)
	if err != nil {
		return "", err
	}
	b, err := f.Read()
	if errors.Is(err, board.ErrNoFile) {
		return "There is no board here: `muntin todo add` makes one.", nil
	}
	if err != nil {
		return "", err
	}
	return term.Clean(string(b.Bytes())), nil
}

// Claimed is the task that an agent works on, as "^id"; "" for none, and where there
// is no board.
func Claimed(a *app.App, agent string) string {
	f, err := file(a)
	if err != nil || agent == "" {
		return ""
	}
	b, err := f.Read()
	if err != nil {
		return ""
	}
	for _, t := range b.Tasks() {
		if t.State == board.Claimed && t.Claim == agent {
			return "^" + t.ID
		}
	}
	return ""
}

// file finds the board: the one the environment names in an agent's pane, a
// living run's, else the repository's own.
func file(a *app.App) (board.File, error) {
	if path := a.Getenv("MUNTIN_BOARD"); path != "" {
		return boardAt(a, path, a.Getenv("MUNTIN_REPO"))
	}
	repo, err := a.Repo()
	if err != nil {
		return board.File{}, err
	}
	return boardAt(a, filepath.Join(repo.Root, recipes.DefaultTodo), repo.Root)
}

// boardAt pairs a board with its lock, which all writers of it must share: the
// run's that works on it, else the repository's.
func boardAt(a *app.App, path, root string) (board.File, error) {
	repo, err := state.FindRepo(root)
	if err != nil {
		return board.File{}, err
	}
	dir := a.Layout.Repo(repo)
	if err := os.MkdirAll(dir.Path, 0o700); err != nil {
		return board.File{}, fmt.Errorf("making the repository's state folder: %w", err)
	}
	f := board.File{
		Path: path, LockPath: dir.BoardLock(path), Versions: dir.BoardVersions(path), Log: dir.BoardLog(path), By: board.Person,
	}
	if who := a.Getenv("MUNTIN_AGENT"); who != "" {
		f.By, f.Who = board.Agent, who
	}
	return f, nil
}

func newLs(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the tasks", Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(context.Context, []string) error {
			f, err := file(a)
			if err != nil {
				return err
			}
			b, err := f.Read()
			if errors.Is(err, board.ErrNoFile) {
				return app.Hint(err, "make one with `muntin todo add \"…\"`")
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(b.Tasks())
			}
			return list(a, b)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func list(a *app.App, b *board.Board) error {
	t := a.Theme
	width := 0
	if a.Streams.OutTTY {
		width, _ = a.Streams.Size()
	}
	table := term.NewTable("STATE", "TASK", "WHO", "WAITS FOR", "TEXT")
	for _, task := range b.Tasks() {
		style := t.Dim
		switch task.State {
		case board.Open:
			style = t.Strong
		case board.Claimed:
			style = t.Busy
		case board.Done:
			style = t.Good
		case board.Blocked, board.Waiting:
			style = t.Warn
		case board.Cancelled, board.Unknown:
		}
		table.Row(style.Render(string(task.State)), "^"+task.ID, strings.Join(task.Assignees, " "),
			strings.Join(b.Waits(task), " "), term.CleanLine(task.Text))
	}
	if err := table.Write(a.Streams.Out, t, width); err != nil {
		return err
	}
	for _, p := range b.Problems {
		fmt.Fprintf(a.Streams.Err, "%s %s\n", t.Warn.Render("board:"), p)
	}
	return nil
}

func newAdd(a *app.App) *cobra.Command {
	var n board.NewTask
	var asJSON bool
	cmd := &cobra.Command{
		Use: "add <text>", Short: "Add a task", Args: app.Args(1, 1, "the task's text in quotes"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			n.Text = args[0]
			f, err := file(a)
			if err != nil {
				return err
			}
			if err := f.Create(ctx); err != nil {
				return err
			}
			var id string
			b, _, err := f.Update(ctx, func(b *board.Board) (err error) {
				id, err = b.AddTask(n)
				return err
			})
			if err != nil {
				return err
			}
			if asJSON {
				task, _ := b.Task(id)
				return a.PrintJSON(task)
			}
			fmt.Fprintf(a.Streams.Out, "^%s\n", id)
			return nil
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&n.ID, "id", "", "its id (default: made from the text)")
	fl.StringSliceVar(&n.After, "after", nil, "ids of tasks it waits for")
	fl.StringVar(&n.Check, "check", "", "the command that checks it")
	fl.StringSliceVar(&n.Assignees, "for", nil, "agents or roles it is for")
	fl.StringVar(&n.Parent, "in", "", "id of the task to put it in")
	fl.StringVar(&n.Body, "details", "", "text below it")
	fl.IntVar(&n.Priority, "priority", 0, "1 (first) to 3")
	fl.StringSliceVar(&n.Tags, "tag", nil, "tags")
	fl.BoolVar(&asJSON, "json", false, "print the task as JSON")
	return cmd
}
