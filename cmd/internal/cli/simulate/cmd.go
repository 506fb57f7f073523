// Package simulate has `muntin simulate`.
package simulate

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/recipe"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/board"
	"muntin/orchestrator/simulate"
	"muntin/recipes"
)

// Options are the command's arguments.
type Options struct {
	App    *app.App
	Source *recipe.Source
	Recipe string
	Agents int
	Tasks  int
	Deep   float64
	Todo   string
	JSON   bool
	Play   simulate.Options
}

// NewCmd makes `muntin simulate`.
func NewCmd(a *app.App) *cobra.Command {
	o := Options{App: a, Source: &recipe.Source{App: a}}
	cmd := &cobra.Command{
		Use:   "simulate <recipe>",
		Short: "Play a run with made-up agents, in no time and for no money",
		Long: "Play a run of a recipe with made-up agents: the orchestrator's own decisions in virtual\n" +
			"time, without tmux, models or files. It says how long the run takes, how busy the agents\n" +
			"are, what was done again, what it costs, and what got stuck. The same seed is the same run.",
		Example: "  muntin simulate workers --tasks 200\n" +
			"  muntin simulate ./team.yaml --agents 20 --fail 0.3 --crash 0.02 --turn 5m\n" +
			"  muntin simulate ./race.yaml --todo TODO.md --person 10m --json",
		Args: app.Args(1, 1, "a recipe"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Recipe = args[0]
			return run(ctx, o)
		}),
	}
	o.Source.Flags(cmd)
	f := cmd.Flags()
	f.IntVar(&o.Agents, "agents", 0, "so many workers (default: the recipe's)")
	f.IntVar(&o.Tasks, "tasks", 100, "tasks of a made-up board")
	f.Float64Var(&o.Deep, "deep", 0.3, "share of its tasks that come after others")
	f.StringVar(&o.Todo, "todo", "", "play this board instead")
	f.Uint64Var(&o.Play.Seed, "seed", 1, "what all chances come from")
	f.DurationVar(&o.Play.Turn, "turn", 4*time.Minute, "the mean length of a turn")
	f.Float64Var(&o.Play.Spread, "spread", 0.5, "how much turns differ from that")
	f.DurationVar(&o.Play.Check, "check", 30*time.Second, "the length of a check")
	f.DurationVar(&o.Play.Person, "person", 0, "a person judges what waits for one after so long (default: never)")
	f.Int64Var(&o.Play.Tokens, "tokens", 60_000, "tokens of a turn")
	f.Float64Var(&o.Play.Cost, "cost", 0.002, "US dollars of 1000 tokens")
	chances(cmd, &o.Play)
	f.BoolVar(&o.JSON, "json", false, "print the report as JSON")
	return cmd
}

// chances are the flags whose values go from 0 to 1.
func chances(cmd *cobra.Command, p *simulate.Options) {
	for _, c := range []struct {
		to   *float64
		name string
		def  float64
		help string
	}{
		{&p.Fail, "fail", 0.2, "that a check fails"},
		{&p.Conflict, "conflict", 0.03, "that a merge conflicts"},
		{&p.Crash, "crash", 0.01, "that an agent crashes in a turn"},
		{&p.Limit, "limit", 0, "that a provider takes no more in a turn"},
		{&p.Slow, "slow", 0.02, "that a turn takes ten times as long"},
		{&p.Changes, "changes", 0.3, "that a reviewer wants changes"},
		{&p.Unclear, "unclear", 0.02, "that an answer of a reviewer or judge cannot be read"},
	} {
		cmd.Flags().Float64Var(c.to, c.name, c.def, "chance "+c.help)
	}
}

func run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	r, err := o.Source.Load(ctx, o.Recipe)
	if err != nil {
		return err
	}
	if err := o.scale(r); err != nil {
		return err
	}
	if err := orchestrator.CheckMode(r); err != nil {
		return err
	}
	o.Play.Tasks = simulate.Board(o.Tasks, o.Play.Seed, o.Deep)
	if o.Todo != "" {
		if o.Play.Tasks, err = readTodo(o.Todo); err != nil {
			return err
		}
	}
	o.Play.State = orchestrator.InitialState(orchestrator.Run{Info: orchestrator.Info{Name: r.Name, Branch: "muntin/" + r.Name + "/merged"}}, r.Resolved())
	report, err := simulate.Run(ctx, o.Play)
	if err != nil {
		return fmt.Errorf("simulating %s with seed %d: %w", r.Name, o.Play.Seed, err)
	}
	if o.JSON {
		return o.App.PrintJSON(report)
	}
	return o.print(report)
}

