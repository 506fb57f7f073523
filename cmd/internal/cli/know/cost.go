package know

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/history"
)

// A costRow is what an agent, a role or a task used.
type costRow struct {
	Name string `json:"name"`
	history.Usage
}

// costs is what `cost --json` prints.
type costs struct {
	Run    string        `json:"run"`
	Total  history.Usage `json:"total"`
	Agents []costRow     `json:"agents"`
	Roles  []costRow     `json:"roles"`
	Tasks  []costRow     `json:"tasks"` // "" is what was done for no task
}

// NewCost makes `muntin cost`.
func NewCost(a *app.App) *cobra.Command {
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Tokens and money that a run used: by agent, role and task",
		Long: "Add up what the turns of a run used, as far as the agents tell. Where the price of a\n" +
			"model is not known the cost is unknown, and sums say of how many turns.",
		Example: "  muntin cost\n  muntin cost --json | jq .total.cost",
		Args:    app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			run, err := a.Run(name)
			if err != nil {
				return err
			}
			events, err := history.Load(ctx, run, nil)
			if err != nil {
				return err
			}
			c, err := costsOf(run, events)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(c)
			}
			return c.print(a)
		}),
	}
	cmd.Flags().StringVar(&name, "run", "", "the run (default: the living one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func costsOf(run orchestrator.Run, events []history.Event) (costs, error) {
	recipe, err := run.Recipe()
	if err != nil {
		return costs{}, err
	}
	c := costs{Run: run.Name, Agents: []costRow{}, Roles: []costRow{}, Tasks: []costRow{}}
	roles := map[string]string{}
	byAgent := history.UsageBy(events, func(e history.Event) string { return e.Agent })
	for _, ag := range recipe.Agents {
		roles[ag.Name] = ag.Role
		if _, ok := byAgent[ag.Name]; !ok {
			byAgent[ag.Name] = history.Usage{}
		}
	}
	c.Agents = rows(byAgent)
	c.Roles = rows(history.UsageBy(events, func(e history.Event) string { return roles[e.Agent] }))
	// Turns without a task have a key that no task can have.
	c.Tasks = rows(history.UsageBy(events, func(e history.Event) string { return e.Task + " " }))
	for i := range c.Tasks {
		c.Tasks[i].Name = strings.TrimSuffix(c.Tasks[i].Name, " ")
	}
	for _, r := range c.Agents {
		c.Total = c.Total.Plus(r.Usage)
	}
	return c, nil
}

func rows(m map[string]history.Usage) []costRow {
	out := []costRow{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, costRow{name, m[name]})
	}
	return out
}

func (c costs) print(a *app.App) error {
	for _, part := range []struct {
		head, none string
		rows       []costRow
		mark       string
	}{
		{"AGENT", "", c.Agents, ""}, {"ROLE", "", c.Roles, ""}, {"TASK", "no task", c.Tasks, "^"},
		{"RUN", "", []costRow{{c.Run, c.Total}}, ""},
	} {
		table := term.NewTable(part.head, "TURNS", "TIME", "INPUT", "CACHED", "OUTPUT", "COST")
		for _, r := range part.rows {
			name := part.mark + r.Name
			if r.Name == "" {
				name = part.none
			}
			table.Row(cell(name), fmt.Sprint(r.Turns), r.Time.Round(100*time.Millisecond).String(), fmt.Sprint(r.Input+r.CacheWrite), fmt.Sprint(r.CacheRead),
				fmt.Sprint(r.Output), money(a.Theme, r.Usage))
		}
		if err := table.Write(a.Streams.Out, a.Theme, width(a)); err != nil {
			return err
		}
		if part.head != "RUN" {
			fmt.Fprintln(a.Streams.Out)
		}
	}
	return nil
}

// money says what was paid, and of how many turns that is not known.
func money(t term.Theme, u history.Usage) string {
	unknown := u.Unpriced + u.Untold
	switch {
	case u.Turns == 0:
		return "-"
	case unknown == u.Turns:
		return t.Dim.Render("unknown")
	case unknown > 0:
		return fmt.Sprintf("$%.4f %s", u.Cost, t.Dim.Render(fmt.Sprintf("and %s of unknown cost", count(unknown, "turn"))))
	}
	return fmt.Sprintf("$%.4f", u.Cost)
}
