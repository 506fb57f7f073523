package know

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
	"muntin/orchestrator"
	"muntin/orchestrator/history"
)

// NewTop makes `muntin top`.
func NewTop(a *app.App) *cobra.Command {
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "The agents of a run as they work, live",
		Long: "Show the agents of a run: what each does, since when and by what evidence. It is\n" +
			"drawn again when something happens, and at no other time, so times are clock times.\n" +
			"q or Ctrl-C ends it. Without a terminal each change is a line.",
		Example: "  muntin top\n  muntin top --json | jq .agents",
		Args:    app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			run, err := a.Run(name)
			if err != nil {
				return err
			}
			if asJSON {
				return topJSON(ctx, a, run)
			}
			if a.Streams.Interactive() {
				return topFull(ctx, a, run)
			}
			return topPlain(ctx, a, run)
		}),
	}
	cmd.Flags().StringVar(&name, "run", "", "the run (default: the living one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the present state once, as JSON")
	return cmd
}

// A topRow is an agent as `top --json` prints it.
type topRow struct {
	history.Agent
	Task    string                `json:"task,omitempty"` // that it was given
	Tokens  int64                 `json:"tokens"`
	Trouble *orchestrator.Trouble `json:"trouble,omitempty"`
}

// topView is what `top --json` prints.
type topView struct {
	Run    string                         `json:"run"`
	Phase  orchestrator.Phase             `json:"phase"`
	Served bool                           `json:"orchestrator"`
	Tasks  map[orchestrator.TaskState]int `json:"tasks"`
	Agents []topRow                       `json:"agents"`
}

func viewOf(v history.View) topView {
	out := topView{Run: v.Run.Name, Phase: v.State.Phase, Served: v.Run.Served(), Tasks: map[orchestrator.TaskState]int{}}
	for _, t := range v.State.Tasks {
		if !t.Group {
			out.Tasks[t.State]++
		}
	}
	for _, a := range v.Agents {
		row := topRow{Agent: a, Task: a.Task, Tokens: a.Used.Tokens()}
		if of := v.State.Agents[a.Name]; out.Served {
			if row.Task = of.Task; row.Task == "" {
				row.Task = a.Task
			}
			if t := v.State.Trouble(of); t.Kind != "" {
				row.Trouble = &t
			}
		}
		out.Agents = append(out.Agents, row)
	}
	return out
}

func topJSON(_ context.Context, a *app.App, run orchestrator.Run) error {
	v, err := history.Now(run)
	if err != nil {
		return err
	}
	return a.PrintJSON(viewOf(v))
}

func topFull(ctx context.Context, a *app.App, run orchestrator.Run) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	full, err := term.OpenFull(ctx, a.Streams)
	if err != nil {
		return err
	}
	views := make(chan []string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- history.Watch(ctx, run, func(v history.View) (bool, time.Time) {
			lines := topLines(a, viewOf(v))
			select { // nobody has seen the last one: this one says more
			case <-views:
			default:
			}
			views <- lines
			return false, time.Time{}
		})
	}()
	err = topLoop(ctx, full, views, ended)
	stop()
	return errors.Join(err, full.Close())
}

func topLoop(ctx context.Context, full *term.Full, views <-chan []string, ended <-chan error) error {
	var last []string
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case last = <-views:
		case <-full.Resized():
		case key, ok := <-full.Keys():
			if !ok || key == 'q' || key == 3 {
				return nil
			}
			continue
		}
		if err := full.Draw(last); err != nil {
			return err
		}
	}
}

func topLines(a *app.App, v topView) []string {
	t := a.Theme
	head := fmt.Sprintf("%s  %s", t.Title.Render(v.Run), t.Busy.Render(string(v.Phase)))
	if !v.Served {
		head += t.Warn.Render("  no orchestrator")
	}
	for _, s := range []orchestrator.TaskState{orchestrator.TaskDone, orchestrator.TaskActive, orchestrator.TaskOpen, orchestrator.TaskBlocked, orchestrator.TaskWaiting} {
		if n := v.Tasks[s]; n > 0 {
			head += t.Dim.Render(fmt.Sprintf("  %d %s", n, s))
		}
	}
	var b strings.Builder
	table := term.NewTable("AGENT", "STATE", "SINCE", "BY", "TURN", "TASK", "QUEUED", "TOKENS", "")
	for _, row := range v.Agents {
		table.Row(row.Name, styled(t, row.Agent), row.Since.Local().Format("15:04:05"), evidence(string(row.Source), string(row.Confidence)), fmt.Sprint(row.Turn),
			caret(row.Task), fmt.Sprint(row.Queued), amount(row.Tokens), doing(t, row))
	}
	_ = table.Write(&b, t, 0) // into memory
	lines := []string{head, ""}
	return append(lines, strings.Split(strings.TrimRight(b.String(), "\n"), "\n")...)
}

func doing(t term.Theme, row topRow) string {
	switch {
	case row.Trouble != nil && row.Trouble.NeedsPerson():
		return t.Bad.Render("needs a person: "+string(row.Trouble.Kind)) + " " + cell(row.Trouble.Why)
	case row.Waiting != nil:
		return t.Warn.Render("waits for "+string(row.Waiting.For)) + " " + cell(row.Waiting.Text)
	case row.Trouble != nil:
		return t.Warn.Render(string(row.Trouble.Kind)) + " " + cell(row.Trouble.Why)
	}
	return t.Dim.Render(cell(row.Doing))
}

func evidence(source, confidence string) string {
	if confidence != "" {
		return source + "/" + confidence
	}
	return source
}

func caret(task string) string {
	if task == "" {
		return "-"
	}
	return "^" + cell(task)
}

func styled(t term.Theme, a history.Agent) string {
	state := a.Short()
	switch state {
	case string(pty.AgentWorking):
		return t.Busy.Render(state)
	case string(pty.AgentIdle):
		return t.Good.Render(state)
	case string(pty.AgentStarting), "waiting", "limited":
		return t.Warn.Render(state)
	}
	return t.Dim.Render(state)
}

// amount is a number of tokens in three digits.
func amount(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%dk", n/1000)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprint(n)
}

// topPlain prints a line for each change, until the run has ended.
func topPlain(ctx context.Context, a *app.App, run orchestrator.Run) error {
	last := map[string]string{}
	dead := !run.Alive()
	err := history.Watch(ctx, run, func(v history.View) (bool, time.Time) {
		say := func(key, line string) {
			if last[key] != line {
				last[key] = line
				fmt.Fprintln(a.Streams.Out, line)
			}
		}
		say("", fmt.Sprintf("run %s: %s", run.Name, v.State.Phase))
		for _, ag := range v.Agents {
			line := fmt.Sprintf("%s: %s", ag.Name, ag.Short())
			if ag.Task != "" {
				line += " on ^" + cell(ag.Task)
			}
			if ag.Turn > 0 {
				line += fmt.Sprintf(", turn %d", ag.Turn)
			}
			if e := evidence(string(ag.Source), string(ag.Confidence)); e != "" {
				line += " (" + e + ")"
			}
			say(ag.Name, line)
		}
		return dead || v.Ended(), time.Time{}
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