// check refuses values that are no chances, and counts that are too large.
func (o Options) check() error {
	p := o.Play
	for name, v := range map[string]float64{
		"--fail": p.Fail, "--conflict": p.Conflict, "--crash": p.Crash, "--limit": p.Limit, "--slow": p.Slow,
		"--changes": p.Changes, "--unclear": p.Unclear, "--spread": p.Spread, "--deep": o.Deep,
	} {
		if !(v >= 0 && v <= 1) {
			return app.Usage("%s: want a number from 0 to 1", name)
		}
	}
	switch {
	case o.Tasks < 0 || o.Tasks > 100_000:
		return app.Usage("--tasks: want a number from 0 to 100000")
	case o.Agents < 0 || o.Agents > recipes.MaxAgents:
		return app.Usage("--agents: want a number from 1 to %d", recipes.MaxAgents)
	case p.Turn <= 0 || p.Check < 0 || p.Person < 0 || p.Tokens < 0 || !(p.Cost >= 0):
		return app.Usage("--turn, --check, --person, --tokens and --cost cannot be less than nothing")
	}
	return nil
}

// scale gives the recipe so many workers: of the first worker there are as many
// as are missing.
func (o Options) scale(r *recipes.Recipe) error {
	if o.Agents == 0 {
		return nil
	}
	others, first := 0, -1
	for i, a := range r.Agents {
		if a.Role != "" && a.Role != recipes.RoleWorker {
			continue
		}
		if first < 0 {
			first = i
			continue
		}
		others += max(a.Count, 1)
	}
	if first < 0 || others >= o.Agents {
		return app.Usage("--agents %d: the recipe %s has %d other workers", o.Agents, r.Name, others)
	}
	r.Agents = slices.Clone(r.Agents)
	r.Agents[first].Count = o.Agents - others
	return nil
}

func readTodo(path string) ([]orchestrator.Task, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the board: %w", err)
	}
	b, err := board.Parse(text)
	if err == nil {
		_, err = b.EnsureIDs()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the board %s: %w", path, err)
	}
	return orchestrator.TasksOf(b), nil
}

func (o Options) print(r simulate.Report) error {
	t, out := o.App.Theme, o.App.Streams.Out
	span := func(seconds float64) string {
		return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
	}
	style := t.Good
	if r.Phase != orchestrator.PhaseDone {
		style = t.Warn
	}
	var states []string
	for _, s := range []orchestrator.TaskState{
		orchestrator.TaskDone, orchestrator.TaskOpen, orchestrator.TaskActive, orchestrator.TaskWaiting, orchestrator.TaskBlocked, orchestrator.TaskCancelled,
	} {
		if n := r.Tasks[string(s)]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, s))
		}
	}
	fmt.Fprintf(out, "%s after %s: tasks %s\n", style.Render(string(r.Phase)), span(r.Makespan), strings.Join(states, ", "))
	fmt.Fprintf(out, "agents busy %.0f %%; %d prompts, %d tries again, %d restarts, %d judged by a person\n", r.Busy*100, r.Prompts, r.Retries, r.Restarts, r.Judged)
	fmt.Fprintf(out, "a task waited %s for an agent, at most %s\n", span(r.Wait), span(r.Longest))
	fmt.Fprintf(out, "%d tokens, $%.2f (as assumed by --tokens and --cost)\n\n", r.Tokens, r.Cost)
	table := term.NewTable("AGENT", "TURNS", "BUSY", "KEPT BY")
	for _, a := range r.Agents {
		table.Row(a.Name, fmt.Sprint(a.Turns), fmt.Sprintf("%.0f %%", a.Busy*100), a.Why)
	}
	if err := table.Write(out, t, 0); err != nil {
		return err
	}
	for i, s := range r.Stuck {
		if i == 10 {
			fmt.Fprintf(out, "… and %d more\n", len(r.Stuck)-i)
			break
		}
		fmt.Fprintf(out, "%s ^%s: %s\n", t.Warn.Render(string(s.State)), s.Task, s.Why)
	}
	return nil
}
