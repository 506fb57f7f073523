package run

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator"
)

// BudgetOptions are budget's arguments.
type BudgetOptions struct {
	App  *app.App
	Run  string
	Of   orchestrator.Scope
	All  bool // the whole run is meant
	JSON bool

	values map[string]*string
}

// NewBudget makes `muntin budget`.
func NewBudget(a *app.App) *cobra.Command {
	o := BudgetOptions{App: a, values: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "budget [agent]",
		Short: "Show what was used, and raise limits",
		Long: "Show what a run's agents may use and have used, or change a limit: of an agent, of\n" +
			"the agents of a role together (--role), or of the whole run (--total). A value with +\n" +
			"in front is added to the limit, 0 lifts it. Agents that had reached it go on.",
		Example: "  muntin budget                       all limits\n" +
			"  muntin budget ada --turns +10\n" +
			"  muntin budget --role worker --cost 5\n" +
			"  muntin budget --total --time +2h",
		Args: app.Args(0, 1, "at most an agent"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Of.Agent = first(args)
			return budget(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the newest living one)")
	f.StringVar(&o.Of.Role, "role", "", "the agents of this role together")
	f.BoolVar(&o.All, "total", false, "the whole run")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	for name, help := range map[string]string{
		"turns": "turns", "tokens": "tokens, in and out", "cost": "US dollars", "time": "time in turns, such as 90m",
		"memory": "memory, such as 4GB", "processes": "processes at once",
	} {
		o.values[name] = f.String(name, "", help)
	}
	return cmd
}

func budget(ctx context.Context, o BudgetOptions) error {
	run, err := o.App.Run(o.Run)
	if err != nil {
		return err
	}
	st, err := orchestrator.Now(run)
	if err != nil {
		return err
	}
	raises, err := o.raises()
	if err != nil {
		return err
	}
	if err := o.check(st, run, len(raises) > 0); err != nil {
		return err
	}
	if len(raises) == 0 {
		return o.show(st)
	}
	change := &orchestrator.BudgetChange{Of: o.Of, Raises: raises}
	if _, err := orchestrator.Ask(ctx, run, orchestrator.Request{Budget: change}, o.App.Now()); err != nil {
		return err
	}
	when := ""
	if !run.Served() {
		when = " when the run has an orchestrator again: `muntin resume " + run.Name + "`"
	}
	fmt.Fprintf(o.App.Streams.Out, "%s the budget of %s is changed%s\n", o.App.Theme.Good.Render("✓"), o.Of, when)
	return nil
}

// check makes sure that what is named is there, once.
func (o BudgetOptions) check(st orchestrator.State, run orchestrator.Run, change bool) error {
	named := 0
	for _, is := range []bool{o.Of.Agent != "", o.Of.Role != "", o.All} {
		if is {
			named++
		}
	}
	switch {
	case named > 1:
		return app.Usage("name an agent, a --role or the --total, not more than one of them")
	case named == 0 && change:
		return app.Usage("whose limit is to be changed: name an agent, a --role, or --total")
	case o.Of.Agent != "":
		_, err := app.Agent(run, o.Of.Agent)
		return err
	}
	for _, s := range st.Scopes() {
		if s == o.Of {
			return nil
		}
	}
	return app.Usage("run %s has no agent with the role %q", run.Name, o.Of.Role)
}

func (o BudgetOptions) raises() ([]orchestrator.Raise, error) {
	var list []orchestrator.Raise
	for _, name := range orchestrator.BudgetFields() {
		text := *o.values[name]
		if text == "" {
			continue
		}
		rest, by := strings.CutPrefix(text, "+")
		v, err := parseLimit(name, rest)
		if err != nil {
			return nil, app.Usage("--%s %s: %w", name, text, err)
		}
		list = append(list, orchestrator.Raise{Field: name, By: by, To: v})
	}
	return list, nil
}

func parseLimit(field, text string) (float64, error) {
	var v float64
	var err error
	switch field {
	case "time":
		var d time.Duration
		if d, err = time.ParseDuration(text); err != nil && text == "0" {
			err = nil
		}
		v = float64(d)
	case "memory":
		var n int64
		n, err = parseSize(text)
		v = float64(n)
	case "cost":
		v, err = strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	default:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		v = float64(n)
	}
	if err == nil && !(v >= 0 && v < 1e18) {
		err = fmt.Errorf("want a number from 0 on")
	}
	return v, err
}

// parseSize reads a size such as 512MB or 2GiB; a plain number is bytes.
func parseSize(text string) (int64, error) {
	number, unit := text, ""
	if i := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); i >= 0 {
		number, unit = text[:i], strings.ToLower(strings.TrimSpace(text[i:]))
	}
	factor, ok := map[string]float64{
		"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
		"k": 1e3, "m": 1e6, "g": 1e9,
	}[unit]
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || n*factor > 1e18 {
		return 0, fmt.Errorf("want a size such as 512MB or 2GiB")
	}
	return int64(n * factor), nil
}

// A budgetRow is a limit, or what was used where there is none.
type budgetRow struct {
	orchestrator.Scope
	Limits orchestrator.Budget `json:"limits"`
	Used   orchestrator.Budget `json:"used"`
}

func (o BudgetOptions) show(st orchestrator.State) error {
	rows := []budgetRow{}
	for _, s := range st.Scopes() {
		if o.Of != (orchestrator.Scope{}) && s != o.Of || o.All && s != (orchestrator.Scope{}) {
			continue
		}
		limits, used := st.Budget(s)
		rows = append(rows, budgetRow{Scope: s, Limits: limits, Used: used})
	}
	if o.JSON {
		return o.App.PrintJSON(rows)
	}
	t := o.App.Theme
	table := term.NewTable("OF", "TURNS", "TOKENS", "COST", "TIME", "MEMORY", "PROCESSES")
	for _, row := range rows {
		cells := []string{row.String()}
		for _, name := range orchestrator.BudgetFields() {
			limit, used := row.Limits.Field(name), row.Used.Field(name)
			cell := orchestrator.FormatBudget(name, used)
			if used == 0 && limit == 0 {
				cell = "-"
			}
			if limit > 0 {
				cell += " of " + orchestrator.FormatBudget(name, limit)
				if used >= limit {
					cell = t.Bad.Render(cell)
				}
			}
			cells = append(cells, cell)
		}
		table.Row(cells...)
	}
	return table.Write(o.App.Streams.Out, t, 0)
}
