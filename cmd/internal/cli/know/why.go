package know

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/cast"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/history"
)

// WhyOptions are why's arguments.
type WhyOptions struct {
	App    *app.App
	Run    string
	Agent  string
	JSON   bool
	Events int
	Lines  int
}

// A reason is what `why --json` prints: what is known about an agent, and how.
type reason struct {
	Run       string                `json:"run"`
	Agent     history.Agent         `json:"agent"`             // by its log
	Now       *pty.Status           `json:"now,omitempty"`     // by its supervisor, which answered
	Silent    string                `json:"silent,omitempty"`  // why the supervisor did not answer
	Served    bool                  `json:"orchestrator"`      // one is at work
	Trouble   *orchestrator.Trouble `json:"trouble,omitempty"` // what keeps it
	Task      *orchestrator.Task    `json:"task,omitempty"`    // its claim on the board
	Stage     orchestrator.Stage    `json:"stage,omitempty"`   // how far the run is with it
	StageFrom *time.Time            `json:"stage_since,omitempty"`
	Attempt   int                   `json:"attempt,omitempty"` // checks and merges that failed
	Limits    orchestrator.Budget   `json:"limits"`
	Used      orchestrator.Budget   `json:"used"`
	Over      string                `json:"over,omitempty"` // the budget that is used up
	Screen    []string              `json:"screen"`
	ScreenBy  string                `json:"screen_source"` // "socket", "recording"
	Events    []history.Event       `json:"events"`
}

// NewWhy makes `muntin why`.
func NewWhy(a *app.App) *cobra.Command {
	o := WhyOptions{App: a}
	cmd := &cobra.Command{
		Use:   "why <agent>",
		Short: "Why an agent is in the state it is in: the evidence",
		Long: "Tell all that the state of an agent is concluded from: what its supervisor says now,\n" +
			"its last events each with the evidence for it, its screen, its claim, what it waits\n" +
			"for, and its budget.",
		Example: "  muntin why ada\n  muntin why ada --events 30 --json",
		Args:    app.Args(1, 1, "an agent"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Agent = args[0]
			return why(ctx, o)
		}),
		ValidArgsFunction: completeAgent(a, &o.Run),
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the living one)")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	f.IntVar(&o.Events, "events", 10, "how many of its last events")
	f.IntVar(&o.Lines, "lines", 8, "how many of the screen's last lines")
	return cmd
}

func why(ctx context.Context, o WhyOptions) error {
	run, err := o.App.Run(o.Run)
	if err != nil {
		return err
	}
	if _, err := app.Agent(run, o.Agent); err != nil {
		return err
	}
	r, err := reasonOf(ctx, o, run)
	if err != nil {
		return err
	}
	if o.JSON {
		return o.App.PrintJSON(r)
	}
	r.print(o.App)
	return nil
}

func reasonOf(ctx context.Context, o WhyOptions, run orchestrator.Run) (reason, error) {
	v, err := history.Now(run)
	if err != nil {
		return reason{}, err
	}
	r := reason{Run: run.Name, Served: run.Served(), Screen: []string{}, Events: []history.Event{}}
	r.Agent, _ = v.Agent(o.Agent)
	of := v.State.Agents[o.Agent]
	r.Limits, r.Used, r.Over = of.Limits, of.Used, v.State.Over(of)
	if t := v.State.Trouble(of); t.Kind != "" && r.Served {
		r.Trouble = &t
	}
	r.claim(v.State, o.Agent)
	r.ask(ctx, run, o)
	events, err := history.Load(ctx, run, nil)
	if err != nil {
		return r, err
	}
	for _, e := range events {
		if e.Agent == o.Agent {
			r.Events = append(r.Events, e)
		}
	}
	r.Events = r.Events[max(len(r.Events)-o.Events, 0):]
	return r, nil
}

// claim finds the task that the agent has, on the board or in the run's work.
func (r *reason) claim(s orchestrator.State, agent string) {
	w, has := s.Works[agent]
	for _, t := range s.Tasks {
		if t.Claim == agent || has && w.Task == t.ID {
			r.Task = &t
		}
	}
	if r.Task == nil {
		return
	}
	if has && w.Task == r.Task.ID {
		r.Stage, r.Attempt = w.Stage, w.Attempt
		if !w.Since.IsZero() {
			r.StageFrom = &w.Since
		}
	}
}

// ask takes the supervisor's word; where it does not answer the recording has
// the last screen.
func (r *reason) ask(ctx context.Context, run orchestrator.Run, o WhyOptions) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	dir := run.Dir.Agent(o.Agent)
	client, err := pty.Dial(ctx, dir.Socket)
	if err == nil {
		defer client.Close()
		var s pty.Status
		if s, err = client.Status(ctx); err == nil {
			r.Now = &s
			if sc, err := client.Screen(ctx, false); err == nil {
				r.Screen, r.ScreenBy = lastLines(sc.Lines, o.Lines), "socket"
				return
			}
		}
	}
	if err != nil {
		r.Silent = err.Error()
	}
	if screen, err := cast.At(dir.Screen(), time.Time{}); err == nil {
		r.Screen, r.ScreenBy = lastLines(screen.Lines, o.Lines), "recording"
	}
}

// lastLines are the last n lines that are not empty at the screen's end.
func lastLines(lines []string, n int) []string {
	end := len(lines)
	for end > 0 && strings.TrimSpace(lines[end-1]) == "" {
		end--
	}
	return append([]string{}, lines[max(end-n, 0):end]...)
}

