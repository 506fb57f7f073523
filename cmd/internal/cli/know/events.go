package know

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator/history"
)

// EventsOptions are events' arguments.
type EventsOptions struct {
	App    *app.App
	Run    string
	Follow bool
	JSON   bool
	After  string // a cursor
	Filter filter
}

// A filter says which events are shown.
type filter struct {
	Agents, Kinds, Tasks []string
	Since                string
	from                 time.Time
}

func (f *filter) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&f.Agents, "agent", "a", nil, "only of these agents")
	cmd.Flags().StringSliceVarP(&f.Kinds, "kind", "k", nil, "only of these kinds, or person: what people did")
	cmd.Flags().StringSliceVarP(&f.Tasks, "task", "t", nil, "only about these tasks")
	cmd.Flags().StringVar(&f.Since, "since", "", "only from this time on: 10m (ago), 14:02, 2026-01-31T14:02:00Z")
}

// check reads the filter's values.
func (f *filter) check(now time.Time) (err error) {
	for _, k := range f.Kinds {
		if k != history.Person && !slices.Contains(history.Kinds(), history.Kind(k)) {
			return app.Usage("there is no kind %q: there are %s", k, kinds())
		}
	}
	for i, t := range f.Tasks {
		f.Tasks[i] = strings.TrimPrefix(t, "^")
	}
	if f.Since != "" {
		f.from, err = ParseTime(f.Since, now)
	}
	return err
}

func kinds() string {
	names := []string{history.Person}
	for _, k := range history.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

func (f *filter) fits(e history.Event) bool {
	return (len(f.Agents) == 0 || slices.Contains(f.Agents, e.Agent)) &&
		(len(f.Tasks) == 0 || slices.Contains(f.Tasks, e.Task)) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, string(e.Kind)) || e.Who == history.Person && slices.Contains(f.Kinds, history.Person)) &&
		!e.Time.Before(f.from)
}

// NewEvents makes `muntin events`.
func NewEvents(a *app.App) *cobra.Command {
	o := EventsOptions{App: a}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "All that happened in a run, in one order",
		Long: "Tell what happened in a run, out of the orchestrator's journal, the agents' logs, the\n" +
			"board's log and the checkpoints: prompts and what became of them, turns, tools, board\n" +
			"edits, checks, merges, restarts, limits, and what people did. With --json each line\n" +
			"has a cursor; --after goes on behind it, with no event missing or told twice.\n\n" +
			"Kinds: " + wrapped(kinds(), 70) + ".",
		Example: "  muntin events -f\n  muntin events --agent ada --kind turn,check --since 10m\n  muntin events --json --after \"$cursor\" -f",
		Args:    app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			return events(ctx, o)
		}),
	}
	o.Filter.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the living one)")
	f.BoolVarP(&o.Follow, "follow", "f", false, "go on until interrupted")
	f.BoolVar(&o.JSON, "json", false, "print a JSON object a line")
	f.StringVar(&o.After, "after", "", "go on behind this cursor of --json")
	return cmd
}

func wrapped(text string, width int) string {
	var b strings.Builder
	n := 0
	for i, word := range strings.Fields(text) {
		if n += len(word) + 1; i > 0 && n > width {
			b.WriteByte('\n')
			n = len(word)
		} else if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}

func events(ctx context.Context, o EventsOptions) error {
	run, err := o.App.Run(o.Run)
	if err != nil {
		return err
	}
	if err := o.Filter.check(o.App.Now()); err != nil {
		return err
	}
	for _, name := range o.Filter.Agents {
		if _, err := app.Agent(run, name); err != nil {
			return err
		}
	}
	cursor, err := history.ParseCursor(o.After)
	if err != nil {
		return app.Usage("%w", err)
	}
	show := func() error {
		p := &eventPrinter{out: o.App.Streams.Out, theme: o.App.Theme, json: o.JSON, filter: &o.Filter, cursor: cursor, width: width(o.App)}
		if o.Follow {
			return history.Follow(ctx, run, cursor, history.Sink{Event: p.event})
		}
		list, err := history.Load(ctx, run, cursor)
		for i := 0; i < len(list) && err == nil; i++ {
			err = p.event(list[i])
		}
		return err
	}
	if o.Follow || o.JSON {
		return show()
	}
	return o.App.Paged(ctx, show)
}

// An eventPrinter prints a stream for people or for programs.
type eventPrinter struct {
	out    io.Writer
	theme  term.Theme
	json   bool
	filter *filter
	cursor history.Cursor
	width  int
	last   string // the day that was printed last
}

// A cursored is an event as --json prints it.
type cursored struct {
	history.Event
	Cursor string `json:"cursor"` // goes on behind this event
}

func (p *eventPrinter) event(e history.Event) error {
	p.cursor.Pass(e)
	if !p.filter.fits(e) {
		return nil
	}
	if p.json {
		enc := json.NewEncoder(p.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(cursored{e, p.cursor.String()})
	}
	var err error
	if day := e.Time.Local().Format("2006-01-02"); day != p.last {
		p.last = day
		_, err = fmt.Fprintln(p.out, p.theme.Dim.Render(day))
	}
	line := Line(p.theme, e)
	if p.width > 0 {
		line = term.Truncate(line, p.width)
	}
	_, printErr := fmt.Fprintln(p.out, line)
	return errors.Join(err, printErr)
}

// Line is an event in a line for people.
func Line(t term.Theme, e history.Event) string {
	who := e.Agent
	if who == "" {
		who = e.Who
	}
	what := strings.TrimSpace(string(e.Kind) + " " + cell(e.What))
	if e.What == string(e.Kind) {
		what = e.What
	}
	style := t.Dim
	switch {
	case e.Bad():
		style = t.Bad
	case e.Kind == history.KindWaiting && e.What != "nothing":
		style = t.Warn
	case e.Who == history.Person:
		style = t.Accent
	case e.Kind == history.KindMerge, e.Kind == history.KindCheck && e.What == "passed":
		style = t.Good
	case e.Kind == history.KindTurn, e.Kind == history.KindRun:
		style = t.Busy
	case e.Kind == history.KindPrompt:
		style = t.Command
	}
	task := ""
	if e.Task != "" {
		task = t.Accent.Render("^"+cell(e.Task)) + " "
	}
	if e.Turn > 0 && e.Kind == history.KindTurn {
		what += fmt.Sprintf(" #%d", e.Turn)
	}
	by := ""
	if e.Who == history.Person && e.Agent != "" {
		by = t.Dim.Render(" by a person")
	}
	text := cell(firstLine(e.Text))
	return fmt.Sprintf("%s  %-12s  %s%s %s%s", t.Dim.Render(e.Time.Local().Format("15:04:05.000")), cell(who),
		style.Render(fmt.Sprintf("%-18s", what)), by, task, text)
}

func firstLine(text string) string {
	first, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		first += " …"
	}
	return first
}
