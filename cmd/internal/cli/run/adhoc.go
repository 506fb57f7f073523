package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/recipe"
	"muntin/internal/id"
	"muntin/recipes"
)

// An adHoc is a run without a file.
type adHoc struct {
	UpOptions
	prompt string
	count  int
	agent  string
	args   []string // of the agent's program
	save   string
}

// NewRun makes `muntin run`.
func NewRun(a *app.App) *cobra.Command {
	o := adHoc{UpOptions: UpOptions{App: a, Source: recipe.Source{App: a}}}
	cmd := &cobra.Command{
		Use:   "run <prompt> [-- arguments of the agent]",
		Short: "Start agents on a prompt, without a recipe",
		Long: "Start one agent or several on a prompt, each in a worktree of its own. The recipe\n" +
			"that this comes to is written into the run, as run.yaml, and with --save into your\n" +
			"folder, where `muntin up` finds it.",
		Example: "  muntin run \"make the tests faster\" --model openai/gpt-5\n" +
			"  muntin run \"find the leak\" -n 3 --agent claude --save leak -- --model opus",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args, o.args = args[:dash], args[dash:]
			}
			if len(args) != 1 {
				return app.Usage("want one prompt, in quotes, got %d arguments", len(args))
			}
			o.prompt = args[0]
			return a.Interruptible(func(ctx context.Context, _ []string) error { return runAdHoc(ctx, o) })(cmd, args)
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.count, "number", "n", 1, "this many agents")
	f.StringVar(&o.agent, "agent", "", "the program of an outside agent, such as claude (default: muntin's own agent)")
	f.StringVar(&o.Model, "model", "", "model of muntin's own agent, as provider/id (default: $MUNTIN_MODEL)")
	f.StringVar(&o.Name, "name", "", "the run's name (default: the recipe's)")
	f.StringVar(&o.save, "save", "", "keep the recipe in your folder under this name")
	f.BoolVarP(&o.Attach, "attach", "a", false, "attach to the run when it is up")
	f.BoolVar(&o.JSON, "json", false, "print what was started as JSON")
	f.DurationVar(&o.Wait, "wait", DefaultWait, "how long to wait until all agents are ready")
	return cmd
}

func runAdHoc(ctx context.Context, o adHoc) error {
	r, err := o.recipe()
	if err != nil {
		return err
	}
	text, err := r.Marshal()
	if err != nil {
		return err
	}
	if r, err = recipes.Parse("the command line", text); err != nil { // the same way as a file
		return err
	}
	if o.save != "" {
		path, err := recipe.Save(o.App, o.save, text)
		if err != nil {
			return err
		}
		fmt.Fprintf(o.App.Streams.Err, "the recipe is %s\n", path)
	}
	o.Loaded = r
	_, err = Up(ctx, o.UpOptions)
	return err
}

// recipe is what the command line comes to.
func (o adHoc) recipe() (*recipes.Recipe, error) {
	switch {
	case strings.TrimSpace(o.prompt) == "":
		return nil, app.Usage("the prompt is empty")
	case o.count < 1 || o.count > recipes.MaxAgents:
		return nil, app.Usage("-n %d: want 1 to %d agents", o.count, recipes.MaxAgents)
	case o.agent != "" && o.Model != "":
		return nil, app.Usage("--agent and --model exclude each other: give the agent's own options behind --")
	case o.agent == "" && len(o.args) > 0:
		return nil, app.Usage("arguments behind -- are for --agent")
	}
	r := &recipes.Recipe{Version: recipes.Version, Name: "adhoc", Model: o.Model}
	if o.save != "" {
		r.Name = o.save
	}
	agent := recipes.Agent{Name: "agent", Role: recipes.RoleAssistant, Prompt: o.prompt}
	if o.count > 1 {
		agent.Count = o.count
	}
	if o.agent != "" {
		agent.Command = append([]string{o.agent}, o.args...)
		if id.CheckName("agent", o.agent) == nil {
			agent.Name = o.agent
		}
	}
	r.Agents = []recipes.Agent{agent}
	r.FillDefaults()
	return r, nil
}
