package message

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
)

// MsgOptions are the arguments of msg's commands.
type MsgOptions struct {
	App        *app.App
	Run, Agent string
	State      string
	JSON       bool
}

// NewMsg makes `muntin msg`.
func NewMsg(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "msg",
		Short: "List, show, cancel and retry the messages to an agent",
		Long: "Every message to an agent is a file until it has ended, and after: what failed is\n" +
			"kept with the reason. Ids may be cut short as long as they name one message.",
		Args: cobra.ArbitraryArgs, RunE: app.Subcommand,
	}
	cmd.AddCommand(newMsgLs(a), newMsgShow(a), newMsgCancel(a), newMsgRetry(a))
	return cmd
}

func (o *MsgOptions) flags(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&o.Run, "run", "", "the run (default: the living one)")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

// dir finds the agent's folder.
func (o MsgOptions) dir() (state.AgentDir, error) {
	run, err := o.App.Run(o.Run)
	if err != nil {
		return state.AgentDir{}, err
	}
	return app.Agent(run, o.Agent)
}

func newMsgLs(a *app.App) *cobra.Command {
	o := MsgOptions{App: a}
	cmd := &cobra.Command{
		Use:     "ls <agent>",
		Short:   "List an agent's messages, the oldest first",
		Example: "  muntin msg ls ada --state failed",
		Args:    app.Args(1, 1, "an agent"),
		RunE: a.Interruptible(func(_ context.Context, args []string) error {
			o.Agent = args[0]
			return msgLs(o)
		}),
	}
	cmd.Flags().StringVar(&o.State, "state", "", "only those that are queued, held, delivered, accepted, done or failed")
	return o.flags(cmd)
}

func msgLs(o MsgOptions) error {
	states := []pty.MessageState{pty.StateQueued, pty.StateHeld, pty.StateDelivered, pty.StateAccepted, pty.StateDone, pty.StateFailed}
	want := pty.MessageState(o.State)
	if want != "" && !slices.Contains(states, want) {
		return app.Usage("--state %q: want queued, held, delivered, accepted, done or failed", o.State)
	}
	dir, err := o.dir()
	if err != nil {
		return err
	}
	list, err := pty.Messages(dir)
	if want != "" {
		list = slices.DeleteFunc(list, func(m pty.MessageStatus) bool { return m.State != want })
	}
	if o.JSON {
		if list == nil {
			list = []pty.MessageStatus{}
		}
		return errors.Join(err, o.App.PrintJSON(list))
	}
	return errors.Join(err, printMessages(o.App, list))
}

func printMessages(a *app.App, list []pty.MessageStatus) error {
	if len(list) == 0 {
		fmt.Fprintln(a.Streams.Out, "there are no such messages")
		return nil
	}
	width := 0
	if a.Streams.OutTTY {
		width, _ = a.Streams.Size()
	}
	table := term.NewTable("ID", "STATE", "KIND", "FROM", "WHEN", "TEXT")
	for _, m := range list {
		text := term.CleanLine(m.Text)
		if m.Why != "" {
			text = a.Theme.Dim.Render("("+term.CleanLine(m.Why)+")") + " " + text
		}
		table.Row(m.ID, paint(a.Theme, m.State), string(m.Kind), term.CleanLine(m.From),
			m.Changed.Local().Format("Jan 02 15:04:05"), term.Truncate(text, 100))
	}
	return table.Write(a.Streams.Out, a.Theme, width)
}

func paint(t term.Theme, s pty.MessageState) string {
	switch s {
	case pty.StateDone:
		return t.Good.Render(string(s))
	case pty.StateFailed:
		return t.Bad.Render(string(s))
	case pty.StateHeld:
		return t.Warn.Render(string(s))
	case pty.StateQueued, pty.StateDelivered, pty.StateAccepted:
	}
	return string(s)
}

func newMsgShow(a *app.App) *cobra.Command {
	o := MsgOptions{App: a}
	return o.flags(&cobra.Command{
		Use:   "show <agent> <id>",
		Short: "Show a message with its text",
		Args:  app.Args(2, 2, "an agent and a message's id"),
		RunE: a.Interruptible(func(_ context.Context, args []string) error {
			o.Agent = args[0]
			_, m, err := o.find(args[1])
			switch {
			case err != nil:
				return err
			case o.JSON:
				return a.PrintJSON(m)
			}
			showMessage(a, m)
			return nil
		}),
	})
}

