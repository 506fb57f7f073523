// Package message holds the commands that speak with an agent: send and logs.
package message

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/id"
	"muntin/internal/state"
	"muntin/internal/term"
)

// SendOptions are send's arguments.
type SendOptions struct {
	App                    *app.App
	Run, Agent, Text       string
	Steer, FollowUp, Abort bool
	Wait                   bool
	Until                  string
	Timeout                time.Duration
	Deadline               time.Duration
	JSON                   bool
}

// NewSend makes `muntin send`.
func NewSend(a *app.App) *cobra.Command {
	o := SendOptions{App: a}
	cmd := &cobra.Command{
		Use:   "send <agent> [text]",
		Short: "Send an agent a prompt, and see that it arrived",
		Long: "Send a message to an agent. It is kept in the agent's inbox, delivered exactly\n" +
			"once, and held while a person is typing in the pane. The state that it reached\n" +
			"is printed with its evidence; the exit status is 0 only when that is at least\n" +
			"accepted (with --wait: done). Without a text, standard input is sent.",
		Example: "  muntin send ada \"add a test for the empty file\" --wait\n" +
			"  git diff | muntin send ada --steer",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return app.Usage("want an agent and a text in quotes, got %d arguments", len(args))
			}
			return nil
		},
		RunE: a.Interruptible(func(ctx context.Context, args []string) error {
			o.Agent, o.Text = args[0], strings.Join(args[1:], "")
			return send(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.Steer, "steer", false, "put it into the running turn")
	f.BoolVar(&o.FollowUp, "follow-up", false, "let it wait for the end of the turn")
	f.BoolVar(&o.Abort, "abort", false, "end the running turn; no text is needed")
	f.DurationVar(&o.Deadline, "deadline", 0, "let it fail if it was not handed over after this long (default: it waits)")
	o.waitFlags(cmd)
	return cmd
}

// waitFlags are those about what the command waits for and prints.
func (o *SendOptions) waitFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "the run (default: the living one)")
	f.BoolVarP(&o.Wait, "wait", "w", false, "wait for the end of the turn and print the answer")
	f.StringVar(&o.Until, "until", "", "the state to wait for: queued, delivered, accepted or done")
	f.DurationVar(&o.Timeout, "timeout", 0, "give up waiting after this long (exit status 124; default: 30s, with --wait none)")
	f.BoolVar(&o.JSON, "json", false, "print the outcome as JSON")
}

// sent is what `send --json` prints.
type sent struct {
	Run      string           `json:"run"`
	Agent    string           `json:"agent"`
	ID       string           `json:"id"`
	State    pty.MessageState `json:"state"`
	Evidence string           `json:"evidence,omitempty"`
	Why      string           `json:"why,omitempty"`
	Turn     *pty.TurnEndInfo `json:"turn,omitempty"`
}

func send(ctx context.Context, o SendOptions) error {
	m, err := o.message()
	if err != nil {
		return err
	}
	return deliver(ctx, o, m)
}

// deliver sends the message, follows it and prints how far it came.
func deliver(ctx context.Context, o SendOptions, m pty.Message) error {
	until, err := o.until()
	if err != nil {
		return err
	}
	run, err := o.App.Run(o.Run)
	if err != nil {
		return err
	}
	dir, err := app.Agent(run, o.Agent)
	if err != nil {
		return err
	}
	if t := o.timeout(); t > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t)
		defer cancel()
	}
	info, err := pty.Deliver(ctx, dir, pty.Delivery{Message: m, Until: until, OnState: o.progress()})
	res := sent{Run: run.Name, Agent: o.Agent, ID: m.ID, State: info.State, Evidence: string(info.Evidence), Why: info.Why}
	if err == nil && info.State == pty.StateDone && o.Wait {
		res.Turn = turnOf(dir, m.ID)
	}
	return o.outcome(res, until, err)
}

func (o SendOptions) until() (pty.MessageState, error) {
	if o.Wait {
		if o.Until != "" {
			return "", app.Usage("say --wait or --until, not both")
		}
		return pty.StateDone, nil
	}
	if o.Until == "" {
		if o.Abort || o.FollowUp {
			return pty.StateDelivered, nil
		}
		return pty.StateAccepted, nil
	}
	s := pty.MessageState(o.Until)
	switch s {
	case pty.StateQueued, pty.StateDelivered, pty.StateAccepted, pty.StateDone:
		return s, nil
	case pty.StateHeld, pty.StateFailed:
	}
	return "", app.Usage("--until %q: want queued, delivered, accepted or done", o.Until)
}

