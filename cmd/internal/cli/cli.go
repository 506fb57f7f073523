// Package cli is the root of muntin's commands: it builds the streams, the
// environment and the exit code, and hands them down. Each noun has a package
// of its own below.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/adapter"
	"muntin/cmd/internal/cli/agent"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/checkpoint"
	"muntin/cmd/internal/cli/demo"
	"muntin/cmd/internal/cli/doctor"
	"muntin/cmd/internal/cli/extension"
	"muntin/cmd/internal/cli/hook"
	"muntin/cmd/internal/cli/judge"
	"muntin/cmd/internal/cli/know"
	"muntin/cmd/internal/cli/mcp"
	"muntin/cmd/internal/cli/message"
	"muntin/cmd/internal/cli/models"
	"muntin/cmd/internal/cli/pack"
	"muntin/cmd/internal/cli/plan"
	"muntin/cmd/internal/cli/recipe"
	"muntin/cmd/internal/cli/recording"
	"muntin/cmd/internal/cli/run"
	"muntin/cmd/internal/cli/session"
	"muntin/cmd/internal/cli/settings"
	"muntin/cmd/internal/cli/simulate"
	"muntin/cmd/internal/cli/todo"
	"muntin/cmd/internal/cli/trust"
	"muntin/cmd/internal/cli/work"
	"muntin/internal/state"
	"muntin/internal/term"
)

// Version is set by the linker: -X muntin/cmd/internal/cli.Version=….
var Version = "devel" //nolint:gochecknoglobals // the linker can set nothing else

// Main runs muntin with the process's arguments and streams and returns the
// exit code.
func Main() int {
	a, err := newApp()
	if err != nil {
		fmt.Fprintln(os.Stderr, "muntin:", err)
		return app.ExitFailed
	}
	return Run(context.Background(), a, os.Args[1:])
}

// Run runs one command line and returns its exit code.
func Run(ctx context.Context, a *app.App, args []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			code = a.Crashed(p, debug.Stack())
		}
	}()
	root := newRoot(a, args)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	a.Background.Wait()
	if err == nil {
		return app.ExitOK
	}
	err = typed(err)
	report(a, cmd, err)
	return app.Code(err)
}

// typed marks the errors that cobra makes of a wrong command line, which have
// no type of their own.
func typed(err error) error {
	for _, start := range []string{"unknown command", "if any flags in the group", "required flag"} {
		if strings.HasPrefix(err.Error(), start) {
			return app.Usage("%w", err)
		}
	}
	return err
}

func newApp() (*app.App, error) {
	layout, err := state.NewLayout(os.Getenv)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	environ := os.Environ()
	return &app.App{
		Streams: term.System(environ), Theme: term.DefaultTheme(), Layout: layout,
		Environ: environ, Now: time.Now, Version: Version, Self: self, Dir: ".",
		Signals: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		},
	}, nil
}

func newRoot(a *app.App, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "muntin",
		Short: "Run coding agents in tmux panes, with a board and a checkpoint of every turn",
		Long: "muntin runs coding agents in tmux panes, coordinates them through PLAN.md and\n" +
			"TODO.md, and takes a git checkpoint after every turn.",
		Example: "  muntin demo                     three agents at work, no key and no network\n" +
			"  muntin up workers               workers on this repository's TODO.md\n" +
			"  muntin send ada \"and tests\"     a prompt, acknowledged\n" +
			"  muntin rollback ada 3           her files as they were after turn 3",
		Version:       a.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.Streams.In)
	root.SetOut(a.Streams.Out)
	root.SetErr(a.Streams.Err)
	root.PersistentFlags().StringVar(&a.Dir, "repo", ".", "the repository, or a folder in it")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return app.Usage("%w", err) })
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Runs:"},
		&cobra.Group{ID: "agent", Title: "Agents:"},
		&cobra.Group{ID: "files", Title: "Files:"},
		&cobra.Group{ID: "more", Title: "More:"},
	)
	root.SetHelpCommandGroupID("more")
	root.SetCompletionCommandGroupID("more")
	for _, c := range wanted(commands(), args) {
		cmd := c.make(a)
		cmd.GroupID = c.group
		root.AddCommand(cmd)
	}
	return root
}