func showMessage(a *app.App, m pty.MessageStatus) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(a.Streams.Out, "%s %s\n", a.Theme.Dim.Render(fmt.Sprintf("%-9s", name)), value)
		}
	}
	line("id", m.ID)
	line("state", paint(a.Theme, m.State))
	line("evidence", string(m.Evidence))
	line("why", term.CleanLine(m.Why))
	line("kind", string(m.Kind))
	line("from", term.CleanLine(m.From))
	line("task", term.CleanLine(m.Task))
	line("sent", m.Time.Local().Format(time.DateTime))
	line("changed", m.Changed.Local().Format(time.DateTime))
	if m.Deadline != nil {
		line("deadline", m.Deadline.Local().Format(time.DateTime))
	}
	line("retry of", m.RetryOf)
	if m.Text != "" {
		fmt.Fprintf(a.Streams.Out, "\n%s\n", term.Clean(m.Text))
	}
}

// find finds a message by its id or the beginning of it.
func (o MsgOptions) find(prefix string) (state.AgentDir, pty.MessageStatus, error) {
	dir, err := o.dir()
	if err != nil {
		return dir, pty.MessageStatus{}, err
	}
	list, err := pty.Messages(dir)
	if err != nil && len(list) == 0 {
		return dir, pty.MessageStatus{}, err
	}
	var found []pty.MessageStatus
	for _, m := range list {
		if prefix != "" && strings.HasPrefix(m.ID, strings.ToUpper(prefix)) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		err := fmt.Errorf("%w of %s: %s", pty.ErrNoMessage, o.Agent, term.CleanLine(prefix))
		return dir, pty.MessageStatus{}, app.Hint(err, "`%s msg ls %s` lists them", o.App.Command(), o.Agent)
	case 1:
		return dir, found[0], nil
	}
	return dir, pty.MessageStatus{}, app.Usage("%q names %d messages of %s: give more of the id", prefix, len(found), o.Agent)
}

func newMsgCancel(a *app.App) *cobra.Command {
	o := MsgOptions{App: a}
	return o.flags(&cobra.Command{
		Use:   "cancel <agent> <id>",
		Short: "Take a message back that has not been handed over",
		Args:  app.Args(2, 2, "an agent and a message's id"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Agent = args[0]
			dir, m, err := o.find(args[1])
			if err != nil {
				return err
			}
			info, err := pty.Cancel(ctx, dir, m.ID)
			if errors.Is(err, pty.ErrNotCancelled) && !info.State.Ended() {
				err = app.Hint(err, "`%s send %s --abort` ends the turn", a.Command(), o.Agent)
			}
			if err != nil {
				return err
			}
			if o.JSON {
				return a.PrintJSON(info)
			}
			fmt.Fprintf(a.Streams.Out, "%s cancelled %s\n", a.Theme.Good.Render("✓"), a.Theme.Dim.Render(m.ID))
			return nil
		}),
	})
}

func newMsgRetry(a *app.App) *cobra.Command {
	o := SendOptions{App: a}
	cmd := &cobra.Command{
		Use:   "retry <agent> <id>",
		Short: "Send a failed message again, as a new one",
		Long: "Send the text of a failed message again. It gets an id of its own: nothing is\n" +
			"delivered twice by one. Prints and exits as send does.",
		Args: app.Args(2, 2, "an agent and a message's id"),
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Agent = args[0]
			_, m, err := (MsgOptions{App: a, Run: o.Run, Agent: o.Agent}).find(args[1])
			if err != nil {
				return err
			}
			again, err := m.Again(a.Now())
			if err != nil {
				return err
			}
			o.Steer, o.FollowUp, o.Abort = again.Kind == pty.KindSteer, again.Kind == pty.KindFollowUp, again.Kind == pty.KindAbort
			return deliver(ctx, o, again)
		}),
	}
	o.waitFlags(cmd)
	return cmd
}
