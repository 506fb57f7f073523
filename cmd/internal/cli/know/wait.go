package know

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muntin/cmd/internal/cli/app"
	"muntin/orchestrator/history"
	"muntin/orchestrator/until"
)

// WaitOptions are wait's arguments.
type WaitOptions struct {
	App     *app.App
	Run     string
	Until   string
	Timeout time.Duration
	JSON    bool
}

// waited is what `wait --json` prints.
type waited struct {
	Run   string `json:"run"`
	Until string `json:"until"`
	Held  bool   `json:"held"`
	Why   string `json:"why,omitempty"` // it did not hold: "timeout", "ended"
	MS    int64  `json:"ms"`            // that were waited
}

// NewWait makes `muntin wait`.
func NewWait(a *app.App) *cobra.Command {
	o := WaitOptions{App: a}
	cmd := &cobra.Command{
		Use:   "wait --until <condition>",
		Short: "Wait until something is so",
		Long: "Wait until a condition about the run holds. It is looked at whenever something\n" +
			"happens, and when a time it speaks of has come; nothing is polled.\n\n" +
			"  of the run   phase (starting, running, waiting, done);\n" +
			"               tasks, done, open, active, blocked, waiting, cancelled (numbers)\n" +
			"  of an agent  ada.state (starting, idle, working, waiting, limited, exited, unknown),\n" +
			"               ada.task, ada.turn, ada.queued, ada.for, ada.idle (durations), ada.stalled\n" +
			"  any.state, all.state and so on are about the agents together\n" +
			"  of a task    ^sum (it is done), ^sum.state (the board's)\n" +
			"  with         == != < <= > >=  and or not ( )\n\n" +
			"Exit codes: 0 it holds, 124 the time is up, 3 it can never hold because the run has\n" +
			"ended, 2 the condition is wrong.",
		Example: "  muntin wait --until 'done == tasks' --timeout 1h\n" +
			"  muntin wait --until 'any.state == waiting or any.stalled'\n" +
			"  muntin wait --until '^sum and ada.idle > 30s'",
		Args: app.Args(0, 0, ""),
		RunE: a.Interruptible(func(ctx context.Context, _ []string) error {
			return wait(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Until, "until", "", "the condition")
	f.StringVar(&o.Run, "run", "", "the run (default: the living one)")
	f.DurationVar(&o.Timeout, "timeout", 0, "give up after this time (default: never)")
	f.BoolVar(&o.JSON, "json", false, "print how it ended as JSON")
	return cmd
}

var (
	errTimeout = errors.New("the time is up")
	errNever   = errors.New("the run has ended, so it can never hold")
)

func wait(ctx context.Context, o WaitOptions) error {
	if o.Until == "" {
		return app.Usage("say what to wait for with --until")
	}
	run, err := o.App.Run(o.Run)
	if err != nil {
		return err
	}
	names, err := run.AgentNames()
	if err != nil {
		return err
	}
	expr, err := until.Parse(o.Until, until.Names{Agents: names})
	if err != nil {
		return app.Usage("reading the condition: %w", err)
	}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
		defer cancel()
	}
	start := o.App.Now()
	dead := !run.Alive()
	held := false
	err = history.Watch(ctx, run, func(v history.View) (bool, time.Time) {
		now := time.Now()
		holds, wake := expr.Holds(v, now)
		held = holds
		return holds || dead || v.Ended(), wake
	})
	out := waited{Run: run.Name, Until: o.Until, Held: held, MS: o.App.Now().Sub(start).Milliseconds()}
	code := app.ExitFailed
	switch {
	case errors.Is(err, errTimeout):
		out.Why, code = "timeout", app.ExitDeadline
	case err != nil:
		return err
	case !held:
		out.Why, code, err = "ended", app.ExitPerson, errNever
	}
	if o.JSON {
		if printErr := o.App.PrintJSON(out); printErr != nil || err == nil {
			return printErr
		}
	}
	if err == nil {
		return nil
	}
	return &app.ExitError{Code: code, Err: fmt.Errorf("waiting until %s in run %s: %w", o.Until, run.Name, err)}
}
