package message

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/cast"
	"muntin/internal/durable"
	"muntin/internal/state"
	"muntin/internal/term"
	"muntin/orchestrator/watch"
)

// LogsOptions are logs' arguments.
type LogsOptions struct {
	App        *app.App
	Run, Agent string
	Follow     bool
	JSON       bool
	Screen     bool
	Lines      int
}

// NewLogs makes `muntin logs`.
func NewLogs(a *app.App) *cobra.Command {
	o := LogsOptions{App: a}
	cmd := &cobra.Command{
		Use:   "logs <agent>",
		Short: "What an agent did: turns, tools, checkpoints, messages",
		Args:  app.Args(1, 1, "an agent"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Agent = args[0]
			return logs(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the living one)")
	f.BoolVarP(&o.Follow, "follow", "f", false, "go on until interrupted")
	f.IntVarP(&o.Lines, "lines", "n", 0, "only the last lines (0: all)")
	f.BoolVar(&o.JSON, "json", false, "print the events as they are in events.jsonl")
	f.BoolVar(&o.Screen, "screen", false, "print the recorded bytes of the pane instead")
	cmd.MarkFlagsMutuallyExclusive("json", "screen")
	cmd.MarkFlagsMutuallyExclusive("follow", "screen")
	return cmd
}

func logs(ctx context.Context, o LogsOptions) error {
	run, err := o.App.Run(o.Run)
	if err != nil {
		return err
	}
	dir, err := app.Agent(run, o.Agent)
	if err != nil {
		return err
	}
	if o.Screen {
		return screen(dir, o.App.Streams.Raw())
	}
	p := &printer{o: o, theme: o.App.Theme, out: o.App.Streams.Out}
	next, err := p.history(dir)
	if err != nil || !o.Follow {
		return err
	}
	tail, err := watch.Follow(ctx, watch.Options{}, func(line watch.Line) error {
		if line.Err != nil {
			return line.Err
		}
		return p.line(line.Data)
	})
	if err != nil {
		return err
	}
	defer tail.Close()
	if err := tail.Add(dir.Events(), next); err != nil {
		return err
	}
	return tail.Wait()
}

// A printer prints events for people, or as they are.
type printer struct {
	o     LogsOptions
	theme term.Theme
	out   io.Writer
}

func (p *printer) history(dir state.AgentDir) (int64, error) {
	var lines [][]byte
	next, err := durable.Lines(dir.Events(), 0, func(line []byte, _ int64) error {
		lines = append(lines, line)
		if p.o.Lines > 0 && len(lines) > p.o.Lines {
			lines = lines[1:]
		}
		return nil
	})
	if err != nil {
		return next, err
	}
	for _, line := range lines {
		if err := p.line(line); err != nil {
			return next, err
		}
	}
	return next, nil
}

func (p *printer) line(line []byte) error {
	if p.o.JSON {
		_, err := fmt.Fprintf(p.out, "%s\n", line)
		return err
	}
	var e pty.Event
	if err := json.Unmarshal(line, &e); err != nil {
		_, err := fmt.Fprintf(p.out, "%s\n", p.theme.Bad.Render("a line that is no event: "+term.CleanLine(string(line))))
		return err
	}
	text := p.describe(e)
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintf(p.out, "%s  %s\n", p.theme.Dim.Render(e.Time.Local().Format("15:04:05")), text)
	return err
}

// describe is an event in a line, empty for those that say nothing new.
func (p *printer) describe(e pty.Event) string {
	t := p.theme
	switch e.Kind {
	case pty.EventStart:
		return t.Strong.Render("started") + "  " + term.CleanLine(strings.Join(e.Start.Argv, " "))
	case pty.EventReady:
		return t.Good.Render("ready") + source(t, string(e.Ready.Source))
	case pty.EventMessage:
		return p.message(*e.Message)
	case pty.EventTurnStart:
		return t.Busy.Render(fmt.Sprintf("turn %d", e.Turn)) + taskOf(t, e.TurnStart.Task) + source(t, string(e.TurnStart.Source))
	case pty.EventTool:
		mark := t.Dim.Render("·")
		if e.Tool.IsError {
			mark = t.Bad.Render("✗")
		}
		return fmt.Sprintf("  %s %s %s", mark, t.Accent.Render(term.CleanLine(e.Tool.Name)), term.CleanLine(e.Tool.Summary))
	case pty.EventCheckpoint:
		return fmt.Sprintf("  %s #%d  %s  %s", t.Dim.Render("checkpoint"), e.Checkpoint.ID, short(e.Checkpoint.Commit), files(e.Checkpoint.Files))
	case pty.EventCheckpointFailed:
		return t.Bad.Render("checkpoint failed: ") + term.CleanLine(e.Error)
	case pty.EventTurnEnd:
		return p.turnEnd(e)
	case pty.EventWaiting:
		if e.Waiting.For == pty.WaitNothing {
			return t.Dim.Render("  it goes on") + source(t, string(e.Waiting.Source))
		}
		return t.Warn.Render("waits for "+string(e.Waiting.For)) + " " + term.CleanLine(e.Waiting.Text) + source(t, string(e.Waiting.Source))
	case pty.EventLimit:
		text := t.Bad.Render("limited") + " " + term.CleanLine(e.Limit.Text)
		if e.Limit.RetryAt != nil {
			text += t.Dim.Render("  until " + e.Limit.RetryAt.Local().Format("Jan 02 15:04"))
		}
		return text + source(t, string(e.Limit.Source))
	case pty.EventUsage:
		return p.usage(*e.Usage)
	case pty.EventWarning:
		return t.Warn.Render("warning: ") + term.CleanLine(e.Warning.Text)
	case pty.EventExit:
		return t.Strong.Render("ended") + fmt.Sprintf("  status %d %s", e.Exit.Code, e.Exit.Signal)
	}
	return string(e.Kind)
}

// usage is one line of what a turn has used by now.
func (p *printer) usage(u pty.UsageInfo) string {
	var parts []string
	if u.Usage != nil {
		parts = append(parts, fmt.Sprintf("%d in, %d out", u.Usage.Input+u.Usage.CacheRead+u.Usage.CacheWrite, u.Usage.Output))
	}
	if r := u.Resources; r != nil {
		parts = append(parts, fmt.Sprintf("%d processes, %d MB", r.Processes, r.Memory>>20))
	}
	return p.theme.Dim.Render("  so far: " + strings.Join(parts, "; "))
}

func (p *printer) message(m pty.MessageInfo) string {
	t := p.theme
	switch m.State {
	case pty.StateQueued:
		from := m.From
		if from == "" {
			from = "?"
		}
		return fmt.Sprintf("%s from %s%s: %s", t.Command.Render(string(m.Kind)), from, taskOf(t, m.Task), term.Truncate(term.CleanLine(m.Text), 100))
	case pty.StateHeld:
		return t.Warn.Render("held: ") + term.CleanLine(m.Why)
	case pty.StateFailed:
		return t.Bad.Render("message failed: ") + term.CleanLine(m.Why)
	case pty.StateDelivered, pty.StateAccepted, pty.StateDone:
	}
	return ""
}

func (p *printer) turnEnd(e pty.Event) string {
	t, end := p.theme, e.TurnEnd
	mark := t.Good.Render(fmt.Sprintf("turn %d %s", e.Turn, end.Reason))
	if end.Reason != pty.TurnDone {
		mark = t.Bad.Render(fmt.Sprintf("turn %d %s", e.Turn, end.Reason))
	}
	text := fmt.Sprintf("%s  %s", mark, (time.Duration(end.DurationMS) * time.Millisecond).Round(100*time.Millisecond))
	if end.Usage != nil {
		text += t.Dim.Render(fmt.Sprintf("  %d in, %d out", end.Usage.Input+end.Usage.CacheRead+end.Usage.CacheWrite, end.Usage.Output))
	}
	if words := term.CleanLine(end.Error + end.Text); words != "" {
		text += "  " + term.Truncate(words, 100)
	}
	return text
}

func source(t term.Theme, s string) string { return t.Dim.Render("  (" + s + ")") }

func taskOf(t term.Theme, task string) string {
	if task == "" {
		return ""
	}
	return "  " + t.Accent.Render("^"+task)
}

func short(commit string) string { return commit[:min(len(commit), 8)] }

func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// screen prints what the recording holds, byte for byte as the pane got it.
func screen(dir state.AgentDir, out io.Writer) error {
	return cast.Read(dir.Screen(), func(e cast.Event) error {
		if e.Code != cast.Output {
			return nil
		}
		_, err := io.WriteString(out, e.Data)
		return err
	})
}
