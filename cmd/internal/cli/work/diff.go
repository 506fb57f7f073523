package work

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/worktree"
)

// DiffOptions are diff's arguments.
type DiffOptions struct {
	App   *app.App
	Agent string
	Whole bool   // of the run
	Run   string // its name
	Base  bool
	Stat  bool
	JSON  bool
}

// diffJSON is what `diff --json` prints.
type diffJSON struct {
	Run   string `json:"run"`
	Agent string `json:"agent,omitempty"`
	orchestrator.Span
	Files []worktree.FileStat `json:"files"`
}

// NewDiff makes `muntin diff`.
func NewDiff(a *app.App) *cobra.Command {
	o := DiffOptions{App: a}
	cmd := &cobra.Command{
		Use:   "diff <agent> | --run[=name]",
		Short: "What an agent, or a whole run, has changed",
		Long: "Show what an agent has changed that is not merged yet: from the run's integration\n" +
			"branch, where the agent's branch left it, to the agent's latest checkpoint, untracked\n" +
			"files included. --base compares with the start of the run instead. With --run it is\n" +
			"all that the run has merged.",
		Example: "  muntin diff ada\n  muntin diff ada --stat\n  muntin diff --run\n  muntin diff --run=nightly --json",
		Args:    app.Args(0, 1, "an agent, or --run"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Agent = first(args)
			return runDiff(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "without an agent: the whole run; the run's name (default: the living one)")
	f.Lookup("run").NoOptDefVal = " "
	f.BoolVar(&o.Base, "base", false, "compare with the start of the run")
	f.BoolVar(&o.Stat, "stat", false, "only the files and how much they changed")
	f.BoolP("patch", "p", false, "the change of every line (the default)")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("stat", "patch")
	cmd.ValidArgsFunction = completeAgent(a, &o.Run)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		o.Whole = cmd.Flags().Changed("run")
		o.Run = strings.TrimSpace(o.Run)
		return nil
	}
	return cmd
}

func runDiff(ctx context.Context, o DiffOptions) error {
	a := o.App
	if o.Agent == "" && !o.Whole {
		return app.Usage("name an agent, or say --run")
	}
	run, err := a.Run(o.Run)
	if err != nil {
		return err
	}
	git, err := openGit(ctx, a, run)
	if err != nil {
		return err
	}
	span := orchestrator.Span{From: run.Base, To: run.Branch}
	if o.Agent != "" {
		if _, err := app.Agent(run, o.Agent); err != nil {
			return err
		}
		if span, err = orchestrator.AgentSpan(ctx, git, run, o.Agent); err != nil {
			return fmt.Errorf("comparing the work of agent %s: %w", o.Agent, err)
		}
		if o.Base {
			span.From = run.Base
		}
	}
	if !o.Stat && !o.JSON {
		patch, err := git.Patch(ctx, span.From, span.To)
		if err != nil {
			return err
		}
		return a.Paged(ctx, func() error { return paint(a, patch) })
	}
	files, err := git.DiffStat(ctx, span.From, span.To)
	if err != nil {
		return err
	}
	if o.JSON {
		return a.PrintJSON(diffJSON{Run: run.Name, Agent: o.Agent, Span: span, Files: append([]worktree.FileStat{}, files...)})
	}
	return a.Paged(ctx, func() error { return printStat(a, files) })
}

// paint writes a patch in colours, with nothing in it that a terminal would obey.
func paint(a *app.App, patch string) error {
	t := a.Theme
	for line := range strings.Lines(patch) {
		line = term.Clean(strings.TrimRight(line, "\r\n"))
		switch {
		case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			line = t.Strong.Render(line)
		case strings.HasPrefix(line, "+"):
			line = t.Good.Render(line)
		case strings.HasPrefix(line, "-"):
			line = t.Bad.Render(line)
		case strings.HasPrefix(line, "@@"):
			line = t.Accent.Render(line)
		}
		if _, err := fmt.Fprintln(a.Streams.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func printStat(a *app.App, files []worktree.FileStat) error {
	table := term.NewTable("FILE", "+", "-")
	added, deleted := 0, 0
	for _, f := range files {
		plus, minus := fmt.Sprint(f.Added), fmt.Sprint(f.Deleted)
		if f.Binary {
			plus, minus = "bin", "bin"
		}
		table.Row(term.CleanLine(f.Path), a.Theme.Good.Render(plus), a.Theme.Bad.Render(minus))
		added, deleted = added+f.Added, deleted+f.Deleted
	}
	if len(files) > 0 {
		if err := table.Write(a.Streams.Out, a.Theme, 0); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.Streams.Out, "%s changed, %s added, %d deleted\n", count(len(files), "file"), count(added, "line"), deleted)
	return err
}