func (r reason) print(a *app.App) {
	t, out := a.Theme, a.Streams.Out
	row := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%s %s\n", t.Dim.Render(fmt.Sprintf("%-9s", name)), fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(out, "%s  %s of run %s\n", t.Title.Render(r.Agent.Name), cell(r.Agent.Role), r.Run)
	r.printState(a, row)
	if r.Trouble != nil {
		text := string(r.Trouble.Kind)
		if r.Trouble.NeedsPerson() {
			text = "needs a person: " + text
		}
		row("kept by", "%s %s", t.Bad.Render(text), cell(r.Trouble.Why))
	}
	switch {
	case !r.Served:
		row("run", "%s", t.Warn.Render("no orchestrator is at work: nobody gives it tasks"))
	case r.Task == nil:
		row("task", "none")
	}
	if r.Task != nil {
		row("task", "%s %s", t.Accent.Render("^"+cell(r.Task.ID)), cell(r.Task.Text))
		row("claim", "%s on the board%s", r.Task.State, stageText(r))
	}
	r.printBudget(row)
	if len(r.Screen) > 0 {
		fmt.Fprintf(out, "\n%s\n", t.Dim.Render("its screen, by its "+r.ScreenBy))
		for _, line := range r.Screen {
			fmt.Fprintf(out, "  %s %s\n", t.Dim.Render("│"), cell(line))
		}
	}
	if len(r.Events) > 0 {
		fmt.Fprintf(out, "\n%s\n", t.Dim.Render("its last events, each with its evidence"))
	}
	for _, e := range r.Events {
		by, line := proof(e), Line(t, e)
		if w := width(a); w > 0 {
			line = term.Truncate(line, max(w-len(by)-3, 60))
		}
		fmt.Fprintf(out, "%s%s\n", line, t.Dim.Render(" ("+by+")"))
	}
}

func stageText(r reason) string {
	if r.Stage == "" {
		return ""
	}
	text := "; the run is " + string(r.Stage)
	if r.StageFrom != nil {
		text += " since " + r.StageFrom.Local().Format("15:04:05")
	}
	if r.Attempt > 0 {
		text += fmt.Sprintf(", %s failed", count(r.Attempt, "attempt"))
	}
	return text
}

func (r reason) printState(a *app.App, row func(string, string, ...any)) {
	since := func(at time.Time) string { return ago(a.Now().Sub(at)) + ", since " + at.Local().Format("15:04:05") }
	row("state", "%s for %s", styled(a.Theme, r.Agent), since(r.Agent.Since))
	row("known by", "%s, in its event log", evidence(string(r.Agent.Source), string(r.Agent.Confidence)))
	if r.Now == nil {
		row("now", "%s", a.Theme.Warn.Render("its supervisor does not answer"))
	} else {
		row("now", "%s says its supervisor, by %s; process %d", r.Now.State, evidence(string(r.Now.Source), string(r.Now.Confidence)), r.Now.PID)
		if r.Now.Held {
			row("held", "a message waits for the person who types in the pane")
		}
		if r.Now.Queued > 0 {
			row("queued", "%s", count(r.Now.Queued, "message"))
		}
	}
	if w := r.Agent.Waiting; w != nil {
		row("waits for", "%s: %s (%s)", w.For, cell(w.Text), evidence(string(w.Source), string(w.Confidence)))
	}
	if l := r.Agent.Limit; l != nil {
		text := cell(l.Text)
		if l.RetryAt != nil {
			text += ", until " + l.RetryAt.Local().Format("15:04:05")
		}
		row("limited", "%s (%s)", text, evidence(string(l.Source), string(l.Confidence)))
	}
	if r.Agent.State == pty.AgentWorking && r.Agent.Doing != "" {
		row("doing", "%s", cell(r.Agent.Doing))
	}
	row("heard", "%s", since(r.Agent.Last))
}

func (r reason) printBudget(row func(string, string, ...any)) {
	var parts []string
	for _, name := range orchestrator.BudgetFields() {
		used, limit := r.Used.Field(name), r.Limits.Field(name)
		if used == 0 && limit == 0 {
			continue
		}
		part := name + " " + orchestrator.FormatBudget(name, used)
		if limit > 0 {
			part += " of " + orchestrator.FormatBudget(name, limit)
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		row("budget", "%s", strings.Join(parts, ", "))
	}
	if r.Over != "" {
		row("over", "%s", r.Over)
	}
}

// proof says how an event is known.
func proof(e history.Event) string {
	if e.Log == nil {
		return e.Source
	}
	l := e.Log
	switch {
	case l.Ready != nil:
		return evidence(string(l.Ready.Source), string(l.Ready.Confidence))
	case l.Message != nil && l.Message.Evidence != "":
		return string(l.Message.Evidence)
	case l.TurnStart != nil:
		return evidence(string(l.TurnStart.Source), string(l.TurnStart.Confidence))
	case l.TurnEnd != nil:
		return evidence(string(l.TurnEnd.Source), string(l.TurnEnd.Confidence))
	case l.Waiting != nil:
		return evidence(string(l.Waiting.Source), string(l.Waiting.Confidence))
	case l.Limit != nil:
		return evidence(string(l.Limit.Source), string(l.Limit.Confidence))
	}
	return "its supervisor"
}
