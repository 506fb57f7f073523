package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator"
)

// A runRow is a run as `ls` shows it.
type runRow struct {
	Name    string             `json:"name"`
	Recipe  string             `json:"recipe"`
	Repo    string             `json:"repo"`
	Alive   bool               `json:"alive"`
	Served  bool               `json:"orchestrator"` // it is at work
	Phase   orchestrator.Phase `json:"phase"`
	Branch  string             `json:"branch"`
	Created time.Time          `json:"created"`
	Agents  []agentRow         `json:"agents"`
}

// An agentRow is an agent as `ls` shows it. Source says where State is from:
// "socket" when its supervisor said so now, "log" when it is the last thing
// that was written down.
type agentRow struct {
	Name   string    `json:"name"`
	State  string    `json:"state"`
	Source string    `json:"source"`
	Since  time.Time `json:"since"`
	Turn   int       `json:"turn"`
	Task   string    `json:"task,omitempty"`
	Queued int       `json:"queued"`
	PID    int       `json:"pid,omitempty"` // the supervisor's

	Trouble *orchestrator.Trouble `json:"trouble,omitempty"` // what keeps it, as the orchestrator has it
}

// NewLs makes `muntin ls`.
func NewLs(a *app.App) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List runs and what their agents are doing",
		Args:  app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			return ls(ctx, a, all, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "runs of all repositories, and ended ones")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func ls(ctx context.Context, a *app.App, all, asJSON bool) error {
	runs, err := a.Runs(all)
	if err != nil && len(runs) == 0 {
		return err
	}
	rows := []runRow{}
	ended := 0
	for _, run := range runs {
		alive := run.Alive()
		if !alive && !all && !asJSON {
			ended++
			continue
		}
		rows = append(rows, rowOf(ctx, run, alive))
	}
	if asJSON {
		return errors.Join(err, a.PrintJSON(rows))
	}
	return errors.Join(err, printRuns(a, rows, ended))
}

func rowOf(ctx context.Context, run orchestrator.Run, alive bool) runRow {
	standing := orchestrator.LastStanding(run.Dir)
	row := runRow{
		Name: run.Name, Recipe: run.From, Repo: run.Repo, Alive: alive, Served: run.Served(), Branch: run.Branch,
		Phase: standing.Phase, Created: run.Created, Agents: agentRows(ctx, run),
	}
	for i, agent := range row.Agents {
		if trouble, ok := standing.Troubles[agent.Name]; ok && row.Served {
			row.Agents[i].Trouble = &trouble
		}
	}
	return row
}

func agentRows(ctx context.Context, run orchestrator.Run) []agentRow {
	names, err := run.AgentNames()
	if err != nil {
		return nil
	}
	rows := []agentRow{}
	for _, name := range names {
		rows = append(rows, askAgent(ctx, run.Dir.Agent(name)))
	}
	return rows
}

// askAgent asks the supervisor; where none answers, the log has the last word.
func askAgent(ctx context.Context, dir state.AgentDir) agentRow {
	row := agentRow{Name: dir.Name, State: string(pty.AgentUnknown), Source: "log"}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client, err := pty.Dial(ctx, dir.Socket)
	if err == nil {
		defer client.Close()
		if s, err := client.Status(ctx); err == nil {
			return agentRow{
				Name: dir.Name, State: string(s.State), Source: "socket", Since: s.Since,
				Turn: s.Turn, Task: s.Task, Queued: s.Queued, PID: s.PID,
			}
		}
	}
	_, _ = pty.ReadEvents(dir, 0, func(e pty.Event, _ int64) error {
		row.Since = e.Time
		if e.Turn > 0 {
			row.Turn = e.Turn
		}
		if e.Kind == pty.EventExit {
			row.State = string(pty.AgentExited)
		}
		return nil
	})
	return row
}

func printRuns(a *app.App, rows []runRow, ended int) error {
	out, t := a.Streams.Out, a.Theme
	width := 0
	if a.Streams.OutTTY {
		width, _ = a.Streams.Size()
	}
	for i, run := range rows {
		if i > 0 {
			fmt.Fprintln(out)
		}
		life := t.Dim.Render("ended")
		if run.Alive {
			life = t.Good.Render(string(run.Phase))
		}
		if run.Alive && !run.Served {
			life = t.Warn.Render("no orchestrator") + t.Dim.Render("  (bring it back: muntin resume "+run.Name+")")
		}
		fmt.Fprintf(out, "%s  %s  %s\n", t.Title.Render(run.Name), life, t.Dim.Render(term.CleanLine(run.Repo)))
		table := term.NewTable("  AGENT", "STATE", "FOR", "TURN", "TASK", "QUEUED", "")
		for _, agent := range run.Agents {
			table.Row("  "+agent.Name, stateStyle(t, agent), age(a.Now(), agent.Since), fmt.Sprint(agent.Turn), taskCell(agent.Task), fmt.Sprint(agent.Queued), troubleCell(t, agent.Trouble))
		}
		if err := table.Write(out, t, width); err != nil {
			return err
		}
	}
	switch {
	case len(rows) == 0 && ended == 0:
		fmt.Fprintln(out, "no runs; start one with `muntin up <recipe>`, or look at `muntin demo`")
	case len(rows) == 0:
		fmt.Fprintf(out, "no living runs; %d ended, see `muntin ls --all`\n", ended)
	}
	return nil
}

func stateStyle(t term.Theme, row agentRow) string {
	style := t.Dim
	switch pty.AgentState(row.State) {
	case pty.AgentWorking:
		style = t.Busy
	case pty.AgentIdle:
		style = t.Good
	case pty.AgentStarting:
		style = t.Warn
	case pty.AgentExited, pty.AgentUnknown:
	}
	s := style.Render(row.State)
	if row.Source == "log" && row.State != string(pty.AgentExited) {
		s += t.Dim.Render(" (no supervisor)")
	}
	return s
}

// troubleCell says what keeps an agent, most of all what a person has to do.
func troubleCell(t term.Theme, trouble *orchestrator.Trouble) string {
	if trouble == nil {
		return ""
	}
	style, text := t.Warn, string(trouble.Kind)
	if trouble.NeedsPerson() {
		style, text = t.Bad, "needs a person: "+text
	}
	if until, err := time.Parse(time.RFC3339, trouble.Until); err == nil {
		text += " until " + until.Local().Format("15:04:05")
	}
	if trouble.Why != "" {
		text += t.Dim.Render(" " + term.CleanLine(trouble.Why))
	}
	return style.Render(text)
}

func taskCell(task string) string {
	if task == "" {
		return "-"
	}
	return "^" + task
}

// age is a duration in the largest unit that fits, for a narrow column.
func age(now, since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	d := now.Sub(since).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60), "0m")
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}