// A command is one of root's: its name, so that only the one that is called
// has to be made, its group in the help, and how to make it.
type command struct {
	name, group string
	make        func(*app.App) *cobra.Command
}

func commands() []command {
	return []command{
		{"demo", "run", demo.NewCmd},
		{"up", "run", run.NewUp},
		{"run", "run", run.NewRun},
		{"ls", "run", run.NewLs},
		{"top", "run", know.NewTop},
		{"events", "run", know.NewEvents},
		{"wait", "run", know.NewWait},
		{"timeline", "run", know.NewTimeline},
		{"grep", "run", recording.NewGrep},
		{"cost", "run", know.NewCost},
		{"report", "run", know.NewReport},
		{"evidence", "run", know.NewEvidence},
		{"export", "run", recording.NewExport},
		{"attach", "run", run.NewAttach},
		{"watch", "run", run.NewWatch},
		{"down", "run", run.NewDown},
		{"merge", "run", work.NewMerge},
		{"clean", "run", work.NewClean},
		{"resume", "run", run.NewResume},
		{"apply", "run", run.NewApply},
		{"scale", "run", run.NewScale},
		{"diff-recipe", "run", run.NewDiffRecipe},
		{"budget", "run", run.NewBudget},
		{"simulate", "run", simulate.NewCmd},
		{"recipe", "run", recipe.NewCmd},
		{"why", "agent", know.NewWhy},
		{"replay", "agent", recording.NewReplay},
		{"send", "agent", message.NewSend},
		{"msg", "agent", message.NewMsg},
		{"logs", "agent", message.NewLogs},
		{"agent", "agent", agent.NewCmd},
		{"session", "agent", session.NewCmd},
		{"adapter", "agent", adapter.NewCmd},
		{"mcp", "agent", mcp.NewCmd},
		{"models", "agent", models.NewCmd},
		{"login", "agent", models.NewLogin},
		{"trust", "agent", trust.NewCmd},
		{"settings", "agent", settings.NewCmd},
		{"package", "agent", pack.NewCmd},
		{"todo", "files", todo.NewCmd},
		{"plan", "files", plan.NewCmd},
		{"bisect", "files", know.NewBisect},
		{"choose", "files", judge.NewChoose},
		{"review", "files", judge.NewReview},
		{"diff", "files", work.NewDiff},
		{"overlap", "files", work.NewOverlap},
		{"checkpoint", "files", checkpoint.NewCmd},
		{"rollback", "files", checkpoint.NewRollback},
		{"undo", "files", work.NewUndo},
		{"redo", "files", checkpoint.NewRedo},
		{"keys", "more", run.NewKeys},
		{"doctor", "more", doctor.NewCmd},
		{"orchestrate", "", run.NewOrchestrate},
		{"popup", "", run.NewPopup},
		{"pane", "", agent.NewPane},
		{"hook", "", hook.NewCmd},
		{"confine", "", extension.NewConfine},
	}
}

// wanted picks the commands that a command line can be about: the one it
// begins with, none when it only asks for the version, else all. Making all of
// them takes longer than many a command does.
func wanted(all []command, args []string) []command {
	if len(args) == 0 {
		return all
	}
	if len(args) == 1 && args[0] == "--version" {
		return nil
	}
	if i := slices.IndexFunc(all, func(c command) bool { return c.name == args[0] }); i >= 0 {
		return all[i : i+1]
	}
	return all
}

// report prints an error with its hint, and the usage where the command line
// was the trouble.
func report(a *app.App, cmd *cobra.Command, err error) {
	if text := err.Error(); text != "" && !interrupted(err) {
		fmt.Fprintf(a.Streams.Err, "%s %s\n", a.Theme.Bad.Render("muntin:"), text)
	}
	if hint := app.HintOf(err); hint != "" {
		fmt.Fprintf(a.Streams.Err, "%s %s\n", a.Theme.Dim.Render("   try:"), hint)
	}
	var exit *app.ExitError
	if errors.As(err, &exit) && exit.Code == app.ExitUsage && app.HintOf(err) == "" {
		fmt.Fprintf(a.Streams.Err, "%s %s --help\n", a.Theme.Dim.Render("   see:"), cmd.CommandPath())
	}
}

func interrupted(err error) bool { return app.Code(err) == app.ExitInterrupted }
