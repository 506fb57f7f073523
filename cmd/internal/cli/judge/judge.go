// Package judge has the commands that judge finished work: `muntin choose` and
// `muntin review`.
package judge

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/orchestrator"
)

// Options are the arguments of the commands.
type Options struct {
	App     *app.App
	Run     string
	Verdict orchestrator.Verdict
	JSON    bool
}

// NewChoose makes `muntin choose`.
func NewChoose(a *app.App) *cobra.Command {
	o := Options{App: a}
	cmd := &cobra.Command{
		Use:   "choose <task> <agent>",
		Short: "Say whose work on a task is taken, in a race",
		Long: "Say whose work on a task is taken: of those whose check has passed, in mode race. The\n" +
			"others' work is kept in their checkpoints. In the pane of the agent that judges, it is the\n" +
			"agent's answer and counts when its turn ends; elsewhere it is yours and counts at once.",
		Example: "  muntin choose parse-config ada",
		Args:    app.Args(2, 2, "a task and an agent"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Verdict.Task, o.Verdict.Winner = strings.TrimPrefix(args[0], "^"), args[1]
			return run(ctx, o)
		}),
	}
	flags(cmd, &o)
	return cmd
}

// NewReview makes `muntin review`.
func NewReview(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "review",
		Short: "Approve a task's work, or ask for changes",
		Long: "Judge a task's work whose check has passed, in mode review: approve it, and it is merged,\n" +
			"or send it back with what has to be changed. In the pane of the reviewing agent it is the\n" +
			"agent's answer and counts when its turn ends; elsewhere it is yours and counts at once.",
		Example: "  muntin review approve parse-config\n" +
			"  muntin review request parse-config --text 'an empty file is no error'",
	}
	approve := Options{App: a, Verdict: orchestrator.Verdict{Approve: true}}
	cmd.AddCommand(newVerdict(&approve, "approve <task>", "Approve a task's work"))
	request := Options{App: a, Verdict: orchestrator.Verdict{Changes: true}}
	cmd.AddCommand(newVerdict(&request, "request <task>", "Send a task's work back with what has to be changed"))
	return cmd
}

func newVerdict(o *Options, use, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: app.Args(1, 1, "a task"),
		RunE: o.App.Interruptible(func(ctx context.Context, args []string) error {
			o.Verdict.Task = strings.TrimPrefix(args[0], "^")
			return run(ctx, *o)
		}),
	}
	cmd.Flags().StringVar(&o.Verdict.Text, "text", "", "what was found")
	flags(cmd, o)
	return cmd
}

func flags(cmd *cobra.Command, o *Options) {
	cmd.Flags().StringVar(&o.Run, "run", "", "the run (default: that of the pane, else the newest living one)")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print the verdict as JSON")
}

func run(ctx context.Context, o Options) error {
	name := o.Run
	if in := o.App.Getenv("MUNTIN_RUN"); name == "" && in != "" {
		name = in
	}
	found, err := o.App.Run(name)
	if err != nil {
		return err
	}
	if in := o.App.Getenv("MUNTIN_RUN"); in == found.Name {
		o.Verdict.By = o.App.Getenv("MUNTIN_AGENT")
	}
	st, err := orchestrator.Now(found)
	if err != nil {
		return err
	}
	if err := st.Judgeable(o.Verdict); err != nil {
		return app.Hint(err, "what waits for a judgement is [?] on the board: `muntin todo ls`")
	}
	req, err := orchestrator.Ask(ctx, found, orchestrator.Request{Verdict: &o.Verdict}, o.App.Now())
	if err != nil {
		return err
	}
	if o.JSON {
		return o.App.PrintJSON(req)
	}
	when := ""
	switch {
	case o.Verdict.By != "":
		when = "; it counts when your turn ends"
	case !found.Served():
		when = "; it counts when the run has an orchestrator again: `muntin resume " + found.Name + "`"
	}
	what := "approved"
	switch {
	case o.Verdict.Winner != "":
		what = "goes to " + o.Verdict.Winner
	case o.Verdict.Changes:
		what = "is sent back"
	}
	fmt.Fprintf(o.App.Streams.Out, "%s ^%s %s%s\n", o.App.Theme.Good.Render("✓"), o.Verdict.Task, what, when)
	return nil
}