func (o SendOptions) timeout() time.Duration {
	if o.Timeout == 0 && !o.Wait && o.Until != string(pty.StateDone) {
		return 30 * time.Second
	}
	return o.Timeout
}

func (o SendOptions) message() (pty.Message, error) {
	a := o.App
	m := pty.Message{ID: id.New(a.Now()), Kind: pty.KindPrompt, Text: o.Text, From: "user", Time: a.Now()}
	if from := a.Getenv("MUNTIN_AGENT"); from != "" {
		m.From = from
	}
	kinds := 0
	for kind, set := range map[pty.MessageKind]bool{pty.KindSteer: o.Steer, pty.KindFollowUp: o.FollowUp, pty.KindAbort: o.Abort} {
		if set {
			m.Kind = kind
			kinds++
		}
	}
	if o.Deadline < 0 {
		return m, app.Usage("--deadline %s: want a time from now", o.Deadline)
	}
	if o.Deadline > 0 {
		at := m.Time.Add(o.Deadline)
		m.Deadline = &at
	}
	if kinds > 1 {
		return m, app.Usage("say one of --steer, --follow-up and --abort")
	}
	if m.Text == "" && !o.Abort {
		if a.Streams.InTTY {
			return m, app.Usage("there is no text: give it in quotes or on standard input")
		}
		b, err := io.ReadAll(a.Streams.In)
		if err != nil {
			return m, fmt.Errorf("reading standard input: %w", err)
		}
		m.Text = strings.TrimRight(string(b), "\n")
		if m.Text == "" {
			return m, app.Usage("the text is empty")
		}
	}
	return m, nil
}

// progress tells a person who watches what the message is waiting for.
func (o SendOptions) progress() func(pty.MessageInfo) {
	a := o.App
	if o.JSON {
		return nil
	}
	return func(info pty.MessageInfo) {
		switch {
		case info.State == pty.StateHeld:
			fmt.Fprintf(a.Streams.Err, "%s %s\n", a.Theme.Warn.Render("held:"), info.Why)
		case info.State == pty.StateAccepted && o.Wait:
			fmt.Fprintf(a.Streams.Err, "%s by %s (%s)\n", a.Theme.Dim.Render("accepted"), o.Agent, info.Evidence)
		}
	}
}

// outcome prints how far the message came and picks the exit status.
func (o SendOptions) outcome(res sent, until pty.MessageState, err error) error {
	a := o.App
	var undelivered *pty.DeliveryError
	if err != nil && !errors.As(err, &undelivered) {
		return err
	}
	if err == nil && !res.State.Reached(until) && !res.State.Ended() {
		err = fmt.Errorf("%w: the message to %s is %s", pty.ErrNotRunning, o.Agent, res.State)
	}
	if o.JSON {
		if jsonErr := a.PrintJSON(res); jsonErr != nil {
			return jsonErr
		}
		if err != nil {
			return app.Exit(app.Code(codeOf(res, err)))
		}
	}
	switch {
	case err != nil && res.State == pty.StateHeld:
		return app.NeedsPerson(err)
	case err != nil:
		return codeOf(res, err)
	case res.State == pty.StateFailed:
		return fmt.Errorf("the message to %s failed: %s", o.Agent, res.Why)
	case res.Turn != nil && res.Turn.Reason != pty.TurnDone:
		return fmt.Errorf("the turn of %s ended: %s %s", o.Agent, res.Turn.Reason, res.Turn.Error)
	case o.JSON:
		return nil
	case res.Turn != nil && res.Turn.Text != "":
		fmt.Fprintln(a.Streams.Out, term.Clean(res.Turn.Text))
		return nil
	}
	fmt.Fprintf(a.Streams.Out, "%s %s (%s) %s\n", a.Theme.Good.Render("✓"), res.State, res.Evidence, a.Theme.Dim.Render(res.ID))
	return nil
}

func codeOf(res sent, err error) error {
	if errors.Is(err, pty.ErrNotRunning) {
		return app.Hint(err, "it stays in the inbox as %s and is delivered when the agent runs again", res.ID)
	}
	return err
}

// turnOf finds how the turn that a message began has ended.
func turnOf(dir state.AgentDir, message string) *pty.TurnEndInfo {
	var end *pty.TurnEndInfo
	_, _ = pty.ReadEvents(dir, 0, func(e pty.Event, _ int64) error {
		if e.TurnEnd != nil && e.TurnEnd.Message == message {
			end = e.TurnEnd
		}
		return nil
	})
	return end
}
